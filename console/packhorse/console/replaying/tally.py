"""What a range of a topic holds, counted as it is read, and how the group stands with it. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from packhorse.console.replaying.records import Standing, expired, is_handed
from packhorse.console.replaying.wanted import Wanted
from packhorse.processor.record import Delivery, Record

MOST_TYPES = 200
"""Types that are counted apart; the rest is one."""
OTHERS = "(others)"
UNTYPED = "(none)"


@dataclass(slots=True, kw_only=True)
class Tally:
    """
    Counts of one scan; keys are kept as numbers, so that neither they nor much memory is.

    Attributes:
        read: Records of the range.
        matched: Those that are wanted.
        handed: Those that would be handed over.
        tombstones, keyless, expired: Of the wanted ones.
        types: Wanted ones by type.
        standings: Wanted ones by how the group stands with them.
        faults: Wanted ones that can't be decoded, by reason; of a dry run alone.
        keys: Keys of what would be handed over.
        behind: Of those, keys of which a later message of the range is done.
        beyond: Of those, keys that have messages behind the range that the group has dealt with.
        stuck: Of those, keys that wait for a person.
    """

    read: int = 0
    matched: int = 0
    handed: int = 0
    tombstones: int = 0
    keyless: int = 0
    expired: int = 0
    types: Counter[str] = field(default_factory=Counter)
    standings: Counter[Standing] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    keys: set[int] = field(default_factory=set)
    behind: set[int] = field(default_factory=set)
    beyond: set[int] = field(default_factory=set)
    stuck: int = 0

    def take(
        self,
        deliveries: Sequence[Delivery],
        standings: Sequence[Standing],
        wanted: Wanted,
        *,
        now: datetime,
    ) -> None:
        """Count *deliveries*, which are wanted, each with how the group stands with it."""
        self.matched += len(deliveries)
        self.standings.update(standings)
        self._count_types(deliveries)
        for delivery, standing in zip(deliveries, standings, strict=True):
            record = delivery.record
            self.tombstones += record.value is None
            if "expires-at" in delivery.headers:
                self.expired += expired(delivery, now)
            key = record.key
            if is_handed(standing, wanted):
                self.handed += 1
                if key is None:
                    self.keyless += 1
                else:
                    self.keys.add(hash(key))
            elif key is not None and standing is Standing.DONE and (number := hash(key)) in self.keys:
                self.behind.add(number)

    def _count_types(self, deliveries: Sequence[Delivery]) -> None:
        for name, n in Counter(delivery.type or UNTYPED for delivery in deliveries).items():
            known = name in self.types or len(self.types) < MOST_TYPES
            self.types[name if known else OTHERS] += n

    def look_beyond(self, records: Iterable[Record]) -> None:
        """Count the keys of *records*, which stand behind the range."""
        keys = self.keys
        self.beyond.update(
            number for record in records if record.key is not None and (number := hash(record.key)) in keys
        )

    def as_json(self) -> dict[str, Any]:
        """Return the counts."""
        return {
            "read": self.read,
            "matched": self.matched,
            "handed": self.handed,
            "tombstones": self.tombstones,
            "keyless": self.keyless,
            "expired": self.expired,
            "types": dict(self.types.most_common()),
            "standings": {one.value: n for one, n in self.standings.most_common()},
            "undecodable": dict(self.faults.most_common()),
            "keys": len(self.keys),
            "keys_behind": len(self.behind),
            "keys_beyond": len(self.beyond),
            "keys_stuck": self.stuck,
        }
