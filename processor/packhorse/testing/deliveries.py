"""A message as a processor would be handed it, made in memory: encoded, with its headers, and decoded again."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.errors import UsageError
from packhorse.core.message import DEFAULT_MAX_PAYLOAD_BYTES, HEADER_COLUMNS, MessageType, TypedMessage
from packhorse.processor import Processor
from packhorse.processor.handlers import Handler
from packhorse.processor.record import Delivery, Record, Stream, delivery_of
from packhorse.producer import MessageContext, Outgoing, Tombstone
from packhorse.producer.rows import Draft, Row, Stamp, kind_of, row_of
from packhorse.producer.sql import COLUMNS
from packhorse.schemas.decode import Decoder
from packhorse.testing.emitted import Emitted, Table, decoded
from packhorse.testing.registration import schema_id_for_tests

TOPIC_ID = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A delivery, the handler that takes it, and the message as the handler sees it (None for a tombstone)."""

    delivery: Delivery
    handler: Handler
    message: TypedMessage | None

    def arguments(self, context: object) -> tuple[object, ...]:
        """Return what the handler is called with."""
        return (context,) if self.handler.tombstones else (self.message, context)


def prepared(app: Processor, given: TypedMessage | Draft, key: str | None) -> Prepared:
    """
    Return *given* as the processor *app* would be handed it.

    Raises:
        UsageError: No handler takes it, or a key is given twice.
        InvalidMessage: It could not be written.
        Undecodable: The handler's class can't be read from it.
    """
    draft = _draft(given, key)
    kind, tombstone = kind_of(draft), isinstance(draft, Tombstone)
    handler = app.handler_of(kind.type, tombstone=tombstone)
    if handler is None:
        what = "tombstones of " if tombstone else ""
        known = ", ".join(sorted(one.name for one in app.handlers.values())) or "none"
        raise UsageError(f"group {app.group!r} has no handler for {what}{kind.type}; it has {known}")
    row = memory_row(draft, origin=None)
    message = None if tombstone else decoder_for(kind).decode(row[COLUMNS.index("payload")], handler.message)
    return Prepared(delivery=_delivery(row, kind), handler=handler, message=message)


def memory_row(draft: Draft, *, origin: str | None) -> Row:
    """Return the outbox row that *draft* would have, with the schema id for tests."""
    stamp = Stamp(
        origin=origin, context=MessageContext(), trace=None, max_payload_bytes=DEFAULT_MAX_PAYLOAD_BYTES
    )
    message_id = draft.id or SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now())
    return row_of(draft, schema_id_for_tests(kind_of(draft)), message_id, stamp)


def memory_emitted(draft: Draft, *, origin: str) -> Emitted[Any]:
    """Return *draft* as it would be seen in the outbox."""
    values = dict(zip(COLUMNS, memory_row(draft, origin=origin), strict=True))
    del values["tracestate"]  # what sql.EMITTED has not
    of = draft.of if isinstance(draft, Tombstone) else type(draft.message)
    return decoded([tuple(values.values())], decoder_for(kind_of(draft)), of)[0]


def decoder_for(kind: MessageType) -> Decoder:
    """Return a decoder that knows the one schema."""
    return Decoder(Table({schema_id_for_tests(kind): kind.schema}))


def _draft(given: TypedMessage | Draft, key: str | None) -> Draft:
    if isinstance(given, Outgoing | Tombstone):
        if key is not None:
            raise UsageError(f"the key stands in the {type(given).__name__}; leave key= out")
        return given
    return Outgoing(message=given, key=key)


def _delivery(row: Row, kind: MessageType) -> Delivery:
    values = dict(zip(COLUMNS, row, strict=True))
    headers = [
        (name, str(values[column]).encode()) for name, column in HEADER_COLUMNS if values[column] is not None
    ]
    key = values["aggregateid"]
    record = Record(
        topic=kind.topic,
        partition=0,
        offset=0,
        leader_epoch=None,
        timestamp_ms=_milliseconds(SYSTEM_CLOCK.now()),
        key=None if key is None else key.encode(),
        value=values["payload"],
        headers=tuple(headers),
    )
    return delivery_of(record, Stream(topic=kind.topic, topic_id=TOPIC_ID, source=kind.topic))


def _milliseconds(at: datetime) -> int:
    return int(at.astimezone(UTC).timestamp() * 1000)
