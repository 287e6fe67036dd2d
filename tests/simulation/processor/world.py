"""The schedule: members of a group, the broker, the database and faults take steps in an order drawn from one seed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar
from uuid import UUID

from tests.simulation.processor.database import Blocked, Connection, Database
from tests.simulation.processor.lane import Copies, Deed, Lane, Script, record

from packhorse.core.backoff import Backoff
from packhorse.core.errors import DatabaseUnavailable, PackhorseError
from packhorse.core.message import MessageType
from packhorse.processor.app import Processor
from packhorse.processor.context import Context
from packhorse.processor.member.desk import Desk
from packhorse.processor.member.jobs import BatchJob, Job, OpenJob, Place, Report
from packhorse.processor.offsets.starting import LogEnds, MissingRecords, NoStart, start_of
from packhorse.processor.partition.events import (
    BatchEnded,
    Ended,
    Event,
    Opened,
    OpenFailed,
)
from packhorse.processor.partition.orders import (
    Alarm,
)
from packhorse.processor.partition.state import (
    Limits,
)
from packhorse.processor.policy import Retry
from packhorse.processor.record import Record, Stream, delivery_of
from packhorse.processor.running.batch import Batch, run_batch
from packhorse.processor.running.endings import Contention
from packhorse.processor.running.work import Request, RollBack, RunHandler, Work

TOPIC = "sim.orders"
TOPIC_ID = UUID(int=1)
TYPE = MessageType(type="sim.Placed", version=1, namespace="sim", aggregatetype="orders", schema="{}")
STREAM = Stream(topic=TOPIC, topic_id=TOPIC_ID, source=TOPIC)
ATTEMPTS = 3
ENDLESS = 10_000
LIMITS = Limits(
    batch=4,
    buffered=8,
    commit_every=0.2,
    quick=2.0,
    ask_again=1.0,
    backoff=Backoff(first=0.05, longest=0.4),
)


class Placed:
    __packhorse__: ClassVar[MessageType] = TYPE


def make_app() -> Processor:
    app = Processor("sim")

    @app.handler(Placed, retry=Retry(attempts=ATTEMPTS, delays=["100ms"], budget="1h"))
    def placed(message: Placed, ctx: Context) -> None:
        del message, ctx

    return app


APP = make_app()


class SimClock:
    """Be the port `Clock` on the database's time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def now(self) -> object:
        raise NotImplementedError

    def monotonic(self) -> float:
        return self._database.now


class SimChance:
    """Be the port `Chance` from the world's seed."""

    def __init__(self, random: Random) -> None:
        self.fraction = random.random


@dataclass(slots=True)
class Running:
    """One job that a lane works on, a request at a time."""

    job: Job
    lane: Lane | None = None
    batch: Batch | None = None
    request: Request | None = None
    waited: int = 0


