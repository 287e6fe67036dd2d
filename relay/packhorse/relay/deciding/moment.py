"""When something happened, and what the core may use of time and chance."""

from dataclasses import dataclass

from packhorse.relay.model import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """
    One step of the core.

    Attributes:
        now: The machine's monotonic clock.
        pause: How long to wait after one more failure in a row.
        jitter: Chance in [0, 1).
    """

    now: float
    policy: Policy
    pause: float
    jitter: float
