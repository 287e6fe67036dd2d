"""What the loop gives to lanes, and what comes back."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from packhorse.processor.member.fence import Fence
from packhorse.processor.member.queue import Waiting
from packhorse.processor.outcomes import Reason
from packhorse.processor.partition.events import Event, HandedOn
from packhorse.processor.record import Stream

Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """
    One job of one partition.

    Attributes:
        place: Topic and partition.
        generation: The ownership that it belongs to.
        number: Its own.
        fence: Goes up when the job counts for nothing any more.
    """

    place: Place
    generation: int
    number: int
    fence: Fence = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenJob(Job):
    """Read the watermark and find where to start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkJob(Job):
    """
    Deal with *chunk*.

    Attributes:
        position, leader_epoch: The watermark as it was last known.
        topic_age: How many other topics of that name the group has known.
        charged: Why its one member is charged a failed attempt instead of being run.
        contended: Its one member may not end in contention once more: then it is charged.
        suspected: Something is known against its one member, or against a follower behind it: followers run one by one.
        marked: Its one member may have killed a process: its start is put on record.
        careful: A member failed of late: they get savepoints from the start.
        tried: Offsets that were handed over before in this ownership.
        probe: The handler whose one message tries whether it may go on: a failure is not charged. None: it is no probe.
        shut: Names of handlers that are stopped: no follower of theirs is run, but one as the probe.
        ended: Its members are jobs whose bodies have ended: that is recorded, and nothing is run, whoever has the partition.
    """

    chunk: Sequence[Waiting]
    stream: Stream
    position: int
    leader_epoch: int | None
    topic_age: int = 0
    charged: Reason | None = None
    contended: bool = False
    suspected: bool = False
    marked: bool = False
    careful: bool = False
    tried: frozenset[int] = frozenset()
    probe: str | None = None
    shut: frozenset[str] = frozenset()
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of a job, or of a part of it; *number* is None for what no lane did."""

    place: Place
    generation: int
    event: Event | HandedOn
    number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One partition's watermark to be moved by compare-and-set."""

    place: Place
    generation: int
    stream: Stream
    old: int
    new: int
    leader_epoch: int | None
