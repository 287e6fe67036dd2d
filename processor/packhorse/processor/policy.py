"""When a failed message runs again, and when it stops: decided from numbers alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from packhorse.core.errors import PackhorseError, SettingsError
from packhorse.processor.durations import Duration as Duration  # noqa: PLC0414 others take it from here
from packhorse.processor.durations import seconds_of as seconds_of  # noqa: PLC0414
from packhorse.processor.outcomes import Reason
from packhorse.processor.tiers.ladder import in_order, tier_for, tier_name, tier_seconds

_SPREAD = 0.1
"""Jitter lengthens a delay by at most this part of it."""
SHORTEST_LATER = 1.0
"""Shortest wait of `Later`, in seconds: it charges no attempt, so a shorter one would be a loop that burns a processor."""

DELAYS: tuple[Duration, ...] = ("5s", "1m", "10m")
"""The ladder of a handler that declares none: a blip, a restart, a deploy or a fail-over. Each tier is a topic."""
ATTEMPTS = 5
"""Attempts unless declared otherwise: with the default ladder 21 minutes, after which somebody should look."""
BUDGET: Duration = "1d"
"""Budget unless declared otherwise: what bounds `Later` and long waits that a handler asks for."""


class Retry(PackhorseError):
    """
    Say how often and for how long a failing message is tried; or raise it in a handler to be tried again.

    As the policy of a handler:

    >>> Retry(delays=["5s", "1m"], attempts=4)
    Retry(delays=('5s', '1m'), attempts=4, budget='1d')

    Raised, it ends the attempt like any temporary error, and may say how long to wait: `raise Retry(after="5m")`, `raise
    Retry("the order is not there yet")`, `raise Retry`. What the handler wrote is rolled back, the attempt is charged.

    Args:
        text: Raised: why, kept with the failed attempt, so it must hold no payload.
        after: Raised: the wait. It is rounded up to a tier; a longer one than the longest tier goes round in that one. None:
            the policy's next delay.
        delays: Policy: waits after failed attempt 1, 2, …; the last one repeats. Jitter lengthens each by up to a tenth.
        attempts: Policy: runs of the handler before quarantine, the first included. None: 5, or one more than there are
            delays when that is more.
        budget: Policy: time from the first failure, in which waits that were planned and runs that failed count, and
            neither outages nor waiting behind another message. A wait of the ladder that would end after it is not begun,
            one that the handler asks for while something is left of it.

    Raises:
        SettingsError: Arguments of both kinds together, no attempt, no delay, or something that is no duration.
    """

    retryable: ClassVar[bool] = True

    def __init__(
        self,
        text: str = "",
        *,
        after: Duration | None = None,
        delays: Sequence[Duration] | None = None,
        attempts: int | None = None,
        budget: Duration | None = None,
    ) -> None:
        super().__init__(*([text] if text else []))
        declared = {"delays": delays, "attempts": attempts, "budget": budget}
        _check_together(text, after, [name for name, value in declared.items() if value is not None])
        self._text = text
        self._after = after
        self._after_seconds = None if after is None else seconds_of(after, what="Retry(after=…)")
        self._delays = _checked_delays(DELAYS if delays is None else delays)
        self._delay_seconds = tuple(seconds_of(delay, what="Retry(delays=…)") for delay in self._delays)
        self._attempts = _checked_attempts(
            max(ATTEMPTS, len(self._delays) + 1) if attempts is None else attempts
        )
        self._budget = BUDGET if budget is None else budget
        self._budget_seconds = seconds_of(self._budget, what="Retry(budget=…)")

    @property
    def after(self) -> float | None:
        """Return the wait that is asked for, in seconds; None for the policy's next delay."""
        return self._after_seconds

    @property
    def delays(self) -> tuple[Duration, ...]:
        """Return the ladder as it was declared."""
        return self._delays

    @property
    def delay_seconds(self) -> tuple[float, ...]:
        """Return the ladder in seconds."""
        return self._delay_seconds

    @property
    def attempts(self) -> int:
        """Return how many runs there are before quarantine."""
        return self._attempts

    @property
    def budget(self) -> Duration:
        """Return the budget as it was declared."""
        return self._budget

    @property
    def budget_seconds(self) -> float:
        """Return the budget in seconds."""
        return self._budget_seconds

    @property
    def tiers(self) -> tuple[str, ...]:
        """Return the names of the ladder's tiers, by delay."""
        return in_order(tier_name(delay) for delay in self._delay_seconds)

    @property
    def asks(self) -> bool:
        """Return whether it can only be raised, not be a handler's policy."""
        return self._after is not None or self._text != ""

    def __repr__(self) -> str:
        if self.asks:
            return _shown("Retry", self._text, self._after)
        return f"Retry(delays={self._delays!r}, attempts={self._attempts!r}, budget={self._budget!r})"

    def __str__(self) -> str:
        return _told(self._text, self._after)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Retry) and self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    def _value(self) -> tuple[object, ...]:
        return self._text, self._after_seconds, self._delay_seconds, self._attempts, self._budget_seconds


