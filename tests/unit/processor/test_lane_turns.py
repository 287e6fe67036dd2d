"""Whose turn it is when lanes are free: partitions and slow keys, with lanes that end when the test says so."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from packhorse.processor.member.desk import Desk
from packhorse.processor.member.jobs import ChunkJob, Job, Move, OpenJob, Place, Report
from packhorse.processor.member.queue import PLAIN, Waiting
from packhorse.processor.member.sharing import LIVE
from packhorse.processor.partition.events import ChunkEnded, Ended, Opened
from packhorse.processor.partition.state import Limits
from packhorse.processor.record import Delivery, Record, Stream

SLOW, QUICK = ("unit.orders", 0), ("unit.orders", 1)
STREAM = Stream(topic=SLOW[0], topic_id=UUID(int=1), source=SLOW[0])
TIERS = ("unit.orders.g.retry.1m", 0), ("unit.orders.g.retry.1m", 1)
TIER = Stream(topic=TIERS[0][0], topic_id=UUID(int=2), source=SLOW[0], tier="1m")


class Silent:
    """A fetcher that fetches nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *given: True


def sorted_in(records: Sequence[Record], stream: Stream) -> list[Waiting]:
    """Return *records* as the queue takes them; a key stands for its hash."""
    return [
        Waiting(
            Delivery(record, UUID(int=record.offset), "unit.Placed", {}, stream.topic_id, None, None),
            (record.key or b"").decode(),
            PLAIN,
            None,
            1,
        )
        for record in records
    ]


@dataclass
class World:
    """
    Two partitions and two lanes, one record a chunk; every key of the first partition is known as slow.

    Of the second partition, a process that is gone has left *unfinished* and had *begun* some of that alone;
    of the first it has left what is *elsewhere*.
    """

    out: list[ChunkJob] = field(default_factory=list)
    unfinished: tuple[int, ...] = ()
    begun: frozenset[int] = frozenset()
    elsewhere: tuple[int, ...] = ()
    lanes: int = 2
    now: float = 0.0
    desk: Desk = field(init=False)

    def __post_init__(self) -> None:
        self.desk = Desk(
            fetcher=Silent(),
            works=self,
            lanes=self.lanes,
            streams=lambda place: TIER if place in TIERS else STREAM,
            sort=sorted_in,
            limits=Limits(batch=1),
            clock=self,  # type: ignore[arg-type]
            chance=self,  # type: ignore[arg-type]
            alarm=lambda place, alarm: None,
        )
        self.desk.assigned([SLOW, QUICK])
        self.desk.queues[SLOW].learn(slow=[f"k{n}" for n in range(100)], quick=[])

    def monotonic(self) -> float:
        return self.now

    def fraction(self) -> float:
        return 0.0

    def submit(self, job: Job) -> None:
        if isinstance(job, OpenJob):
            left = (self.unfinished, self.begun) if job.place == QUICK else (self.elsewhere, frozenset[int]())
            opened = Opened(
                start=0,
                position=0,
                leader_epoch=None,
                committed=None,
                topic_id=UUID(int=1),
                unfinished=left[0],
                begun=left[1],
            )
            self.desk.reported(
                Report(place=job.place, generation=job.generation, event=opened, number=job.number)
            )
        elif isinstance(job, ChunkJob):
            self.out.append(job)

    def mark(self, move: Move) -> None:
        pass

    def feed(self, place: Place, offsets: Sequence[int]) -> None:
        self.desk.fetched(
            place, [Record(place[0], place[1], n, 0, 0, f"k{n}".encode(), b"x", ()) for n in offsets]
        )

    def end(self, job: ChunkJob) -> None:
        """Let the lane of *job* be done with it, and hand out what is next."""
        self.out.remove(job)
        ended = ChunkEnded(ended=Ended.WELL, done=1, alone=True)
        self.desk.reported(Report(place=job.place, generation=job.generation, event=ended, number=job.number))
        self.desk.dispatch()


def test_slow_keys_get_a_lane_while_others_have_a_backlog() -> None:
    """
    Lanes come free one at a time while all have work.

    Fails when slow keys wait for two lanes to be idle at once: then their partition stands still as long as the others have
    a backlog.
    """
    world = World()
    world.feed(QUICK, range(100))
    world.desk.dispatch()
    world.feed(SLOW, range(10))
    for _ in range(4):
        world.end(world.out[0])
    assert SLOW in {job.place for job in world.out}


