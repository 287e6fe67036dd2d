"""A record as Kafka hands it over, and what its headers say; whatever they hold, reading them never fails."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple
from uuid import UUID
from zlib import crc32

from packhorse.core.ids import foreign_id, id_of
from packhorse.core.message import MAX_TEXT
from packhorse.core.telemetry import TraceContext

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

HeaderList = tuple[tuple[str, bytes | None], ...]

CARRIED = (
    "attempt",
    "first-failed-at",
    "due-at",
    "reason",
    "error",
    "source-topic",
    "source-topic-id",
    "source-partition",
    "source-offset",
    "group",
)
"""Headers that a copy has after those of the original, in this order, each once."""
WAKE = "wake"
"""The reason of a wake-up: a record in a tier that carries no message and says that a key's head may be finished."""


REPLAY_OF = "replay-of"
"""Header of a message that is done once more: the id that it had. Its own `id` is of the run and that one."""
REPLAY_HANDLER = "replay-handler"
"""Header of a message that a replay brings to a handler by name."""
ID_REUSED = b"id-reused"
"""Reason of a message whose id another one had: its copy is known by its place."""


class Record(NamedTuple):
    """One record of a topic, bytes as they arrived."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: HeaderList


made_record: Callable[[tuple[Any, ...]], Record] = partial(tuple.__new__, Record)
"""What `Record(…)` does, of one tuple and without a call in Python: of each record that is read one is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """
    One topic that is read.

    Attributes:
        topic: The topic.
        topic_id: Kafka's id of it: a topic that is made anew has another.
        source: The topic whose messages it carries: itself, or the one that a retry topic belongs to.
        tier: Name of the tier that it is; None for a source.
    """

    topic: str
    topic_id: UUID
    source: str
    tier: str | None = None

    @property
    def carries(self) -> bool:
        """Return whether the stream holds copies and not first deliveries."""
        return self.topic != self.source


class Origin(NamedTuple):
    """Where a message first stood."""

    topic: str
    topic_id: UUID
    partition: int
    offset: int


class Delivery(NamedTuple):
    """
    One record handed to this processor, and who it is.

    Attributes:
        record: The record.
        id: The header `id`; a record that brings none, or none that is a UUID, gets one from its origin.
        type: The header `type`, if it is usable.
        headers: Header values by name; of equal names the last wins.
        topic_id: Kafka's id of the topic that it was read from.
        copied: Where a copy says that the original stands; None when the record is it.
        attempt: The attempt that a copy is for; None for a first delivery.
    """

    record: Record
    id: UUID
    type: str | None
    headers: dict[str, bytes | None]
    topic_id: UUID
    copied: Origin | None
    attempt: int | None

    @property
    def origin(self) -> Origin:
        """Return where the original stands: the record itself, or what a copy says."""
        record = self.record
        return self.copied or Origin(record.topic, self.topic_id, record.partition, record.offset)

    @property
    def wakes(self) -> bool:
        """Return whether it is a wake-up, which carries no message: nothing runs for it, also when the inbox knows no row."""
        return self.attempt == 0 and self.headers.get("reason") == WAKE.encode()


_delivery: Callable[[tuple[Any, ...]], Delivery] = partial(tuple.__new__, Delivery)
"""What `Delivery(…)` does, without a call in Python."""


def delivery_of(record: Record, stream: Stream) -> Delivery:
    """Return what *record*, read from *stream*, says about itself."""
    headers = dict(record.headers)
    kind = text_of(headers.get("type"))
    return (
        copy_delivery(record, headers, kind, stream)
        if stream.carries
        else first_delivery(record, headers, kind, stream)
    )


def first_delivery(
    record: Record, headers: dict[str, bytes | None], kind: str | None, stream: Stream
) -> Delivery:
    """Return the delivery of *record*, whose headers and type are known, where it first stands."""
    message_id = id_of(headers.get("id"))
    if message_id is None:
        message_id = foreign_id(stream.topic_id, record.partition, record.offset)
    return _delivery((record, message_id, kind, headers, stream.topic_id, None, None))


