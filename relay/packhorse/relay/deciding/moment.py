"""When something happened, and what the core may use of time and chance."""

from dataclasses import dataclass

from packhorse.core.backoff import Backoff, delay_after
from packhorse.relay.model import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """
    One step of the core.

    Attributes:
        now: The machine's monotonic clock.
        jitter: Chance in [0, 1).
    """

    now: float
    policy: Policy
    jitter: float

    def pause(self, failures: int, *, first: float | None = None, longest: float | None = None) -> float:
        """Return how long to wait, in seconds, after so many failures in a row; bounds as the policy has them for retries."""
        backoff = Backoff(
            first=first or self.policy.retry_first, longest=longest or self.policy.retry_longest
        )
        return delay_after(failures, backoff, jitter=self.jitter)
