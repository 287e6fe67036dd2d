"""The loop of a run: it goes on through trouble, finishes the step in hand, and writes nothing once it is another's."""

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from packhorse.console.running.lease import Ending, Lease, LeaseLost, Standing
from packhorse.console.running.loop import Keeper, Step, run
from packhorse.console.running.working import AT_ONCE, Runner, work
from packhorse.console.serving.hosting import hosted
from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.errors import DatabaseUnavailable, OwnershipLost, PackhorseError, UnknownId

THEN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Leased:
    """The row of one run."""

    state: str = "running"
    token: int = 0
    held: bool = False
    moves: bool = False
    left: list[int] = field(default_factory=list)

    def take(self, run: int, runner: str) -> Lease | None:
        if self.state != "running" or self.held:
            return None
        self.token += 1
        return Lease(run=run, token=self.token)

    def renew(self, lease: Lease) -> bool:
        return lease.token == self.token

    def leave(self, lease: Lease) -> None:
        self.left.append(lease.token)

    def standing(self, run: int) -> Standing | None:
        if run != 1:
            return None
        until = SYSTEM_CLOCK.now() if self.moves else THEN
        return Standing(
            id=1, state=self.state, said=None, runner="ann", token=0, lease_until=until, alive=self.held
        )

    def free(self) -> int | None:
        return None if self.held or self.state != "running" else 1


@dataclass
class Steps:
    """A shell that does what it is told, one after another."""

    steps: list[Step | PackhorseError]
    stop: threading.Event = field(default_factory=threading.Event)
    stops_at: int = -1
    made: int = 0
    began: threading.Event = field(default_factory=threading.Event)
    closed: threading.Event = field(default_factory=threading.Event)

    def step(self, now: float) -> Step:
        self.made += 1
        self.began.set()
        if self.made == self.stops_at:
            self.stop.set()
        match self.steps.pop(0):
            case Step() as step:
                return step
            case error:
                raise error

    def progress(self) -> str:
        return f"{self.made} made"

    def close(self) -> None:
        self.closed.set()


def driven(shell: Steps) -> tuple[Ending, list[str]]:
    said: list[str] = []
    keeper = Keeper(Leased(), Lease(run=1, token=1), every=60)
    ending = run(shell, keeper, shell.stop, tell=said.append, clock=SYSTEM_CLOCK, chance=SYSTEM_CHANCE)
    return ending, said


def test_trouble_is_told_once_and_gone_on_from() -> None:
    """Fails when a lost database ends the run, or each try is told."""
    away = DatabaseUnavailable("away")
    ending, said = driven(Steps([away, away, Step(over=True)]))
    assert ending is Ending.OVER
    assert said == ["waits and goes on by itself: away", "3 made"]


def test_the_step_in_hand_is_finished_when_asked_to_stop() -> None:
    shell = Steps([Step(), Step(), Step()], stops_at=2)
    assert driven(shell)[0] is Ending.LEFT
    assert shell.made == 2


def test_a_lost_lease_ends_the_work() -> None:
    assert driven(Steps([Step(), LeaseLost("lost")]))[0] is Ending.MOVED


def test_the_keeper_notices_that_the_run_is_anothers() -> None:
    """Fails when a long step hides that another has taken over."""
    leases = Leased(token=2)
    with Keeper(leases, Lease(run=1, token=1), every=0.01) as keeper:
        assert keeper.lost.wait(10)
        assert run(
            Steps([]), keeper, threading.Event(), tell=print, clock=SYSTEM_CLOCK, chance=SYSTEM_CHANCE
        ) is (Ending.MOVED)


def worked(leases: Leased, shell: Steps, run_id: int = 1, *, stand_by: bool = False) -> Ending:
    return work(
        run_id,
        what="redrive",
        leases=leases,
        renewing=leases,
        begin=lambda lease: shell,
        tell=lambda text: None,
        stop=shell.stop,
        stand_by=stand_by,
    )


