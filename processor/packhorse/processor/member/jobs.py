"""What the loop gives to lanes, and what comes back."""

from dataclasses import dataclass
from uuid import UUID

from packhorse.processor.member.fence import Fence
from packhorse.processor.partition.events import (
    Event,
)
from packhorse.processor.record import Record

Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """
    One job of one partition.

    Attributes:
        place: Topic and partition.
        generation: The ownership that it belongs to.
        fence: Goes up when the job counts for nothing any more.
    """

    place: Place
    generation: int
    fence: Fence


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenJob(Job):
    """Read the watermark and find where to start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJob(Job):
    """Deal with *records*; the rest is as in `Work`."""

    records: list[Record]
    topic_id: UUID
    position: int
    leader_epoch: int | None
    charged: int | None
    contended: bool
    tried_below: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of a job."""

    place: Place
    generation: int
    event: Event
