"""
Work on one run until it is over, somebody else's, or this process is asked to stop; trouble underneath is waited out.

What a redrive and a replay share. The shell decides purely and acts thinly; here is only when it is asked for its next step.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from packhorse.console.running.lease import RENEW_EVERY, Ending, Lease, LeaseLost
from packhorse.core.backoff import Backoff, delay_after
from packhorse.core.clock import Chance, Clock
from packhorse.core.errors import InfrastructureError

_TROUBLE = Backoff(first=0.2, longest=5.0)
TELL_EVERY = 1.0
"""Seconds between two lines of progress."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """
    What one step came to.

    Attributes:
        over: The run has come to an end that its row says, or to a halt.
        wait: Seconds until the next step can have something to do.
    """

    over: bool = False
    wait: float = 0.0


class Shell(Protocol):
    """
    One run in hand: it reads facts, has its pure half decide, and carries that out.

    Every write asks for the lease's token in its own transaction (`Leases.writing`).
    """

    def step(self, now: float) -> Step:
        """
        Do the next bounded piece of the run, in seconds rather than minutes; *now* is monotonic.

        Raises:
            LeaseLost: Nothing was written.
            InfrastructureError: What was not done is done by the next step.
        """

    def progress(self) -> str:
        """Return how far the run is, in one line."""

    def close(self) -> None:
        """Let go of clients; never raises."""


class Renews(Protocol):
    """Keeps a lease."""

    def renew(self, lease: Lease) -> bool:
        """Keep it; False when it is another's by now, or the run does not run."""

    def leave(self, lease: Lease) -> None:
        """Let another take the run at once."""


class Keeper:
    """
    Renew a lease apart from the work, however long one step takes.

    Attributes:
        lost: Set once the run is known to be another's, or not to run any more.
    """

    def __init__(self, leases: Renews, lease: Lease, *, every: float = RENEW_EVERY) -> None:
        self._leases = leases
        self._lease = lease
        self._every = every
        self._stop = threading.Event()
        self.lost = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="packhorse-lease", daemon=True)

    def __enter__(self) -> "Keeper":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join(5.0)

    def _keep(self) -> None:
        wait = self._every
        while not self._stop.wait(wait):
            try:
                if not self._leases.renew(self._lease):
                    self.lost.set()
                    return
                wait = self._every
            except InfrastructureError:
                wait = self._every / 4  # the token fences us if it takes too long


def run(
    shell: Shell, keeper: Keeper, stop: threading.Event, *, tell: Tell, clock: Clock, chance: Chance
) -> Ending:
    """
    Drive *shell* until its run is over, lost, or *stop* is set; the step in hand is always finished.

    Trouble with what is underneath is told once, waited out at growing waits, and gone on from; the state stays `running`.
    """
    failures, told_at = 0, clock.monotonic() - TELL_EVERY
    while not stop.is_set():
        if keeper.lost.is_set():
            return Ending.MOVED
        try:
            step = shell.step(clock.monotonic())
            if step.over or clock.monotonic() - told_at >= TELL_EVERY:
                told_at = clock.monotonic()
                tell(shell.progress())
        except LeaseLost:
            return Ending.MOVED
        except InfrastructureError as error:
            failures += 1
            wait_out(error, failures, stop, tell=tell, chance=chance)
            continue
        failures = 0
        if step.over:
            return Ending.OVER
        if step.wait > 0:
            stop.wait(step.wait)
    return Ending.LEFT


def wait_out(
    error: InfrastructureError, failures: int, stop: threading.Event, *, tell: Tell, chance: Chance
) -> None:
    """Wait before the next try after *failures* in a row, or until *stop* is set; the first of them is told."""
    if failures == 1:
        tell(f"waits and goes on by itself: {error}")
    stop.wait(delay_after(failures, _TROUBLE, jitter=chance.fraction()))