def test_the_lease_is_left_however_the_work_ends() -> None:
    """Fails when the next runner has to wait for the end of a lease that nobody needs."""
    leases = Leased()
    assert worked(leases, Steps([Step(over=True)])) is Ending.OVER
    with pytest.raises(OwnershipLost, match="broken"):
        worked(leases, shell := Steps([OwnershipLost("broken")]))
    assert leases.left == [1, 2]
    assert shell.closed.is_set()


def test_a_run_that_lives_elsewhere_is_not_taken() -> None:
    with pytest.raises(OwnershipLost, match="worked on by ann; see packhorse redrive status 1"):
        worked(Leased(held=True, moves=True), Steps([]))


@dataclass
class Elsewhere(Leased):
    """A run that another works on; *looks* says what becomes of it at each look: it goes on, is away, ends, or is let go."""

    looks: list[str] = field(default_factory=list)

    def standing(self, run: int) -> Standing | None:
        look = self.looks.pop(0)
        if look == "away":
            raise DatabaseUnavailable("away")
        self.state = "ended" if look == "ended" else "running"
        self.held = look != "let go"
        return super().standing(run)


def test_whoever_stands_by_waits_for_the_end_of_the_run_or_of_its_runner() -> None:
    """Fails when whoever has confirmed a run is turned away by a server that was faster, or by a database that was away in between."""
    ended = Elsewhere(held=True, moves=True, looks=["goes on", "goes on", "away", "goes on", "ended"])
    assert worked(ended, Steps([]), stand_by=True) is Ending.MOVED
    assert ended.looks == []
    free = Elsewhere(held=True, moves=True, looks=["goes on", "goes on", "let go"])
    assert worked(free, Steps([Step(over=True)]), stand_by=True) is Ending.OVER
    with pytest.raises(DatabaseUnavailable):
        worked(Elsewhere(held=True, looks=["away"]), Steps([]), stand_by=True)


def test_a_run_that_does_not_run_is_not_worked_on() -> None:
    assert worked(Leased(state="paused"), Steps([])) is Ending.MOVED
    with pytest.raises(UnknownId, match="no redrive 7; see packhorse redrive list"):
        worked(Leased(state="paused"), Steps([]), run_id=7)


@dataclass
class Several(Leased):
    """The rows of several runs."""

    runs: list[int] = field(default_factory=list)

    def take(self, run: int, runner: str) -> Lease | None:
        self.runs.remove(run)
        return Lease(run=run, token=self.token)

    def free(self) -> int | None:
        return self.runs[0] if self.runs else None


def test_in_a_server_a_run_that_waits_holds_up_no_other() -> None:
    """Fails when a server works on one run at a time: a redrive of a stopped group would keep all others from going on."""
    leases, said = Several(runs=list(range(1, AT_ONCE + 2))), list[str]()
    shells = {each: Steps([Step(wait=60), Step(over=True)]) for each in leases.runs}
    runner = Runner(
        what="redrive",
        leases=leases,
        renewing=leases,
        begin=lambda lease: shells[lease.run],
        log=said.append,
    )
    for each in range(1, AT_ONCE + 1):
        assert runner.look()
        assert shells[each].began.wait(10)
    assert not runner.look()
    runner.stop()
    assert [shells[each].closed.is_set() for each in sorted(shells)] == [*[True] * AT_ONCE, False]
    assert sorted(text for text in said if "left" in text) == [
        f"redrive {each}: left; 1 made" for each in range(1, AT_ONCE + 1)
    ]
    assert not runner.look()


def test_a_runner_in_trouble_keeps_no_other_from_looking() -> None:
    """Fails when the look of one kind of run, whose table is missing say, ends the round of looks."""
    looked = threading.Event()

    class Failing:
        def look(self) -> bool:
            raise DatabaseUnavailable("away")

        def stop(self, timeout: float = 10.0) -> None:
            pass

    class Looking(Failing):
        def look(self) -> bool:
            looked.set()
            return False

    with hosted([Failing(), Looking()], every=0.001):
        assert looked.wait(10)
