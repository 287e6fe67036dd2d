"""Hand chunks to lanes that have nothing to do: whose turn it is, and with what flags a chunk goes."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from packhorse.processor.member.gates import Gates
from packhorse.processor.member.jobs import ChunkJob, Place
from packhorse.processor.member.pacing import Paces
from packhorse.processor.member.ports import Works
from packhorse.processor.member.queue import Waiting
from packhorse.processor.member.rationing import NO_RATION, Ration, Rations
from packhorse.processor.member.sharing import Sharing
from packhorse.processor.member.slot import Slot
from packhorse.processor.partition.events import Took
from packhorse.processor.partition.state import Limits
from packhorse.processor.running.attempting import MOST_SAVEPOINTS

LEAST_URGENT = 8
"""Every so many turns the least urgent source is looked at first."""


class Dispatcher:
    """
    Keep count of the lanes and give them work; for one thread.

    Args:
        slots: The partitions; they come and go.
        works: Who takes jobs.
        gates: Handlers that are stopped.
        limits: Of one partition.
        lanes: How many there are.
        numbers: Gives each job its own.
        ranks: How urgent what comes from a source is: below 0 comes first, above 0 last; of one that is not in it 0.
        ration: How many lanes handlers may have at once.
    """

    def __init__(
        self,
        slots: Mapping[Place, Slot],
        works: Works,
        gates: Gates,
        limits: Limits,
        *,
        lanes: int,
        numbers: Iterator[int],
        ration: Ration = NO_RATION,
        ranks: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._slots = slots
        self._works = works
        self._gates = gates
        self._limits = limits
        self._numbers = numbers
        self._marked: dict[int, bool] = {}
        self._sharing = Sharing(lanes)
        self._rations = Rations(ration)
        self._ranks = ranks
        self._given = 0
        self._paces = Paces()
        self._turns = {False: 0, True: 0}

    @property
    def idle(self) -> int:
        """Return how many lanes have nothing to do."""
        return self._sharing.idle

    def arrived(self, slot: Slot, now: float) -> None:
        """Take that records of *slot* have come."""
        if slot.stream is not None and not slot.stream.carries:
            self._sharing.arrived(now)

    def ended(self, number: int) -> None:
        """Take that the job *number* is reported."""
        self._sharing.ended(number)
        was_full = self._rations.ended(number)
        if self._marked.pop(number, None) is not None or was_full:
            for slot in self._slots.values():
                slot.dry = False

    def learn(self, chunk: Sequence[Waiting], took: Took) -> None:
        """Take how long the bodies of *chunk* took."""
        if took.bodies and (name := chunk[0].kind.paced) is not None:
            self._paces.learn(name, took)

    def dispatch(self, now: float) -> None:
        """Hand chunks to the lanes that have nothing to do: to whom, `Sharing` says, and of sources and retry topics each partition in turn."""
        while self.idle > 0 and self._gates.shut and self._next_probe():
            pass
        while self.idle > 0:
            if self._next_chunk(now, others_wait=True):
                continue
            is_kept = not self._sharing.bears_slow(now, again=True, others_wait=True)
            if not (is_kept and self._next_chunk(now, others_wait=False)):
                return

    def is_full(self, slot: Slot, now: float) -> bool:
        """Return whether *slot* waits because what comes again has all the lanes that it may have."""
        return slot.stream is not None and slot.stream.carries and self._sharing.is_full(now)

    def _next_chunk(self, now: float, *, others_wait: bool) -> bool:
        sharing = self._sharing
        return any(
            self._chunk_of(again=again, slow=sharing.bears_slow(now, again=again, others_wait=others_wait))
            for again in sharing.turns(now)
        )

    def _chunk_of(self, *, again: bool, slow: bool) -> bool:
        places, turn = list(self._slots), self._turns[again]
        order = [(turn + step) % len(places) for step in range(len(places))]
        if self._ranks:
            self._by_rank(places, order)
        for at in order:
            place = places[at]
            slot = self._slots[place]
            if slot.dry or not slot.state.may_run or slot.stream is None or slot.stream.carries is not again:
                continue
            limit = min(slot.state.limit, MOST_SAVEPOINTS) if slot.careful else slot.state.limit
            shut = {*self._gates.shut, *self._rations.full} if self._rations.full else self._gates.shut
            chunk = slot.queue.take(
                limit,
                lonely=slot.suspects,
                shut=shut,
                barred=self._barred(slot),
                slow=slow,
                pace=self._paces.most,
            )
            if chunk:
                self._given += 1
                self._turns[again] = (at + 1) % len(places)
                self._submit(place, slot, chunk)
                return True
            slot.dry = slow
        return False

    def _by_rank(self, places: Sequence[Place], order: list[int]) -> None:
        """Put what is urgent first; at every eighth turn what is least so, since it too is to be done some day."""

        def rank(at: int) -> int:
            stream = self._slots[places[at]].stream
            return 0 if stream is None else self._ranks.get(stream.source, 0)

        order.sort(key=rank, reverse=self._given % LEAST_URGENT == LEAST_URGENT - 1)

    def _barred(self, slot: Slot) -> Collection[int]:
        """
        Return the offsets of *slot* that must wait for others that may have killed a process.

        Those run beside each other once, since most of them are innocent. When a process dies over several, each has a start
        on record. So from then on such a one runs while no other runs that may be what kills the process: it would be blamed
        for the other's deaths.
        """
        if not self._marked or not slot.suspects:
            return ()
        return slot.suspects.barred(alone=any(self._marked.values()))

    def _next_probe(self) -> bool:
        """Hand out one message of a handler that is stopped, when its time has come; return whether one was."""
        queues = {
            place: slot.queue
            for place, slot in self._slots.items()
            if slot.state.may_run and not self._barred(slot)
        }
        found = self._gates.probe(queues)
        if found is None:
            return False
        gate, place, one = found
        self._submit(place, self._slots[place], [one], gate=gate)
        return True

    def _submit(self, place: Place, slot: Slot, chunk: Sequence[Waiting], *, gate: str | None = None) -> None:
        state, first = slot.state, chunk[0].delivery.record.offset
        assert slot.stream is not None
        assert state.position is not None
        suspect = slot.suspects.get(first) if len(chunk) == 1 else None
        again = [one.delivery.record.offset for one in chunk] if slot.tried else []
        job = ChunkJob(
            place=place,
            generation=state.generation,
            number=next(self._numbers),
            fence=slot.fence,
            chunk=chunk,
            stream=slot.stream,
            position=state.position,
            leader_epoch=state.leader_epoch,
            topic_age=slot.topic_age,
            charged=slot.suspects.charge(first, self._limits) if suspect else None,
            contended=suspect is not None and max(suspect.contended, suspect.down) >= self._limits.uncharged,
            suspected=suspect is not None,
            marked=suspect is not None and suspect.crashed,
            careful=slot.careful > 0,
            tried=frozenset(slot.tried.intersection(again)),
            probe=gate,
            shut=frozenset(self._gates.shut),
        )
        if gate is not None:
            self._gates.sent(job.number, gate, chunk[0])
        slot.state = replace(state, running=state.running + 1)
        slot.careful = max(0, slot.careful - 1)
        slot.flights[job.number] = chunk
        if job.marked and suspect is not None:
            self._marked[job.number] = suspect.begun
        self._rations.begun(job.number, chunk[0].gate)
        self._sharing.begun(job.number, again=job.stream.carries, slow=slot.queue.is_slow(chunk[0].key))
        self._works.submit(job)
