"""
All partitions of this member: their states and buffers, and the orders that `decide` gives, carried out.

For one thread. It knows neither Kafka nor Postgres: a fetcher and a way to submit jobs are handed in, so a simulation
can be both.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from packhorse.core.clock import Chance, Clock
from packhorse.processor.member.buffer import Buffer, bytes_of
from packhorse.processor.member.fence import Fence
from packhorse.processor.member.jobs import BatchJob, Job, OpenJob, Place, Report
from packhorse.processor.partition.deciding import decide
from packhorse.processor.partition.events import (
    Assigned,
    BatchEnded,
    CommitFailed,
    CommitRefused,
    Committed,
    Event,
    Fetched,
    FetchStopped,
    Held,
    LaneBroke,
    Lost,
    Opened,
    Revoking,
    Tick,
    Voided,
)
from packhorse.processor.partition.orders import (
    Alarm,
    Attach,
    Command,
    Commit,
    DropBelow,
    Forget,
    Open,
    Pause,
    Resume,
    Run,
    Seek,
    StopProcess,
    Take,
)
from packhorse.processor.partition.state import (
    Limits,
    PartitionState,
)
from packhorse.processor.record import Record
from packhorse.processor.watching.board import sample_of
from packhorse.processor.watching.stall import PartitionSample

Positions = dict[Place, tuple[int, int | None]]
Holding = Callable[[Place], bool]
"""Says whether a person's pause holds a partition."""


class Fetcher(Protocol):
    """What the broker's client does for one partition; none of it blocks for long."""

    def attach(self, topic: str, partition: int, offset: int) -> None:
        """Fetch from *offset*, for the first time in this ownership."""

    def seek(self, topic: str, partition: int, offset: int) -> bool:
        """Fetch from *offset* from now on; False when that must be tried again."""

    def pause(self, topic: str, partition: int) -> None:
        """Stop fetching."""

    def resume(self, topic: str, partition: int) -> None:
        """Fetch again."""

    def commit(self, topic: str, partition: int, position: int, leader_epoch: int | None) -> None:
        """Send a commit; how it ended is reported later."""


@dataclass(slots=True)
class _Slot:
    state: PartitionState
    buffer: Buffer = field(default_factory=Buffer)
    fence: Fence = field(default_factory=Fence)
    topic_id: UUID | None = None
    tried_below: int = 0
    arriving: Sequence[Record] = ()
    seek: int | None = None