class Fetch:
    """One member's fetcher; after a seek it may bring records of the old position first."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.at: dict[Place, int] = {}
        self.stale: dict[Place, int] = {}
        self.paused: set[Place] = set()
        self.commits: list[tuple[Place, int]] = []

    def attach(self, topic: str, partition: int, offset: int) -> None:
        self.at[topic, partition] = offset

    def seek(self, topic: str, partition: int, offset: int) -> bool:
        place = (topic, partition)
        if self._world.fault("stale fetch"):
            self.stale[place] = self.at[place]
        self.at[place] = offset
        return True

    def pause(self, topic: str, partition: int) -> None:
        self.paused.add((topic, partition))

    def resume(self, topic: str, partition: int) -> None:
        self.paused.discard((topic, partition))

    def commit(self, topic: str, partition: int, position: int, leader_epoch: int | None) -> None:
        del leader_epoch
        self.commits.append(((topic, partition), position))


class Member:
    """One process: the product's desk, with a lane for each partition."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.fetch = Fetch(world)
        self.jobs: list[Running] = []
        self.connections: dict[tuple[Place, int], Connection] = {}
        self._watchdog: Connection | None = world.database.connect() if world.database.up else None
        self.frozen = False
        self.draining: set[Place] = set()
        self.desk = Desk(
            fetcher=self.fetch,
            submit=lambda job: self.jobs.append(Running(job)),
            limits=LIMITS,
            clock=SimClock(world.database),  # type: ignore[arg-type]  # no wall clock here
            chance=SimChance(world.random),  # type: ignore[arg-type]  # no ids here
            alarm=self._alarm,
        )

    def _alarm(self, place: Place, alarm: Alarm) -> None:
        self.world.say(f"{self.name} {place[1]} alarm {alarm.what}: {alarm.text}")

    def watch(self) -> None:
        """Do what the watchdog does each second: find out that the database is another one, also while nothing is to do."""
        if self._watchdog is not None and not self._watchdog.lost:
            return
        try:
            made = self.world.database.connect()
        except DatabaseUnavailable:
            return
        self.desk.voided()
        self._watchdog = made

    def step_job(self, running: Running) -> None:
        """Let a lane do one request."""
        job = running.job
        if isinstance(job, OpenJob):
            self._done(running, self._open(job))
        elif isinstance(job, BatchJob):
            self._step_batch(running, job)

    def _step_batch(self, running: Running, job: BatchJob) -> None:
        nothing = BatchEnded(
            ended=Ended.VOID, position=job.position, leader_epoch=None, handled=0, records=0, size=0
        )
        if running.batch is None:
            if job.fence.up:
                self._done(running, nothing)
                return
            if (lane := self._lane(running, job)) is None:
                self._done(running, nothing)
                return
            running.lane = lane
            return
        assert running.lane is not None
        assert running.request is not None
        self._answer(running, running.lane, running.batch, running.request)

    def _answer(self, running: Running, lane: Lane, batch: Batch, request: Request) -> None:
        world = self.world
        try:
            try:
                world.before(request)
                answer = lane.execute(request)
                world.after(request)
            except Blocked:
                running.waited += 1
                if running.waited < 30:
                    return
                world.end_idle(lane.connection)
                running.request = batch.throw(Contention("lock timeout"))
            except PackhorseError as error:
                if isinstance(error, DatabaseUnavailable):
                    lane.connection.lost, lane.connection.pending = True, None
                running.request = batch.throw(error)
            else:
                running.request = batch.send(answer)
        except StopIteration as done:
            self._done(running, done.value)

    def _lane(self, running: Running, job: BatchJob) -> Lane | None:
        known = self.connections.get((job.place, job.generation))
        connection = self._connection(job)
        if connection is None or (known is not None and known is not connection):
            return None
        work = Work(
            stream=STREAM,
            partition=job.place[1],
            deliveries=[delivery_of(one, STREAM) for one in job.records],
            position=job.position,
            leader_epoch=job.leader_epoch,
            charged=job.charged,
            contended=job.contended,
            tried_below=job.tried_below,
        )
        running.batch = self.world.run_batch(work, APP, jitter=self.world.random.random)
        running.request = next(running.batch)
        return Lane(connection, work, self.world.script, self.world.copies, job.fence)

    def _connection(self, job: Job) -> Connection | None:
        at = (job.place, job.generation)
        known = self.connections.get(at)
        if known is not None and not known.lost and self.world.database.up:
            known.pending = None
            return known
        try:
            made = self.world.database.connect()
        except DatabaseUnavailable:
            return None
        self.connections[at] = made
        if known is not None:
            self.desk.voided()
        return made

    def _open(self, job: Job) -> Event:
        connection, place = self._connection(job), job.place
        if connection is None:
            return OpenFailed(away="database", text="away")
        partition, world = place[1], self.world
        try:
            mark = connection.read_watermark(STREAM, partition)
            ends = world.ends(partition)
            start = start_of(mark, ends, where="sim", group="sim", missing=MissingRecords.STOP)
            if isinstance(start, NoStart):
                return OpenFailed(refused=True, text=start.text)
            if start.first:
                secured = connection.first_watermark(STREAM, partition, start.watermark)
            elif start.adopt:
                secured = connection.adopt_watermark(
                    STREAM, partition, old=mark.offset or 0, new=start.watermark
                )
            else:
                secured = True
        except DatabaseUnavailable:
            return OpenFailed(away="database", text="away")
        if not secured:
            return OpenFailed(away="watermark", text="moved")
        return Opened(
            start=start.offset,
            position=start.watermark,
            leader_epoch=mark.leader_epoch,
            committed=ends.committed,
            topic_id=TOPIC_ID,
        )

    def _done(self, running: Running, event: Event) -> None:
        self.jobs.remove(running)
        self.desk.reported(Report(place=running.job.place, generation=running.job.generation, event=event))


@dataclass(slots=True)
class Plan:
    """How many faults of each kind a schedule has."""

    faults: int = 6
    restores: int = 1
    deeds: bool = True


