"""Take runs and work on them: in the foreground for a command, in a thread for a server."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from packhorse.console.running.lease import Ending, Lease, Standing, this_runner
from packhorse.console.running.loop import Keeper, Renews, Shell, Tell, run, wait_out
from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK, Clock
from packhorse.core.errors import InfrastructureError, OwnershipLost, PackhorseError, UnknownId

AT_ONCE = 4
"""Runs of one kind that a server works on at once: one that waits, for a group that is stopped say, holds up no other."""
_POLL = 0.25
"""Seconds between two tries to have a run whose runner may be dead."""


class Leasing(Renews, Protocol):
    """The leases of one kind of run."""

    def take(self, run: int, runner: str) -> Lease | None:
        """Have *run*; None when it does not run, or somebody's lease does."""

    def standing(self, run: int) -> Standing | None:
        """Return how *run* stands; None when there is none."""

    def free(self) -> int | None:
        """Return a run that runs and that nobody works on."""


Begin = Callable[[Lease], Shell]
"""Makes the shell of a run that was taken."""


def work(
    run_id: int,
    *,
    what: str,
    leases: Leasing,
    renewing: Renews,
    begin: Begin,
    tell: Tell,
    stop: threading.Event,
    stand_by: bool = False,
) -> Ending:
    """
    Take run *run_id* and work on it in this thread until it ends; return why it did.

    A run whose runner was killed is taken once its lease has run out, which is waited for. With *stand_by* one that another
    runner works on is waited for too, to its end or to that runner's: where a run was let go just now, a server may have been
    faster. *what* is what the run is called: redrive or replay. *leases* and *renewing* are the same over two connections: one
    for this thread, one for the keeper's.

    Raises:
        UnknownId: There is no such run.
        OwnershipLost: Another runner lives and works on it, and we do not stand by.
        PackhorseError: What the shell can't mend; the lease was left.
    """
    lease = _taken(run_id, what, leases, tell, stop, stand_by=stand_by)
    if lease is None:
        return Ending.LEFT if stop.is_set() else Ending.MOVED
    shell = begin(lease)
    try:
        with Keeper(renewing, lease) as keeper:
            return run(shell, keeper, stop, tell=tell, clock=SYSTEM_CLOCK, chance=SYSTEM_CHANCE)
    finally:
        shell.close()
        _leave(leases, lease)


def _taken(
    run_id: int, what: str, leases: Leasing, tell: Tell, stop: threading.Event, *, stand_by: bool
) -> Lease | None:
    """Return the lease; None when the run does not run, or we are to stop before it is free."""
    runner, first, told, failures = this_runner(), None, False, 0
    while not stop.is_set():
        try:
            found = leases.take(run_id, runner) or _standing(leases, run_id, what)
        except InfrastructureError as error:
            if first is None:
                raise
            failures += 1
            wait_out(error, failures, stop, tell=tell, chance=SYSTEM_CHANCE)
            continue
        failures = 0
        if isinstance(found, Lease):
            return found
        if found.state != "running":
            return None
        if first is None:
            first = found
            _tell_whose(f"{what} {run_id}", found, tell, stand_by=stand_by)
        elif found.alive and found.lease_until != first.lease_until and not told:
            told = True
            _tell_alive(run_id, what, found, tell, stand_by=stand_by)
        stop.wait(_POLL)
    return None


def _tell_whose(run: str, found: Standing, tell: Tell, *, stand_by: bool) -> None:
    if found.alive:
        ends = "it has ended, or that lease has run out" if stand_by else "its lease has run out"
        tell(f"{run} was last worked on by {found.runner}: waits until {ends}")


def _tell_alive(run_id: int, what: str, found: Standing, tell: Tell, *, stand_by: bool) -> None:
    text = f"{what} {run_id} is being worked on by {found.runner}"
    if not stand_by:
        raise OwnershipLost(f"{text}; see packhorse {what} status {run_id}")
    tell(f"{text}; waits for its end here, and packhorse {what} status {run_id} says how far it is")


