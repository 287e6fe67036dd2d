"""What a handler gets beside the message: who the message is, its transaction, and a way to write follow-ups."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from packhorse.core.ids import derived_id
from packhorse.core.logs import Log
from packhorse.core.message import TypedMessage
from packhorse.processor.record import Delivery, text_of

MessageClass = type[TypedMessage]

if TYPE_CHECKING:
    from packhorse.processor.postgres import AsyncConnection, Connection
    from packhorse.processor.sqlalchemy import AsyncSession, Session

    from packhorse.producer import Outgoing, Tombstone


class Resources(Protocol):
    """What the lane lends to the contexts of one transaction of `def` handlers."""

    @property
    def connection(self) -> Connection:
        """Return the connection that the transaction is on."""

    @property
    def session(self) -> Session:
        """Return a session on that connection, made when it is first asked for."""

    def emit(self, draft: Outgoing | Tombstone) -> None:
        """Write one follow-up in the transaction."""


class AsyncResources(Protocol):
    """What the lane lends to the contexts of one transaction of `async def` handlers."""

    @property
    def connection(self) -> AsyncConnection:
        """Return the connection that the transaction is on."""

    @property
    def session(self) -> AsyncSession:
        """Return a session on that connection, made when it is first asked for."""

    async def emit(self, draft: Outgoing | Tombstone) -> None:
        """Write one follow-up in the transaction."""


class _Meta:
    """Who the message in hand is; read from its headers when asked."""

    __slots__ = ("_delivery", "_group", "_ordinal", "attempt", "log", "touched")

    def __init__(self, delivery: Delivery, *, group: str, attempt: int, log: Log) -> None:
        self._delivery = delivery
        self._group = group
        self._ordinal = 0
        self.attempt = attempt
        self.log = log
        self.touched = False

    @property
    def id(self) -> UUID:
        """Return the message's id: unique for all time, the same at each delivery."""
        return self._delivery.id

    @property
    def type(self) -> str | None:
        """Return the full name of the message's Avro record, as its header has it."""
        return self._delivery.type

    @property
    def key(self) -> str | None:
        """Return the key as text; None when it has none or its bytes are no UTF-8 (see `raw_key`)."""
        try:
            return None if self.raw_key is None else self.raw_key.decode()
        except UnicodeDecodeError:
            return None

    @property
    def raw_key(self) -> bytes | None:
        """Return the key's bytes."""
        return self._delivery.record.key

    @property
    def topic(self) -> str:
        """Return the topic that the message first stood in."""
        return self._delivery.origin.topic

    @property
    def partition(self) -> int:
        """Return the partition that the message first stood in."""
        return self._delivery.origin.partition

    @property
    def offset(self) -> int:
        """Return the offset that the message first had."""
        return self._delivery.origin.offset

    @property
    def timestamp(self) -> datetime:
        """Return the record's timestamp, aware, UTC, to the millisecond."""
        return datetime.fromtimestamp(self._delivery.record.timestamp_ms / 1000, UTC)

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the writer's own headers (those of the one header `headers`); empty when they are no JSON of texts."""
        value = self._delivery.headers.get("headers")
        if value is None:
            return {}
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return {}
        if not isinstance(found, dict):
            return {}
        return {name: text for name, text in found.items() if isinstance(text, str)}

    @property
    def raw_headers(self) -> Mapping[str, bytes | None]:
        """Return all of the record's headers as they arrived; of equal names the last."""
        return self._delivery.headers

    @property
    def correlation_id(self) -> str | None:
        """Return what the message belongs to."""
        return self._text("correlation-id")

    @property
    def causation_id(self) -> str | None:
        """Return the id of what caused the message."""
        return self._text("causation-id")

    @property
    def tenant(self) -> str | None:
        """Return for whom the message is."""
        return self._text("tenant")

    @property
    def actor(self) -> str | None:
        """Return who caused the message."""
        return self._text("actor")

    def _text(self, header: str) -> str | None:
        return text_of(self._delivery.headers.get(header))

    def _follow_up(
        self,
        message: TypedMessage,
        key: str | None,
        headers: Mapping[str, str] | None,
        expires_at: datetime | None,
    ) -> Outgoing:
        from packhorse.producer import Outgoing

        return Outgoing(
            message=message,
            key=key,
            headers=headers,
            expires_at=expires_at,
            id=self._next_id(),
            correlation_id=self.correlation_id or str(self.id),
            causation_id=str(self.id),
            tenant=self.tenant,
            actor=self.actor,
        )

    def _tombstone(self, of: MessageClass, key: str) -> Tombstone:
        from packhorse.producer import Tombstone

        return Tombstone(
            of=of,
            key=key,
            id=self._next_id(),
            correlation_id=self.correlation_id or str(self.id),
            causation_id=str(self.id),
            tenant=self.tenant,
            actor=self.actor,
        )

    def _next_id(self) -> UUID:
        self.touched = True
        follow_up = derived_id(self.id, self._group, self._ordinal)
        self._ordinal += 1
        return follow_up


