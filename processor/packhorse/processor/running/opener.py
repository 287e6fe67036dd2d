"""The thread that opens partitions: reads where to start, and what a process that is gone had in hand."""

import threading
from collections.abc import Callable
from queue import SimpleQueue

from packhorse.core.errors import BrokerUnavailable, DatabaseUnavailable, NotReady
from packhorse.processor.member.jobs import OpenJob, Place, Report
from packhorse.processor.offsets.starting import NoStart, Start, start_of
from packhorse.processor.partition.events import Event, LaneBroke, Opened, OpenFailed
from packhorse.processor.plant import Plant
from packhorse.processor.record import Stream
from packhorse.processor.running.faults import describe
from packhorse.processor.running.link import Link
from packhorse.processor.signals import Point
from packhorse.processor.storing import postgres
from packhorse.processor.storing.store import Mark
from packhorse.processor.topics.checking import grown


class Opener:
    """
    One thread with a connection of its own, so that a partition is opened however long all lanes are busy.

    *prepare* makes ready whoever moves watermarks: nothing may have a result before.
    """

    def __init__(self, plant: Plant, reports: SimpleQueue[Report], *, prepare: Callable[[], None]) -> None:
        self._plant = plant
        self._prepare = prepare
        self._reports = reports
        self._link = Link(plant)
        self._jobs: SimpleQueue[OpenJob | None] = SimpleQueue()
        self.thread = threading.Thread(target=self._serve, name="packhorse-opener", daemon=True)

    def submit(self, job: OpenJob | None) -> None:
        """Queue *job*; None ends the thread behind what is queued."""
        self._jobs.put(job)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            event = self._opened(job)
            self._reports.put(Report(place=job.place, generation=job.generation, event=event))
        self._link.close()

    def _opened(self, job: OpenJob) -> Event:
        """Open the partition, unless it is gone by now: while the broker is away each takes seconds, and those that stay wait."""
        if job.fence.up:
            return OpenFailed(away="partition", text="it went away")
        return _told(lambda: self._open(job.place))

    def _open(self, place: Place) -> Event:
        self._prepare()
        return open_partition(self._link, self._plant, place)


def _told(call: Callable[[], Event]) -> Event:
    """Return what *call* returns; errors as events."""
    try:
        return call()
    except DatabaseUnavailable as error:
        return OpenFailed(away="database", text=str(error))
    except BrokerUnavailable as error:
        return OpenFailed(away="broker", text=str(error))
    except NotReady as error:
        return OpenFailed(refused=True, text=str(error))
    except Exception as error:  # noqa: BLE001 reported to the loop, which ends the process with it
        return LaneBroke(error=f"opening a partition met an error that nobody foresaw: {describe(error)}")


def open_partition(link: Link, plant: Plant, place: Place) -> Event:
    """
    Find where to read *place* from, and see that its watermark is written and this server's.

    Raises:
        DatabaseUnavailable, BrokerUnavailable: Either does not answer.
        NotReady: The topic or a table is missing.
    """
    topic, partition = place
    where, group, read = f"{topic}[{partition}]", plant.app.group, plant.sources[topic]
    if partition >= (partitions := plant.partitions.get(read.source, partition + 1)):
        return OpenFailed(refused=True, text=grown(read.source, partition, partitions))
    topic_id = plant.broker.topic_id(topic)
    stream = Stream(topic=topic, topic_id=topic_id, source=read.source, tier=read.tier)
    connection = link.connection()
    mark = postgres.run(connection, plant.store.read_watermark(stream, partition))
    ends = plant.broker.log_ends(group, topic, partition)
    start = start_of(mark, ends, where=where, group=group, missing=plant.missing, carries=stream.carries)
    if isinstance(start, NoStart):
        return OpenFailed(refused=not start.waits, text=start.text)
    if start.notice:
        plant.log.warning(start.notice, topic=topic, partition=partition)
    if not _secured(connection, plant, stream, partition, start, mark):
        return OpenFailed(away="watermark", text=f"the watermark of {where} was moved by another owner")
    unfinished = _unfinished(connection, plant, stream, partition, start.watermark)
    begun = _begun(connection, plant, stream, partition, unfinished)
    plant.signal(Point.OPENED)
    return Opened(
        start=start.offset,
        position=start.watermark,
        leader_epoch=mark.leader_epoch,
        committed=ends.committed,
        topic_id=stream.topic_id,
        topic_age=mark.topic_age,
        unfinished=unfinished,
        begun=begun,
    )


def _secured(
    connection: postgres.GuardedConnection,
    plant: Plant,
    stream: Stream,
    partition: int,
    start: Start,
    mark: Mark,
) -> bool:
    store = plant.store
    if start.first or mark.offset is None:
        return postgres.run(connection, store.first_watermark(stream, partition, start.watermark))
    if start.adopt:
        steps = store.adopt_watermark(stream, partition, old=mark.offset, new=start.watermark)
        return postgres.run(connection, steps)
    return True


def _unfinished(
    connection: postgres.GuardedConnection, plant: Plant, stream: Stream, partition: int, watermark: int
) -> tuple[int, ...]:
    """Return offsets that lanes of other processes had in hand: one of them may be what those died of."""
    hands = postgres.run(connection, plant.store.look_in_hands([(stream.topic_id, partition)]))
    found = {at for hand in hands if hand.member != plant.member for at in hand.offsets if at >= watermark}
    return tuple(sorted(found))


def _begun(
    connection: postgres.GuardedConnection,
    plant: Plant,
    stream: Stream,
    partition: int,
    offsets: tuple[int, ...],
) -> frozenset[int]:
    """Return those of *offsets* that were begun alone before, and not lived through."""
    if not offsets:
        return frozenset()
    return frozenset(postgres.run(connection, plant.store.read_starts((stream.topic_id, partition), offsets)))
