"""
All partitions of this member: their states and queues, and the orders that `decide` gives, carried out.

For one thread. It knows neither Kafka nor Postgres: a fetcher, a way to submit jobs and a way to move watermarks are handed
in, so a simulation can be all of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from types import MappingProxyType

from packhorse.core.clock import Chance, Clock
from packhorse.processor.breaking.stops import Told
from packhorse.processor.member.carrying import Carrier, Sort
from packhorse.processor.member.dispatching import Dispatcher
from packhorse.processor.member.gates import Gates
from packhorse.processor.member.jobs import Place, Report
from packhorse.processor.member.landing import Landing
from packhorse.processor.member.ports import Fetcher, Holding, Positions, Works
from packhorse.processor.member.queue import Queue
from packhorse.processor.member.rationing import NO_RATION, Ration
from packhorse.processor.member.slot import Slot
from packhorse.processor.partition.deciding import decide
from packhorse.processor.partition.events import (
    Assigned,
    ChunkEnded,
    CommitFailed,
    CommitRefused,
    Committed,
    Crowded,
    Event,
    Fetched,
    FetchStopped,
    HandedOn,
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
    Command,
    Forget,
    Take,
)
from packhorse.processor.partition.state import Limits, PartitionState
from packhorse.processor.record import Record, Stream
from packhorse.processor.watching.board import sample_of
from packhorse.processor.watching.stall import PartitionSample

TICK_EVERY = 0.02
"""Least seconds between two looks at what time brings: at each turn of the loop they took half of its time."""
LEAST_BYTES = 1024 * 1024
"""Bytes that any partition may read ahead, however many there are."""


class Desk:
    """
    Keep the partitions.

    Attributes:
        stop: Why the process must stop, once something says so.
        gates: Handlers whose messages wait, and how they are tried.
    """

    def __init__(
        self,
        *,
        fetcher: Fetcher,
        works: Works,
        lanes: int,
        streams: Callable[[Place], Stream],
        sort: Sort,
        limits: Limits,
        clock: Clock,
        chance: Chance,
        alarm: Callable[[Place, Alarm], None],
        tell: Callable[[Told], None] = lambda told: None,  # noqa: ARG005 its name says what it is
        ration: Ration = NO_RATION,
        ranks: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._streams = streams
        self._limits = limits
        self._clock = clock
        self._chance = chance
        self._slots: dict[Place, Slot] = {}
        self._numbers = count(1)
        self._tick_at = 0.0
        self._holding: Holding = lambda place: False  # noqa: ARG005 its name says what it is
        self._full: Mapping[Place, str] = {}
        self._shared = limits
        self.stop: str | None = None
        self.gates = Gates(clock, chance, tell)
        self._dispatcher = Dispatcher(
            self._slots,
            works,
            self.gates,
            limits,
            lanes=lanes,
            numbers=self._numbers,
            ration=ration,
            ranks=ranks,
        )
        self._landing = Landing(self._slots, self.gates, limits, clock, chance)
        self._carrier = Carrier(
            fetcher, works, sort=sort, alarm=alarm, stop=self._must_stop, numbers=self._numbers
        )

    def __contains__(self, place: Place) -> bool:
        return place in self._slots

    @property
    def busy(self) -> list[Place]:
        """Return the partitions that a lane or the marker works for."""
        return [place for place, slot in self._slots.items() if slot.state.busy]

    @property
    def idle(self) -> int:
        """Return how many lanes have nothing to do."""
        return self._dispatcher.idle

    @property
    def states(self) -> Mapping[Place, PartitionState]:
        """Return the states, for looking."""
        return {place: slot.state for place, slot in self._slots.items()}

    @property
    def queues(self) -> Mapping[Place, Queue]:
        """Return the queues, for looking."""
        return {place: slot.queue for place, slot in self._slots.items()}

    def assigned(self, places: Iterable[Place]) -> None:
        """Take partitions over, each in an ownership of its own."""
        for place in places:
            self._slots[place] = Slot(PartitionState(generation=next(self._numbers)))
            self._handle(place, Assigned())
            self._hold(place)
            self._crowd(place)
        self._share()

    def fetched(self, place: Place, records: Sequence[Record]) -> None:
        """Take records that have arrived; those of partitions that are not ours are dropped."""
        slot = self._slots.get(place)
        if slot is None or not records:
            return
        self._dispatcher.arrived(slot, self._clock.monotonic())
        slot.arriving = records
        self._handle(place, Fetched(first=records[0].offset, last=records[-1].offset))
        slot.arriving = ()

    def reported(self, report: Report) -> None:
        """Take what a lane or the marker reports; of an earlier ownership it counts for nothing."""
        slot, event = self._slots.get(report.place), report.event
        stands = slot is not None and slot.state.generation == report.generation
        if isinstance(event, HandedOn):
            if slot is not None and stands and report.number is not None:
                self._landing.handed_on(slot, report.number, event)
            return
        if report.number is not None:
            self._dispatcher.ended(report.number)
        if isinstance(event, LaneBroke):
            self._must_stop(event.error)
        if slot is None or not stands:
            return
        if isinstance(event, Opened):
            self._opened(report.place, slot, event)
        if isinstance(event, ChunkEnded):
            number = report.number
            if number is None or number not in slot.flights:
                return  # ends that were handed on and are back already, with the rest of their chunk
            self._dispatcher.learn(slot.flights[number], event.took)
            event = self._landing.landed(slot, number, event)
        self._handle(report.place, event)

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

    def crowds(self, full: Mapping[Place, str]) -> None:
        """Let partitions behind whose parked keys too much waits stand still; of each *full* says how much."""
        self._full = full
        for place in list(self._slots):
            self._crowd(place)

    def _crowd(self, place: Place) -> None:
        text = self._full.get(place, "")
        if bool(text) is not self._slots[place].state.crowded:
            self._handle(place, Crowded(text=text))

    def samples(self) -> list[PartitionSample]:
        """Return how the partitions stand, for whoever watches."""
        now = self._clock.monotonic()
        return [
            sample_of(
                place,
                slot.state,
                slot.queue.load,
                stopped=self.gates.stopping(slot.queue),
                until=slot.queue.waits_until,
                full=self._dispatcher.is_full(slot, now),
            )
            for place, slot in self._slots.items()
        ]

    def tick(self) -> None:
        """Let time pass."""
        now = self._clock.monotonic()
        if now < self._tick_at:
            return
        self._tick_at = now + TICK_EVERY
        for place, slot in list(self._slots.items()):
            if slot.seek is not None:
                self._carrier.seek(place, slot, slot.seek)
            if slot.queue.wake(now):
                slot.dry = False
            if slot.state.running and slot.state.is_to_reopen(now) and self.runs_jobs_alone(place):
                self._landing.let_go(slot, next(self._numbers))
            if not slot.rests:
                self._handle(place, Tick())

    def dispatch(self) -> None:
        """Hand chunks to the lanes that have nothing to do."""
        self._dispatcher.dispatch(self._clock.monotonic())

    def drain(self, places: Iterable[Place]) -> None:
        """Begin nothing more in *places*; what runs may end."""
        for place in places:
            self._handle(place, Revoking())

    def give_up(self, places: Iterable[Place]) -> None:
        """Let what still runs in *places* count for nothing: it gets no outcome and commits nothing."""
        for place in places:
            if (slot := self._slots.get(place)) is not None:
                slot.fence.up = True

    def runs_jobs_alone(self, place: Place) -> bool:
        """Return whether nothing keeps *place* busy but bodies of jobs."""
        slot = self._slots.get(place)
        if slot is None or slot.state.opening or slot.state.marking is not None:
            return False
        return all(chunk[0].kind.job for chunk in slot.flights.values())

    def positions(self, places: Iterable[Place]) -> Positions:
        """Return what is durable in *places* and not known to the coordinator."""
        found: Positions = {}
        for place in places:
            slot = self._slots.get(place)
            state = None if slot is None else slot.state
            if state is None or state.position is None or state.reopen:
                continue
            if state.position != state.committed:
                found[place] = state.position, state.leader_epoch
        return found

    def remove(self, places: Iterable[Place]) -> None:
        """Forget *places*; their late results count for nothing."""
        for place in places:
            slot = self._slots.pop(place, None)
            if slot is not None:
                slot.fence.up = True
                self.gates.gone(slot.flights)
                slot.state, _ = self._decide(slot, Lost())
        self._share()

    def _must_stop(self, why: str) -> None:
        self.stop = self.stop or why

    def _share(self) -> None:
        """Give each partition its part of the bytes that may be read ahead."""
        each = max(LEAST_BYTES, self._limits.buffered_bytes // max(1, len(self._slots)))
        self._shared = replace(self._limits, buffered_bytes=each)

    def _opened(self, place: Place, slot: Slot, event: Opened) -> None:
        slot.stream = replace(self._streams(place), topic_id=event.topic_id)
        slot.topic_age = event.topic_age
        for offset in event.unfinished:
            suspect = slot.suspects.of(offset)
            suspect.crashed, suspect.begun = True, suspect.begun or offset in event.begun

    def _handle(self, place: Place, event: Event) -> None:
        slot = self._slots.get(place)
        if slot is None:
            return
        slot.state, commands = self._decide(slot, event)
        for command in commands:
            self._carrier.do(place, slot, command)
        if any(isinstance(one, Take | Forget) for one in commands):
            self._handle(place, Tick())

    def _decide(self, slot: Slot, event: Event) -> tuple[PartitionState, tuple[Command, ...]]:
        return decide(
            slot.state,
            event,
            slot.queue.load,
            self._shared,
            now=self._clock.monotonic(),
            jitter=self._chance.fraction(),
        )
