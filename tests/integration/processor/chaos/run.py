"""One run of chaos: a group of real processes, traffic, faults by a schedule, and the judgement of what came of it."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import psycopg
from tests.integration.processor.chaos.app import (
    ATTEMPTS,
    DELAYS,
    GROUP,
    TABLES,
    processor,
)
from tests.integration.processor.chaos.diagnosing import write_down
from tests.integration.processor.chaos.injecting import Ends, Injector
from tests.integration.processor.chaos.members import Crew, Member
from tests.integration.processor.chaos.schedule import Fault, told
from tests.integration.processor.chaos.traffic import (
    Operator,
    Reader,
    Sampler,
    Writer,
    effects,
    is_left,
    quietly,
)
from tests.support.history import History, Run
from tests.support.history_rules import faults
from tests.support.processing import Ground
from tests.support.proxy import Proxy
from tests.support.stack import PrivateBroker, PrivateDatabase
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.naming import quarantine_topic
from packhorse.local.settings import Endpoints
from packhorse.processor.policy import seconds_of
from packhorse.processor.topics.plan import wanted_by

MOST_TOLD = 5


@dataclass(frozen=True, kw_only=True)
class Plan:
    """
    What a run is.

    Attributes:
        seconds: How long the traffic and the faults last.
        rate: Messages a second.
        trouble: How many times the usual share of messages fails or is slow.
        kind: What the handlers are, one of `app.KINDS`.
        protocol: "consumer" or "classic".
        parks: What the product promises of keys behind quarantine.
        settle: Seconds after the last fault in which something must take effect, until all has ended.
    """

    seed: int
    schedule: Sequence[Fault]
    seconds: float
    rate: float = 300.0
    members: int = 4
    keys: int = 1_000
    partitions: int = 4
    kind: str = "def"
    protocol: str = "consumer"
    trouble: float = 1.0
    parks: bool = True
    settle: float = 75.0


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came of a run; *wrong* is empty when all promises held."""

    plan: Plan
    history: History
    wrong: list[str]
    log: list[str]
    settled_in: float | None
    starts: int
    facts: dict[str, int] = field(default_factory=dict)

    def told(self) -> str:
        """Return what went wrong, with the seed and the schedule that bring it again."""
        plan = self.plan
        return "\n".join([
            f"seed {plan.seed}, {plan.kind}, {plan.protocol}, {len(self.wrong)} faults found",
            *self.wrong[:MOST_TOLD], "", "schedule:", told(plan.schedule), "", "done:", *self.log,
        ])  # fmt: skip


def run(
    plan: Plan, *, broker: PrivateBroker, database: PrivateDatabase, registry_url: str, namespace: str, folder: Path
) -> Result:  # fmt: skip
    """Run *plan* on servers of its own and judge the history."""
    endpoints = Endpoints(
        kafka_bootstrap=broker.direct_bootstrap, database_url=database.direct_url, registry_url=registry_url
    )
    ground = Ground(endpoints, database.direct_url, namespace, partitions=plan.partitions)
    app = processor(namespace, kind=plan.kind)
    ground.make_topics(app)
    with psycopg.connect(database.direct_url) as connection:
        connection.execute(TABLES)
    own = wanted_by([app], [], partitions=plan.partitions, replication=1).names[1:]
    tiers = [topic for topic in own if topic != quarantine_topic(ground.topic, GROUP)]
    with _crew(plan, ground, broker, database, folder) as crew:
        sampler = Sampler(ground, database.direct_url)
        ends = Ends(
            broker=broker, database=database, topics=(ground.topic, *tiers), partitions=plan.partitions
        )
        run_ = _Running(plan, ground, crew, sampler, Injector(ends, crew, sampler, plan.seed))
        reader = Reader(ground, ground.topic, own)
        return run_.carried_out(reader, folder)


@contextmanager
def _crew(
    plan: Plan, ground: Ground, broker: PrivateBroker, database: PrivateDatabase, folder: Path
) -> Iterator[Crew]:
    """Provide the members; each has a proxy of its own before the database, half of them one before the broker."""
    with ExitStack() as block:
        members = []
        for number in range(plan.members):
            proxy = block.enter_context(Proxy(database.proxy.target))
            environ = ground.environ | _environ(plan) | {
                "PACKHORSE_DATABASE_URL": f"postgresql://postgres@{proxy.address}/{database.database}",
                "PACKHORSE_KAFKA_BOOTSTRAP_SERVERS": broker.direct_bootstrap if number % 2 else broker.bootstrap,
                "CHAOS_NAMESPACE": ground.namespace, "CHAOS_KIND": plan.kind, "CHAOS_MEMBER": f"m{number}",
                "CHAOS_FOLDER": str(folder), "CHAOS_PARENT": str(os.getpid()),
            }  # fmt: skip
            members.append(Member(name=f"m{number}", environ=environ, database=proxy, folder=folder))
        crew = Crew(members)
        try:
            yield crew
        finally:
            for member in members:
                quietly(lambda member=member: member.signal(signal.SIGCONT))  # type: ignore[misc]
            crew.kill()


