"""Everything, and what goes wrong: members of a group, broker, database, an operator, and faults drawn from one seed."""

from collections.abc import Callable
from random import Random
from typing import Any
from unittest.mock import patch
from uuid import UUID

from tests.simulation.processor.adapter import adapted
from tests.simulation.processor.broker import SESSION, Broker, Place, id_of
from tests.simulation.processor.check import Checks
from tests.simulation.processor.database import Database, Row, Session
from tests.simulation.processor.hub import Hub, Life, NoEnd, enter, leave
from tests.simulation.processor.messages import GROUP, SOURCE, Deed, Script, make_app
from tests.simulation.processor.people import Operator
from tests.simulation.processor.process import Process
from tests.simulation.processor.statements import DURABLE
from tests.simulation.processor.traffic import Writer

from packhorse.core.errors import DatabaseUnavailable
from packhorse.core.naming import quarantine_topic
from packhorse.processor.parking import many
from packhorse.processor.tiers.ladder import ReadTopic

APP = make_app()
TIERS = APP.tiers(SOURCE)
SOURCES = {SOURCE: ReadTopic(SOURCE, None)} | {APP.tier_topic(SOURCE, t): ReadTopic(SOURCE, t) for t in TIERS}
QUARANTINE = quarantine_topic(SOURCE, GROUP)
STEPS = 40_000
THEMES: dict[str, tuple[str, ...]] = {
    "": ("process", "process", "down", "restore", "cut", "deal", "offsets"),
    "parking": ("process", "deal"),
    "unwatched": ("process", "deal"),
    "races": ("process",),
    "zombies": (),
    "returns": ("deal",),
    "systems": ("deal",),
    "restores": ("down", "restore", "restore", "cut"),
    "losses": ("down", "down", "restore", "restore", "cut"),
    "crowds": ("process", "process", "deal", "cut"),
    "owners": ("process", "process", "deal", "deal"),
}
"""What a theme's greater faults are."""
SMALL = {
    "zombies": ("frozen",),
    "returns": ("none",),
    "systems": ("copy",),
    "restores": ("stale fetch", "seek fails"),
}
"""Themes that have but these of the smaller faults: the others would use up what a schedule may have."""
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
        self.database = Database(
            self.hub, lazy=random.random() < (0.7 if theme in {"losses", "restores"} else 0.3)
        )
        self.database.done = self._done
        self.broker = Broker(
            self, 1 if theme in {"parking", "unwatched", "races", "zombies"} else random.choice([1, 2])
        )
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
        self._slow = 0.3 if theme in {"races", "zombies"} else random.choice((0.0, 0.02, 0.1))
        self.writer = Writer(self)

    # What there is to do.

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
        if self.theme in SMALL and not what.startswith(SMALL[self.theme]):
            return False
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

    def latency(self) -> float:
        """Return how long a statement is on its way: as a rule no time, now and then long enough for others to do a lot."""
        return self.random.choice((0.02, 0.1, 0.4)) if self.random.random() < self._slow else 0.0

    def freeze_mine(self) -> None:
        """Let the process whose turn it is freeze at its next step, past every lease; its loop may wake later than its lanes."""
        for process in self.processes:
            if self.hub.turn is not None and process.life is self.hub.turn.life:
                self._freeze(process, 40.0)
                process.life.actors[0].hold = self.hub.now + self.random.choice((40.0, 41.0))

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

    def _freeze(self, process: Process, seconds: float | None = None) -> None:
        self.stalled = True
        seconds = seconds or self.random.choice([1.0, 5.0, 8.0, 40.0])
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
        """Let one of the greater faults happen, of those that the theme is about."""
        calls = THEMES[self.theme]
        if "process" in calls and self.processes and self.random.random() < 0.7:
            process = self.random.choice(self.processes)
            act = self.random.choice((self.kill, self._freeze, self._hold, self._hold, self._stop))
            self.faults_left -= 1
            act(process)
            return
        acts: dict[str, Callable[[], object]] = {
            "down": self._down,
            "restore": self._restore,
            "cut": self._cut,
            "deal": self.broker.deal,
            "offsets": self._forget_offsets,
        }
        able = [acts[name] for name in calls if name in acts]
        if able:
            self.faults_left -= 1
            self.random.choice(able)()

    def _back_up(self) -> None:
        """Keep a copy now and then; not before all watermarks are there, since without one a person is to decide."""
        often = 0.003 if self.theme in {"losses", "restores"} else 0.0005
        if self.random.random() < often and len(self.database.tables.rows["watermark"]) == len(self.places):
            self.database.backups.append(self.database.tables.copy())

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
            # Half of the schedules drain also one key as if it were many.
            with adapted(), patch.object(many, "FEW", 1 + self.seed % 2):
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
        self.hub.spawn(Life("writer"), "writer", self.writer.work)
        for _ in range(self.random.choice([1, 2, 3])):
            self.start()
        try:
            going = True
            while going or not self.checks.finished():
                self.taken = taken = taken + 1
                if taken > STEPS:
                    raise NoEnd("no end")
                if self.faults_left and self.random.random() < (0.003 if going else 0.05):
                    self._trouble()
                self._back_up()
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
