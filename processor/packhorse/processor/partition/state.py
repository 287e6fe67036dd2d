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
        stopped: The broker's client has stopped fetching by itself and waits for a seek.
        doubt: First offset of the jump that is being proved.
        buffered, buffered_bytes: What is read ahead.
        paused: Fetching is paused.
        held: A person has paused the partition: what runs ends, nothing begins.
        busy: A job of this partition is with a lane.
        due: Monotonic time at which WAITING, AWAY or REFUSED ends.
        limit: Most records of the next batch; falls with contention and grows again.
        losses: Runs of a batch of one that ended in contention.
        failures: Consecutive troubles, for the backoff.
        reopen: The wait ends with reading the watermark again.
        trouble: What is away or refused, for people; empty when nothing is.
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
    stopped: bool = False
    doubt: int | None = None
    buffered: int = 0
    buffered_bytes: int = 0
    paused: bool = False
    held: bool = False
    busy: bool = False
    due: float = 0.0
    limit: int = 500
    losses: int = 0
    failures: int = 0
    reopen: bool = False
    trouble: str = ""
    suspect: tuple[int, float] | None = None
    suspicion: tuple[int, int] | None = None
    committed: int | None = None
    committing: int | None = None
    commit_at: float = 0.0
