"""Everything, and what goes wrong: members of a group, broker, database, an operator, and faults drawn from one seed."""

from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

from tests.simulation.processor.adapter import adapted
from tests.simulation.processor.broker import SESSION, Broker, Place, id_of
from tests.simulation.processor.check import Checks
from tests.simulation.processor.database import Database, Row, Session
from tests.simulation.processor.hub import Hub, Life, NoEnd, enter, leave
from tests.simulation.processor.messages import GROUP, SOURCE, TYPES, Deed, Script, make_app
from tests.simulation.processor.people import Operator
from tests.simulation.processor.process import Process
from tests.simulation.processor.statements import DURABLE

from packhorse.core.errors import DatabaseUnavailable
from packhorse.core.naming import quarantine_topic
from packhorse.processor.tiers.ladder import ReadTopic

APP = make_app()
TIERS = APP.tiers(SOURCE)
SOURCES = {SOURCE: ReadTopic(SOURCE, None)} | {APP.tier_topic(SOURCE, t): ReadTopic(SOURCE, t) for t in TIERS}
QUARANTINE = quarantine_topic(SOURCE, GROUP)
STEPS = 40_000
ENDLESS = 1_000
PASSING = {Deed.LATER, Deed.SLOW, Deed.REGISTRY}
"""What would go on for hours if it went on for ever, and costs no attempt."""
CALM = 0.15
"""How many of all schedules have no fault at all."""


