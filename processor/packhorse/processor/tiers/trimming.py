"""Delete from tiers what nobody needs any more: the records below the offset that is done and committed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from packhorse.core.errors import BrokerUnavailable, NotReady
from packhorse.core.logs import Log

Place = tuple[str, int]
"""Topic and partition."""

EVERY = 60.0
"""Least seconds between two looks at one partition."""
LEAST_RECORDS = 1_000
"""Fewer records are left alone: the broker frees whole segments only, and each order is written into every replica."""
LONGEST_KEPT = 3_600.0
"""Seconds after which also fewer are deleted: they may be large."""
FORBIDDEN_FOR = 3_600.0
"""Seconds until a topic is tried again in which this client may not delete."""


class Trimmed(NamedTuple):
    """
    How one partition's order ended.

    Attributes:
        first: The first offset that the partition has now; None when nothing was deleted.
        forbidden: This client may not delete there.
        text: What went wrong.
    """

    first: int | None
    forbidden: bool = False
    text: str = ""


class DeletesRecords(Protocol):
    """Delete records of topics; bounded in time."""

    def first_offsets(self, places: Collection[Place]) -> Mapping[Place, int]:
        """Return the first offsets of those of *places* that exist. Raises BrokerUnavailable, NotReady."""

    def delete_below(self, offsets: Mapping[Place, int]) -> Mapping[Place, Trimmed]:
        """Delete the records below these offsets; returns how each order ended. Raises BrokerUnavailable."""


@dataclass(slots=True)
class _Part:
    looked_at: float
    trimmed_at: float
    first: int | None = None


class Trimmer:
    """
    Trim the tiers' partitions of one process, now and then; for one thread.

    What is deleted is below the offset that the caller gives, and the caller gives what is done, durable and committed: the
    records above it are all that a crash, a rebalance or a restart reads again. After a restore of the database, tiers may
    lack what it thinks is there; the messages themselves lie in `retry_message` and are sent again. Nothing else is ever
    deleted: places of topics that are no tiers are passed over.

    Args:
        tiers: Topics of the tiers that this process reads.
        broker: Deletes.
        log: Is told once when something is forbidden, and of trouble once until it is over.
    """

    def __init__(self, tiers: Collection[str], broker: DeletesRecords, log: Log) -> None:
        self._tiers = frozenset(tiers)
        self._broker = broker
        self._log = log
        self._parts: dict[Place, _Part] = {}
        self._forbidden: dict[str, float] = {}
        self._troubled = False

    def trim(self, offsets: Mapping[Place, int], now: float) -> int:
        """
        Delete what lies below *offsets* where it is worth an order, and return how many records that were.

        Call it as often as you like, with all partitions that are read, at *now* on a monotonic clock. Never raises because of
        the broker: what is not trimmed today is trimmed tomorrow.
        """
        mine = {place: offset for place, offset in offsets.items() if place[0] in self._tiers}
        self._parts = {place: part for place, part in self._parts.items() if place in mine}
        due = self._due(mine, now)
        if not due:
            return 0
        try:
            self._learn(due)
            orders = {place: mine[place] for place in due if self._is_worth(place, mine[place], now)}
            ends = self._broker.delete_below(orders) if orders else {}
        except (BrokerUnavailable, NotReady) as error:
            self._tell([str(error)])
            return 0
        self._tell([ended.text for ended in ends.values() if ended.first is None and not ended.forbidden])
        return sum(self._take(place, ended, now) for place, ended in ends.items())

    def _due(self, mine: Collection[Place], now: float) -> list[Place]:
        found = []
        for place in mine:
            part = self._parts.setdefault(place, _Part(looked_at=now - EVERY, trimmed_at=now))
            if now - part.looked_at >= EVERY and self._forbidden.get(place[0], now) <= now:
                part.looked_at = now
                found.append(place)
        return found

    def _learn(self, due: Collection[Place]) -> None:
        unknown = [place for place in due if self._parts[place].first is None]
        if unknown:
            for place, first in self._broker.first_offsets(unknown).items():
                self._parts[place].first = first

    def _is_worth(self, place: Place, offset: int, now: float) -> bool:
        part = self._parts[place]
        if part.first is None:
            return False
        old = now - part.trimmed_at >= LONGEST_KEPT
        return offset - part.first >= (1 if old else LEAST_RECORDS)

    def _take(self, place: Place, ended: Trimmed, now: float) -> int:
        part, topic = self._parts[place], place[0]
        if ended.first is not None:
            before = ended.first if part.first is None else part.first
            part.first, part.trimmed_at = ended.first, now
            return max(0, ended.first - before)
        part.first = None
        if ended.forbidden:
            self._forbid(topic, ended.text, now)
        return 0

    def _forbid(self, topic: str, text: str, now: float) -> None:
        if topic not in self._forbidden:
            self._log.warning(
                "a tier is not trimmed and grows: grant this client the right to delete records of it, or delete them "
                "below the committed offsets by other means",
                topic=topic,
                cause=text,
            )
        self._forbidden[topic] = now + FORBIDDEN_FOR

    def _tell(self, troubles: Sequence[str]) -> None:
        if troubles and not self._troubled:
            self._log.warning("tiers are not trimmed for now", cause=troubles[0])
        self._troubled = bool(troubles)