def _standing(leases: Leasing, run_id: int, what: str) -> Standing:
    found = leases.standing(run_id)
    if found is None:
        raise UnknownId(f"there is no {what} {run_id}; see packhorse {what} list")
    return found


def _leave(leases: Leasing, lease: Lease) -> None:
    with suppress(InfrastructureError):  # then the lease runs out by itself
        leases.leave(lease)


@contextmanager
def stoppable() -> Iterator[threading.Event]:
    """
    Provide an event that the first Ctrl-C or SIGTERM sets, so that the step in hand is finished; a second one interrupts.

    Outside the main thread signals are left alone.
    """
    stop = threading.Event()

    def asked(number: int, frame: object) -> None:
        del number, frame
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {each: signal.signal(each, asked) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def progress_told() -> Iterator[Tell]:
    """Provide a way to tell progress on stderr: one line that changes on a terminal, plain lines elsewhere."""
    if not sys.stderr.isatty():
        yield _line
        return
    from rich.console import Console
    from rich.text import Text

    screen = Console(stderr=True, markup=False, highlight=False, emoji=False)
    with screen.status(Text("begins"), spinner="line") as status:
        yield lambda text: status.update(Text(text))


def _line(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


class Runner:
    """
    Work on abandoned runs of one kind in the background of a server: those that run and that nobody's lease holds.

    Up to `AT_ONCE` of them, each in a thread of its own; a server calls `look` every second or so.

    Args:
        what: What the runs are called: redrive or replay.
        leases, renewing: The same leases; connections may come from a pool.
        log: Takes a line of what happens.
    """

    def __init__(
        self,
        *,
        what: str,
        leases: Leasing,
        renewing: Renews,
        begin: Begin,
        log: Tell,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._what = what
        self._leases = leases
        self._renewing = renewing
        self._begin = begin
        self._log = log
        self._clock = clock
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def busy(self) -> bool:
        """Return whether as many runs are being worked on here as may be."""
        self._threads = [each for each in self._threads if each.is_alive()]
        return len(self._threads) >= AT_ONCE

    def look(self) -> bool:
        """
        Take one run without a live lease, unless enough are in hand here; return whether one was taken.

        Raises:
            DatabaseUnavailable, NotReady: Look again later.
        """
        if self.busy or self._stop.is_set():
            return False
        if (run_id := self._leases.free()) is None:
            return False
        if (lease := self._leases.take(run_id, this_runner())) is None:
            return False
        self._log(f"{self._what} {run_id}: taken")
        thread = threading.Thread(
            target=self._work, args=(lease,), name=f"packhorse-{self._what}-{run_id}", daemon=True
        )
        self._threads.append(thread)
        thread.start()
        return True

    def stop(self, timeout: float = 10.0) -> None:
        """Finish the steps in hand, leave the runs to others, and take none any more; waits up to *timeout* seconds."""
        self._stop.set()
        until = self._clock.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, until - self._clock.monotonic()))

    def _work(self, lease: Lease) -> None:
        """Work on the run; after an error that nothing mends the lease is kept, so that the next try waits for its end."""
        shell = None
        try:
            shell = self._begin(lease)
            with Keeper(self._renewing, lease) as keeper:
                ending = run(
                    shell, keeper, self._stop, tell=_nothing, clock=self._clock, chance=SYSTEM_CHANCE
                )
            self._log(f"{self._what} {lease.run}: {ending}; {shell.progress()}")
            _leave(self._leases, lease)
        except PackhorseError as error:
            self._log(f"{self._what} {lease.run}: {error}")
        except Exception as error:  # noqa: BLE001 a thread that died must not go unseen
            self._log(f"{self._what} {lease.run}: met an error that nobody foresaw: {type(error).__name__}")
        finally:
            if shell is not None:
                shell.close()


def _nothing(text: str) -> None:
    del text
