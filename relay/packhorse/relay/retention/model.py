"""
What retention thinks with: partitions, what to do (steps), what came of it (outcomes), and what is overdue.

A partition is due when all its days lie before `keep`, the first day that is kept. What is due and stays is overdue.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from packhorse.core.errors import SettingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """
    What to keep.

    Attributes:
        keep_days: Days kept before today, at least 1; None: all are kept.
        ahead: Days after today that have a partition.
    """

    keep_days: int | None
    ahead: int

    def __post_init__(self) -> None:
        if self.keep_days is not None and self.keep_days < 1:
            raise SettingsError(f"keep_days {self.keep_days} is not allowed: at least 1")
        if not 0 <= self.ahead <= 400:
            raise SettingsError(f"ahead {self.ahead} is not allowed: 0 to 400")


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """
    One partition of the outbox.

    Attributes:
        name: Its table.
        day: The day whose rows it takes, UTC; None: the default partition, which takes what has no other.
        size: Bytes of its rows on disk; 0: it is empty.
    """

    name: str
    day: date | None
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """How the outbox stands; *today* is the database's, UTC."""

    today: date
    partitions: tuple[Partition, ...]

    def keep(self, rules: Rules) -> date | None:
        """Return the first day that is kept."""
        return None if rules.keep_days is None else self.today - timedelta(days=rules.keep_days)


@dataclass(frozen=True, slots=True, kw_only=True)
class Make:
    """Make the partition of *day*."""

    day: date

    @property
    def name(self) -> str:
        """Return the partition's table name."""
        return f"outbox_{self.day:%Y%m%d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Empty:
    """Truncate a partition, if all of it lies before *keep*, is published and not held."""

    name: str
    keep: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Drop an empty partition that lies before *keep*."""

    name: str
    keep: date


Step = Make | Empty | Drop


class Code(StrEnum):
    """What came of a step; the database's functions return these words."""

    MADE = "made"
    EMPTIED = "emptied"
    DROPPED = "dropped"
    DUE = "due"
    """Only looked at: it would be done."""
    THERE = "there"
    NET = "net"
    LARGE = "large"
    UNPUBLISHED = "unpublished"
    HELD = "held"
    BUSY = "busy"
    CHANGED = "changed"
    YOUNG = "young"
    GONE = "gone"
    FILLED = "filled"
    DEPENDED = "depended"
    ELSEWHERE = "elsewhere"
    NO_HORIZON = "no_horizon"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRow:
    """
    The row for which a partition stays.

    Attributes:
        shard: Whose horizon does not have it; None when a hold does not.
        hold: The hold that still has to publish it.
    """

    id: str
    aggregatetype: str
    seq: int
    created_at: str
    shard: int | None = None
    hold: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """
    Whose lock was in the way.

    Attributes:
        pid: The backend's; None for a prepared transaction.
        gid: Name of the prepared transaction.
        application: What the client calls itself.
        seconds: How long its transaction is open; None where our rights don't let us see it.
        wrote: It wrote to the partition.
    """

    pid: int | None
    gid: str | None
    application: str | None
    seconds: int | None
    wrote: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    What came of *step*.

    Attributes:
        row: The row for which the partition stays.
        blocker: Who had the lock.
        size: Bytes that became free.
        text: What the database said.
    """

    step: Step
    code: Code
    row: KeptRow | None = None
    blocker: Blocker | None = None
    size: int = 0
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """A partition that somebody should look at: its name, a cause in one word, and what to do, for people."""

    name: str
    cause: str
    told: str
    message_id: str | None = None
    aggregatetype: str | None = None
    hold: int | None = None

    def as_dict(self) -> dict[str, str | int | None]:
        """Return what the table and `--json` hold."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One run."""

    outcomes: tuple[Outcome, ...]
    overdue: tuple[Overdue, ...]

    def count(self, code: Code) -> int:
        """Return how many steps came out as *code*."""
        return sum(outcome.code is code for outcome in self.outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """
    What the table retention says.

    Attributes:
        ran_at: When a run was last over; None: never.
        ran_by: Machine and process.
        keep_days: What it kept; None: all.
        overdue: What somebody should look at since then.
    """

    ran_at: datetime | None
    ran_by: str | None
    keep_days: int | None
    overdue: tuple[Overdue, ...]
