"""What the loop and the lanes show of themselves, for whoever watches; nothing here blocks them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from packhorse.core.clock import Clock
from packhorse.processor.health.vitals import Vitals
from packhorse.processor.partition.state import Load, PartitionState, Phase
from packhorse.processor.pausing.pauses import Pauses
from packhorse.processor.watching.hands import Hands
from packhorse.processor.watching.stall import PartitionSample, Place

EVERY = 1.0
"""Seconds between two samples."""
LOOP = "loop"


class Board:
    """
    Hold the latest samples. Each value is replaced as a whole, so a reader in another thread sees an old one or a new one.

    Attributes:
        hands: What lanes run.
        vitals: The signs of life.
        pauses: What people have paused, as last read.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.hands = Hands(clock.monotonic)
        self.vitals = Vitals(clock.monotonic)
        self.pauses = Pauses()
        self._sources: Mapping[str, str] = {}
        self._samples: tuple[PartitionSample, ...] = ()
        self._ends: Mapping[Place, int | str] = MappingProxyType({})
        self._facts: dict[str, object] = {}
        self._next = 0.0

    def turned(self, look: Callable[[], Sequence[PartitionSample]]) -> None:
        """Note, in the loop's thread, that it turns; once in a while take the samples that *look* returns."""
        self.vitals.beat(LOOP)
        if (now := self._clock.monotonic()) >= self._next:
            self._next = now + EVERY
            self._samples = tuple(look())

    def reads(self, sources: Mapping[str, str]) -> None:
        """Say which topics are read, and of which source each is."""
        self._sources = dict(sources)

    def ends(self, found: Mapping[Place, int | str]) -> None:
        """Note where topics end, or why that is not known."""
        self._ends = MappingProxyType({**self._ends, **found})

    def say(self, name: str, fact: object) -> None:
        """Show one more *fact* (anything that JSON can hold) in the member's status, e.g. of brakes and breakers."""
        self._facts[name] = fact

    @property
    def facts(self) -> dict[str, object]:
        """Return what was said besides."""
        return dict(self._facts)

    def held(self, topic: str, partition: int) -> str:
        """Return what pause of a person holds the partition, in words; empty when none does."""
        found = self.pauses.holding(topic, partition, source=self._sources.get(topic, topic))
        return "" if found is None else found.told

    @property
    def samples(self) -> tuple[PartitionSample, ...]:
        """Return the latest samples, with what is known of topics' ends and of pauses."""
        return tuple(self._filled(sample) for sample in self._samples)

    def _filled(self, sample: PartitionSample) -> PartitionSample:
        end = self._ends.get((sample.topic, sample.partition))
        held = self.held(sample.topic, sample.partition)
        sample = replace(sample, held=held, source=self._sources.get(sample.topic, sample.topic))
        return replace(sample, unreachable=end) if isinstance(end, str) else replace(sample, end=end)


def sample_of(
    place: Place,
    state: PartitionState,
    load: Load,
    *,
    stopped: Sequence[str] = (),
    until: float | None = None,
    full: bool = False,
) -> PartitionSample:
    """
    Return how a partition stands, from its state and what its queue holds.

    Messages of it wait for the handlers *stopped* by brake or breaker; the first of those that wait alone is tried again at
    *until*; it has no lane because what comes again has as many as it may have: *full*.
    """
    topic, partition = place
    waits = state.phase is Phase.WAITING
    crowd = "too much waits behind parked keys" if state.crowded else ""
    brakes = f"stopped by brake or breaker: {', '.join(stopped)}" if stopped else ""
    return PartitionSample(
        topic=topic,
        partition=partition,
        generation=state.generation,
        phase=state.phase.value,
        position=state.position,
        pending=load.pending,
        size=load.size,
        running=state.running,
        trouble=state.trouble or crowd or brakes,
        until=state.due if waits else until,
        full=full,
        committed=state.committed,
    )
