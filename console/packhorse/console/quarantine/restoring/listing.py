"""List what of a key stands behind a message in its topic: one bounded read of one partition, forwards; commits nothing."""

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from packhorse.console.replaying.reading import OutOfRange, Ranges, Reader
from packhorse.core.clock import Clock
from packhorse.core.errors import InfrastructureError, NotReady
from packhorse.core.ids import foreign_id, id_of
from packhorse.core.text import counted
from packhorse.processor.record import Record

MOST = 200
"""Later messages that are listed."""
_BATCH = 500


class Listed(NamedTuple):
    """Ids and offsets of later messages of the key; `whole`: these are all."""

    found: list[tuple[UUID, int]]
    whole: bool
    said: str


class Bound(NamedTuple):
    """How far one read goes: records, and seconds."""

    records: int
    seconds: float


def later_of(
    ranges: Callable[[], Ranges] | None,
    *,
    topic: str,
    topic_id: UUID,
    partition: int,
    offset: int,
    key: bytes | None,
    bound: Bound,
    clock: Clock,
) -> Listed:
    """Return the messages of *key* behind *offset*. Never raises for the broker's sake: then nothing is listed, and it says so."""
    if ranges is None:
        return Listed([], False, "not listed: PACKHORSE_KAFKA_BOOTSTRAP_SERVERS is not set")
    try:
        broker = ranges()
        found_id, _ = broker.topic(topic)
        if found_id != topic_id:
            return Listed([], False, f"not listed: topic {topic} was made anew since")
        reader = broker.reader(topic)
    except (InfrastructureError, NotReady) as error:
        return Listed([], False, f"not listed: {error}")
    try:
        reader.begin(partition, offset + 1)
        return _read(reader, topic_id, key, bound, clock)
    except OutOfRange:
        return Listed([], False, "not listed: the log no longer holds what stood behind it")
    except InfrastructureError as error:
        return Listed([], False, f"not listed: {error}")
    finally:
        reader.close()


def _read(reader: Reader, topic_id: UUID, key: bytes | None, bound: Bound, clock: Clock) -> Listed:
    found: list[tuple[UUID, int]] = []
    read, deadline = 0, clock.monotonic() + bound.seconds
    while read < bound.records and clock.monotonic() < deadline:
        batch = reader.batch(min(_BATCH, bound.records - read), 0.2)
        read += len(batch.records)
        same = (record for record in batch.records if record.key == key)
        found.extend((_id_of(record, topic_id), record.offset) for record in same)
        if len(found) > MOST:
            return Listed(found[:MOST], False, f"the first {MOST} of its key; there are more")
        if batch.end is not None:
            return Listed(
                found,
                True,
                f"all of its key up to the end of the log: {_share(len(found), read)}",
            )
    return Listed(
        found, False, f"only the next {counted(read, 'record')} read; more of its key may stand behind them"
    )


def _id_of(record: Record, topic_id: UUID) -> UUID:
    named = dict(record.headers).get("id")
    return id_of(named) or foreign_id(topic_id, record.partition, record.offset)


def _share(found: int, read: int) -> str:
    """
    Return how many of the records that were read are of the key.

    >>> _share(0, 0), _share(0, 1), _share(2, 5)
    ('none', 'none of 1 record', '2 of 5 records')
    """
    return f"{found or 'none'} of {counted(read, 'record')}" if read else "none"