def copy_delivery(
    record: Record, headers: dict[str, bytes | None], kind: str | None, stream: Stream
) -> Delivery:
    """Return the delivery of *record*, whose headers and type are known, as a copy in a topic of the group's."""
    message_id = id_of(headers.get("id"))
    copied, attempt = _origin_of(headers, stream), _number(headers.get("attempt"))
    if message_id is None or headers.get("reason") == ID_REUSED:
        origin = copied or Origin(stream.topic, stream.topic_id, record.partition, record.offset)
        message_id = foreign_id(origin.topic_id, origin.partition, origin.offset)
    return Delivery(record, message_id, kind, headers, stream.topic_id, copied, attempt)


def key_hash(key: bytes) -> str:
    """
    Return what stands for *key* in the tables: a key may be longer than an index entry, and personal.

    >>> key_hash(b"HA-LYA")
    '31d8260860dd2a9c22f98bd11954f2c7'
    """
    return blake2b(key, digest_size=16).hexdigest()


def digest_of(payload: bytes | None) -> str:
    """
    Return a short digest of *payload*, which tells two payloads of one id apart; of a tombstone a mark that no payload has.

    It guards against a producer's mistake, not against forgery: checksum and length, at a seventh of a hash's time.

    >>> digest_of(b""), digest_of(None)
    ('000000000', '0')
    """
    return "0" if payload is None else f"{crc32(payload):08x}{len(payload):x}"


def text_of(value: bytes | None) -> str | None:
    r"""
    Return a header's text; None when it is absent, empty, no UTF-8, longer than MAX_TEXT, or holds a NUL.

    >>> text_of(b"airline.FlightDeparted"), text_of(b""), text_of(b"\xff"), text_of(None)
    ('airline.FlightDeparted', None, None, None)
    """
    if not value:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return None if len(text) > MAX_TEXT or "\0" in text else text


def time_of_header(value: bytes | None) -> datetime | None:
    """
    Return the time that a header holds, aware, UTC; None when it holds none: an absurd `expires-at` ends no message.

    >>> time_of_header(b"2026-07-31T12:00:00.000000Z")
    datetime.datetime(2026, 7, 31, 12, 0, tzinfo=datetime.timezone.utc)
    >>> time_of_header(b"tomorrow") is None
    True
    """
    text = text_of(value)
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC) if at.tzinfo else None
    except (ValueError, OverflowError):
        return None


def trace_of(delivery: Delivery) -> TraceContext | None:
    """Return the writer's trace context; None when the headers hold none that is well-formed."""
    traceparent = text_of(delivery.headers.get("traceparent"))
    if traceparent is None or not _TRACEPARENT.fullmatch(traceparent):
        return None
    return TraceContext(traceparent=traceparent, tracestate=text_of(delivery.headers.get("tracestate")))


def original_headers(delivery: Delivery) -> HeaderList:
    """Return the headers that the message had where it first stood: a copy's own, which come last, are taken off."""
    headers = delivery.record.headers
    if delivery.attempt is None:
        return headers
    place = len(CARRIED)
    for at in range(len(headers) - 1, -1, -1):
        name = headers[at][0]
        if name not in CARRIED[:place]:
            return headers[: at + 1]
        place = CARRIED.index(name)
        if place == 0:
            return headers[:at]
    return headers


def replay_handler_of(delivery: Delivery) -> str | None:
    """Return the name of the handler that a replay brings *delivery* to; None when none brings it to a handler by name."""
    named = delivery.headers.get(REPLAY_HANDLER)
    return None if named is None or REPLAY_OF not in delivery.headers else text_of(named) or ""


def _origin_of(headers: dict[str, bytes | None], stream: Stream) -> Origin | None:
    topic_id = id_of(headers.get("source-topic-id"))
    partition, offset = _number(headers.get("source-partition")), _number(headers.get("source-offset"))
    if topic_id is None or partition is None or offset is None:
        return None
    return Origin(stream.source, topic_id, partition, offset)


def _number(value: bytes | None) -> int | None:
    if value is None or len(value) > 19 or not value.isdigit():
        return None
    return int(value)
