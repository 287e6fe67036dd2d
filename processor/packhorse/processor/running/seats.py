"""One thread of the lanes: its two lanes, and what it has in hand."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from packhorse.core.errors import PackhorseError
from packhorse.processor.jobs.runs import JobRun
from packhorse.processor.member.jobs import ChunkJob
from packhorse.processor.partition.events import ChunkEnded, Ended
from packhorse.processor.plant import Plant
from packhorse.processor.running.async_lane import AsyncLane
from packhorse.processor.running.event_loop import EventLoop
from packhorse.processor.running.hands import LaneHands
from packhorse.processor.running.job_steps import released
from packhorse.processor.running.lane import Lane
from packhorse.processor.running.tallying import summed


class Seat:
    """
    One thread of the lanes: its two lanes, each made when it is first needed, and the job in hand.

    Attributes:
        job: What it works on.
        hands: What of a chunk of jobs it still has.
        is_gone: Its handler does not come back from its time-out: another seat has taken its place, and what it still does
            counts for nothing.
    """

    def __init__(
        self,
        plant: Plant,
        loop: EventLoop,
        *,
        stuck: Callable[["Seat"], None],
        hand_on: Callable[[ChunkJob, frozenset[int], frozenset[int]], None],
    ) -> None:
        self._plant = plant
        self._loop = loop
        self._stuck = stuck
        self.hands = LaneHands(plant.deadlines, self._give_back, hand_on)
        self._plain: Lane | None = None
        self._other: AsyncLane | None = None
        self.thread = threading.current_thread()
        self.job: ChunkJob | None = None
        self.is_gone = False

    def of(self, *, is_async: bool) -> Lane | AsyncLane:
        if is_async:
            if self._other is None:
                self._other = AsyncLane(self._plant, self._loop, lambda: self._stuck(self))
            return self._other
        if self._plain is None:
            self._plain = Lane(self._plant, lambda: self._stuck(self))
        return self._plain

    def cancel(self) -> None:
        for lane in self._lanes():
            lane.cancel()

    def abandon(self) -> None:
        for lane in self._lanes():
            lane.abandon(self.hands.mine)
        self.hands.forget()

    def close(self) -> None:
        for lane in self._lanes():
            lane.close()

    def _give_back(self, runs: list[JobRun]) -> None:
        with suppress(PackhorseError):  # they stay leases that nobody works under, to be had by the next lane
            self._plant.ledger.run(released(self._plant, runs, "another takes long"))

    def _lanes(self) -> list[Lane | AsyncLane]:
        return [lane for lane in (self._plain, self._other) if lane is not None]


def joined(first: ChunkEnded, then: ChunkEnded) -> ChunkEnded:
    """Return how a chunk ended whose lane came to *first*, and one of the other kind, with those that are left to it, to *then*."""
    left = tuple(at for at in first.left if at not in first.others or at in then.left)
    how = first if then.ended is Ended.WELL else then
    return replace(
        then,
        ended=how.ended,
        wait=how.wait,
        done=first.done + then.done,
        left=left,
        tried=(first.tried | then.tried).intersection(left),
        held={**first.held, **then.held},
        gated={**first.gated, **then.gated},
        alone=first.alone,
        slow=(*first.slow, *then.slow),
        quick=(*first.quick, *then.quick),
        failed=first.failed or then.failed,
        tallies=summed(first.tallies, then.tallies),
        ran=then.ran if first.ran is None else first.ran,
    )
