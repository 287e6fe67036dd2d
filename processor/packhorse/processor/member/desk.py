"""
All partitions of this member: their states and queues, and the orders that `decide` gives, carried out.

For one thread. It knows neither Kafka nor Postgres: a fetcher, a way to submit jobs and a way to move watermarks are handed
in, so a simulation can be all of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from packhorse.core.backoff import delay_after
from packhorse.core.clock import Chance, Clock
from packhorse.processor.breaking.stops import Told
from packhorse.processor.member.fence import Fence
from packhorse.processor.member.gates import Gates
from packhorse.processor.member.jobs import ChunkJob, Job, Move, OpenJob, Place, Report
from packhorse.processor.member.queue import Queue, Waiting
from packhorse.processor.member.suspects import Suspects
from packhorse.processor.partition.deciding import decide
from packhorse.processor.partition.events import (
    Assigned,
    ChunkEnded,
    CommitFailed,
    CommitRefused,
    Committed,
    Crowded,
    Ended,
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
from packhorse.processor.partition.state import Limits, PartitionState, Phase
from packhorse.processor.record import Record, Stream
from packhorse.processor.running.attempting import MOST_SAVEPOINTS
from packhorse.processor.watching.board import sample_of
from packhorse.processor.watching.stall import PartitionSample

Positions = dict[Place, tuple[int, int | None]]
Holding = Callable[[Place], bool]
"""Says whether a person's pause holds a partition."""
TICK_EVERY = 0.02
"""Least seconds between two looks at what time brings: at each turn of the loop they took half of its time."""
LEAST_BYTES = 1024 * 1024
"""Bytes that any partition may read ahead, however many there are."""
CAREFUL = 30
"""Chunks of a partition, after one with a failed member, whose members get savepoints from the start."""


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


class Works(Protocol):
    """The lanes and the marker; neither call blocks."""

    def submit(self, job: Job) -> None:
        """Take *job*; it is reported once."""

    def mark(self, move: Move) -> None:
        """Move a watermark; how that ended is reported."""


