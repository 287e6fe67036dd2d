"""What a chunk that has ended means for its partition: what goes back, what waits alone, who is suspected."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from packhorse.core.backoff import delay_after
from packhorse.core.clock import Chance, Clock
from packhorse.processor.jobs.deciding import LOOK_AGAIN
from packhorse.processor.member.fence import Fence
from packhorse.processor.member.gates import Gates
from packhorse.processor.member.jobs import Place
from packhorse.processor.member.queue import Waiting
from packhorse.processor.member.slot import Slot
from packhorse.processor.partition.events import ChunkEnded, Ended, HandedOn
from packhorse.processor.partition.state import Limits

CAREFUL = 30
"""Chunks of a partition, after one with a failed member, whose members get savepoints from the start."""


class Landing:
    """Take chunks back; for one thread."""

    def __init__(
        self, slots: Mapping[Place, Slot], gates: Gates, limits: Limits, clock: Clock, chance: Chance
    ) -> None:
        self._slots = slots
        self._gates = gates
        self._limits = limits
        self._clock = clock
        self._chance = chance

    def landed(self, slot: Slot, number: int, event: ChunkEnded) -> ChunkEnded:
        """Take the chunk back into the queue; return the event with what waits alone."""
        chunk = slot.flights.pop(number)
        slot.dry = False
        if event.tallies or event.down or event.ran is not None or self._gates.shut:
            if self._gates.landed(number, event.tallies, event.down, event.ran, dealt=not event.left):
                event = self._blamed(slot, event)
            elif event.down:
                event = _put_off(chunk, event)
            self._wet()
        if event.failed:
            slot.careful = CAREFUL
        for offset in event.stuck:
            slot.suspects.of(offset).stuck = len(event.stuck) == 1 and event.sure
        if event.alone and event.ended is Ended.CONTENTION:
            event = self._contended(slot, event)
        if event.gated:
            chunk = _gated(chunk, event.gated)
        slot.queue.settle(chunk, event.left, event.held, self._clock.monotonic())
        slot.queue.learn(event.slow, event.quick)
        if slot.suspects:
            slot.suspects.clear_below(slot.queue.load.end)
        slot.tried.update(event.tried)
        if slot.tried:
            gone = {one.delivery.record.offset for one in chunk} - set(event.left)
            slot.tried -= gone
        return event

    def handed_on(self, slot: Slot, number: int, event: HandedOn) -> None:
        """Take that the lane with the chunk *number* has some of it no more; of one that has ended by now all that was left is back."""
        chunk = slot.flights.get(number)
        if chunk is None:
            return
        left = [one for one in chunk if one.delivery.record.offset in event.left]
        ended = [one for one in chunk if one.delivery.record.offset in event.ended]
        gone = event.left | event.ended
        slot.flights[number] = [one for one in chunk if one.delivery.record.offset not in gone]
        slot.queue.settle(left, event.left, {}, self._clock.monotonic())
        if ended:
            slot.flights[event.number] = ended
            slot.state = replace(slot.state, running=slot.state.running + 1)
        slot.dry = False

    def let_go(self, slot: Slot, generation: int) -> None:
        """
        Wait no longer for bodies of jobs, which may run for hours, before the watermark is read again.

        Whose a job is says its lease. What lanes report of them counts for nothing from now on: they are delivered again, under
        *generation*, and looked at until their end is on record, as if the partition had gone away and come back.
        """
        now = self._clock.monotonic()
        self._gates.gone(slot.flights)
        for chunk in slot.flights.values():
            offsets = [one.delivery.record.offset for one in chunk]
            slot.queue.settle(chunk, offsets, dict.fromkeys(offsets, LOOK_AGAIN), now)
        slot.flights.clear()
        slot.fence.up = True
        slot.fence = Fence()
        slot.state = replace(slot.state, running=0, generation=generation)

    def _wet(self) -> None:
        """Look at all queues again: a gate may have opened."""
        for slot in self._slots.values():
            slot.dry = False

    def _blamed(self, slot: Slot, event: ChunkEnded) -> ChunkEnded:
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

    def _contended(self, slot: Slot, event: ChunkEnded) -> ChunkEnded:
        """Let the one member wait alone, longer each time; its key waits with it and nobody else does."""
        suspect = slot.suspects.of(event.left[0])
        suspect.contended += 1
        wait = delay_after(suspect.contended, self._limits.backoff, jitter=self._chance.fraction())
        return replace(event, held={event.left[0]: wait}, ended=Ended.WELL)


def _put_off(chunk: Sequence[Waiting], event: ChunkEnded) -> ChunkEnded:
    """
    Put behind a stopped handler's gate what found its system down and has another gate.

    It led to a follower of that handler, which was stopped meanwhile: else that would be run again and again.
    """
    if event.suspect not in event.left or event.suspect is None:
        return event
    own = next(one.gate for one in chunk if one.delivery.record.offset == event.suspect)
    return event if own == event.down else replace(event, gated={**event.gated, event.suspect: event.down})


def _gated(chunk: Sequence[Waiting], gates: Mapping[int, str]) -> list[Waiting]:
    """
    Return *chunk* with those gates: what leads to a stopped handler's follower waits as that handler's own messages do.

    Its own handler has finished with it, so it needs its own gate no more.
    """
    return [one._replace(gate=gates.get(one.delivery.record.offset, one.gate)) for one in chunk]