class World:
    """One schedule."""

    def __init__(self, seed: int, *, faults: int = 8, theme: str = "") -> None:
        self.seed = seed
        self.random = random = Random(seed)
        self.hub = Hub(random)
        self.hub.world = self
        self.story: list[str] = []
        self.theme = theme
        self.faults_left = 0 if random.random() < CALM else random.randint(1, faults)
        self.app, self.sources = APP, SOURCES
        self.lanes = random.choice([1, 2, 3])
        self.database = Database(self.hub, lazy=random.random() < 0.3)
        self.database.done = self._done
        self.broker = Broker(self, random.choice([1, 2]))
        for topic in (*SOURCES, QUARANTINE):
            self.broker.make(topic)
        self.places: list[Place] = [(topic, p) for topic in SOURCES for p in range(self.broker.partitions)]
        self.topics = {id_of(topic): topic for topic in SOURCES}
        self.stalled = False
        self.scripts: dict[UUID, Script] = {}
        self.deeds: dict[UUID, tuple[Deed, int]] = {}
        self.checks = Checks(self)
        self._born = 0
        self.processes: list[Process] = []
        self.restored = self.killed = 0
        self.broken = ""
        self.forgotten: set[Place] = set()
        self._fill()

    # What there is to do.

    def _fill(self) -> None:
        random, number = self.random, 0
        types = random.sample(TYPES, random.choice([1, 2, 3, 6]))
        troubled = random.choice([0.0, 0.2, 0.5])
        for partition in range(self.broker.partitions):
            place = SOURCE, partition
            keys = [f"k{partition}{n}".encode() for n in range(random.randint(1, 3))]
            for _ in range(random.randint(2, 12)):
                number += 1
                one = UUID(int=number)
                key = None if random.random() < 0.05 else random.choice(keys)
                cls = random.choice(types)
                headers = (("id", str(one).encode()), ("type", cls.__packhorse__.type.encode()))
                for _ in range(2 if random.random() < 0.08 else 1):
                    self.broker.append(place, key, one.bytes, headers)
                    self.broker.skip(place, 0 if random.random() < 0.85 else random.randint(1, 3))
                deed, times = Deed.WELL, 0
                if random.random() < troubled:
                    deed = random.choice(list(Deed))
                    times = random.choice([1, 1, 2, 3, 3 if deed in PASSING else ENDLESS])
                self.deeds[one] = deed, times
                self.checks.records[one] = self.broker.logs[place].records[-1]
                self.scripts[one] = Script(deed, times)

    def _done(self, name: str, values: Row, answer: Any) -> None:
        """Have the log written where the statement wants it, and what a watermark has passed looked at."""
        if name not in DURABLE:
            return
        self.database.flush()
        found, touched = answer
        if name == "move_watermarks":
            spots = list(zip(values["topic_ids"], values["partitions"], strict=True))
            moves = dict(zip(spots, zip(values["olds"], values["news"], strict=True), strict=True))
            for topic_id, partition in found:
                self.checks.moved((self.topics[topic_id], partition), *moves[topic_id, partition])
        elif touched:
            self.checks.opened((self.topics[values["topic_id"]], values["partition"]), values["new"])

    def script(self, one: UUID) -> Script:
        return self.scripts[one]

    # What goes wrong.

    def say(self, text: str) -> None:
        self.story.append(f"{self.hub.now:.3f} {text}")

    def fault(self, what: str, chance: float = 0.01) -> bool:
        """Return whether a fault happens now, and remember it."""
        if self.faults_left and self.random.random() < chance:
            self.faults_left -= 1
            turn = self.hub.turn
            self.say(f"fault: {what} ({turn.name if turn is not None else ''})")
            return True
        return False

    def connect(self) -> Session:
        self.hub.pause()
        if not self.database.up:
            raise DatabaseUnavailable("down")
        return Session(self.database, self.fault)

    def kill_mine(self) -> None:
        """Let the process whose turn it is die; a person only stops in the middle."""
        turn = self.hub.turn
        assert turn is not None
        for process in self.processes:
            if process.life is turn.life:
                self.kill(process)
        raise DatabaseUnavailable("a person has stopped half-way")

    def kill(self, process: Process) -> None:
        self.say(f"{process.name} is killed")
        self.killed += 1
        for session in list(self.database.sessions):
            if session.life is process.life:
                session.lose()
        self._forget(process)
        self.hub.kill(process.life)

    def _forget(self, process: Process) -> None:
        self.processes.remove(process)
        self.hub.after(SESSION, lambda: self.broker.leave(process))
        self.hub.after(self.random.choice([0.1, 3.0]), self.start)

    def gone(self, process: Process) -> None:
        """Take that a process has ended by itself."""
        if process in self.processes:
            for session in list(self.database.sessions):
                if session.life is process.life:
                    session.lose()
            self._forget(process)
            self.hub.kill(process.life)

    def start(self) -> None:
        self._born += 1
        self.processes.append(Process(self, f"m{self._born}"))

    def _freeze(self, process: Process) -> None:
        self.stalled = True
        seconds = self.random.choice([1.0, 5.0, 8.0, 40.0])
        process.life.frozen = self.hub.now + seconds
        self.say(f"{process.name} freezes for {seconds:g} s")

        def look() -> None:
            if process.life.frozen > self.hub.now:
                self.broker.leave(process)

        self.hub.after(SESSION, look)

    def _hold(self, process: Process) -> None:
        """Let one thread get no turn for a while."""
        self.stalled = True
        actor = self.random.choice(process.life.actors)
        seconds = self.random.choice([0.5, 3.0, 20.0, 45.0])
        actor.hold = self.hub.now + seconds
        self.say(f"{actor.name} gets no turn for {seconds:g} s")

    def _down(self) -> None:
        seconds = self.random.choice([0.5, 5.0, 30.0])
        self.database.up = False
        self.say(f"database down for {seconds:g} s")
        self.database.crash()

        def up() -> None:
            self.database.up = True

        self.hub.after(seconds, up)

    def _restore(self) -> None:
        if not self.database.backups:
            return
        self.say("database restored")
        self.restored += 1
        self.database.restore()

    def _trouble(self) -> None:
        """Let one of the greater faults happen."""
        process = self.random.choice(self.processes) if self.processes else None
        choices: list[Callable[[], object]] = [
            self._down,
            self._restore,
            self._cut,
            self.broker.deal,
            self._forget_offsets,
        ]
        if process is not None:
            for call in (self.kill, self._freeze, self._hold, self._stop):
                choices += [lambda call=call: call(process)] * 2  # type: ignore[misc]
        self.faults_left -= 1
        self.random.choice(choices)()

    def _cut(self) -> None:
        self.say("all connections cut")
        self.database.cut()

    def _stop(self, process: Process) -> None:
        self.say(f"{process.name} is stopped")
        process.stopping = True

    def _forget_offsets(self) -> None:
        """Let the group's offsets of a partition expire, or be set to the end."""
        place = self.random.choice(self.places)
        if self.database.tables.rows["watermark"]:
            self.say(f"offsets of {place} are lost")
            self.broker.committed.pop(place, None)
            self.forgotten.add(place)

    # The schedule.

    def run(self) -> str | None:
        """Run until all is done; return what is wrong with its history, None when nothing is."""
        enter(self.hub)
        try:
            with adapted():
                return self._run()
        finally:
            for process in self.processes:
                self.hub.turn = None
                self.hub.kill(process.life)
            leave()

    def _run(self) -> str | None:
        self.taken = taken = 0
        operator = Operator(self)
        self.hub.spawn(Life("operator"), "operator", operator.work)
        for _ in range(self.random.choice([1, 2, 3])):
            self.start()
        try:
            going = True
            while going or not self.checks.finished():
                self.taken = taken = taken + 1
                if taken > STEPS:
                    raise NoEnd("no end")
                if self.faults_left and self.random.random() < 0.002:
                    self._trouble()
                if self.random.random() < 0.0005:
                    self.database.backups.append(self.database.tables.copy())
                going = self.hub.step()
                assert not self.broken, self.broken
            found = self.checks.history()
        except AssertionError as error:
            found = [f"{type(error).__name__}: {error}", *self.checks.left()]
        if not found:
            return None
        return (
            f"seed {self.seed}{self.theme and ' ' + self.theme}: "
            + "; ".join(found)
            + "\n"
            + "\n".join(self.story[-60:])
        )


def fault_of(seed: int, **options: Any) -> str | None:
    """Return what is wrong with the history of one schedule."""
    return World(seed, **options).run()
