"""A message: what the outbox stores and Kafka carries; its type; the names and order of its headers."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Protocol, runtime_checkable
from uuid import UUID

from packhorse.core.errors import InvalidMessage, PayloadTooLarge
from packhorse.core.naming import topic_name

DEFAULT_MAX_PAYLOAD_BYTES = 900 * 1024
MAX_TEXT = 512
"""Longest text in a column that becomes a header, in characters."""
MAX_HEADERS_BYTES = 16 * 1024
"""Longest JSON text of the free headers, in bytes of UTF-8."""

HEADER_COLUMNS: tuple[tuple[str, str], ...] = (
    ("id", "id"),
    ("type", "type"),
    ("schema-version", "schema_version"),
    ("traceparent", "traceparent"),
    ("tracestate", "tracestate"),
    ("correlation-id", "correlation_id"),
    ("causation-id", "causation_id"),
    ("origin", "origin"),
    ("actor", "actor"),
    ("tenant", "tenant"),
    ("expires-at", "expires_at"),
    ("headers", "headers"),
)
"""Header names in the order in which they stand on a record, each with the outbox column that it comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageType:
    """
    Say what a message class is on the wire.

    Attributes:
        type: Full name of the Avro record: namespace and name, e.g. `airline.FlightDeparted`.
        version: Version of the schema that the class was made from, from 1.
        namespace: First part of the topic's name; may have dots.
        aggregatetype: Last part of the topic's name, without a dot.
        schema: The Avro schema as JSON text, references resolved.
    """

    type: str
    version: int
    namespace: str
    aggregatetype: str
    schema: str = field(repr=False)

    @property
    def topic(self) -> str:
        """Return the topic that messages of this type go to."""
        return topic_name(self.namespace, self.aggregatetype)

    @property
    def subject(self) -> str:
        """Return the registry's subject: the topic and the record's name (the TopicRecordName rule)."""
        return f"{self.topic}-{self.type}"


@runtime_checkable
class TypedMessage(Protocol):
    """A message as application code sees it: a dataclass that `packhorse schemas generate` wrote."""

    __packhorse__: ClassVar[MessageType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """
    One message, as the outbox stores it.

    Attributes:
        id: Unique for all time; an inbox drops a second arrival by it.
        aggregatetype: Names the topic, together with the relay's namespace.
        aggregateid: The key: messages with one key keep the order of their commits. None: no order is kept.
        type: Full name of the Avro record.
        schema_version: Version of the writer's schema, as text.
        payload: Framed Avro; None is a tombstone.
        traceparent, tracestate: W3C trace context of the writer.
        correlation_id, causation_id: What this belongs to, and what it was caused by.
        origin: The application that wrote it.
        actor, tenant: Who caused it, and for whom.
        expires_at: After this no handler starts, aware.
        headers: All other headers, as one JSON object of text values.

    Raises:
        InvalidMessage: A text is too long, holds a NUL or what is no Unicode, or a required one is empty.
    """

    id: UUID
    aggregatetype: str
    aggregateid: str | None
    type: str
    schema_version: str
    payload: bytes | None
    traceparent: str | None = None
    tracestate: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    origin: str | None = None
    actor: str | None = None
    tenant: str | None = None
    expires_at: datetime | None = None
    headers: dict[str, str] | None = None

    def __post_init__(self) -> None:
        for name in _TEXTS:
            _check_text(name, getattr(self, name), required=name in _REQUIRED)
        if self.expires_at is not None and self.expires_at.tzinfo is None:
            raise InvalidMessage(
                f"expires_at {self.expires_at.isoformat()} has no time zone; pass an aware datetime"
            )


_TEXTS = (
    "aggregatetype",
    "aggregateid",
    "type",
    "schema_version",
    "traceparent",
    "tracestate",
    "correlation_id",
    "causation_id",
    "origin",
    "actor",
    "tenant",
)
_REQUIRED = frozenset({"aggregatetype", "type", "schema_version"})


def _check_text(name: str, value: object, *, required: bool) -> None:
    if value is None and not required:
        return
    if not isinstance(value, str):
        raise InvalidMessage(f"{name} is {type(value).__name__}, text is needed")
    if (required and not value) or "\0" in value or len(value) > MAX_TEXT:
        raise InvalidMessage(
            f"{name} of {len(value)} characters is not allowed: {'1' if required else '0'} to {MAX_TEXT}, without NUL"
        )
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidMessage(f"{name} holds half a surrogate pair, which no UTF-8 can carry") from None


def checked_payload(
    payload: bytes | None,
    *,
    limit: int,
    what: str = "payload",
    bound: str = " together with the topic's max.message.bytes",
) -> bytes | None:
    """
    Return *payload* when it is at most *limit* bytes long; None passes. *what* names it, *bound* what else limits it.

    Raises:
        PayloadTooLarge: Names the size and the limit.
    """
    if payload is not None and len(payload) > limit:
        raise PayloadTooLarge(
            f"{what} of {len(payload)} bytes, the limit is {limit}; send a reference to the data instead, "
            f"or raise max_payload_bytes{bound}"
        )
    return payload
