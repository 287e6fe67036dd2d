"""
The breaker of a handler: an error that the handler names in `down=` opens it; one message at a time is tried then until the
system behind it answers again, be it with another error. It is a `Probing` that each such error trips.

What a probe's run says is not the same for breaker and brake, so both are told here.
"""

from packhorse.processor.breaking.probing import Found, Phase, Probing
from packhorse.processor.outcomes import Reason
from packhorse.processor.running.work import Failure, Ran

_JUDGED = frozenset({None, Failure.SKIP, Failure.LATER, Failure.TEMPORARY, Failure.PERMANENT, Failure.BROKEN})
"""Ends that say something about handler and message, not about what ran beside them."""
_FAILED = frozenset({Failure.TEMPORARY, Failure.PERMANENT, Failure.BROKEN})


def breaker_found(ran: Ran | None) -> Found:
    """
    Return what a probe tells the breaker; None: it was not run, or its lane was lost.

    Any answer of the system closes it, an error too. A time-out is none: it is how a system that hangs looks.
    """
    if ran is None or ran.failure not in _JUDGED | {Failure.DOWN} or ran.reason == Reason.TIMEOUT.value:
        return Found.NEITHER
    return Found.BAD if ran.failure is Failure.DOWN else Found.GOOD


def brake_found(ran: Ran | None) -> Found:
    """Return what a probe tells the brake; None: it was not run, or its lane was lost."""
    if ran is None or ran.failure not in _JUDGED:
        return Found.NEITHER
    return Found.BAD if ran.failure in _FAILED else Found.GOOD


def open_for(state: Probing, *, now: float) -> float | None:
    """Return for how many seconds it has been open; None when it is closed."""
    return None if state.phase is Phase.CLOSED else now - state.since
