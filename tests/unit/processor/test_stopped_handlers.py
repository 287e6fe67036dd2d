"""The desk and a handler that is stopped: who runs meanwhile, who is tried, what is charged. Lanes here answer by a script."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import UUID

import pytest

from packhorse.core.message import MessageType
from packhorse.processor import Context, Processor
from packhorse.processor.breaking.brake import seen
from packhorse.processor.member.desk import Desk
from packhorse.processor.member.intake import Intake
from packhorse.processor.member.jobs import ChunkJob, Job, Move, OpenJob, Place, Report
from packhorse.processor.member.queue import Queue, Waiting
from packhorse.processor.partition.events import ChunkEnded, Ended, Event, Opened
from packhorse.processor.partition.state import Limits
from packhorse.processor.record import Record, Stream
from packhorse.processor.running.work import (
    RETURNED,
    Failure,
    Ran,
)

PLACE: Place = ("unit.orders", 0)
STREAM = Stream(topic=PLACE[0], topic_id=UUID(int=1), source=PLACE[0])
FAILED = Ran(Failure.TEMPORARY, "failed")
IS_DOWN = Ran(Failure.DOWN, "down")
LEADS_THERE = Ran(Failure.DOWN, "behind it waits a follower for `placed`, whose system is down")


class Placed:
    __packhorse__: ClassVar[MessageType] = MessageType(
        type="unit.Placed", version=1, namespace="unit", aggregatetype="orders", schema="{}"
    )


class Moved:
    __packhorse__: ClassVar[MessageType] = MessageType(
        type="unit.Moved", version=1, namespace="unit", aggregatetype="orders", schema="{}"
    )


APP = Processor("unit")


@APP.handler(Placed)
def placed(message: Placed, ctx: Context) -> None:
    pass


@APP.handler(Moved)
def moved(message: Moved, ctx: Context) -> None:
    pass


PLACED = APP.handlers["unit.Placed", False].name


class Silent:
    """A fetcher that fetches nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *given: True


@dataclass
class World:
    """One partition, and lanes that end each record by its offset's script: well, failed or down."""

    script: dict[int, Ran] = field(default_factory=dict)
    now: float = 0.0
    jobs: list[Job] = field(default_factory=list)
    done: dict[int, str] = field(default_factory=dict)
    charged: list[int] = field(default_factory=list)
    probed: list[int] = field(default_factory=list)
    led: dict[int, int] = field(default_factory=dict)
    behind: set[int] = field(default_factory=set)
    desk: Desk = field(init=False)

    def __post_init__(self) -> None:
        self.desk = Desk(
            fetcher=Silent(),
            works=self,
            lanes=2,
            streams=lambda place: STREAM,
            sort=Intake(APP),
            limits=Limits(batch=50),
            clock=self,  # type: ignore[arg-type]
            chance=self,  # type: ignore[arg-type]
            alarm=lambda place, alarm: None,
        )
        self.desk.assigned([PLACE])
        self.run(0)

    def monotonic(self) -> float:
        return self.now

    def fraction(self) -> float:
        return 0.0

    def submit(self, job: Job) -> None:
        self.jobs.append(job)

    def mark(self, move: Move) -> None:
        pass

    def feed(self, types: Sequence[str]) -> None:
        for offset in range(len(types)):
            self.script.setdefault(offset, RETURNED)
        records = [
            Record(PLACE[0], 0, n, 0, 0, f"k{n}".encode(), b"x", (("type", f"unit.{name}".encode()),))
            for n, name in enumerate(types)
        ]
        self.desk.fetched(PLACE, records)

    def run(self, seconds: float) -> None:
        """Let lanes answer at once, until *seconds* have gone by."""
        end = self.now + seconds
        while True:
            self.desk.tick()
            self.desk.dispatch()
            if not self.jobs:
                if self.now >= end:
                    return
                self.now += 0.5
                continue
            job = self.jobs.pop(0)
            event: Event = (
                Opened(start=0, position=0, leader_epoch=None, committed=None, topic_id=UUID(int=1))
                if isinstance(job, OpenJob)
                else self._end(job)
            )
            self.desk.reported(Report(place=PLACE, generation=job.generation, event=event, number=job.number))

    def _end(self, job: Job) -> ChunkEnded:
        assert isinstance(job, ChunkJob)
        offsets = [one.delivery.record.offset for one in job.chunk]
        ends = [self.script[at] for at in offsets]
        left, alone = tuple(offsets), len(offsets) == 1
        if job.probe:
            self.probed += offsets
            if ends[0].failure is not None:
                down = job.chunk[0].gate or "" if ends[0] is IS_DOWN else ""
                return ChunkEnded(
                    ended=Ended.WELL, left=left, alone=True, down=down, suspect=left[0], ran=ends[0]
                )
        elif leading := {at: PLACED for at in offsets if at in self.behind and PLACED in job.shut}:
            self.led.update(dict.fromkeys(leading, 1))
            rest = [at for at in offsets if at not in leading]
            self.done.update(dict.fromkeys(rest, ""))
            return ChunkEnded(ended=Ended.WELL, left=tuple(leading), gated=leading, alone=alone)
        elif LEADS_THERE in ends:
            at = offsets[ends.index(LEADS_THERE)]
            self.led[at] = self.led.get(at, 0) + 1
            return ChunkEnded(ended=Ended.WELL, left=left, alone=alone, down=PLACED, suspect=at)
        elif IS_DOWN in ends and not job.contended:
            at = ends.index(IS_DOWN)
            down = job.chunk[at].gate or ""
            return ChunkEnded(ended=Ended.WELL, left=left, alone=alone, down=down, suspect=offsets[at])
        tallies: dict[str, list[bool]] = {}
        for one, end in zip(job.chunk, ends, strict=True):
            tallies.setdefault(one.gate or "", []).append(end.failure is not None)
            self.done[one.delivery.record.offset] = one.gate or ""
            self.charged += [one.delivery.record.offset] * (end.failure is not None)
        counted = {} if job.probe else {gate: seen(failures) for gate, failures in tallies.items()}
        return ChunkEnded(
            ended=Ended.WELL,
            done=len(offsets),
            alone=alone,
            tallies=counted,
            ran=RETURNED if job.probe else None,
        )