def _environ(plan: Plan) -> dict[str, str]:
    found = {
        "PACKHORSE_PROCESSOR_COMMIT_INTERVAL": "0.2",
        "PACKHORSE_PROCESSOR_CONCURRENCY": "3",
        "PACKHORSE_PROCESSOR_DRAIN_TIMEOUT": "5",
        "PACKHORSE_PROCESSOR_REVOKE_TIMEOUT": "4",
        "PACKHORSE_PROCESSOR_IDLE_TRANSACTION_TIMEOUT": "4",
        "PACKHORSE_PROCESSOR_LOCK_TIMEOUT": "3",
        "PACKHORSE_PROCESSOR_GROUP_PROTOCOL": plan.protocol,
    }
    if plan.protocol == "classic":
        found["PACKHORSE_KAFKA_PROPERTIES"] = '{"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000}'
    return found


class _Running:
    def __init__(self, plan: Plan, ground: Ground, crew: Crew, sampler: Sampler, injector: Injector) -> None:
        self.plan, self.ground, self.crew = plan, ground, crew
        self.sampler, self.injector = sampler, injector
        self.writer = Writer(ground, plan.seed, rate=plan.rate, keys=plan.keys, trouble=plan.trouble)
        self.operator = Operator(ground.database, plan.seed, ground.topic)

    def carried_out(self, reader: Reader, folder: Path) -> Result:
        self.folder = folder
        beside = (reader, self.writer, self.operator, self.sampler)
        self.crew.start()
        for one in beside:
            one.start()
        try:
            eventually(self._begun, what="the group has begun", timeout=60)
            self.injector.run(self.plan.schedule, self.plan.seconds)
            self.writer.stop()
            began = SYSTEM_CLOCK.monotonic()
            self.operator.rests = True
            settled = self._settled(reader)
            self.operator.mend_everything()
            settled = settled and self._settled(reader)
            took = SYSTEM_CLOCK.monotonic() - began if settled else None
            self.crew.end()
        finally:
            for one in reversed(beside):
                one.stop()
        return self._judged(reader, folder, took)

    def _begun(self) -> bool:
        return len(self.sampler.committed()) == self.plan.partitions

    def _settled(self, reader: Reader) -> bool:
        """Wait until all has ended; give up when nothing takes effect any more for so long, however slow the machine is."""
        seen = -1
        while (count := self._count()) > seen:
            seen = count
            try:
                eventually(lambda: self._all_ended(reader), what="all has ended", timeout=self.plan.settle)
            except AssertionError:
                continue
            return True
        write_down(self.ground, self.crew, self.writer.ids, self.folder)
        return False

    def _count(self) -> int:
        with psycopg.connect(self.ground.database) as connection:
            row = connection.execute("SELECT count(*) FROM effect").fetchone()
        return 0 if row is None else int(row[0])

    def _all_ended(self, reader: Reader) -> bool:
        """Return whether each message has its effect, but for those in quarantine or behind one that nobody lifts now."""
        if len({one.id for one in reader.sent}) < self.writer.count:
            return False
        with psycopg.connect(self.ground.database, autocommit=True) as connection:
            done = {row[0] for row in connection.execute("SELECT id FROM effect")}
            missing = self.writer.ids - done
            rows = connection.execute(
                "SELECT message_id FROM packhorse.quarantined_message WHERE state = 'quarantined'"
            )
            resting = {row[0] for row in rows}
        return not missing or (self._excused(missing, resting, reader) and self._committed_all(reader))

    def _excused(self, missing: set[UUID], resting: set[UUID], reader: Reader) -> bool:
        held: set[tuple[int, bytes | None]] = set()
        given_up = {act.id for act in self.operator.acts if act.act == "discard"}
        for one in sorted(reader.sent):
            if one.id not in missing or one.id in given_up:
                continue
            place = one.partition, one.key
            if one.id in resting and (self.operator.rests or is_left(one.key)):
                held.add(place)
            elif not (self.plan.parks and place in held):
                return False
        return True

    def _committed_all(self, reader: Reader) -> bool:
        ends: dict[int, int] = {}
        for one in reader.sent:
            ends[one.partition] = max(one.offset + 1, ends.get(one.partition, 0))
        return self.sampler.committed() == ends

    def _judged(self, reader: Reader, folder: Path, took: float | None) -> Result:
        history = History(
            sent=reader.sent,
            effects=effects(self.ground.database),
            runs=_runs(folder),
            copies=reader.copies,
            acts=self.operator.acts,
            looks=self.sampler.looks,
            attempts=ATTEMPTS,
            delays=[seconds_of(delay, what="delay") for delay in DELAYS],
            parks=self.plan.parks,
        )
        wrong = [str(fault) for fault in faults(history)]
        wrong += [f"P6: a process died: {death}" for death in self.crew.deaths()]
        if took is None:
            wrong.append(
                f"P4: nothing took effect any more for {self.plan.settle:g} s, and not all had ended"
            )
        facts = {
            "messages": len(history.messages), "records": len(history.sent), "effects": len(history.effects),
            "runs": len(history.runs), "quarantined": len(history.quarantined), "copies": len(history.copies),
            "redrives": sum(history.redrives.values()), "discards": sum(history.discards.values()),
            "looks": len(history.looks),
        }  # fmt: skip
        starts = sum(member.started for member in self.crew.members)
        log = self.injector.log
        return Result(plan=self.plan, history=history, wrong=wrong, log=log, settled_in=took, starts=starts, facts=facts)  # fmt: skip


def _runs(folder: Path) -> list[Run]:
    found = []
    for path in sorted(folder.glob("runs-*")):
        member = path.name.removeprefix("runs-")
        for line in path.read_text().splitlines():
            parts = line.split()
            if len(parts) == 3:
                found.append(Run(UUID(parts[0]), int(parts[1]), float(parts[2]), member))
    return found
