"""Growing delays with jitter, decided apart from any clock."""

from dataclasses import dataclass

from packhorse.core.errors import SettingsError

_MOST_DOUBLINGS = 64  # 2.0 ** 1024 raises OverflowError, and no delay needs more


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """
    Describe exponential backoff; durations are in seconds and jitter only lengthens.

    Raises:
        SettingsError: A duration is not positive, the factor is below 1, or the spread is negative.
    """

    first: float = 0.1
    factor: float = 2.0
    longest: float = 30.0
    spread: float = 0.2

    def __post_init__(self) -> None:
        if self.first <= 0 or self.longest < self.first or self.factor < 1 or self.spread < 0:
            raise SettingsError(
                f"backoff {self} is not allowed: first > 0, longest >= first, factor >= 1, spread >= 0"
            )


def delay_after(failure: int, policy: Backoff, *, jitter: float) -> float:
    """
    Return the seconds to wait after failure number *failure* (from 1); *jitter* is drawn by the caller from [0, 1).

    >>> [delay_after(n, Backoff(longest=0.5), jitter=0.0) for n in (1, 2, 3, 4)]
    [0.1, 0.2, 0.4, 0.5]
    """
    doublings = min(max(failure, 1) - 1, _MOST_DOUBLINGS)
    return min(policy.longest, policy.first * policy.factor**doublings) * (1 + policy.spread * jitter)
