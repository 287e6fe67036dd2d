"""When a failed message runs again, and when it stops: decided from numbers alone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from packhorse.core.errors import SettingsError
from packhorse.processor.outcomes import Reason

Duration = str | int | float | timedelta
"""Seconds as a number, a timedelta, or text such as "500ms", "5s", "1m", "2h", "1d"."""

_TEXT = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPREAD = 0.1
"""Jitter lengthens a delay by at most this part of it."""


def seconds_of(duration: Duration, *, what: str) -> float:
    """
    Return *duration* in seconds; *what* is named in the error.

    >>> [seconds_of(d, what="delay") for d in ("250ms", "5s", "1m", 2, timedelta(hours=1))]
    [0.25, 5.0, 60.0, 2.0, 3600.0]

    Raises:
        SettingsError: It is no duration, or below zero.
    """
    if isinstance(duration, timedelta):
        seconds = duration.total_seconds()
    elif isinstance(duration, str):
        parts = _TEXT.fullmatch(duration.strip())
        seconds = float(parts[1]) * _UNITS[parts[2]] if parts else -1.0
    elif isinstance(duration, int | float) and not isinstance(duration, bool):
        seconds = float(duration)
    else:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise SettingsError(
            f'{what} {duration!r} is no duration; pass seconds, a timedelta, or text such as "500ms", "5s", "1m"'
        )
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """
    Say how often and for how long a failing message is tried.

    Attributes:
        attempts: Runs of the handler before quarantine, the first included.
        delays: Waits after failed attempt 1, 2, …; the last one repeats. Jitter lengthens each by up to a tenth.
        budget: Wall-clock time from the first failure after which no run starts.

    Raises:
        SettingsError: No attempt, no delay where one is needed, or something that is no duration.
    """

    attempts: int = 5
    delays: Sequence[Duration] = ("1s", "5s", "30s", "1m")
    budget: Duration = "1h"
    delay_seconds: tuple[float, ...] = field(init=False, repr=False)
    budget_seconds: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.attempts, bool) or not isinstance(self.attempts, int) or self.attempts < 1:
            raise SettingsError(f"Retry(attempts={self.attempts!r}) is not allowed: 1 or more")
        if isinstance(self.delays, str) or not self.delays:
            raise SettingsError(f'Retry(delays={self.delays!r}) is not allowed: a list such as ["1s", "5s"]')
        delays = tuple(seconds_of(delay, what="Retry(delays=…)") for delay in self.delays)
        object.__setattr__(self, "delay_seconds", delays)
        object.__setattr__(self, "budget_seconds", seconds_of(self.budget, what="Retry(budget=…)"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Run it again after *delay* seconds."""

    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Send it to quarantine for *reason*."""

    reason: str


def after_failure(tries: int, age: float, policy: Retry, *, jitter: float) -> Again | Stop:
    """
    Return what follows the failed try number *tries* (from 1) of a message that first failed *age* seconds ago.

    The caller draws *jitter* from [0, 1); it only lengthens. A wait that would end after the budget is not begun.

    >>> after_failure(1, 0.0, Retry(delays=["1s", "5s"]), jitter=0.0)
    Again(delay=1.0)
    >>> after_failure(4, 9.0, Retry(delays=["1s", "5s"]), jitter=0.0)
    Again(delay=5.0)
    >>> after_failure(5, 9.0, Retry(delays=["1s", "5s"]), jitter=0.0)
    Stop(reason='attempts-exhausted')
    >>> after_failure(2, 58.0, Retry(delays=["1s", "5s"], budget="1m"), jitter=0.0)
    Stop(reason='budget-exhausted')
    """
    if tries >= policy.attempts:
        return Stop(reason=Reason.ATTEMPTS_EXHAUSTED.value)
    delays = policy.delay_seconds
    delay = delays[min(tries, len(delays)) - 1]
    if age + delay > policy.budget_seconds:
        return Stop(reason=Reason.BUDGET_EXHAUSTED.value)
    return Again(delay=delay * (1 + _SPREAD * jitter))
