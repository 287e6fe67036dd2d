"""Decide which groups of failures somebody is told of. Pure: no I/O, no clock."""

from dataclasses import dataclass
from datetime import datetime, timedelta

GROWTH = 10
"""A group is told of again when it is so many times as large as when it was told of."""
AGAIN = timedelta(days=1)
"""And when messages still wait so long after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """
    One group of failures as the tables have it; nothing of any message.

    Attributes:
        waiting: Messages in quarantine that nobody has decided about.
        first_at, last_at: Of these.
        told_at, told_count: When somebody was told last, and how many waited then.
        acknowledged: A person has said that it is known.
    """

    print: str
    topic: str
    type: str | None
    reason: str
    site: str
    waiting: int
    first_at: datetime
    last_at: datetime
    told_at: datetime | None = None
    told_count: int = 0
    acknowledged: bool = False


def is_due(failing: Failing, *, now: datetime) -> bool:
    """Say whether somebody is to be told of *failing* at *now*: it is new, has grown tenfold, or still waits after a day."""
    if failing.acknowledged or failing.waiting <= 0:
        return False
    if failing.told_at is None:
        return True
    return failing.waiting >= GROWTH * max(failing.told_count, 1) or now - failing.told_at >= AGAIN
