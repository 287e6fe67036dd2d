"""The threads that do jobs, each with a lane of its own."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from queue import SimpleQueue

from packhorse.core.errors import BrokerUnavailable, DatabaseUnavailable, NotReady
from packhorse.processor.app import Processor
from packhorse.processor.member.jobs import BatchJob, Job, Place, Report
from packhorse.processor.offsets.starting import NoStart, Start, start_of
from packhorse.processor.partition.events import (
    BatchEnded,
    Ended,
    Event,
    LaneBroke,
    Opened,
    OpenFailed,
)
from packhorse.processor.plant import Plant
from packhorse.processor.record import Delivery, Stream, delivery_of
from packhorse.processor.running.async_lane import AsyncLane, EventLoop
from packhorse.processor.running.batch import run_batch
from packhorse.processor.running.faults import describe
from packhorse.processor.running.lane import Lane
from packhorse.processor.running.measure import Measure
from packhorse.processor.running.work import Work
from packhorse.processor.signals import Point
from packhorse.processor.storing import postgres


class _Pair:
    """The two lanes of one thread; the async one is made when it is first needed."""

    def __init__(self, plant: Plant, loop: EventLoop) -> None:
        self._plant = plant
        self._loop = loop
        self.plain = Lane(plant)
        self._other: AsyncLane | None = None

    def of(self, *, is_async: bool) -> Lane | AsyncLane:
        if not is_async:
            return self.plain
        if self._other is None:
            self._other = AsyncLane(self._plant, self._loop)
        return self._other

    def cancel(self) -> None:
        self.plain.cancel()
        if self._other is not None:
            self._other.cancel()

    def close(self) -> None:
        self.plain.close()
        if self._other is not None:
            self._other.close()


class Lanes:
    """
    Threads that take jobs from one queue; each has a lane of its own.

    `submit`, `cancel` and `stop` are for the loop's thread. Reports come through `reports`.
    """

    def __init__(self, plant: Plant, measure: Measure, *, count: int) -> None:
        self._plant = plant
        self._measure = measure
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.reports: SimpleQueue[Report] = SimpleQueue()
        self._loop = EventLoop()
        self._running: dict[Place, _Pair] = {}
        self._threads = [
            threading.Thread(target=self._serve, name=f"packhorse-lane-{n}", daemon=True)
            for n in range(count)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job) -> None:
        """Queue *job*; the lane that takes it reports once."""
        self._jobs.put(job)

    def cancel(self, place: Place) -> None:
        """Ask the database to end what runs for *place*; best effort."""
        lane = self._running.get(place)
        if lane is not None:
            lane.cancel()

    def stop(self, *, wait: float) -> None:
        """Let the threads end once the queue is empty; wait up to *wait* seconds for each."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(wait)

    def _serve(self) -> None:
        lane = _Pair(self._plant, self._loop)
        while (job := self._jobs.get()) is not None:
            self._running[job.place] = lane
            try:
                event = self._do(lane, job)
            except Exception as error:  # noqa: BLE001 reported to the loop, which ends the process with it
                event = self._broke(lane, error)
            self._running.pop(job.place, None)
            self.reports.put(Report(place=job.place, generation=job.generation, event=event))
        lane.close()

    def _broke(self, lane: _Pair, error: Exception) -> Event:
        told = describe(error)
        say = self._plant.log.error
        say("a lane met an error that nobody foresaw", error=told)
        lane.close()
        return LaneBroke(error=told)

    def _do(self, lane: _Pair, job: Job) -> Event:
        if isinstance(job, BatchJob):
            return self._batch(lane, job)
        try:
            return open_partition(lane.plain, self._plant, job.place)
        except DatabaseUnavailable as error:
            return OpenFailed(away="database", text=str(error))
        except BrokerUnavailable as error:
            return OpenFailed(away="broker", text=str(error))
        except NotReady as error:
            return OpenFailed(refused=True, text=str(error))

    def _batch(self, lanes: _Pair, job: BatchJob) -> Event:
        """Deal with the job, one run of equal kind after another: `def` and `async def` need connections of their own."""
        work = self._work_of(job)
        ended = BatchEnded(
            ended=Ended.GIVEN_UP,
            position=job.position,
            leader_epoch=job.leader_epoch,
            handled=0,
            records=0,
            size=0,
        )
        for is_async, deliveries in by_kind(work.deliveries, self._plant.app):
            if job.fence.up:
                return replace(ended, ended=Ended.GIVEN_UP)
            piece = replace(
                work, deliveries=deliveries, position=ended.position, leader_epoch=ended.leader_epoch
            )
            lane = lanes.of(is_async=is_async)
            ended = _sum(ended, self._piece(lane, piece, job))
            if ended.ended is not Ended.WELL:
                break
        return ended

    def _piece(self, lane: Lane | AsyncLane, work: Work, job: BatchJob) -> BatchEnded:
        nothing = BatchEnded(
            ended=Ended.VOID,
            position=work.position,
            leader_epoch=work.leader_epoch,
            handled=0,
            records=0,
            size=0,
        )
        try:
            if lane.is_fresh():
                return nothing
        except DatabaseUnavailable as error:
            return replace(nothing, ended=Ended.AWAY, away="database", error=str(error))
        batch = run_batch(
            work,
            self._plant.app,
            jitter=self._plant.chance.fraction,
            skip_unknown=self._plant.skip_unknown,
            report=self._measure.batch(work),
        )
        return lane.run(batch, work, job.fence)

    def _work_of(self, job: BatchJob) -> Work:
        topic, partition = job.place
        stream = Stream(topic=topic, topic_id=job.topic_id, source=self._plant.sources[topic])
        return Work(
            stream=stream,
            partition=partition,
            deliveries=[delivery_of(record, stream) for record in job.records],
            position=job.position,
            leader_epoch=job.leader_epoch,
            charged=job.charged,
            contended=job.contended,
            tried_below=job.tried_below,
        )


