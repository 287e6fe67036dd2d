"""What can happen to an assigned partition."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """The group gave us the partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """
    The watermark was read, or written for the first time.

    Attributes:
        start: Where reading starts.
        position: The watermark.
        leader_epoch: Leader epoch stored with it.
        committed: What the coordinator holds.
        topic_id: Kafka's id of the topic.
    """

    start: int
    position: int
    leader_epoch: int | None
    committed: int | None
    topic_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFailed:
    """
    Reading the watermark failed, as *text* says.

    Attributes:
        text: What happened, for people.
        away: What does not answer; it passes by itself.
        refused: An operator must decide.
    """

    text: str
    away: str = "broker"
    refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Records arrived, in offset order: the first and last offset, how many, and their bytes."""

    first: int
    last: int
    count: int
    size: int


class Ended(StrEnum):
    """How a batch ended."""

    WELL = "well"
    NOT_DUE = "not-due"
    CONTENTION = "contention"
    AWAY = "away"
    VOID = "void"
    STOPPED = "stopped"
    GIVEN_UP = "given-up"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEnded:
    """
    A lane is through with a batch.

    Attributes:
        ended: How.
        position: The watermark now.
        leader_epoch: Leader epoch stored with it.
        handled: Offset below which every record of the batch is dealt with.
        records, size: How many those are, and their bytes.
        tried: Offset below which every record was handed to the batch.
        wait: Seconds until a retry is due (NOT_DUE).
        alone: The batch had one member (CONTENTION).
        away: What is away (AWAY): database, broker or registry.
        suspect: Offset that was running when the connection ended.
        error: What happened (AWAY), or why the process must stop (STOPPED).
    """

    ended: Ended
    position: int
    leader_epoch: int | None
    handled: int
    records: int
    size: int
    tried: int = 0
    wait: float = 0.0
    alone: bool = False
    away: str = ""
    suspect: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneBroke:
    """A lane met an *error* that nobody foresaw; its job has no outcome."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Voided:
    """A connection to the database was made anew: what is remembered above the watermark counts for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStopped:
    """The broker's client has stopped fetching, as *text* says: its position is outside the log, and only a seek helps."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A person has paused the partition, or let it go on."""

    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoking:
    """The partition is about to go, or we are about to stop: finish what runs, begin nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The partition is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The coordinator confirmed the commit of *position*."""

    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFailed:
    """The commit of *position* failed; it is sent again with the newest."""

    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRefused:
    """The coordinator refused the commit because the group has moved on: what we know may be stale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Time has passed."""


Event = (
    Assigned
    | Opened
    | OpenFailed
    | Fetched
    | BatchEnded
    | LaneBroke
    | Voided
    | FetchStopped
    | Held
    | Revoking
    | Lost
    | Committed
    | CommitFailed
    | CommitRefused
    | Tick
)
