"""What the runner knows of a partition's keys: where each was last in the range, and which have moved on behind it."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from packhorse.console.replaying.records import Matcher, hashed
from packhorse.processor.record import Delivery, Record

MOST_KEYS = 2_000_000
"""Keys of one partition of which it is known where they end; of more, all are held to the end of the partition."""
AHEAD = 100_000
"""Records above the live group's watermark that are looked through: it does other keys' messages before one that takes long."""


@dataclass(slots=True)
class Lasts:
    """Where each key stands last among the wanted records of a range; keys are kept as numbers."""

    matcher: Matcher
    past: int
    _last: dict[int, int] = field(default_factory=dict)
    _full: bool = False

    def learn(self, records: list[Record]) -> None:
        """Take records of the range in order."""
        if self._full:
            return
        last = self._last
        last.update(
            [(hash(one.key), one.offset) for one in self.matcher.only(records) if one.key is not None]
        )
        self._full = len(last) > MOST_KEYS

    def split(self, deliveries: list[Delivery], to: int) -> tuple[frozenset[str], frozenset[str]]:
        """Return the hashes of the keys of *deliveries* of which more comes from *to* on, and of the others."""
        more, through = set[str](), set[str]()
        for delivery in deliveries:
            key = delivery.record.key
            if key is not None:
                comes = to < self.past if self._full else self._last.get(hash(key), -1) >= to
                (more if comes else through).add(hashed(key))
        return frozenset(more), frozenset(through - more)


@dataclass(slots=True)
class Tail:
    """
    The keys behind the range that the live group has dealt with: all up to `position`, and above it those that are marked.

    Attributes:
        position: Up to where the live group is known to be.
        started: Keys that the replay has in hand: what came of them since waits for it.
        read: Where reading goes on.
        whole: The end of the log was met.
    """

    position: int
    started: set[str]
    read: int = 0
    whole: bool = False
    _keys: set[int] = field(default_factory=set)
    _ahead: deque[tuple[int, int, Record]] = field(default_factory=deque)

    @property
    def far(self) -> bool:
        """Return whether as much was read above the watermark as is looked through."""
        return self.read >= self.position + AHEAD

    def take(self, records: list[Record], end: int | None) -> None:
        """Take records behind the range, in order, whether the live group has dealt with them or not."""
        self._ahead.extend(
            [(one.offset, hash(one.key), one._replace(value=None)) for one in records if one.key is not None]
        )
        self.whole = self.whole or end is not None
        self.read = max(self.read, end or 0, records[-1].offset + 1 if records else 0)

    def advance(self, watermark: int) -> bool:
        """Take that the live group is at *watermark*; return whether all below was read."""
        while self._ahead and self._ahead[0][0] < watermark:
            self._keys.add(self._ahead.popleft()[1])
        self.position = max(self.position, watermark)
        return max(self.read, self._ahead[0][0] if self._ahead else 0) >= watermark

    def unsure(self, deliveries: list[Delivery]) -> list[Record]:
        """Return records above the watermark, without their payloads, whose keys are of *deliveries* and not started."""
        keys = {
            hash(one.record.key)
            for one in deliveries
            if one.record.key is not None and hashed(one.record.key) not in self.started
        }
        return [record for _, key, record in self._ahead if key in keys]

    def mark(self, records: Iterable[Record]) -> None:
        """Take that the live group has dealt with *records*."""
        self._keys.update(hash(one.key) for one in records)

    def stay(self, deliveries: list[Delivery]) -> list[Delivery]:
        """Return those of *deliveries* whose key has not moved on; from now on they are started."""
        kept = []
        for delivery in deliveries:
            key = delivery.record.key
            if key is None:
                kept.append(delivery)
            elif hashed(key) in self.started or hash(key) not in self._keys:
                self.started.add(hashed(key))
                kept.append(delivery)
        return kept