@pytest.mark.case("T-21")
def test_a_bad_deploy_charges_few_and_stops_nobody_else() -> None:
    """Fails when messages of a braked handler are handed out, when a probe is charged, or when other handlers wait."""
    world = World()
    world.script.update(dict.fromkeys(range(0, 400, 2), FAILED))
    world.feed(["Placed", "Moved"] * 200)
    world.run(60)
    assert len(world.charged) <= 30 + 2 * 50
    assert [at for at in range(1, 400, 2) if at not in world.done] == []
    assert len(world.probed) >= 5
    assert len(set(world.probed)) == len(world.probed)

    world.script.update(dict.fromkeys(range(400), RETURNED))
    world.run(120)
    assert len(world.done) == 400
    assert not world.desk.gates.shut


@pytest.mark.case("T-20")
def test_a_system_that_is_down_for_an_hour_costs_no_attempt() -> None:
    """Fails when an error of `down=` is charged, or probes come in a hot loop."""
    world = World()
    world.script.update(dict.fromkeys(range(0, 100, 2), IS_DOWN))
    world.feed(["Placed", "Moved"] * 50)
    world.run(3600)
    assert world.charged == []
    assert [at for at in range(1, 100, 2) if at not in world.done] == []
    assert len(world.probed) < 80

    world.script.update(dict.fromkeys(range(100), RETURNED))
    world.run(120)
    assert len(world.done) == 100


@pytest.mark.case("T-20")
def test_a_head_whose_followers_wait_for_a_stopped_handler_does_not_try_them_again_and_again() -> None:
    """Fails when it goes back to the front at once: its gate, if it has one, is another's, and is open."""
    world = World()
    world.script.update({0: IS_DOWN, 1: LEADS_THERE})
    world.feed(["Placed", "Moved", "Moved"])
    world.run(600)
    assert world.led[1] < 30
    assert 2 in world.done

    world.script.update(dict.fromkeys(range(3), RETURNED))
    world.run(120)
    assert len(world.done) == 3


@pytest.mark.case("T-21")
def test_what_leads_to_followers_of_a_stopped_handler_waits_behind_its_gate_and_tries_it() -> None:
    """Fails when it keeps its own gate: they are run all the time, or nothing tries their handler and they wait for ever."""
    world = World(behind={1, 2}, script=dict.fromkeys((1, 2), FAILED))
    world.desk.gates.landed(-1, {PLACED: seen([True] * 30)}, "", None)
    world.feed(["Moved"] * 10)
    world.run(60)
    assert set(world.led) == {1, 2}
    assert sorted(world.done) == [0, *range(3, 10)]
    assert 4 <= len(world.probed) <= 7
    assert set(world.probed) == {1, 2}
    assert world.charged == []

    world.script.update(dict.fromkeys((1, 2), RETURNED))
    world.run(120)
    assert len(world.done) == 10
    assert not world.desk.gates.shut


@pytest.mark.case("T-20")
def test_one_message_that_says_down_while_others_are_answered_is_charged_in_the_end() -> None:
    """Fails when it stops the others again and again: each time it would roll their chunk back, for ever."""
    world = World()
    world.script[3] = IS_DOWN
    world.feed(["Placed"] * 300)
    world.run(60)
    assert world.charged == [3]
    assert len(world.done) == 300


@pytest.mark.case("T-20")
def test_one_message_alone_is_probed_and_never_charged_however_long_it_lasts() -> None:
    """Fails when the times that a breaker stays open are counted against the message that opened it."""
    world = World()
    world.script[0] = IS_DOWN
    world.feed(["Placed"])
    world.run(3600)
    assert world.charged == []
    assert len(world.probed) > 20


def test_what_was_in_hand_when_a_breaker_opened_is_not_blamed_for_it() -> None:
    """Fails when each message that meets an outage counts as the one that opened the breaker."""
    gates = World().desk.gates
    assert gates.landed(1, {}, "a handler", None)
    assert not gates.landed(2, {}, "a handler", None)
    assert not gates.landed(3, {"a handler": seen([True] * 40)}, "", None)


def test_queues_are_not_searched_for_a_probe_at_each_turn() -> None:
    """Fails when a stopped handler without messages has all queues looked through whenever a lane is free."""
    world = World()
    gates, searched = world.desk.gates, []

    class Searched(Queue):
        def candidates(self, gate: str) -> list[Waiting]:
            searched.append(world.now)
            return super().candidates(gate)

    gates.landed(1, {}, "a handler", None)
    world.now = 1.0
    for _ in range(20):
        assert gates.probe({PLACE: Searched()}) is None
        world.now += 0.01
    assert len(searched) == 2
