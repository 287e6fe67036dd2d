"""
One assigned partition: its state, what can happen to it, and what it can order. `deciding.decide` connects them.

    OPENING ──Opened──▶ READING ◀──BatchEnded──▶ (busy)
       ▲ ▲                │  │
       │ └──trouble, void─┘  └─ a retry is not due yet: WAITING ──Tick──▶ READING
       └──Tick── AWAY (something underneath is away)

REFUSED waits for an operator and is tried again now and then; DRAINING finishes what runs and begins nothing; CLOSED
takes and orders nothing more.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from packhorse.core.backoff import Backoff


class Phase(StrEnum):
    """Where a partition stands."""

    OPENING = "opening"
    READING = "reading"
    WAITING = "waiting"
    AWAY = "away"
    REFUSED = "refused"
    DRAINING = "draining"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """
    Bound what a partition holds and how it waits; times are in seconds.

    Attributes:
        batch: Most records of one batch.
        buffered: Records read ahead at which fetching pauses; it resumes at half of it.
        buffered_bytes: The same in bytes of keys and values.
        commit_every: Least time between two Kafka commits of one partition.
        uncharged: Runs of a message alone that may end in contention before it is charged.
        suspected: Runs that may end with the connection, while the database is well, before the message is charged.
        quick: A database that answers again within this time was well, and the message is suspected.
        ask_again: Time after which a refused partition is opened again.
    """

    batch: int = 500
    buffered: int = 5_000
    buffered_bytes: int = 32 * 1024 * 1024
    commit_every: float = 0.5
    uncharged: int = 5
    suspected: int = 3
    quick: float = 10.0
    ask_again: float = 60.0
    backoff: Backoff = field(default_factory=Backoff)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """
    What is known of one assigned partition.

    Attributes:
        generation: Number of this ownership; what an earlier one finishes late counts for nothing.
        phase: Where it stands.
        position: The watermark: all below it is durable. None until it was read.
        leader_epoch: Leader epoch stored with the watermark.
        handled: All below it is dealt with in this ownership; above the watermark only while old offsets are read again.
        expected: Offset that the next record should have; records below it are not taken.
        attached: The broker's client fetches for us; before that a start is assigned, after it sought.
        unproved: No record was taken since the fetch position was set, so a jump may be a stale fetch.
        doubt: First offset of the jump that is being proved.
        buffered, buffered_bytes: What is read ahead.
        paused: Fetching is paused.
        busy: A job of this partition is with a lane.
        due: Monotonic time at which WAITING, AWAY or REFUSED ends.
        limit: Most records of the next batch; falls with contention and grows again.
        losses: Runs of a batch of one that ended in contention.
        failures: Consecutive troubles, for the backoff.
        reopen: The wait ends with reading the watermark again.
        suspect: Offset whose run ended with the connection, and when.
        suspicion: An offset, and how many of its runs ended with the connection while the database was well.
        committed: Position that the group's coordinator has confirmed.
        committing: Position of the commit on its way.
        commit_at: Monotonic time before which no commit is sent.
    """

    generation: int
    phase: Phase = Phase.OPENING
    position: int | None = None
    leader_epoch: int | None = None
    handled: int = 0
    expected: int = 0
    attached: bool = False
    unproved: bool = False
    doubt: int | None = None
    buffered: int = 0
    buffered_bytes: int = 0
    paused: bool = False
    busy: bool = False
    due: float = 0.0
    limit: int = 500
    losses: int = 0
    failures: int = 0
    reopen: bool = False
    suspect: tuple[int, float] | None = None
    suspicion: tuple[int, int] | None = None
    committed: int | None = None
    committing: int | None = None
    commit_at: float = 0.0


# What can happen.


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
    | Revoking
    | Lost
    | Committed
    | CommitFailed
    | CommitRefused
    | Tick
)


# What can be ordered.


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Read the watermark and what the coordinator holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attach:
    """Fetch from *offset*, for the first time in this ownership."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Seek:
    """Fetch from *offset* from now on."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Stop fetching."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Fetch again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """Put the records that just arrived into the buffer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropBelow:
    """Take the records below *offset* out of the buffer."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Empty the buffer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """
    Hand the first *limit* records of the buffer to a lane.

    Attributes:
        position, leader_epoch: The watermark that the lane moves.
        alone: Offset that no other record shares a batch with.
        charged: Offset that is charged a failed attempt instead of being run.
        contended: The batch has one member and may not end in contention once more: then it is charged.
    """

    limit: int
    position: int
    leader_epoch: int | None
    alone: int | None = None
    charged: int | None = None
    contended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Tell the coordinator that all below *position* is done."""

    position: int
    leader_epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Say that the partition does not move, why, and for how long it waits now."""

    what: str
    text: str
    wait: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StopProcess:
    """Stop the process with an error."""

    error: str


Command = (
    Open | Attach | Seek | Pause | Resume | Take | DropBelow | Forget | Run | Commit | Alarm | StopProcess
)