class Later(PackhorseError):
    """
    Raise it in a handler to have the message come again *after* a while, with no attempt charged.

        raise Later("the office opens at eight", after="2h")

    What the handler wrote is rolled back. Its key waits with it where order binds it. The wait is rounded up to a tier as that
    of `Retry` is, and counts against the policy's budget, so a message that is put off for ever ends in quarantine with
    `budget-exhausted`: declare a budget that fits.

    Args:
        text: Why, kept with the message, so it must hold no payload.
        after: The wait, 1 s or more.

    Raises:
        SettingsError: *after* is no duration, or below 1 s.
    """

    retryable: ClassVar[bool] = True

    def __init__(self, text: str = "", *, after: Duration = "1m") -> None:
        super().__init__(*([text] if text else []))
        self._text = text
        self._given = after
        self.after = seconds_of(after, what="Later(after=…)")
        if self.after < SHORTEST_LATER:
            raise SettingsError(
                f"Later(after={after!r}) is not allowed: {SHORTEST_LATER:g} s or more, since no attempt is charged"
            )

    def __repr__(self) -> str:
        return _shown("Later", self._text, self._given)

    def __str__(self) -> str:
        return _told(self._text, self._given)


def policy_of(declared: Retry | None) -> Retry:
    """
    Return the policy of a handler that declares *declared*.

    Raises:
        SettingsError: It is no policy: something else, or a `Retry` that can only be raised.
    """
    if declared is None:
        return Retry()
    if not isinstance(declared, Retry):
        raise SettingsError(
            f'retry={declared!r} is no policy; pass retry=Retry(delays=["5s", "1m"], attempts=5)'
        )
    if declared.asks:
        raise SettingsError(
            f"retry={declared!r} is no policy: after= and a text are for `raise Retry(…)` in a handler; pass delays=, "
            "attempts= or budget="
        )
    return declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """
    Run it again.

    Attributes:
        delay: Seconds to wait, jitter included; never less than what was declared or asked for.
        tier: Name of the tier that it waits in; a delay that is longer than the longest tier goes round in that one.
    """

    delay: float
    tier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Send it to quarantine for *reason*."""

    reason: str


def after_failure(
    tries: int,
    spent: float,
    policy: Retry,
    *,
    jitter: float,
    after: float | None = None,
    least: float = 0.0,
    charged: bool = True,
    ladder: Sequence[str] | None = None,
) -> Again | Stop:
    """
    Return what follows the failed try number *tries* (from 1) of a message.

    Args:
        tries: Attempts that were charged, this one included; of an uncharged one those before it.
        spent: Seconds charged to the budget so far: planned waits, and runs that failed, this one included.
        policy: The handler's.
        jitter: Drawn by the caller from [0, 1); it only lengthens.
        after: The wait that the handler wants; None for the policy's next delay.
        least: The wait that a server wants its callers to keep; the policy's delay holds when that is longer.
        charged: False when the run costs no attempt (`Later`).
        ladder: Tiers by delay that a wanted wait may go to; None for the policy's own.

    >>> ladder = Retry(delays=["1s", "5s"], budget="1m")
    >>> after_failure(1, 0.0, ladder, jitter=0.0)
    Again(delay=1.0, tier='1s')
    >>> after_failure(4, 9.0, ladder, jitter=0.0)
    Again(delay=5.0, tier='5s')
    >>> after_failure(5, 9.0, ladder, jitter=0.0)
    Stop(reason='attempts-exhausted')
    >>> after_failure(2, 58.0, ladder, jitter=0.0)
    Stop(reason='budget-exhausted')
    >>> after_failure(2, 58.0, ladder, jitter=0.0, after=2.0)
    Again(delay=5.0, tier='5s')
    >>> after_failure(2, 0.0, ladder, jitter=0.0, after=300.0)
    Again(delay=300.0, tier='5s')
    """
    if charged and tries >= policy.attempts:
        return Stop(reason=Reason.ATTEMPTS_EXHAUSTED.value)
    delays = policy.delay_seconds
    wait = delays[min(max(tries, 1), len(delays)) - 1]
    over = spent + wait > policy.budget_seconds
    if after is not None or least > wait:
        wait = least if after is None else after
        over = spent >= policy.budget_seconds
    tier = tier_for(wait, policy.tiers if ladder is None else ladder)
    if over:
        return Stop(reason=Reason.BUDGET_EXHAUSTED.value)
    return Again(delay=max(wait, tier_seconds(tier)) * (1 + _SPREAD * jitter), tier=tier)


def _check_together(text: str, after: Duration | None, declared: list[str]) -> None:
    if not isinstance(text, str):
        raise SettingsError(
            f"Retry({text!r}) is not allowed: a text says why it is raised; a policy takes delays=, attempts=, budget="
        )
    raised = ["a text"] * bool(text) + ["after="] * (after is not None)
    if raised and declared:
        policy = ", ".join(f"{name}=" for name in declared)
        raise SettingsError(
            f"Retry takes {' and '.join(raised)} when it is raised in a handler, and {policy} when it is the handler's policy; "
            "not both"
        )


def _checked_delays(delays: Sequence[Duration]) -> tuple[Duration, ...]:
    if isinstance(delays, str) or not isinstance(delays, Sequence) or not delays:
        raise SettingsError(f'Retry(delays={delays!r}) is not allowed: a list such as ["1s", "5s"]')
    return tuple(delays)


def _checked_attempts(attempts: int) -> int:
    if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
        raise SettingsError(f"Retry(attempts={attempts!r}) is not allowed: 1 or more")
    return attempts


def _shown(name: str, text: str, after: Duration | None) -> str:
    given = [repr(text)] * bool(text) + [f"after={after!r}"] * (after is not None)
    return f"{name}({', '.join(given)})"


def _told(text: str, after: Duration | None) -> str:
    return text or ("" if after is None else f"again after {after}")
