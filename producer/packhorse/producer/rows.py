"""From what the application hands over to rows of the outbox, without any I/O."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypedDict
from uuid import UUID

from packhorse.core.errors import InvalidMessage, UsageError
from packhorse.core.message import (
    MAX_HEADERS_BYTES,
    MAX_TEXT,
    Message,
    MessageType,
    TypedMessage,
    checked_payload,
)
from packhorse.core.telemetry import TraceContext
from packhorse.producer.context import MessageContext
from packhorse.schemas.codec import encode_message


class Extra(TypedDict, total=False):
    """
    What may be said of a message beside its values and key.

    Attributes:
        headers: Further headers, text to text.
        correlation_id, causation_id, actor, tenant: Win over the current `message_context`.
        expires_at: After this no handler starts; aware.
        id: The message's id, to be unique for all time; drawn when it is not given.
    """

    headers: Mapping[str, str] | None
    correlation_id: str | None
    causation_id: str | None
    actor: str | None
    tenant: str | None
    expires_at: datetime | None
    id: UUID | None


Row = tuple[Any, ...]
"""The values of one outbox row, in the order of `sql.COLUMNS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """
    One message to write, with all that can be said about it; `emit_many` takes them, mixed with (message, key) pairs.

    Attributes:
        message: An object of a class that `packhorse schemas generate` wrote.
        key: Messages with one key keep their order; None: no order is kept.
        headers, correlation_id, causation_id, actor, tenant, expires_at, id: As in `Extra`.
    """

    message: TypedMessage
    key: str | None
    headers: Mapping[str, str] | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    actor: str | None = None
    tenant: str | None = None
    expires_at: datetime | None = None
    id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """
    One deletion of a key to write: a message without payload.

    Attributes:
        of: The class whose type and topic the tombstone has.
        key: The key that is deleted.
        headers, correlation_id, causation_id, actor, tenant, expires_at, id: As in `Extra`.
    """

    of: type[TypedMessage]
    key: str
    headers: Mapping[str, str] | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    actor: str | None = None
    tenant: str | None = None
    expires_at: datetime | None = None
    id: UUID | None = None


Draft = Outgoing | Tombstone


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What all rows of one call have in common."""

    origin: str | None
    context: MessageContext
    trace: TraceContext | None
    max_payload_bytes: int


def drafted(item: Draft | tuple[TypedMessage, str | None]) -> Draft:
    """
    Return *item* of an `emit_many` as a draft.

    Raises:
        UsageError: It is neither a draft nor a (message, key) pair.
    """
    if isinstance(item, Outgoing | Tombstone):
        return item
    if isinstance(item, tuple) and len(item) == 2:
        return Outgoing(message=item[0], key=item[1])
    raise UsageError(
        f"emit_many was given {type(item).__name__}; allowed are (message, key), Outgoing and Tombstone"
    )


def kind_of(draft: Draft) -> MessageType:
    """
    Return the type of *draft* on the wire.

    Raises:
        UsageError: What was handed over is no generated message, or a class where an object is needed, or the reverse.
    """
    given: object = draft.message if isinstance(draft, Outgoing) else draft.of
    is_class = isinstance(given, type)
    name = given.__name__ if isinstance(given, type) else type(given).__name__
    kind = getattr(given, "__packhorse__", None)
    if not isinstance(kind, MessageType):
        raise UsageError(f"{name} is no message; pass one of a class that `packhorse schemas generate` wrote")
    if isinstance(draft, Outgoing) and is_class:
        raise UsageError(f"{name} is the class; pass an object of it, or use emit_tombstone to delete a key")
    if isinstance(draft, Tombstone) and not is_class:
        raise UsageError(f"a tombstone has no values; pass the class {name}, not an object of it")
    return kind


def row_of(draft: Draft, schema_id: int | None, message_id: UUID, stamp: Stamp) -> Row:
    """
    Return the outbox row of *draft*; *schema_id* is None for a tombstone.

    Raises:
        InvalidMessage: Key, headers, id or another text breaks its rule; ValueMismatch and PayloadTooLarge for the values.
    """
    kind = kind_of(draft)
    _check_key(draft)
    payload = None
    if isinstance(draft, Outgoing) and schema_id is not None:
        payload = checked_payload(encode_message(draft.message, schema_id), limit=stamp.max_payload_bytes)
    context, trace = stamp.context, stamp.trace
    message = Message(
        id=checked_id(message_id),
        aggregatetype=kind.aggregatetype,
        aggregateid=draft.key,
        type=kind.type,
        schema_version=str(kind.version),
        payload=payload,
        traceparent=trace.traceparent if trace else None,
        tracestate=tracestate_of(trace),
        correlation_id=first_of(draft.correlation_id, context.correlation_id),
        causation_id=first_of(draft.causation_id, context.causation_id),
        origin=stamp.origin,
        actor=first_of(draft.actor, context.actor),
        tenant=first_of(draft.tenant, context.tenant),
    )
    return (
        message.id,
        message.aggregatetype,
        message.aggregateid,
        message.type,
        message.schema_version,
        message.payload,
        message.traceparent,
        message.tracestate,
        message.correlation_id,
        message.causation_id,
        message.origin,
        message.actor,
        message.tenant,
        expiry_text(draft.expires_at),
        headers_text(draft.headers),
    )


def expiry_text(expires_at: datetime | None) -> str | None:
    """
    Return a time as its header has it: ISO 8601, UTC, microseconds, Z.

    >>> expiry_text(datetime(2026, 7, 31, 12, 0, tzinfo=UTC))
    '2026-07-31T12:00:00.000000Z'

    Raises:
        InvalidMessage: It is no datetime, has no time zone, or falls out of the calendar in UTC.
    """
    return time_text(utc_of(expires_at, what="expires_at"))


def utc_of(given: datetime | None, *, what: str) -> datetime | None:
    """
    Return a time in UTC; *what* names it in errors.

    Raises:
        InvalidMessage: It is no datetime, has no time zone, or falls out of the calendar in UTC.
    """
    if given is None:
        return None
    if not isinstance(given, datetime):
        raise InvalidMessage(f"{what} is {type(given).__name__}; pass an aware datetime")
    if given.tzinfo is None:
        raise InvalidMessage(
            f"{what} {given.isoformat()} has no time zone; pass an aware datetime, e.g. datetime.now(UTC) + …"
        )
    try:
        return given.astimezone(UTC)
    except OverflowError:
        raise InvalidMessage(f"{what} {given.isoformat()} is outside of the years 1 to 9999 in UTC") from None


def time_text(utc: datetime | None) -> str | None:
    """Return a time in UTC as headers have it."""
    return None if utc is None else utc.isoformat(timespec="microseconds").replace("+00:00", "Z")


def headers_text(headers: Mapping[str, str] | None) -> str | None:
    """
    Return the further headers as JSON, spelled as Postgres prints it; None for none.

    Raises:
        InvalidMessage: A name or value is no text or holds a NUL, or all together is over MAX_HEADERS_BYTES.
    """
    if not headers:
        return None
    if not isinstance(headers, Mapping):
        raise InvalidMessage(f"headers is {type(headers).__name__}; pass a mapping of text to text")
    for name, value in headers.items():
        for what, text in ((f"name {name!r} of a header", name), (f"header {name!r}", value)):
            if not isinstance(text, str):
                raise InvalidMessage(f"{what} is {type(text).__name__}; names and values are text")
        if not name or "\0" in name or "\0" in value:
            raise InvalidMessage(
                f"header {name!r} is not allowed: a name is not empty, and neither holds a NUL"
            )
    text = json.dumps(dict(headers), ensure_ascii=False)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidMessage("headers hold half a surrogate pair, which no UTF-8 can carry") from None
    if size > MAX_HEADERS_BYTES:
        raise InvalidMessage(
            f"headers of {size} bytes as JSON, the limit is {MAX_HEADERS_BYTES}; put data into the payload"
        )
    return text


def _check_key(draft: Draft) -> None:
    if draft.key is None and isinstance(draft, Outgoing):
        return
    if not isinstance(draft.key, str):
        raise InvalidMessage(f"key is {type(draft.key).__name__}; pass text, e.g. str(key)")
    if not draft.key and isinstance(draft, Tombstone):
        raise InvalidMessage("a tombstone needs the key that it deletes; it is empty")


def checked_id(message_id: UUID) -> UUID:
    """Return *message_id* when it is an id; raise InvalidMessage otherwise."""
    if not isinstance(message_id, UUID):
        raise InvalidMessage(f"id is {type(message_id).__name__}; pass a uuid.UUID")
    return message_id


def tracestate_of(trace: TraceContext | None) -> str | None:
    """Return what *trace* has for the column `tracestate`."""
    # too long a list of other vendors' must not fail a business transaction; W3C lets it go
    return trace.tracestate if trace and trace.tracestate and len(trace.tracestate) <= MAX_TEXT else None


def first_of(given: str | None, inherited: str | None) -> str | None:
    """Return what the call says, or else what the block around it says."""
    return inherited if given is None else given
