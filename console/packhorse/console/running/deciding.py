"""What redrives and replays decide alike: what a rate allows, and to wait, halt or end. Pure: no I/O, no clock."""

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """
    What a rate allows at a moment.

    Attributes:
        tokens: Messages.
        at: When they were counted, in monotonic seconds; infinite: not yet, so that no time before is made up for.
    """

    tokens: float
    at: float = math.inf

    def filled(self, rate: float, *, most: float, now: float) -> "Bucket":
        """
        Return it with what the time since has brought at *rate* messages a second; *most* at most, so that no pause is made up for.

        >>> Bucket(tokens=1.0, at=5.0).filled(4.0, most=9.0, now=5.5).tokens
        3.0
        >>> Bucket(tokens=1.0).filled(10.0, most=4.0, now=7.0)
        Bucket(tokens=1.0, at=7.0)
        """
        return Bucket(tokens=min(most, self.tokens + max(0.0, now - self.at) * rate), at=now)

    def taken(self, count: int) -> "Bucket":
        """Return it without *count* tokens: below zero where more than it held were taken together."""
        return replace(self, tokens=self.tokens - count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Nothing is to be done during the next *seconds* but to look at outcomes."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """Let nothing more go until a person says so; what is in flight goes on."""

    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The run is over; *said* is what of it a person should know."""

    said: str | None = None
