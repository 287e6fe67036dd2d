"""What the loop makes of a chunk of which a lane hands jobs on: nothing is lost, whatever is heard of first."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from packhorse.processor.member.desk import Desk
from packhorse.processor.member.jobs import ChunkJob, Job, Move, OpenJob, Report
from packhorse.processor.member.pacing import CALM
from packhorse.processor.member.queue import Kind, Waiting
from packhorse.processor.partition.events import ChunkEnded, Ended, HandedOn, Opened, Took
from packhorse.processor.partition.state import Limits
from packhorse.processor.record import Delivery, Record, Stream

PLACE = ("unit.reports", 0)
STREAM = Stream(topic=PLACE[0], topic_id=UUID(int=1), source=PLACE[0])
JOB = Kind(job=True, paced="reports")
WARM = 8 * CALM


class Silent:
    """A fetcher that fetches nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *given: True


def sorted_in(records: Sequence[Record], stream: Stream) -> list[Waiting]:
    """Return *records* as jobs of a type that declares nothing."""
    return [
        Waiting(
            Delivery(one, UUID(int=one.offset + 1), "unit.Report", {}, stream.topic_id, None, None),
            None,
            JOB,
            "reports",
            1,
        )
        for one in records
    ]


@dataclass
class World:
    """One partition and one lane, and a type of jobs that is known as quick."""

    out: list[ChunkJob] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    now: float = 0.0
    desk: Desk = field(init=False)

    def __post_init__(self) -> None:
        self.desk = Desk(
            fetcher=Silent(),
            works=self,
            lanes=1,
            streams=lambda place: STREAM,
            sort=sorted_in,
            limits=Limits(),
            clock=self,  # type: ignore[arg-type]
            chance=self,  # type: ignore[arg-type]
            alarm=lambda place, alarm: None,
        )
        self.desk.assigned([PLACE])
        self.feed(range(WARM))
        self.desk.dispatch()
        while self.out:
            chunk = self.out.pop()
            count = len(chunk.chunk)
            self.report(chunk, ChunkEnded(ended=Ended.WELL, done=count, took=Took(count, 1e-6, 1e-6)))
            self.desk.dispatch()

    def monotonic(self) -> float:
        return self.now

    def fraction(self) -> float:
        return 0.0

    def submit(self, job: Job) -> None:
        if isinstance(job, OpenJob):
            opened = Opened(start=0, position=0, leader_epoch=None, committed=None, topic_id=UUID(int=1))
            self.desk.reported(
                Report(place=job.place, generation=job.generation, event=opened, number=job.number)
            )
        elif isinstance(job, ChunkJob):
            self.out.append(job)

    def mark(self, move: Move) -> None:
        self.marks.append(move.new)

    def feed(self, offsets: Sequence[int]) -> None:
        self.desk.fetched(PLACE, [Record(*PLACE, n, 0, 0, None, b"x", ()) for n in offsets])

    def report(self, chunk: ChunkJob, event: Any, number: int | None = None) -> None:
        self.desk.reported(
            Report(
                place=PLACE,
                generation=chunk.generation,
                event=event,
                number=chunk.number if number is None else number,
            )
        )

    @property
    def end(self) -> int:
        return self.desk.queues[PLACE].end


def offsets_of(job: ChunkJob) -> list[int]:
    return [one.delivery.record.offset for one in job.chunk]


def chunk_of_four() -> tuple[World, ChunkJob, list[int]]:
    world = World()
    offsets = list(range(WARM, WARM + 4))
    world.feed(offsets)
    world.desk.dispatch()
    (chunk,) = world.out
    assert offsets_of(chunk) == offsets
    return world, chunk, offsets


def test_what_was_handed_on_is_taken_up_and_the_one_that_takes_long_holds_the_mark() -> None:
    """Fails when the loop waits for all of a chunk, or takes what its lane has no more for done when that ends."""
    world, chunk, (first, long, third, last) = chunk_of_four()
    world.report(chunk, HandedOn(ended=frozenset({first}), number=-1, left=frozenset()))
    world.report(chunk, HandedOn(ended=frozenset(), number=0, left=frozenset({third, last})))
    assert world.desk.states[PLACE].running == 2
    world.report(chunk, ChunkEnded(ended=Ended.WELL, done=1), number=-1)
    assert world.end == long
    world.desk.dispatch()
    assert world.out == [chunk]
    took = Took(1, 60.0, 60.0)
    world.report(chunk, ChunkEnded(ended=Ended.WELL, done=1, left=(first, third, last), took=took))
    assert world.end == third
    world.desk.dispatch()
    assert [offsets_of(job) for job in world.out[1:]] == [[third]]
    assert world.desk.states[PLACE].running == 1


def test_a_chunk_that_ends_before_the_loop_hears_what_it_handed_on_loses_nothing() -> None:
    """Fails when ends that are recorded beside the lanes are waited for, or counted, although their records have gone back."""
    world, chunk, (first, long, third, last) = chunk_of_four()
    world.report(chunk, ChunkEnded(ended=Ended.WELL, done=1, left=(first, third, last)))
    world.report(chunk, HandedOn(ended=frozenset({first}), number=-1, left=frozenset()))
    world.report(chunk, HandedOn(ended=frozenset(), number=0, left=frozenset({third, last})))
    world.report(chunk, ChunkEnded(ended=Ended.WELL, done=1), number=-1)
    assert world.end == first
    assert world.desk.states[PLACE].running == 0
    world.desk.dispatch()
    assert [offsets_of(job) for job in world.out[1:]] == [[first, third, last]]
    assert long not in offsets_of(world.out[-1])


@pytest.mark.parametrize("gone", [True, False])
def test_what_an_earlier_ownership_hands_on_counts_for_nothing(gone: bool) -> None:
    world, chunk, (first, _, _, last) = chunk_of_four()
    world.desk.remove([PLACE])
    if not gone:
        world.desk.assigned([PLACE])
    world.report(chunk, HandedOn(ended=frozenset({first}), number=-1, left=frozenset({last})))
    world.report(chunk, ChunkEnded(ended=Ended.WELL, done=1), number=-1)
    assert [state.running for state in world.desk.states.values()] == ([] if gone else [0])