@dataclass(slots=True)
class _Slot:
    state: PartitionState
    stream: Stream | None = None
    topic_age: int = 0
    queue: Queue = field(default_factory=Queue)
    fence: Fence = field(default_factory=Fence)
    suspects: Suspects = field(default_factory=Suspects)
    flights: dict[int, Sequence[Waiting]] = field(default_factory=dict)
    tried: set[int] = field(default_factory=set)
    careful: int = 0
    dry: bool = False
    arriving: Sequence[Record] = ()
    seek: int | None = None

    @property
    def rests(self) -> bool:
        """Return whether time changes nothing: all that is dealt with is durable and committed, and nothing waits for a time."""
        state = self.state
        settled = state.committed == state.position == self.queue.end
        return settled and state.phase is Phase.READING and not state.paused


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
        sort: Callable[[Sequence[Record], Stream], list[Waiting]],
        limits: Limits,
        clock: Clock,
        chance: Chance,
        alarm: Callable[[Place, Alarm], None],
        tell: Callable[[Told], None] = lambda told: None,  # noqa: ARG005 its name says what it is
    ) -> None:
        self._fetcher = fetcher
        self._works = works
        self._lanes = lanes
        self._streams = streams
        self._sort = sort
        self._limits = limits
        self._clock = clock
        self._chance = chance
        self._alarm = alarm
        self._slots: dict[Place, _Slot] = {}
        self._numbers = 0
        self._out: set[int] = set()
        self._slow: set[int] = set()
        self._turn = 0
        self._tick_at = 0.0
        self._holding: Holding = lambda place: False  # noqa: ARG005 its name says what it is
        self._full: Mapping[Place, str] = {}
        self._shared = limits
        self.stop: str | None = None
        self.gates = Gates(clock, chance, tell)

    def __contains__(self, place: Place) -> bool:
        return place in self._slots

    @property
    def busy(self) -> list[Place]:
        """Return the partitions that a lane or the marker works for."""
        return [place for place, slot in self._slots.items() if slot.state.busy]

    @property
    def idle(self) -> int:
        """Return how many lanes have nothing to do."""
        return self._lanes - len(self._out)

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
            self._slots[place] = _Slot(PartitionState(generation=self._number()))
            self._handle(place, Assigned())
            self._hold(place)
            self._crowd(place)
        self._share()

    def fetched(self, place: Place, records: Sequence[Record]) -> None:
        """Take records that have arrived; those of partitions that are not ours are dropped."""
        slot = self._slots.get(place)
        if slot is None or not records:
            return
        slot.arriving = records
        self._handle(place, Fetched(first=records[0].offset, last=records[-1].offset))
        slot.arriving = ()

    def reported(self, report: Report) -> None:
        """Take what a lane or the marker reports; of an earlier ownership it counts for nothing."""
        if report.number is not None:
            self._out.discard(report.number)
            self._slow.discard(report.number)
        slot = self._slots.get(report.place)
        if isinstance(report.event, LaneBroke):
            self.stop = self.stop or report.event.error
        if slot is None or slot.state.generation != report.generation:
            return
        if isinstance(report.event, Opened):
            self._opened(report.place, slot, report.event)
        if isinstance(report.event, ChunkEnded):
            assert report.number is not None
            report = replace(report, event=self._landed(slot, report.number, report.event))
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
        return [
            sample_of(
                place,
                slot.state,
                slot.queue.load,
                stopped=self.gates.stopping(slot.queue),
                until=slot.queue.waits_until,
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
                self._seek(place, slot, slot.seek)
            if slot.queue.wake(now):
                slot.dry = False
            if not slot.rests:
                self._handle(place, Tick())

    def dispatch(self) -> None:
        """
        Hand chunks to the lanes that have nothing to do, one partition after another.

        One lane is kept from slow keys while there is other work. What counts is how many lanes they have, not how many are
        idle: when all are busy they free one at a time, and a slow key would wait until nobody else has work.
        """
        while self.idle > 0 and self.gates.shut and self._next_probe():
            pass
        while self.idle > 0:
            spare = self._lanes == 1 or len(self._slow) < self._lanes - 1
            if not (self._next_chunk(slow=spare) or (not spare and self._next_chunk(slow=True))):
                return

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

    def _share(self) -> None:
        """Give each partition its part of the bytes that may be read ahead."""
        each = max(LEAST_BYTES, self._limits.buffered_bytes // max(1, len(self._slots)))
        self._shared = replace(self._limits, buffered_bytes=each)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _next_chunk(self, *, slow: bool) -> bool:
        places = list(self._slots)
        for step in range(len(places)):
            place = places[(self._turn + step) % len(places)]
            slot = self._slots[place]
            if slot.dry or not slot.state.may_run:
                continue
            limit = min(slot.state.limit, MOST_SAVEPOINTS) if slot.careful else slot.state.limit
            chunk = slot.queue.take(limit, lonely=slot.suspects, shut=self.gates.shut, slow=slow)
            if chunk:
                self._turn = (self._turn + step + 1) % len(places)
                self._submit(place, slot, chunk)
                return True
            slot.dry = slow
        return False

    def _next_probe(self) -> bool:
        """Hand out one message of a handler that is stopped, when its time has come; return whether one was."""
        queues = {place: slot.queue for place, slot in self._slots.items() if slot.state.may_run}
        found = self.gates.probe(queues)
        if found is None:
            return False
        gate, place, one = found
        self._submit(place, self._slots[place], [one], gate=gate)
        return True

    def _submit(
        self, place: Place, slot: _Slot, chunk: Sequence[Waiting], *, gate: str | None = None
    ) -> None:
        state, first = slot.state, chunk[0].delivery.record.offset
        assert slot.stream is not None
        assert state.position is not None
        suspect = slot.suspects.get(first) if len(chunk) == 1 else None
        again = [one.delivery.record.offset for one in chunk] if slot.tried else []
        job = ChunkJob(
            place=place,
            generation=state.generation,
            number=self._number(),
            fence=slot.fence,
            chunk=chunk,
            stream=slot.stream,
            position=state.position,
            leader_epoch=state.leader_epoch,
            topic_age=slot.topic_age,
            charged=slot.suspects.charge(first, self._limits) if suspect else None,
            contended=suspect is not None and max(suspect.contended, suspect.down) >= self._limits.uncharged,
            marked=suspect is not None and suspect.crashed,
            careful=slot.careful > 0,
            tried=frozenset(slot.tried.intersection(again)),
            probe=gate is not None,
        )
        if gate is not None:
            self.gates.sent(job.number, gate, chunk[0])
        slot.state = replace(state, running=state.running + 1)
        slot.careful = max(0, slot.careful - 1)
        slot.flights[job.number] = chunk
        self._out.add(job.number)
        if slot.queue.is_slow(chunk[0].key):
            self._slow.add(job.number)
        self._works.submit(job)

    def _opened(self, place: Place, slot: _Slot, event: Opened) -> None:
        slot.stream = replace(self._streams(place), topic_id=event.topic_id)
        slot.topic_age = event.topic_age
        for offset in event.unfinished:
            slot.suspects.of(offset).crashed = True

    def _landed(self, slot: _Slot, number: int, event: ChunkEnded) -> ChunkEnded:
        """Take the chunk back into the queue; return the event with what waits alone."""
        chunk = slot.flights.pop(number)
        slot.dry = False
        if event.tallies or event.down or event.ran is not None or self.gates.shut:
            if self.gates.landed(number, event.tallies, event.down, event.ran):
                event = self._blamed(slot, event)
            elif event.down:
                event = self._put_off(chunk, event)
            self._wet()
        if event.failed:
            slot.careful = CAREFUL
        for offset in event.stuck:
            slot.suspects.of(offset).stuck = len(event.stuck) == 1
        if event.alone and event.ended is Ended.CONTENTION:
            event = self._contended(slot, event)
        slot.queue.settle(chunk, event.left, event.held, self._clock.monotonic())
        slot.queue.learn(event.slow, event.quick)
        if slot.suspects:
            slot.suspects.clear_below(slot.queue.load.end)
        slot.tried.update(event.tried)
        if slot.tried:
            gone = {one.delivery.record.offset for one in chunk} - set(event.left)
            slot.tried -= gone
        return event

    def _wet(self) -> None:
        """Look at all queues again: a gate may have opened."""
        for slot in self._slots.values():
            slot.dry = False

    def _put_off(self, chunk: Sequence[Waiting], event: ChunkEnded) -> ChunkEnded:
        """
        Let wait alone what found a stopped handler's system down and is not behind that handler's gate, until the next probe.

        It led to followers of another handler, which was stopped already: else they would be run again and again.
        """
        wait = max(1.0, self.gates.wait(event.down))
        suspects = event.left if event.suspect is None else (event.suspect,)
        gates = {one.delivery.record.offset: one.gate for one in chunk}
        held = {at: wait for at in suspects if at in event.left and gates[at] != event.down}
        return replace(event, held={**held, **event.held})

    def _blamed(self, slot: _Slot, event: ChunkEnded) -> ChunkEnded:
        """
        Let the member that opened a breaker run alone from now on, and wait alone, longer each time it does so again.

        A breaker is closed only by an answer, so one that opens it again and again has something about itself: the others
        must not be rolled back and stopped for it for ever. When nobody knows which it was, each runs alone.
        """
        if event.suspect is None:
            for offset in event.left:
                slot.suspects.of(offset)
            return event
        suspect = slot.suspects.of(event.suspect)
        suspect.down += 1
        wait = delay_after(suspect.down, self._limits.backoff, jitter=self._chance.fraction())
        return replace(event, held={event.suspect: wait})

    def _contended(self, slot: _Slot, event: ChunkEnded) -> ChunkEnded:
        """Let the one member wait alone, longer each time; its key waits with it and nobody else does."""
        suspect = slot.suspects.of(event.left[0])
        suspect.contended += 1
        wait = delay_after(suspect.contended, self._limits.backoff, jitter=self._chance.fraction())
        return replace(event, held={event.left[0]: wait}, ended=Ended.WELL)

    def _handle(self, place: Place, event: Event) -> None:
        slot = self._slots.get(place)
        if slot is None:
            return
        slot.state, commands = self._decide(slot, event)
        for command in commands:
            self._do(place, slot, command)
        if any(isinstance(one, Take | Forget) for one in commands):
            self._handle(place, Tick())

    def _decide(self, slot: _Slot, event: Event) -> tuple[PartitionState, tuple[Command, ...]]:
        return decide(
            slot.state,
            event,
            slot.queue.load,
            self._shared,
            now=self._clock.monotonic(),
            jitter=self._chance.fraction(),
        )

    def _do(self, place: Place, slot: _Slot, command: Command) -> None:
        match command:
            case Open():
                slot.seek = None
                generation, number = slot.state.generation, self._number()
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
                self.stop = self.stop or error
            case _:
                self._fetch(place, slot, command)

    def _mark(self, place: Place, slot: _Slot, old: int, new: int, epoch: int | None) -> None:
        assert slot.stream is not None
        generation = slot.state.generation
        move = Move(
            place=place, generation=generation, stream=slot.stream, old=old, new=new, leader_epoch=epoch
        )
        self._works.mark(move)

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