def open_partition(lane: Lane, plant: Plant, place: Place) -> Event:
    """
    Find where to read *place* from, and see that its watermark is written and this server's.

    Raises:
        DatabaseUnavailable, BrokerUnavailable: Either does not answer.
        NotReady: The topic or a table is missing.
    """
    topic, partition = place
    where, group = f"{topic}[{partition}]", plant.app.group
    stream = Stream(topic=topic, topic_id=plant.broker.topic_id(topic), source=plant.sources[topic])
    connection = lane.connection()
    mark = postgres.run(connection, plant.store.read_watermark(stream, partition))
    ends = plant.broker.log_ends(group, topic, partition)
    start = start_of(mark, ends, where=where, group=group, missing=plant.missing, carries=stream.carries)
    if isinstance(start, NoStart):
        return OpenFailed(refused=not start.waits, text=start.text)
    if start.notice:
        plant.log.warning(start.notice, topic=topic, partition=partition)
    if not _secured(connection, plant, stream, partition, start, old=mark.offset):
        return OpenFailed(away="watermark", text=f"the watermark of {where} was moved by another owner")
    plant.signal(Point.OPENED)
    return Opened(
        start=start.offset,
        position=start.watermark,
        leader_epoch=mark.leader_epoch,
        committed=ends.committed,
        topic_id=stream.topic_id,
    )


def _secured(
    connection: postgres.GuardedConnection,
    plant: Plant,
    stream: Stream,
    partition: int,
    start: Start,
    *,
    old: int | None,
) -> bool:
    store = plant.store
    if start.first or old is None:
        return postgres.run(connection, store.first_watermark(stream, partition, start.watermark))
    if start.adopt:
        steps = store.adopt_watermark(stream, partition, old=old, new=start.watermark)
        return postgres.run(connection, steps)
    return True


def by_kind(deliveries: Sequence[Delivery], app: Processor) -> list[tuple[bool, Sequence[Delivery]]]:
    """Return *deliveries* cut, in order, where the next handler is of the other kind; those without one join either."""
    found: list[tuple[bool | None, int]] = []
    for at, delivery in enumerate(deliveries):
        handler = app.handler_of(delivery.type, tombstone=delivery.record.value is None)
        kind = None if handler is None else handler.is_async
        if not found or (kind is not None and found[-1][0] not in {None, kind}):
            found.append((kind, at))
        elif found[-1][0] is None:
            found[-1] = (kind, found[-1][1])
    starts = [at for _, at in found]
    return [
        (bool(kind), deliveries[start:end])
        for (kind, start), end in zip(found, [*starts[1:], len(deliveries)], strict=True)
    ]


def _sum(before: BatchEnded, piece: BatchEnded) -> BatchEnded:
    return replace(
        piece,
        handled=max(before.handled, piece.handled),
        records=before.records + piece.records,
        size=before.size + piece.size,
        tried=max(before.tried, piece.tried),
    )
