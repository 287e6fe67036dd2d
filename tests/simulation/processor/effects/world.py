"""Everything, and what goes wrong: processes that run jobs, a database, an outside system, a person, faults from one seed."""

from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from uuid import UUID

from tests.simulation.processor.effects.checks import Checks
from tests.simulation.processor.effects.database import Database, Job, Tables
from tests.simulation.processor.effects.outside import Outside
from tests.simulation.processor.effects.people import Person
from tests.simulation.processor.effects.process import Process
from tests.simulation.processor.effects.scripts import Effect, Step, script
from tests.simulation.processor.hub import Hub, Life, NoEnd, enter, leave

from packhorse.core.jobs import ENDED, IllegalTransition, JobState
from packhorse.processor.jobs import keeper

STEPS = 30_000
CALM = 0.1
"""How many of all schedules have no fault at all."""


class World:
    """One schedule."""

    def __init__(self, seed: int, *, theme: str = "", faults: int = 12) -> None:
        self.seed = seed
        self.random = random = Random(seed)
        self.hub = Hub(random)
        self.hub.world = self
        self.story: list[str] = []
        self.faults_left = 0 if random.random() < CALM else random.randint(1, faults)
        self.theme = theme
        self.lease = random.choice((2.0, 5.0, 30.0))
        self.cancels = random.choice((0.0, 0.0, 0.1))
        self.attempts = random.choice((1, 2, 4))
        self.call_faults = 0.8 if theme == "late" else 0.3
        self._slow = 0.3 if theme == "late" else random.choice((0.0, 0.05, 0.3))
        self.database = Database(lambda: self.hub.now)
        self.database_up = True
        self.backups: list[Tables] = []
        self.outside = Outside(self.hub, honours=not theme and random.random() < 0.3)
        self.scripts: dict[UUID, list[Effect | Step]] = {}
        for n in range(1, random.randint(2, 5)):
            job = UUID(int=n)
            self.scripts[job] = script(job, random, theme)
            self.database.tables.jobs[job] = Job(job)
        self.checks = Checks(self)
        self.database.written = self.checks.written
        self.processes: list[Process] = []
        self._born = 0

    def effects(self, job: object) -> list[Effect]:
        return [item for item in self.scripts[job] if isinstance(item, Effect)]  # type: ignore[index]

    def delivered(self) -> list[UUID]:
        """Return the jobs whose message comes to whoever asks now: once more also when another has it."""
        jobs = self.database.tables.jobs.values()
        open_ = ("accepted", "retrying", "running")
        return [job.id for job in jobs if job.state in open_ and job.due <= self.hub.now]

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

    def latency(self) -> float:
        """Return how long something is on its way: as a rule no time, now and then long enough for others to do a lot."""
        return self.random.choice((0.05, 0.5, 2.0, 4.0)) if self.random.random() < self._slow else 0.0

    def _trouble(self) -> None:
        if not self.processes:
            return
        self.faults_left -= 1
        acts: list[Callable[[], None]] = [self._kill, self._kill, self._freeze, self._freeze, self._hold]
        rare = [self._down] if self.theme == "late" else [self._down, self._restore]
        self.random.choice([*acts, *rare])()

    def _kill(self, process: Process | None = None) -> None:
        process = process or self.random.choice(self.processes)
        if process not in self.processes:
            return
        self.say(f"{process.name} is killed")
        self.processes.remove(process)
        self.hub.kill(process.life)
        self.hub.after(self.random.choice((0.1, 3.0)), self.start)

    def perhaps_kill(self, process: Process) -> None:
        """Let the process that is calling die in the next seconds."""
        if self.theme == "late" and self.fault("killed in a call", 0.5):
            self.hub.after(self.random.choice((0.0, 0.5)), lambda: self._kill(process))

    def _freeze(self) -> None:
        process = self.random.choice(self.processes)
        seconds = self.random.choice((1.0, 4.0, 10.0, 60.0))
        process.life.frozen = self.hub.now + seconds
        self.say(f"{process.name} freezes for {seconds:g} s")

    def _hold(self) -> None:
        actor = self.random.choice(self.random.choice(self.processes).life.actors)
        seconds = self.random.choice((1.0, 4.0, 10.0, 60.0))
        actor.hold = self.hub.now + seconds
        self.say(f"{actor.name} gets no turn for {seconds:g} s")

    def _down(self) -> None:
        seconds = self.random.choice((0.5, 5.0, 60.0))
        self.database_up = False
        self.say(f"database down for {seconds:g} s")

        def up() -> None:
            self.database_up = True

        self.hub.after(seconds, up)

    def _restore(self) -> None:
        if self.backups:
            self.say("database restored")
            before = self.database.tables
            self.database.restore(self.backups.pop())
            self.checks.restored(before)

    def start(self) -> None:
        self._born += 1
        self.processes.append(Process(self, f"w{self._born}"))

    # The schedule.

    def run(self) -> str | None:
        """Run until all jobs have ended; return what is wrong with the history, None when nothing is."""
        enter(self.hub)
        executed = SimpleNamespace(run=lambda connection, steps: connection.run(steps))
        try:
            with patch.object(keeper, "postgres", executed):
                return self._run()
        finally:
            for process in self.processes:
                self.hub.turn = None
                self.hub.kill(process.life)
            leave()

    def _run(self) -> str | None:
        self.hub.spawn(Life("person"), "person", Person(self).work)
        for _ in range(self.random.choice((2, 2, 3))):
            self.start()
        try:
            for _ in range(STEPS):
                if self._is_over():
                    break
                if self.faults_left and self.random.random() < 0.02:
                    self._trouble()
                if self.random.random() < 0.003:
                    self.backups.append(self.database.backup())
                self.hub.step()
            else:
                raise NoEnd(f"no end: {self.database.tables.jobs}")
            found = self.checks.history()
        except (AssertionError, IllegalTransition) as error:
            found = [*self.checks.faults, f"{type(error).__name__}: {error}"]
        if not found:
            return None
        return (
            f"seed {self.seed}{self.theme and ' ' + self.theme}: "
            + "; ".join(found)
            + "\n"
            + "\n".join(self.story[-80:])
        )

    def _is_over(self) -> bool:
        """All have ended, nobody works on one any more, and nothing is on its way."""
        jobs = self.database.tables.jobs.values()
        is_idle = not any(process.runs.all() for process in self.processes)
        return is_idle and not self.outside.under_way and all(JobState(job.state) in ENDED for job in jobs)


def fault_of(seed: int, **options: Any) -> str | None:
    """Return what is wrong with the history of one schedule."""
    return World(seed, **options).run()
