"""What a handler gets beside the message: who the message is, its transaction, and a way to write follow-ups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from packhorse.core.logs import Log
from packhorse.core.message import TypedMessage
from packhorse.processor.metadata import MessageClass, Metadata
from packhorse.processor.record import Delivery

if TYPE_CHECKING:
    from packhorse.processor.storing.pipelining.lent import AsyncPipeline, Pipeline
    from packhorse.processor.storing.postgres import AsyncConnection, Connection
    from packhorse.processor.storing.sqlalchemy import AsyncSession, Session
    from packhorse.producer import Outgoing, Tombstone


class Resources(Protocol):
    """What the lane lends to the contexts of one transaction of `def` handlers."""

    @property
    def connection(self) -> Connection:
        """Return the connection that the transaction is on."""

    @property
    def session(self) -> Session:
        """Return a session on that connection, made when it is first asked for."""

    @property
    def pipeline(self) -> Pipeline:
        """Return the queue of statements whose result is not read."""

    def emit(self, drafts: list[Outgoing | Tombstone]) -> None:
        """Write follow-ups in the transaction, in their order."""


class AsyncResources(Protocol):
    """What the lane lends to the contexts of one transaction of `async def` handlers."""

    @property
    def connection(self) -> AsyncConnection:
        """Return the connection that the transaction is on."""

    @property
    def session(self) -> AsyncSession:
        """Return a session on that connection, made when it is first asked for."""

    @property
    def pipeline(self) -> AsyncPipeline:
        """Return the queue of statements whose result is not read."""

    async def emit(self, drafts: list[Outgoing | Tombstone]) -> None:
        """Write follow-ups in the transaction, in their order."""


class Context(Metadata):
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

    @property
    def pipeline(self) -> Pipeline:
        """
        Return the queue of statements whose result is not read, which costs a tenth of a statement's round trip.

            ctx.pipeline.execute("UPDATE account SET balance = balance + %s WHERE name = %s", (message.amount, message.account))

        Statements keep their order, also among those on `connection` and `session`. A failing handler has nothing of it to
        undo; a statement that the database refuses fails the message that queued it.
        """
        return self._resources.pipeline

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
        self._resources.emit([draft])
        return draft.id or self.id

    def emit_tombstone(self, of: MessageClass, *, key: str) -> UUID:
        """Write a follow-up without payload, so that *key* is deleted from the topic of the class *of*; as `emit`."""
        draft = self._tombstone(of, key)
        self._resources.emit([draft])
        return draft.id or self.id

    def emit_many(self, messages: Iterable[tuple[TypedMessage, str | None]]) -> list[UUID]:
        """Write follow-ups, given as (message, key), in their order and in one round trip; otherwise as `emit`."""
        drafts = [self._follow_up(message, key, None, None) for message, key in messages]
        if drafts:
            self._resources.emit([*drafts])
        return [draft.id or self.id for draft in drafts]


class AsyncContext(Metadata):
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

    @property
    def pipeline(self) -> AsyncPipeline:
        """Return the queue of statements whose result is not read, as `Context.pipeline`."""
        return self._resources.pipeline

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
        await self._resources.emit([draft])
        return draft.id or self.id

    async def emit_tombstone(self, of: MessageClass, *, key: str) -> UUID:
        """Write a follow-up without payload, as `Context.emit_tombstone`."""
        draft = self._tombstone(of, key)
        await self._resources.emit([draft])
        return draft.id or self.id

    async def emit_many(self, messages: Iterable[tuple[TypedMessage, str | None]]) -> list[UUID]:
        """Write follow-ups, as `Context.emit_many`."""
        drafts = [self._follow_up(message, key, None, None) for message, key in messages]
        if drafts:
            await self._resources.emit([*drafts])
        return [draft.id or self.id for draft in drafts]
