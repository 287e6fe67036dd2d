"""What the inbox's retention thinks with: rules, partitions, what came of a step, and what a turn left behind."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from packhorse.core.errors import SettingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxRules:
    """
    What to keep.

    Attributes:
        keep_days: Days that closed rows live after they changed last; None: all are kept.
        discarded_days: Days that discarded messages live.
        ahead: Days after today that have a partition.
        step: Rows looked at in one step.
    """

    keep_days: int | None
    discarded_days: int = 90
    ahead: int = 7
    step: int = 1000

    def __post_init__(self) -> None:
        for name, low, high in (("keep_days", 2, 36_500), ("discarded_days", 1, 36_500), ("ahead", 0, 400)):
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise SettingsError(f"{name} {value} is not allowed: {low} to {high}")
        if not 1 <= self.step <= 10_000:
            raise SettingsError(f"step {self.step} is not allowed: 1 to 10000")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One partition of the inbox; without a *day* it is the default one, which takes what has no other."""

    name: str
    day: date | None
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """How the inbox stands: the database's day (UTC), its partitions, and the latest time before which rows of a group may go."""

    today: date
    parts: tuple[Part, ...]
    kept_from: datetime | None

    def missing(self, ahead: int) -> tuple[date, ...]:
        """Return the days from today on that have no partition yet."""
        made = {part.day for part in self.parts}
        return tuple(
            day for day in (self.today + timedelta(days=n) for n in range(ahead + 1)) if day not in made
        )

    def old(self) -> tuple[Part, ...]:
        """Return the day partitions that are over for some group, the oldest first."""
        if self.kept_from is None:
            return ()
        return tuple(
            part
            for part in sorted(self.parts, key=lambda part: part.day or date.max)
            if part.day is not None and midnight(part.day + timedelta(days=1)) <= self.kept_from
        )

    def net(self) -> Part | None:
        """Return the default partition."""
        return next((part for part in self.parts if part.day is None), None)


def midnight(day: date) -> datetime:
    """Return when *day* begins, UTC."""
    return datetime.combine(day, time(), UTC)


class Code(StrEnum):
    """What came of a step; the database's functions return these words."""

    MADE = "made"
    THERE = "there"
    NET = "net"
    LARGE = "large"
    DROPPED = "dropped"
    DUE = "due"
    KEPT = "kept"
    BUSY = "busy"
    DEPENDED = "depended"
    YOUNG = "young"
    GONE = "gone"
    ELSEWHERE = "elsewhere"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRow:
    """A row for which a partition stays."""

    id: str
    group: str
    topic: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """What came of dropping: *row* is what the partition stays for."""

    code: Code
    row: KeptRow | None = None
    text: str | None = None


Place = tuple[UUID, str, str]
"""Where a look at rows goes on: the primary key of the last one."""
START: Place = (UUID(int=0), "", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """
    What came of one step over rows.

    Attributes:
        seen: Rows looked at.
        removed: Rows that are gone.
        after: Where to go on; None: those were all.
        given_way: Nothing was looked at, for somebody else had a lock; later.
    """

    seen: int = 0
    removed: int = 0
    after: Place | None = None
    given_way: bool = False


@dataclass(slots=True, kw_only=True)
class Turn:
    """What one turn did and left behind; *overdue* says for each partition that stays past its time what for."""

    made: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    due: list[str] = field(default_factory=list)
    removed: int = 0
    overdue: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return what the table and `--json` hold."""
        return {name: getattr(self, name) for name in ("made", "dropped", "due", "removed", "overdue")}
