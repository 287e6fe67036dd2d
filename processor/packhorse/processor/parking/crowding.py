"""How much may wait behind parked keys of one partition before it stands still; decided purely."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Place = tuple[str, int]
Standing = Mapping[Place, tuple[int, int]]
_ROOM = 0.9
"""There is room again at so much of the limit: it must not flutter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """
    What may wait behind the parked keys of one partition.

    Attributes:
        messages: How many messages.
        size: How many bytes of payloads, keys and headers.
    """

    messages: int = 100_000
    size: int = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Which partitions stand still; of each what waits, in words."""

    full: Mapping[Place, str] = field(default_factory=dict)


def crowd(before: Crowd, standing: Standing, bounds: Bounds) -> Crowd:
    """
    Return which partitions are full, from how many messages and bytes wait in each.

    >>> crowd(Crowd(), {("a", 0): (9, 50), ("a", 1): (3, 50)}, Bounds(messages=8, size=1000)).full
    {('a', 0): '9 messages, 50 bytes, wait behind parked keys; allowed are 8 and 1000'}
    """
    full = {}
    for place, (messages, size) in standing.items():
        part = _ROOM if place in before.full else 1.0
        if messages >= bounds.messages * part or size >= bounds.size * part:
            full[place] = (
                f"{messages} messages, {size} bytes, wait behind parked keys; "
                f"allowed are {bounds.messages} and {bounds.size}"
            )
    return Crowd(full=full)
