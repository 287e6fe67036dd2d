"""
One assigned partition: its state, what can happen to it, and what it can order. `deciding.decide` connects them.

    OPENING ──Opened──▶ READING ◀──────Tick────── WAITING (a copy is not due yet)
       ▲ ▲                │  │                        ▲
       │ └──trouble, void─┘  └───────ChunkEnded───────┘
       └──Tick── AWAY (something underneath is away; what runs comes back first)

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
        batch: Most records of one chunk.
        buffered: Records read and not dealt with at which fetching pauses; it resumes at half of it.
        buffered_bytes: The same in bytes of keys, values and headers; of all partitions of a member together.
        tracked: Records from the first that is not dealt with to the last that was read, dealt with or not, at which
            fetching pauses: one slow message heads the partition, and thousands behind it are done.
        mark_every: Least time between two moves of one partition's watermark.
        commit_every: Least time between two Kafka commits of one partition.
        uncharged: Runs of a message alone that may end in contention before it is charged.
        suspected: Runs that may end with the connection, while the database is well, before the message is charged.
        crashed: Processes that may die while they run a message alone, before it is stopped.
        quick: A database that answers again within this time was well, and the message is suspected.
        ask_again: Time after which a refused partition is opened again.
    """

    batch: int = 500
    buffered: int = 5_000
    buffered_bytes: int = 32 * 1024 * 1024
    tracked: int = 50_000
    mark_every: float = 0.1
    commit_every: float = 0.5
    uncharged: int = 5
    suspected: int = 3
    crashed: int = 3
    quick: float = 10.0
    ask_again: float = 60.0
    backoff: Backoff = field(default_factory=Backoff)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """
    What the partition's queue holds.

    Attributes:
        pending, size: Records read and not dealt with, those that run included, and their bytes.
        tracked: Records from the first that is not dealt with to the last that was read.
        end, epoch: All below *end* is dealt with, and the leader epoch of the last record of that.
    """

    pending: int = 0
    size: int = 0
    tracked: int = 0
    end: int = 0
    epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """
    What is known of one assigned partition.

    Attributes:
        generation: Number of this ownership; what an earlier one finishes late counts for nothing.
        phase: Where it stands.
        position: The watermark: all below it is durable. None until it was read.
        leader_epoch: Leader epoch stored with the watermark.
        start: Where reading started when the watermark was last read.
        expected: Offset that the next record should have; records below it are not taken.
        attached: The broker's client fetches for us; before that a start is assigned, after it sought.
        unproved: No record was taken since the fetch position was set, so a jump may be a stale fetch.
        stopped: The broker's client has stopped fetching by itself and waits for a seek.
        doubt: First offset of the jump that is being proved.
        paused: Fetching is paused.
        held: A person has paused the partition: what runs ends, nothing begins.
        crowded: So much waits behind parked keys that no more may come; what is paused so goes on by itself.
        running: Chunks that are with lanes.
        opening: The watermark is being read.
        marking: Where the watermark is being moved to.
        mark_at: Monotonic time before which it is not moved.
        due: Monotonic time at which WAITING, AWAY or REFUSED ends.
        limit: Most records of the next chunk; falls with contention and grows again.
        failures: Consecutive troubles, for the backoff.
        reopen: The wait ends with reading the watermark again.
        suspect: Offset whose run ended with the connection, and when.
        trouble: What is away or refused, for people; empty when nothing is.
        committed: Position that the group's coordinator has confirmed.
        committing: Position of the commit on its way.
        commit_at: Monotonic time before which no commit is sent.
    """

    generation: int
    phase: Phase = Phase.OPENING
    position: int | None = None
    leader_epoch: int | None = None
    start: int = 0
    expected: int = 0
    attached: bool = False
    unproved: bool = False
    stopped: bool = False
    doubt: int | None = None
    paused: bool = False
    held: bool = False
    crowded: bool = False
    running: int = 0
    opening: bool = False
    marking: int | None = None
    mark_at: float = 0.0
    due: float = 0.0
    limit: int = 500
    failures: int = 0
    reopen: bool = False
    suspect: tuple[int, float] | None = None
    trouble: str = ""
    committed: int | None = None
    committing: int | None = None
    commit_at: float = 0.0

    @property
    def busy(self) -> bool:
        """Return whether a lane or the marker works for it."""
        return self.running > 0 or self.opening or self.marking is not None

    def is_to_reopen(self, now: float) -> bool:
        """Return whether the watermark is to be read again, once nothing keeps the partition busy."""
        return self.phase is Phase.AWAY and self.reopen and now >= self.due

    @property
    def may_run(self) -> bool:
        """Return whether a chunk may begin."""
        return self.phase is Phase.READING and not self.stands

    @property
    def stands(self) -> bool:
        """Return whether nothing may begin, whatever the phase: a person has paused it, or too much is parked."""
        return self.held or self.crowded