class Context(_Meta):
    """
    What a `def` handler gets beside the message.

    Attributes:
        attempt: Number of this run of the handler for this message, from 1.
        log: Writes log records with named fields; give it no payload and no key.
        touched: Whether the handler has asked for the transaction, so that a failure must roll it back.
    """

    __slots__ = ("_resources",)

    def __init__(
        self, delivery: Delivery, resources: Resources, *, group: str, attempt: int, log: Log
    ) -> None:
        super().__init__(delivery, group=group, attempt=attempt, log=log)
        self._resources = resources

    @property
    def connection(self) -> Connection:
        """
        Return the psycopg connection of the transaction that this message's inbox row is in.

        Savepoints (`with ctx.connection.transaction():`) are yours; commit, rollback and close are refused by name.
        """
        self.touched = True
        return self._resources.connection

    @property
    def session(self) -> Session:
        """
        Return a SQLAlchemy session on the same physical connection, in the same transaction.

        Its commit releases a savepoint; what is pending when the handler returns is flushed.
        """
        self.touched = True
        return self._resources.session

    def emit(
        self,
        message: TypedMessage,
        *,
        key: str | None,
        headers: Mapping[str, str] | None = None,
        expires_at: datetime | None = None,
    ) -> UUID:
        """
        Write a follow-up to the outbox, in the same transaction, and return its id.

        The id is derived from this message's id, the group and how many follow-ups came before it in this handler: what
        is made again has the same id and is a duplicate downstream. Causation is this message; correlation, tenant and
        actor are taken over.

        Raises:
            InvalidMessage, SchemaNotRegistered: As `Outbox.emit`; nothing is written.
        """
        draft = self._follow_up(message, key, headers, expires_at)
        self._resources.emit(draft)
        return draft.id or self.id

    def emit_tombstone(self, of: MessageClass, *, key: str) -> UUID:
        """Write a follow-up without payload, so that *key* is deleted from the topic of the class *of*; as `emit`."""
        draft = self._tombstone(of, key)
        self._resources.emit(draft)
        return draft.id or self.id


class AsyncContext(_Meta):
    """What an `async def` handler gets beside the message; attributes and promises are those of `Context`."""

    __slots__ = ("_resources",)

    def __init__(
        self, delivery: Delivery, resources: AsyncResources, *, group: str, attempt: int, log: Log
    ) -> None:
        super().__init__(delivery, group=group, attempt=attempt, log=log)
        self._resources = resources

    @property
    def connection(self) -> AsyncConnection:
        """Return the psycopg connection of the transaction, as `Context.connection`."""
        self.touched = True
        return self._resources.connection

    @property
    def session(self) -> AsyncSession:
        """Return a SQLAlchemy session on the same physical connection, as `Context.session`."""
        self.touched = True
        return self._resources.session

    async def emit(
        self,
        message: TypedMessage,
        *,
        key: str | None,
        headers: Mapping[str, str] | None = None,
        expires_at: datetime | None = None,
    ) -> UUID:
        """Write a follow-up, as `Context.emit`."""
        draft = self._follow_up(message, key, headers, expires_at)
        await self._resources.emit(draft)
        return draft.id or self.id

    async def emit_tombstone(self, of: MessageClass, *, key: str) -> UUID:
        """Write a follow-up without payload, as `Context.emit_tombstone`."""
        draft = self._tombstone(of, key)
        await self._resources.emit(draft)
        return draft.id or self.id
