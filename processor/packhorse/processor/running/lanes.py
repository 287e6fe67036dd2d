"""The threads that work for the loop: lanes, each with a connection of its own, the opener and the marker."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import count as counting
from queue import SimpleQueue

from packhorse.core.errors import DatabaseUnavailable
from packhorse.processor.member.jobs import ChunkJob, Job, Move, OpenJob, Place, Report
from packhorse.processor.member.queue import Waiting
from packhorse.processor.partition.events import ChunkEnded, Ended, Event, HandedOn, LaneBroke
from packhorse.processor.plant import Plant
from packhorse.processor.running.batch import run_batch
from packhorse.processor.running.event_loop import EventLoop
from packhorse.processor.running.faults import describe
from packhorse.processor.running.marker import Marker
from packhorse.processor.running.measure import Measure
from packhorse.processor.running.opener import Opener
from packhorse.processor.running.seats import Seat, joined
from packhorse.processor.running.work import Work

CANCEL_WAIT = 3.0
"""Seconds that asking the database to end what runs may take; one question takes up to two."""


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
        self._ends: SimpleQueue[ChunkJob | None] = SimpleQueue()
        self._numbers = counting(-1, -1)
        self._recorders = self._owed = 0
        self._lock = threading.Lock()
        self._running: dict[Place, set[Seat]] = {}
        self._marker = Marker(plant, self.reports)
        self._opener = Opener(plant, self.reports, prepare=self._marker.prepare)
        self._threads = [
            threading.Thread(target=self._serve, args=(self._jobs,), name=f"packhorse-lane-{n}", daemon=True)
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

    def cancel(self, *places: Place) -> None:
        """
        Ask the database to end what runs for *places*; best effort, and all at once: it may not answer, and many may run.

        It returns when all have been asked, so that none is asked of what a lane does next.
        """
        threads = [
            threading.Thread(target=seat.cancel, name="packhorse-cancel", daemon=True)
            for place in places
            for seat in list(self._running.get(place, ()))
        ]
        for thread in threads:
            thread.start()
        self._join(threads, CANCEL_WAIT)

    def stop(self, *, wait: float) -> None:
        """Let the threads end once their queues are empty; wait up to *wait* seconds for all of them."""
        for _ in self._threads:
            self._jobs.put(None)
        for _ in range(self._recorders):
            self._ends.put(None)
        self._opener.submit(None)
        self._marker.submit(None)
        self._join([self._opener.thread, self._marker.thread, *self._threads], wait)

    def _join(self, threads: Sequence[threading.Thread], wait: float) -> None:
        clock = self._plant.clock
        until = clock.monotonic() + wait
        for thread in threads:
            thread.join(max(0.0, until - clock.monotonic()))

    def _hand_on(self, job: ChunkJob, ended: frozenset[int], left: frozenset[int]) -> None:
        """
        Tell the loop what the lane with *job* has no more, and record the ends among it beside the lanes; from any thread.

        All lanes may be busy for hours, with jobs that take as long. The loop hears of the chunk first: else it would take what is
        reported of that for an earlier ownership's.
        """
        number = next(self._numbers) if ended else 0
        event = HandedOn(ended=ended, number=number, left=left)
        self.reports.put(Report(place=job.place, generation=job.generation, event=event, number=job.number))
        if ended:
            chunk = [one for one in job.chunk if one.delivery.record.offset in ended]
            self._record(replace(job, number=number, chunk=chunk, ended=True))

    def _record(self, job: ChunkJob) -> None:
        """Have a thread beside the lanes record ends: one that has nothing to do, or one more, since what is written with them may take long."""
        with self._lock:
            self._owed += 1
            grows = self._owed > self._recorders
            self._recorders += grows
        self._ends.put(job)
        if grows:
            name = f"packhorse-recorder-{self._recorders}"
            threading.Thread(target=self._serve, args=(self._ends,), name=name, daemon=True).start()

    def _serve(self, jobs: "SimpleQueue[ChunkJob | None]") -> None:
        seat = Seat(self._plant, self._loop, stuck=self._stuck, hand_on=self._hand_on)
        while (job := jobs.get()) is not None:
            seat.job = job
            self._running.setdefault(job.place, set()).add(seat)
            try:
                event: Event = self._chunk(seat, job)
            except Exception as error:  # noqa: BLE001 reported to the loop, which ends the process with it
                event = self._broke(seat, error)
            self._running[job.place].discard(seat)
            with self._lock:
                seat.job = None
                if seat.is_gone:
                    break
                self._owed -= job.ended
            self.reports.put(
                Report(place=job.place, generation=job.generation, event=event, number=job.number)
            )
        seat.close()

    def _stuck(self, seat: Seat) -> None:
        """
        Go on without a handler that did not come back from its time-out: report its chunk, and let another thread take its place.

        What it has not committed is rolled back with its session, which the server is told to end; if it comes back, its
        commit is refused.
        """
        with self._lock:
            job = seat.job
            if job is None or seat.is_gone:
                return
            seat.is_gone = True
            self._recorders -= job.ended
            self._owed -= job.ended
        self._plant.board.vitals.forget(seat.thread)
        seat.abandon()
        offsets = tuple(one.delivery.record.offset for one in job.chunk)
        held = [
            hand.offset
            for hand in self._plant.board.hands.held()
            if (hand.topic, hand.partition) == job.place and hand.offset in offsets
        ]
        # A follower that is run behind one of them has its own place: each then runs alone, and stands for its followers.
        stuck = offsets if job.chunk[0].kind.batch is not None or not held else tuple(held)
        self._plant.log.error(
            "a handler did not come back from its time-out; another thread takes its place",
            topic=job.place[0],
            partition=job.place[1],
            offset=held[0] if held else None,
        )
        # Several followers may have shared the transaction: which of them it was is known once they run one by one.
        sure = bool(held) or job.suspected
        event = ChunkEnded(ended=Ended.WELL, left=offsets, stuck=stuck, sure=sure, alone=len(offsets) == 1)
        self.reports.put(Report(place=job.place, generation=job.generation, event=event, number=job.number))
        if not job.ended:
            self._seat()

    def _seat(self) -> None:
        """Start one thread more."""
        number = len(self._threads)
        thread = threading.Thread(
            target=self._serve, args=(self._jobs,), name=f"packhorse-lane-{number}", daemon=True
        )
        self._threads.append(thread)
        thread.start()
        self._plant.board.vitals.expect(thread)

    def _broke(self, seat: Seat, error: Exception) -> Event:
        told = describe(error)
        self._plant.log.error("a lane met an error that nobody foresaw", error=told)
        seat.close()
        return LaneBroke(error=told)

    def _chunk(self, seat: Seat, job: ChunkJob) -> Event:
        is_async = job.chunk[0].kind.is_async
        ended = self._piece(seat, job, job.chunk, is_async=is_async)
        rest = [one for one in job.chunk if one.delivery.record.offset in ended.others]
        if not rest or ended.ended not in {Ended.WELL, Ended.NOT_DUE}:
            return ended
        # Behind a finished head, handlers of both kinds may wait: each goes on where the other had to stop.
        return joined(ended, self._piece(seat, job, rest, is_async=not is_async))

    def _piece(self, seat: Seat, job: ChunkJob, chunk: Sequence[Waiting], *, is_async: bool) -> ChunkEnded:
        left = tuple(one.delivery.record.offset for one in chunk)
        if job.fence.up and not job.ended:
            return ChunkEnded(ended=Ended.GIVEN_UP, left=left)
        lane = seat.of(is_async=is_async)
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
            hands=seat.hands,
        )
        seat.hands.begin(job)
        try:
            return lane.run(batch, work, job.fence)
        finally:
            seat.hands.end()

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
            suspected=job.suspected,
            marked=job.marked,
            careful=job.careful,
            tried=job.tried,
            probe=job.probe,
            shut=job.shut,
            is_async=is_async,
            paced=job.chunk[0].kind.paced is not None,
            ended=job.ended,
            time=self._plant.chunk_time,
        )
