"""The threads that work for the loop: lanes, each with a connection of its own, the opener and the marker."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from queue import SimpleQueue

from packhorse.core.errors import DatabaseUnavailable
from packhorse.processor.member.jobs import ChunkJob, Job, Move, OpenJob, Place, Report
from packhorse.processor.member.queue import Waiting
from packhorse.processor.partition.events import ChunkEnded, Ended, Event, LaneBroke
from packhorse.processor.plant import Plant
from packhorse.processor.running.async_lane import AsyncLane, EventLoop
from packhorse.processor.running.batch import run_batch
from packhorse.processor.running.faults import describe
from packhorse.processor.running.lane import Lane
from packhorse.processor.running.marker import Marker
from packhorse.processor.running.measure import Measure
from packhorse.processor.running.opener import Opener
from packhorse.processor.running.work import Work


class _Pair:
    """The two lanes of one thread; each is made when it is first needed."""

    def __init__(self, plant: Plant, loop: EventLoop) -> None:
        self._plant = plant
        self._loop = loop
        self._plain: Lane | None = None
        self._other: AsyncLane | None = None

    def of(self, *, is_async: bool) -> Lane | AsyncLane:
        if is_async:
            if self._other is None:
                self._other = AsyncLane(self._plant, self._loop)
            return self._other
        if self._plain is None:
            self._plain = Lane(self._plant)
        return self._plain

    def cancel(self) -> None:
        for lane in (self._plain, self._other):
            if lane is not None:
                lane.cancel()

    def close(self) -> None:
        for lane in (self._plain, self._other):
            if lane is not None:
                lane.close()


class Lanes:
    """
    Threads that take chunks from one queue; each has a lane of its own. Beside them one opens partitions, one moves watermarks.

    `submit`, `mark`, `cancel` and `stop` are for the loop's thread. Reports come through `reports`.
    """

    def __init__(self, plant: Plant, measure: Measure, *, count: int) -> None:
        self._plant = plant
        self._measure = measure
        self.count = count
        self._jobs: SimpleQueue[ChunkJob | None] = SimpleQueue()
        self.reports: SimpleQueue[Report] = SimpleQueue()
        self._loop = EventLoop()
        self._running: dict[Place, set[_Pair]] = {}
        self._opener = Opener(plant, self.reports)
        self._marker = Marker(plant, self.reports)
        self._threads = [
            threading.Thread(target=self._serve, name=f"packhorse-lane-{n}", daemon=True)
            for n in range(count)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in (*self._threads, self._opener.thread, self._marker.thread):
            thread.start()
            self._plant.board.vitals.expect(thread)

    def submit(self, job: Job) -> None:
        """Queue *job*; who takes it reports once."""
        if isinstance(job, OpenJob):
            self._opener.submit(job)
        elif isinstance(job, ChunkJob):
            self._jobs.put(job)

    def mark(self, move: Move) -> None:
        """Queue the move of a watermark."""
        self._marker.submit(move)

    def cancel(self, place: Place) -> None:
        """Ask the database to end what runs for *place*; best effort."""
        for lanes in list(self._running.get(place, ())):
            lanes.cancel()

    def stop(self, *, wait: float) -> None:
        """Let the threads end once their queues are empty; wait up to *wait* seconds for each."""
        for _ in self._threads:
            self._jobs.put(None)
        self._opener.submit(None)
        self._marker.submit(None)
        for thread in (*self._threads, self._opener.thread, self._marker.thread):
            thread.join(wait)

    def _serve(self) -> None:
        lanes = _Pair(self._plant, self._loop)
        while (job := self._jobs.get()) is not None:
            self._running.setdefault(job.place, set()).add(lanes)
            try:
                event: Event = self._chunk(lanes, job)
            except Exception as error:  # noqa: BLE001 reported to the loop, which ends the process with it
                event = self._broke(lanes, error)
            self._running[job.place].discard(lanes)
            self.reports.put(
                Report(place=job.place, generation=job.generation, event=event, number=job.number)
            )
        lanes.close()

    def _broke(self, lanes: _Pair, error: Exception) -> Event:
        told = describe(error)
        self._plant.log.error("a lane met an error that nobody foresaw", error=told)
        lanes.close()
        return LaneBroke(error=told)

    def _chunk(self, lanes: _Pair, job: ChunkJob) -> Event:
        is_async = job.chunk[0].kind.is_async
        ended = self._piece(lanes, job, job.chunk, is_async=is_async)
        rest = [one for one in job.chunk if one.delivery.record.offset in ended.others]
        if not rest or ended.ended is not Ended.WELL:
            return ended
        # Behind a finished head, handlers of both kinds may wait: each goes on where the other had to stop.
        after = self._piece(lanes, job, rest, is_async=not is_async)
        gone = {one.delivery.record.offset for one in rest} - set(after.left)
        left = tuple(offset for offset in ended.left if offset not in gone)
        return replace(after, done=ended.done + after.done, left=left, held={**ended.held, **after.held})

    def _piece(self, lanes: _Pair, job: ChunkJob, chunk: Sequence[Waiting], *, is_async: bool) -> ChunkEnded:
        left = tuple(one.delivery.record.offset for one in chunk)
        if job.fence.up:
            return ChunkEnded(ended=Ended.GIVEN_UP, left=left)
        lane = lanes.of(is_async=is_async)
        try:
            if lane.is_fresh():
                return ChunkEnded(ended=Ended.VOID, left=left)
        except DatabaseUnavailable as error:
            return ChunkEnded(ended=Ended.AWAY, away="database", left=left, error=str(error))
        work, plant = self._work_of(job, chunk, is_async=is_async), self._plant
        batch = run_batch(
            work,
            plant.app,
            jitter=plant.chance.fraction,
            clock=plant.clock.monotonic,
            skip_unknown=plant.skip_unknown,
            report=self._measure.batch(work),
        )
        return lane.run(batch, work, job.fence)

    def _work_of(self, job: ChunkJob, chunk: Sequence[Waiting], *, is_async: bool) -> Work:
        return Work(
            stream=job.stream,
            partition=job.place[1],
            deliveries=[one.delivery for one in chunk],
            keys=[one.key for one in chunk],
            position=job.position,
            leader_epoch=job.leader_epoch,
            topic_age=job.topic_age,
            charged=job.charged,
            contended=job.contended,
            marked=job.marked,
            careful=job.careful,
            tried=job.tried,
            probe=job.probe,
            is_async=is_async,
            time=self._plant.chunk_time,
        )
