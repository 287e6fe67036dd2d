"""
Handlers that are stopped, by their brake or breaker: none of their messages is handed to a lane but one at a time, as a probe.

Owned by the loop's thread. A probe is told to have ended exactly once, however that comes about: the chunk ended, or its
partition went.
"""

from collections.abc import Callable, Mapping
from uuid import UUID

from packhorse.core.clock import Chance, Clock
from packhorse.processor.breaking.brake import Seen
from packhorse.processor.breaking.stops import Stops, Told
from packhorse.processor.member.jobs import Place
from packhorse.processor.member.queue import Queue, Waiting
from packhorse.processor.running.work import Ran

LOOK_AGAIN = 0.1
"""Seconds after which all queues are looked through again for a probe, when none was found: it takes milliseconds where many wait."""


class Gates:
    """
    Shut and open the gates of handlers.

    Attributes:
        shut: Names of handlers whose messages wait.
    """

    def __init__(self, clock: Clock, chance: Chance, tell: Callable[[Told], None]) -> None:
        self.stops = Stops()
        self.shut: set[str] = set()
        self._clock = clock
        self._chance = chance
        self._tell = tell
        self._probes: dict[int, tuple[str, UUID]] = {}
        self._look_again: dict[str, float] = {}

    def landed(
        self, number: int, tallies: Mapping[str, Seen], down: str, ran: Ran | None, *, dealt: bool = False
    ) -> bool:
        """
        Take what the chunk *number* says of its handlers; return whether it has opened a breaker that was closed.

        *dealt*: Nothing of it is left.
        """
        now, jitter = self._clock.monotonic(), self._chance.fraction()
        if (probe := self._probes.pop(number, None)) is not None:
            self._say(self.stops.ended(probe[0], probe[1], ran, now=now, jitter=jitter, dealt=dealt))
            self._look(probe[0], now)
        elif down:
            told = self.stops.down(down, now=now, jitter=jitter)
            self._say(told)
            self._look(down, now)
            return bool(told)
        else:
            for gate, seen in tallies.items():
                self._say(self.stops.seen(gate, seen, now=now, jitter=jitter))
                self._look(gate, now)
        return False

    def stopping(self, queue: Queue) -> list[str]:
        """Return the stopped handlers that messages of *queue* wait for, sorted."""
        return sorted(gate for gate in self.shut if queue.candidates(gate))

    def gone(self, numbers: Mapping[int, object]) -> None:
        """Take that nobody will say how these chunks ended."""
        for number in numbers:
            if number in self._probes:
                self.landed(number, {}, "", None)

    def probe(self, queues: Mapping[Place, Queue]) -> tuple[str, Place, Waiting] | None:
        """Return the next probe that is due, taken from its queue: its gate, where, and the record; None when there is none."""
        now = self._clock.monotonic()
        for gate in self.shut:
            if self.stops.wait(gate, now=now) != 0 or now < self._look_again.get(gate, now):
                continue
            found = {
                one.delivery.id: (place, one)
                for place, queue in queues.items()
                for one in queue.candidates(gate)
            }
            chosen = self.stops.choose(gate, found)
            if chosen is not None:
                place, one = found[chosen]
                queues[place].pull(one)
                return gate, place, one
            self._look_again[gate] = now + LOOK_AGAIN
        return None

    def sent(self, number: int, gate: str, one: Waiting) -> None:
        """Note that the probe was handed out as the chunk *number*."""
        self._probes[number] = gate, one.delivery.id
        self.stops.sent(gate, one.delivery.id, now=self._clock.monotonic())

    def _look(self, gate: str, now: float) -> None:
        if self.stops.wait(gate, now=now) is None:
            self.shut.discard(gate)
        else:
            self.shut.add(gate)

    def _say(self, told: list[Told]) -> None:
        for one in told:
            self._tell(one)
