"""Carry out what was decided for a partition."""

from collections.abc import Callable, Iterator, Sequence

from packhorse.processor.member.jobs import Move, OpenJob, Place
from packhorse.processor.member.ports import Fetcher, Works
from packhorse.processor.member.queue import Waiting
from packhorse.processor.member.slot import Slot
from packhorse.processor.partition.orders import (
    Alarm,
    Attach,
    Command,
    Commit,
    Forget,
    Mark,
    Open,
    Pause,
    Resume,
    Seek,
    StopProcess,
    Suspect,
    Take,
)
from packhorse.processor.record import Record, Stream

Sort = Callable[[Sequence[Record], Stream], list[Waiting]]


class Carrier:
    """
    Do what orders say; for one thread.

    Args:
        fetcher: The broker's client.
        works: Lanes and marker.
        sort: Turns records into what the queue holds.
        alarm: Tells people.
        stop: Is told why the process must stop.
        numbers: Gives each job its own.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        works: Works,
        *,
        sort: Sort,
        alarm: Callable[[Place, Alarm], None],
        stop: Callable[[str], None],
        numbers: Iterator[int],
    ) -> None:
        self._fetcher = fetcher
        self._works = works
        self._sort = sort
        self._alarm = alarm
        self._stop = stop
        self._numbers = numbers

    def do(self, place: Place, slot: Slot, command: Command) -> None:
        """Carry out *command*."""
        match command:
            case Open():
                generation, number = slot.state.generation, next(self._numbers)
                self._works.submit(
                    OpenJob(place=place, generation=generation, number=number, fence=slot.fence)
                )
            case Mark(old=old, new=new, leader_epoch=epoch):
                self._mark(place, slot, old, new, epoch)
            case Take():
                assert slot.stream is not None
                slot.queue.extend(self._sort(slot.arriving, slot.stream))
                slot.dry = False
            case Forget(offset=offset):
                slot.queue.clear(offset)
                slot.flights.clear()
                slot.tried.clear()
            case Suspect(offset=offset):
                slot.suspects.of(offset).lost += 1
            case Alarm():
                self._alarm(place, command)
            case StopProcess(error=error):
                self._stop(error)
            case _:
                self._fetch(place, slot, command)

    def _mark(self, place: Place, slot: Slot, old: int, new: int, epoch: int | None) -> None:
        assert slot.stream is not None
        generation = slot.state.generation
        move = Move(
            place=place, generation=generation, stream=slot.stream, old=old, new=new, leader_epoch=epoch
        )
        self._works.mark(move)

    def _fetch(self, place: Place, slot: Slot, command: Command) -> None:
        topic, partition = place
        match command:
            case Attach(offset=offset):
                self._fetcher.attach(topic, partition, offset)
            case Seek(offset=offset):
                self.seek(place, slot, offset)
            case Pause():
                self._fetcher.pause(topic, partition)
            case Resume():
                self._fetcher.resume(topic, partition)
            case Commit(position=position, leader_epoch=epoch):
                self._fetcher.commit(topic, partition, position, epoch)

    def seek(self, place: Place, slot: Slot, offset: int) -> None:
        """
        Send the client to *offset*; what it can't do now is tried again with time, or with the next place it is sent to.

        Until then it reads somewhere else. So nothing but a seek that succeeds ends this: a database that answers anew may find
        that all that is remembered is still good, and sends it nowhere.
        """
        slot.seek = None if self._fetcher.seek(*place, offset) else offset
