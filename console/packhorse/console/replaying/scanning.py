"""Read a range once and count what is in it; hands nothing over."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from packhorse.console.replaying.checks import GroupFacts
from packhorse.console.replaying.ranges import Range
from packhorse.console.replaying.reading import Reader, batches
from packhorse.console.replaying.records import Matcher, Seen, Standing, hashed, standing_of
from packhorse.console.replaying.tally import Tally
from packhorse.console.replaying.wanted import Wanted
from packhorse.core.clock import Clock
from packhorse.processor.record import Delivery

TELL_EVERY = 1.0
"""Seconds between two words of progress."""
Tell = Callable[[str], None]
LookUp = Callable[[Sequence[UUID]], dict[UUID, Seen]]
"""Says what the inbox knows of these ids."""


class Decodes(Protocol):
    """Decode payloads to see whether they can be."""

    def fault(self, payload: bytes) -> str | None:
        """Return why *payload* can't be decoded; None: it can. Raises RegistryUnavailable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """
    How a range is read.

    Attributes:
        look_up: Asks the inbox.
        decodes: Decodes payloads; None: they are left alone.
        stuck: Hashes of the keys that wait for a person.
        tell: Takes words of progress.
    """

    wanted: Wanted
    matcher: Matcher
    group: GroupFacts
    look_up: LookUp
    decodes: Decodes | None
    stuck: frozenset[str]
    tell: Tell
    clock: Clock

    def range(self, reader: Reader, one: Range, tally: Tally, *, total: int, before: int) -> int:
        """Read the range *one* into *tally*, and return how many of its records are wanted."""
        matched, told, stuck = tally.matched, self.clock.monotonic(), set[str]()
        for records in batches(reader, one.partition, one.first, one.past):
            tally.read += len(records)
            self._take(self.matcher(records), tally, stuck)
            if self.clock.monotonic() - told >= TELL_EVERY:
                told = self.clock.monotonic()
                done = before + records[-1].offset + 1 - one.first
                self.tell(f"read {done} of {total} offsets, {tally.matched} wanted")
        tally.stuck += len(stuck)
        return tally.matched - matched

    def beyond(self, reader: Reader, partition: int, past: int, watermark: int, tally: Tally) -> None:
        """Read what stands behind the range up to *watermark*, for keys of the range."""
        told = self.clock.monotonic()
        for records in batches(reader, partition, past, watermark):
            tally.look_beyond(records)
            if self.clock.monotonic() - told >= TELL_EVERY:
                told = self.clock.monotonic()
                self.tell(f"looks behind the range: offset {records[-1].offset + 1} of {watermark}")

    def _take(self, deliveries: list[Delivery], tally: Tally, stuck: set[str]) -> None:
        if not deliveries:
            return
        seen = self.look_up([delivery.id for delivery in deliveries])
        kept_from = self.group.kept_from
        standings: list[Standing] = [
            standing_of(delivery, seen.get(delivery.id), kept_from) for delivery in deliveries
        ]
        tally.take(deliveries, standings, self.wanted, now=self.group.now)
        if self.stuck:
            keys = {hashed(one.record.key) for one in deliveries if one.record.key is not None}
            stuck |= keys & self.stuck
        if self.decodes is not None:
            for delivery in deliveries:
                value = delivery.record.value
                if value is not None and (fault := self.decodes.fault(value)) is not None:
                    tally.faults[fault] += 1
