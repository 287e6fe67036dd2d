"""Who writes messages, and what each of them is: some lie there at the start, others come while the group works."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.simulation.processor.messages import SOURCE, TYPES, Alone, Called, Counted, Deed, Placed, Script

if TYPE_CHECKING:
    from tests.simulation.processor.world import World

ENDLESS = 1_000
PASSING = {Deed.LATER, Deed.SLOW, Deed.DOWN, Deed.REGISTRY}
"""What would go on for hours if it went on for ever, and costs no attempt."""
SMALL = {Deed.WELL, Deed.FAILS, Deed.LATER, Deed.STOPS, Deed.SKIPS}
"""Deeds that leave process and connection alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """
    What a theme's messages are like.

    Attributes:
        keys, messages: At most so many of a partition.
        troubled: How many of them fail, at least and at most.
        at_start: How many lie there at the start.
        deeds: What the others do.
        types: Of what types they are.
        times: How often a deed is done.
        pauses: Seconds between two that are written.
    """

    keys: int = 3
    messages: int = 12
    troubled: tuple[float, ...] = (0.0, 0.2, 0.5)
    at_start: tuple[float, ...] = (1.0, 1.0, 0.5, 0.2)
    deeds: tuple[Deed, ...] = tuple(Deed)
    types: tuple[Any, ...] = TYPES
    times: tuple[int, ...] = (1, 1, 2, 3, ENDLESS)
    pauses: tuple[float, ...] = (0.0, 0.01, 0.1, 0.5, 2.0, 6.0)


GENERAL = Kind()
PARKING = Kind(
    keys=1,
    messages=7,
    troubled=(0.5, 0.8),
    at_start=(0.5, 0.2),
    deeds=(Deed.FAILS, Deed.FAILS, Deed.LATER, Deed.STOPS, Deed.SLOW),
    types=(Placed, Called, Counted),
)
SLOW = Kind(
    troubled=(0.3, 0.6),
    at_start=(1.0,),
    deeds=(Deed.SLOW, Deed.SLOW, Deed.FAILS),
    types=(Placed, Called, Alone),
)
RACES = Kind(
    keys=1,
    messages=12,
    troubled=(0.4, 0.6),
    at_start=(0.2,),
    deeds=(Deed.FAILS,),
    types=(Placed,),
    pauses=(0.0, 0.1, 0.5, 0.5, 1.0),
    times=(1, 1, 1, 2),
)
LIVELY = Kind(
    messages=20,
    troubled=(0.2, 0.4),
    at_start=(0.5, 0.2),
    deeds=(Deed.SLOW,),
    types=(Placed, Called, Alone),
    pauses=(0.0, 0.01, 0.1, 0.5),
)
AWAY = Kind(
    keys=2,
    troubled=(0.2, 0.4),
    at_start=(1.0, 0.5),
    deeds=(Deed.DOWN, Deed.DOWN, Deed.FAILS),
    types=(Placed, Called, Counted),
    pauses=(0.0, 0.1, 0.5),
)
CROWDS = Kind(
    keys=6,
    messages=24,
    troubled=(0.3, 0.5),
    at_start=(0.8, 0.5),
    deeds=(Deed.FAILS, Deed.FAILS, Deed.LATER, Deed.STOPS),
    types=(Placed, Called, Counted),
    times=(1, 1, 2),
    pauses=(0.0, 0.1, 0.5),
)
KINDS = {
    "crowds": CROWDS,
    "systems": AWAY,
    "races": RACES,
    "zombies": RACES,
    "parking": PARKING,
    "unwatched": PARKING,
    "losses": SLOW,
    "restores": LIVELY,
    "returns": LIVELY,
    "owners": SLOW,
}


class Writer:
    """Writes the messages of a world."""

    def __init__(self, world: "World") -> None:
        self._world = world
        random = world.random
        kind = self._kind = KINDS.get(world.theme, GENERAL)
        count = len(kind.types)
        self._types = random.sample(kind.types, min(count, random.choice([1, 2, 3, count])))
        self._troubled = random.choice(kind.troubled)
        partitions = range(world.broker.partitions)
        self._keys = {
            p: [f"k{p}{n}".encode() for n in range(random.randint(1, kind.keys))] for p in partitions
        }
        coming = [p for p in partitions for _ in range(random.randint(2, kind.messages))]
        random.shuffle(coming)
        now = int(len(coming) * random.choice(kind.at_start))
        for number, partition in enumerate(coming[:now], 1):
            self._write(number, partition)
        self._later = list(enumerate(coming[now:], now + 1))

    @property
    def is_done(self) -> bool:
        """Return whether all are written."""
        return not self._later

    def work(self) -> None:
        """Write what is left, now and then."""
        world = self._world
        while self._later:
            world.hub.pause(world.random.choice(self._kind.pauses))
            for _ in range(world.random.choice([1, 1, 3])):
                if self._later:
                    self._write(*self._later.pop(0))

    def _write(self, number: int, partition: int) -> None:
        world, kind, random = self._world, self._kind, self._world.random
        place, one = (SOURCE, partition), UUID(int=number)
        key = None if random.random() < 0.05 else random.choice(self._keys[partition])
        cls = random.choice(self._types)
        deed, times = Deed.WELL, 0
        if random.random() < self._troubled:
            deed = random.choice(kind.deeds)
            times = random.choice(kind.times)
            times = min(times, 3) if deed in PASSING else times
        world.deeds[one], world.scripts[one] = (deed, times), Script(deed, times)
        headers = (("id", str(one).encode()), ("type", cls.__packhorse__.type.encode()))
        for _ in range(2 if random.random() < 0.08 else 1):
            world.broker.append(place, key, one.bytes, headers)
            world.checks.records.setdefault(one, world.broker.logs[place].records[-1])
            world.broker.skip(place, 0 if random.random() < 0.85 else random.randint(1, 3))