class Desk:
    """
    Keep the partitions.

    Attributes:
        stop: Why the process must stop, once something says so.
    """

    def __init__(
        self,
        *,
        fetcher: Fetcher,
        submit: Callable[[Job], None],
        limits: Limits,
        clock: Clock,
        chance: Chance,
        alarm: Callable[[Place, Alarm], None],
    ) -> None:
        self._fetcher = fetcher
        self._submit = submit
        self._limits = limits
        self._clock = clock
        self._chance = chance
        self._alarm = alarm
        self._slots: dict[Place, _Slot] = {}
        self._generation = 0
        self._holding: Holding = lambda place: False  # noqa: ARG005 its name says what it is
        self.stop: str | None = None

    def __contains__(self, place: Place) -> bool:
        return place in self._slots

    @property
    def busy(self) -> list[Place]:
        """Return the partitions that a lane works on."""
        return [place for place, slot in self._slots.items() if slot.state.busy]

    @property
    def states(self) -> Mapping[Place, PartitionState]:
        """Return the states, for looking."""
        return {place: slot.state for place, slot in self._slots.items()}

    def assigned(self, places: Iterable[Place]) -> None:
        """Take partitions over, each in an ownership of its own."""
        for place in places:
            self._generation += 1
            self._slots[place] = _Slot(PartitionState(generation=self._generation))
            self._handle(place, Assigned())
            self._hold(place)

    def fetched(self, place: Place, records: Sequence[Record]) -> None:
        """Take records that have arrived; those of partitions that are not ours are dropped."""
        slot = self._slots.get(place)
        if slot is None or not records:
            return
        slot.arriving = records
        arrived = Fetched(
            first=records[0].offset,
            last=records[-1].offset,
            count=len(records),
            size=bytes_of(records),
        )
        self._handle(place, arrived)
        slot.arriving = ()

    def reported(self, report: Report) -> None:
        """Take what a lane reports; of an earlier ownership it counts for nothing."""
        slot = self._slots.get(report.place)
        if isinstance(report.event, LaneBroke):
            self.stop = self.stop or report.event.error
        if slot is None or slot.state.generation != report.generation:
            return
        if isinstance(report.event, Opened):
            slot.topic_id = report.event.topic_id
        self._handle(report.place, report.event)

    def committed(self, place: Place, position: int) -> None:
        """Take that the coordinator has confirmed a commit."""
        self._handle(place, Committed(position=position))

    def commit_failed(self, place: Place, position: int, *, refused: bool) -> None:
        """Take that a commit failed, or was refused because the group has moved on."""
        self._handle(place, CommitRefused() if refused else CommitFailed(position=position))

    def voided(self, places: Iterable[Place] | None = None) -> None:
        """Forget what is remembered above the watermarks, of all partitions or of *places*."""
        for place in list(self._slots) if places is None else places:
            self._handle(place, Voided())

    def fetch_stopped(self, place: Place, text: str) -> None:
        """Take that the client has stopped fetching *place*, as *text* says."""
        self._handle(place, FetchStopped(text=text))

    def pauses(self, holding: Holding) -> None:
        """Let people's pauses be what *holding* says from now on, of partitions to come too."""
        self._holding = holding
        for place in list(self._slots):
            self._hold(place)

    def _hold(self, place: Place) -> None:
        paused = self._holding(place)
        if paused is not self._slots[place].state.held:
            self._handle(place, Held(paused=paused))

    def samples(self) -> list[PartitionSample]:
        """Return how the partitions stand, for whoever watches."""
        return [sample_of(place, slot.state) for place, slot in self._slots.items()]

    def tick(self) -> None:
        """Let time pass."""
        for place, slot in list(self._slots.items()):
            if slot.seek is not None:
                self._seek(place, slot, slot.seek)
            self._handle(place, Tick())

    def drain(self, places: Iterable[Place]) -> None:
        """Begin nothing more in *places*; what runs may end."""
        for place in places:
            self._handle(place, Revoking())

    def give_up(self, places: Iterable[Place]) -> None:
        """Let what still runs in *places* count for nothing: it gets no outcome and commits nothing."""
        for place in places:
            if (slot := self._slots.get(place)) is not None:
                slot.fence.up = True

    def positions(self, places: Iterable[Place]) -> Positions:
        """Return what is durable in *places* and not known to the coordinator."""
        found: Positions = {}
        for place in places:
            slot = self._slots.get(place)
            state = None if slot is None else slot.state
            if state is not None and state.position is not None and state.position != state.committed:
                found[place] = state.position, state.leader_epoch
        return found

    def remove(self, places: Iterable[Place]) -> None:
        """Forget *places*; their late results count for nothing."""
        for place in places:
            slot = self._slots.pop(place, None)
            if slot is not None:
                slot.fence.up = True
                slot.state, _ = self._decide(slot.state, Lost())

    def _handle(self, place: Place, event: Event) -> None:
        slot = self._slots.get(place)
        if slot is None:
            return
        if isinstance(event, BatchEnded):
            slot.tried_below = max(slot.tried_below, event.tried)
        slot.state, commands = self._decide(slot.state, event)
        for command in commands:
            self._do(place, slot, command)

    def _decide(self, state: PartitionState, event: Event) -> tuple[PartitionState, tuple[Command, ...]]:
        return decide(state, event, self._limits, now=self._clock.monotonic(), jitter=self._chance.fraction())

    def _do(self, place: Place, slot: _Slot, command: Command) -> None:
        match command:
            case Open():
                slot.seek = None
                self._submit(OpenJob(place=place, generation=slot.state.generation, fence=slot.fence))
            case Run():
                self._submit(self._batch_job(place, slot, command))
            case Take():
                slot.buffer.extend(slot.arriving)
            case DropBelow(offset=offset):
                slot.buffer.drop_below(offset)
            case Forget():
                slot.buffer.clear()
                slot.tried_below = 0
            case Alarm():
                self._alarm(place, command)
            case StopProcess(error=error):
                self.stop = self.stop or error
            case _:
                self._fetch(place, slot, command)

    def _fetch(self, place: Place, slot: _Slot, command: Command) -> None:
        topic, partition = place
        match command:
            case Attach(offset=offset):
                self._fetcher.attach(topic, partition, offset)
            case Seek(offset=offset):
                self._seek(place, slot, offset)
            case Pause():
                self._fetcher.pause(topic, partition)
            case Resume():
                self._fetcher.resume(topic, partition)
            case Commit(position=position, leader_epoch=epoch):
                self._fetcher.commit(topic, partition, position, epoch)

    def _seek(self, place: Place, slot: _Slot, offset: int) -> None:
        slot.seek = None if self._fetcher.seek(*place, offset) else offset

    def _batch_job(self, place: Place, slot: _Slot, run: Run) -> BatchJob:
        assert slot.topic_id is not None
        return BatchJob(
            place=place,
            generation=slot.state.generation,
            fence=slot.fence,
            records=slot.buffer.first(run.limit, alone=run.alone),
            topic_id=slot.topic_id,
            position=run.position,
            leader_epoch=run.leader_epoch,
            charged=run.charged,
            contended=run.contended,
            tried_below=slot.tried_below,
        )