def test_slow_keys_never_have_all_lanes_while_others_have_work() -> None:
    """Fails when a second slow key is handed out beside the first: a quick message would wait for both."""
    world = World()
    world.feed(SLOW, range(10))
    world.feed(QUICK, range(100))
    world.desk.dispatch()
    for _ in range(20):
        assert sorted(job.place for job in world.out) == [SLOW, QUICK]
        world.end(next(job for job in world.out if job.place == QUICK))


def test_slow_keys_have_all_lanes_while_nobody_else_has_work() -> None:
    world = World()
    world.feed(SLOW, range(10))
    world.desk.dispatch()
    assert [job.place for job in world.out] == [SLOW, SLOW]


@pytest.mark.parametrize("fed", [False, True])
def test_what_comes_again_has_half_of_the_lanes_while_new_messages_come(fed: bool) -> None:
    """Fails when the desk takes tiers for sources, does not say that new messages have come, or never lets the lanes go again."""
    world = World(lanes=4)
    world.desk.assigned(TIERS)
    if fed:
        world.feed(QUICK, [0])
        world.desk.dispatch()
        world.end(world.out[0])
    for place in TIERS:
        world.feed(place, range(10))
    world.desk.dispatch()
    assert [job.place for job in world.out] == [*TIERS, *TIERS][: 2 if fed else 4]
    full = {sample.topic: sample.full for sample in world.desk.samples()}
    assert full == {SLOW[0]: False, TIERS[0][0]: fed}
    world.now = LIVE
    world.desk.dispatch()
    assert len(world.out) == 4
    assert not any(sample.full for sample in world.desk.samples())


def test_a_slow_key_that_comes_again_leaves_a_lane_to_a_quick_one() -> None:
    """Fails when a second slow retry goes before a quick one that waits, while new messages come."""
    world = World(lanes=4)
    world.desk.assigned(TIERS)
    world.desk.queues[TIERS[0]].learn(slow=[f"k{n}" for n in range(100)], quick=[])
    world.feed(QUICK, [0])
    world.desk.dispatch()
    world.end(world.out[0])
    world.feed(TIERS[0], range(10))
    world.desk.dispatch()
    assert [job.place for job in world.out] == [TIERS[0], TIERS[0]], "nobody else waits"
    world.feed(TIERS[1], range(10))
    world.end(world.out[0])
    assert [job.place for job in world.out] == [TIERS[0], TIERS[1]]
    world.end(world.out[1])
    assert [job.place for job in world.out] == [TIERS[0], TIERS[1]]


def offsets(world: World) -> list[int]:
    """Return what is with lanes."""
    return [job.chunk[0].delivery.record.offset for job in world.out]


def test_messages_that_may_have_killed_a_process_run_beside_each_other_until_one_is_begun() -> None:
    """Fails when thousands of them, of which one is guilty, wait for each other."""
    world = World(unfinished=(0, 1, 2))
    world.feed(QUICK, range(4))
    world.desk.dispatch()
    assert offsets(world) == [0, 1]
    assert all(job.marked for job in world.out)


@pytest.mark.case("P-30")
def test_one_that_was_begun_by_a_process_that_died_runs_beside_none_that_may_have_killed_it() -> None:
    """
    Two were begun, and one of them kills.

    Fails when the other is beside it each time, and is blamed for as many deaths, or when those behind wait for them.
    """
    world = World(unfinished=(0, 1, 2, 3), begun=frozenset({0, 1}))
    world.feed(QUICK, range(10))
    world.desk.dispatch()
    assert offsets(world) == [0, 4]
    world.end(world.out[1])
    assert offsets(world) == [0, 5]
    world.end(world.out[0])
    assert offsets(world) == [5, 1]
    world.end(world.out[0])
    assert offsets(world) == [1, 6]
    world.end(world.out[0])
    assert offsets(world) == [6, 2]
    world.end(world.out[0])
    assert offsets(world) == [2, 3]
    assert [job.marked for job in world.out] == [True, True]


def test_one_that_was_begun_goes_when_the_last_beside_it_has_ended_in_another_partition() -> None:
    """Fails when only the partition of what has ended is looked at again: the other would stand still."""
    world = World(unfinished=(0,), begun=frozenset({0}), elsewhere=(0,))
    world.feed(SLOW, [0])
    world.desk.dispatch()
    world.feed(QUICK, [0])
    world.desk.dispatch()
    assert [job.place for job in world.out] == [SLOW]
    world.end(world.out[0])
    assert [job.place for job in world.out] == [QUICK]
