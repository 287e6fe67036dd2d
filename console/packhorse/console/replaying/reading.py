"""What a replay asks of the topic, and the loop that reads one range in batches."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from packhorse.core.errors import BrokerUnavailable
from packhorse.processor.record import Record

MOST = 2_000
"""Records of one batch."""
SILENT = 30
"""Waits of a second after which a reader that brings nothing is told of as trouble."""


class OutOfRange(BrokerUnavailable):
    """The offset to read from is no longer in the log."""


class Batch(NamedTuple):
    """Records in order; `end` is the log's end where that was met behind them."""

    records: list[Record]
    end: int | None


class Bounds(NamedTuple):
    """Where one partition's log begins and ends, and the first offsets at or after wanted times."""

    partition: int
    low: int
    high: int
    since: int | None
    until: int | None


class Reader(Protocol):
    """
    Read one partition at a time, forwards; commits nothing.

    Raises, from `batch`:
        OutOfRange: The offset is no longer in the log.
        BrokerUnavailable: Later, maybe.
    """

    def begin(self, partition: int, offset: int) -> None:
        """Read *partition* from *offset* on."""

    def batch(self, most: int, wait: float) -> Batch:
        """Return the next records, waiting up to *wait* seconds for the first."""

    def close(self) -> None:
        """Close the client; never raises."""


class Ranges(Protocol):
    """What the broker knows of a topic. Raises NotReady, BrokerUnavailable."""

    def topic(self, topic: str) -> tuple[UUID, int]:
        """Return Kafka's id of *topic*, and its number of partitions."""

    def bounds(self, topic: str, count: int, since: datetime | None, until: datetime | None) -> list[Bounds]:
        """Return where each partition's log begins and ends, and the first offsets at or after the times."""

    def reader(self, topic: str) -> Reader:
        """Return a reader of *topic*; whoever takes it closes it."""


def batches(reader: Reader, partition: int, first: int, past: int) -> Iterator[list[Record]]:
    """
    Yield the records of *partition* from *first* to before *past*, in batches.

    Raises:
        OutOfRange, BrokerUnavailable: What was yielded was read.
    """
    if first >= past:
        return
    reader.begin(partition, first)
    silent = 0
    while True:
        batch = reader.batch(MOST, 1.0)
        records = [record for record in batch.records if record.offset < past]
        if records:
            yield records
        if len(records) < len(batch.records) or (records and records[-1].offset + 1 >= past):
            return
        if batch.end is not None and batch.end >= past:
            return
        silent = 0 if batch.records else silent + 1
        if silent >= SILENT:
            raise BrokerUnavailable(f"partition {partition} brings nothing for {SILENT} s; is the broker up?")
