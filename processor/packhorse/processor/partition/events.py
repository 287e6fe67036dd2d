"""What can happen to an assigned partition."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from packhorse.processor.breaking.brake import Seen
from packhorse.processor.running.work import Ran


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
        topic_age: How many other topics of that name the group has known.
        unfinished: Offsets that another process had in hand and may have died of.
        begun: Those of them that were put on record as begun, by a process that did not live through it.
    """

    start: int
    position: int
    leader_epoch: int | None
    committed: int | None
    topic_id: UUID
    topic_age: int = 0
    unfinished: tuple[int, ...] = ()
    begun: frozenset[int] = frozenset()


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
    """Records arrived, in offset order: the first and last offset."""

    first: int
    last: int


class Took(NamedTuple):
    """How long bodies of jobs took: how many there were, the seconds of all together, and of the longest."""

    bodies: int = 0
    seconds: float = 0.0
    longest: float = 0.0

    def and_one(self, seconds: float) -> "Took":
        """Return it with one body more."""
        return Took(self.bodies + 1, self.seconds + seconds, max(self.longest, seconds))

    def and_more(self, seconds: float) -> "Took":
        """Return it with *seconds* more for what bodies wanted written with their success."""
        return self._replace(seconds=self.seconds + seconds)


NO_TIME = Took()


class Ended(StrEnum):
    """How a chunk ended."""

    WELL = "well"
    NOT_DUE = "not-due"
    CONTENTION = "contention"
    AWAY = "away"
    VOID = "void"
    STOPPED = "stopped"
    GIVEN_UP = "given-up"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkEnded:
    """
    A lane is through with a chunk.

    Attributes:
        ended: How.
        done: How many of its records are dealt with, durably, copies confirmed.
        left: Offsets that are not.
        tried: Those of them for which a handler has run, or a result was found.
        held: Those of *left* that wait alone, their key with them, and for how many seconds.
        gated: Those of *left* behind which a follower of a stopped handler is next, and its gate: theirs from now on.
        others: Those of *left* that a lane of the other kind (`def`, `async def`) goes on with.
        wait: Seconds until a copy is due (NOT_DUE).
        alone: The chunk had one member.
        away: What is away (AWAY): database, broker, registry, or a handler's own dependency.
        suspect: Offset that was running when the connection ended, or that says that a system is down.
        stuck: The offset whose handler did not come back from its time-out; several when it is one of a batch.
        sure: It is known that this one, or the first follower behind it, is the one that is stuck.
        slow: Hashes of keys whose handler took longer than a chunk may.
        quick: Hashes of keys that ran alone and did not.
        tallies: First attempts that were made by handler, where any was.
        ran: How a probe's run ended; None when it was not run.
        down: Gate of a handler which says that a system behind it is down.
        error: What happened (AWAY), or why the process must stop (STOPPED).
        failed: A member failed, and what it did had to be undone: the next chunks are run with care.
        took: How long bodies of jobs took.
    """

    ended: Ended
    done: int = 0
    left: tuple[int, ...] = ()
    tried: frozenset[int] = frozenset()
    held: Mapping[int, float] = field(default_factory=dict)
    gated: Mapping[int, str] = field(default_factory=dict)
    others: frozenset[int] = frozenset()
    wait: float = 0.0
    alone: bool = False
    away: str = ""
    suspect: int | None = None
    stuck: tuple[int, ...] = ()
    sure: bool = True
    slow: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    failed: bool = False
    tallies: Mapping[str, Seen] = field(default_factory=dict)
    ran: Ran | None = None
    down: str = ""
    error: str = ""
    took: Took = NO_TIME


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOn:
    """
    A body takes longer than the jobs that were claimed with it shall wait: the lane keeps that one alone.

    Attributes:
        ended: Offsets of jobs whose body has ended; the chunk *number* records that, beside the lanes.
        number: Of that chunk; 0 where none has ended.
        left: Offsets of jobs that were not begun, and are given back.
    """

    ended: frozenset[int]
    number: int
    left: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneBroke:
    """A lane met an *error* that nobody foresaw; its job has no outcome."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """The watermark was moved to *position*, durably."""

    position: int
    leader_epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkRefused:
    """The watermark is not what we believed, or another server answers: what we remember counts for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkFailed:
    """The database did not answer, as *text* says."""

    text: str


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
class Crowded:
    """So much waits behind parked keys of the partition, as *text* says, that no more may come; without it there is room."""

    text: str = ""


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
    | ChunkEnded
    | LaneBroke
    | Marked
    | MarkRefused
    | MarkFailed
    | Voided
    | FetchStopped
    | Held
    | Crowded
    | Revoking
    | Lost
    | Committed
    | CommitFailed
    | CommitRefused
    | Tick
)