class World:
    """Everything, and the schedule."""

    run_batch = staticmethod(run_batch)

    def __init__(self, seed: int, plan: Plan | None = None) -> None:
        self.random = Random(seed)
        self.plan = plan or Plan()
        self.seed = seed
        self.trace: list[str] = []
        self.faults_left = self.random.randint(0, self.plan.faults)
        self.restores_left = self.random.randint(0, self.plan.restores)
        self.restored = False
        self.database = Database()
        self.copies = Copies(self.fault)
        self.logs: list[list[Record]] = [[], []]
        self.committed: dict[int, int] = {}
        self.highest: dict[int, int] = {}
        self.owners: dict[int, Member | None] = {0: None, 1: None}
        self.members: list[Member] = [Member(self, "a"), Member(self, "b")]
        self.born = 2
        self.script = Script(self._fill())

    def _fill(self) -> dict[UUID, tuple[Deed, int]]:
        deeds: dict[UUID, tuple[Deed, int]] = {}
        for partition, log in enumerate(self.logs):
            offset = 0
            for n in range(self.random.randint(3, 10)):
                one = UUID(int=(partition + 1) * 1000 + n)
                offset += 1 if self.random.random() < 0.9 else 3  # a hole, as compaction leaves it
                log.append(record(TOPIC, partition, offset - 1, one, TYPE.type))
                if self.random.random() < 0.15:
                    log.append(record(TOPIC, partition, offset, one, TYPE.type))  # published twice
                    offset += 1
                if self.plan.deeds and self.random.random() < 0.3:
                    deed = self.random.choice(list(Deed))
                    deeds[one] = (deed, self._times(deed))
        return deeds

    def _times(self, deed: Deed) -> int:
        """Return how often; what would go on for ever is tried as well, where it must come to an end."""
        endless = deed in {Deed.CUTS, Deed.CONTENDS, Deed.FAILS} and self.random.random() < 0.3
        return ENDLESS if endless else self.random.randint(1, 4)

    def say(self, text: str) -> None:
        self.trace.append(f"{self.database.now:.2f} {text}")

    def fault(self, what: str, chance: float = 0.2) -> bool:
        """Return whether a fault happens now, and remember it."""
        if self.faults_left and self.random.random() < chance:
            self.faults_left -= 1
            self.say(f"fault: {what}")
            return True
        return False

    def ends(self, partition: int) -> LogEnds:
        log = self.logs[partition]
        return LogEnds(0, log[-1].offset + 1, self.committed.get(partition))

    def before(self, request: Request) -> None:
        if self._may_cut(request) and self.fault(f"connection cut before {type(request).__name__}", 0.02):
            raise DatabaseUnavailable("cut")

    def after(self, request: Request) -> None:
        """Lose an answer: what was asked for has happened."""
        if self._may_cut(request) and self.fault(f"connection cut after {type(request).__name__}", 0.02):
            raise DatabaseUnavailable("cut")

    def _may_cut(self, request: Request) -> bool:
        """Spare what never raises; and a handler whose run is cut again and again is blamed, rightly."""
        cuts = sum("RunHandler" in line for line in self.trace)
        return not isinstance(request, RollBack) and (not isinstance(request, RunHandler) or cuts < 2)

    def end_idle(self, waiting: Connection) -> None:
        """Let the server end the transactions that lie idle and hold what *waiting* waits for."""
        for other in list(self.database.connections):
            if other is not waiting and other.pending is not None:
                other.lost, other.pending = True, None
                self.database.connections.remove(other)

    def steps(self) -> Iterator[None]:
        """Take one step after another until all is done."""
        while not self.finished() or self._restored_at_rest():
            self.random.choice(self._moves())()
            yield

    def _restored_at_rest(self) -> bool:
        """Restore once more while nobody has anything to do, if the schedule has a restore left."""
        if not self.restores_left or not self.database.backups:
            return False
        self.restore()
        return True

    def restore(self) -> None:
        """Put the database back to the last backup, under whoever works."""
        self.restores_left -= 1
        self.restored = True
        self.say("database restored")
        self.database.restore()

    def finished(self) -> bool:
        return (
            self.database.up
            and all(owner is not None and not owner.frozen for owner in self.owners.values())
            and all(
                self.database.tables.marks.get((TOPIC_ID, p), (-1,))[0] == log[-1].offset + 1
                and self.committed.get(p) == log[-1].offset + 1
                for p, log in enumerate(self.logs)
            )
        )

    def _moves(self) -> list[Callable[[], object]]:
        from tests.simulation.processor.moves import moves_of

        return moves_of(self)
