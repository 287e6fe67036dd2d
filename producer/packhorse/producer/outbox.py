"""The outbox: write messages and jobs in the caller's own transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Unpack
from uuid import UUID

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK, Chance, Clock
from packhorse.core.errors import SettingsError
from packhorse.core.message import DEFAULT_MAX_PAYLOAD_BYTES, MAX_TEXT, TypedMessage
from packhorse.core.telemetry import NO_TELEMETRY, Telemetry
from packhorse.producer.connections import async_driver, sync_driver
from packhorse.producer.jobs.calls import JobCalls
from packhorse.producer.jobs.sql import job_queries_for
from packhorse.producer.jobs.submitting import Submitter
from packhorse.producer.rows import Draft, Extra, Outgoing, Tombstone, drafted
from packhorse.producer.schema_ids import SchemaIds
from packhorse.producer.slots import slots_of
from packhorse.producer.sql import queries_for
from packhorse.producer.writing import Writer

if TYPE_CHECKING:
    from packhorse.producer.connections import Async, Sync


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbox(JobCalls):
    """
    Write messages and jobs in the caller's own transaction: committed with it, gone with its rollback, to a savepoint as well.

    Make one and share it between threads and tasks; all it remembers are the ids of schemas. It takes psycopg's
    connections and SQLAlchemy's connections and sessions, begins, commits and repeats nothing, and needs neither
    registry nor broker. `emit` is for sync connections, `aemit` for async ones, and so on. Jobs are submitted and cancelled
    in the same way.

    **Order.** Messages of one key written in one transaction arrive in the order of the calls. Between transactions,
    the first arrivals of a key stand in commit order if each writer holds a lock on the key *before* it emits: its own
    row lock (an UPDATE or SELECT … FOR UPDATE of the entity's row; an ORM session is flushed first, so a changed object
    counts), or `lock_key=True`. Writers that do neither race: both orders are possible. A key of None has no order.

    Attributes:
        origin: Name of the application, in the header `origin`.
        schema: Database schema of the tables.
        max_payload_bytes: Largest payload, below the topic's `max.message.bytes`; and largest input of a job, in its row.
        telemetry: Takes spans and counts; its current span goes into the message.
        clock, chance: Where times and ids come from.

    Raises:
        SettingsError: An argument is not allowed.
    """

    origin: str | None = None
    schema: str = "packhorse"
    max_payload_bytes: int = DEFAULT_MAX_PAYLOAD_BYTES
    telemetry: Telemetry = NO_TELEMETRY
    clock: Clock = SYSTEM_CLOCK
    chance: Chance = SYSTEM_CHANCE
    _writer: Writer = field(init=False, repr=False, compare=False)
    _submitter: Submitter = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.max_payload_bytes <= 0:
            raise SettingsError(f"max_payload_bytes={self.max_payload_bytes} is not allowed: 1 or more")
        if self.origin is not None and not 0 < len(self.origin) <= MAX_TEXT:
            raise SettingsError(f"origin of {len(self.origin)} characters is not allowed: 1 to {MAX_TEXT}")
        queries = queries_for(self.schema)
        writer = Writer(
            origin=self.origin,
            max_payload_bytes=self.max_payload_bytes,
            telemetry=self.telemetry,
            clock=self.clock,
            chance=self.chance,
            queries=queries,
            schema_ids=SchemaIds(schema=self.schema, queries=queries),
        )
        # the way that dataclasses have for a frozen field made here
        object.__setattr__(self, "_writer", writer)
        submitter = Submitter(writer=writer, queries=job_queries_for(self.schema))
        object.__setattr__(self, "_submitter", submitter)

    def emit(
        self,
        connection: Sync,
        message: TypedMessage,
        *,
        key: str | None,
        lock_key: bool = False,
        **extra: Unpack[Extra],
    ) -> UUID:
        """
        Write *message* in the transaction of *connection* and return its id.

        The value is encoded, and everything checked, before a statement is sent: after an InvalidMessage or
        SchemaNotRegistered nothing is written and the transaction is as usable as before. One round trip; the first
        message of a type takes one or two more. What the driver raises for its own trouble (a lost connection, a
        deadlock) passes through as it is.

        Args:
            connection: A psycopg Connection, or a SQLAlchemy Connection or Session (which is flushed first).
            message: An object of a class that `packhorse schemas generate` wrote.
            key: Messages with one key keep their order (see the class); None: no order is kept.
            lock_key: Lock the key until the transaction ends, in a statement of its own before the row is written. The
                first call of a transaction that locks waits for its keys; a later one only tries.
            extra: headers, correlation_id, causation_id, actor, tenant, expires_at, id: see `Extra`.

        Raises:
            ValueMismatch: A value does not fit its schema; names the field.
            PayloadTooLarge, InvalidMessage: Something else about the message breaks a rule.
            SchemaNotRegistered: The database does not know the schema's id yet.
            KeysLocked: Another transaction holds the key, and this one has locked keys before.
            UsageError: The connection is of the wrong kind, or would commit at once.
            NotReady: A table or a right is missing.
        """
        draft = Outgoing(message=message, key=key, **extra)
        return self._write(connection, [draft], lock_key=lock_key)[0]

    async def aemit(
        self,
        connection: Async,
        message: TypedMessage,
        *,
        key: str | None,
        lock_key: bool = False,
        **extra: Unpack[Extra],
    ) -> UUID:
        """Write *message* in the transaction of an async *connection*; promises and raises what `emit` does."""
        draft = Outgoing(message=message, key=key, **extra)
        return (await self._awrite(connection, [draft], lock_key=lock_key))[0]

    def emit_many(
        self,
        connection: Sync,
        messages: Iterable[tuple[TypedMessage, str | None] | Draft],
        *,
        lock_key: bool = False,
    ) -> list[UUID]:
        """
        Write *messages*, all or none, in their order, and return their ids; one round trip, as a rule.

        Each is a (message, key) pair, an `Outgoing` or a `Tombstone`. All are encoded before the first is sent. With
        *lock_key* all their keys are locked at once, in one more round trip. Raises what `emit` does.
        """
        drafts = [drafted(message) for message in messages]
        return self._write(connection, drafts, lock_key=lock_key) if drafts else []

    async def aemit_many(
        self,
        connection: Async,
        messages: Iterable[tuple[TypedMessage, str | None] | Draft],
        *,
        lock_key: bool = False,
    ) -> list[UUID]:
        """Write *messages* on an async *connection*; promises and raises what `emit_many` does."""
        drafts = [drafted(message) for message in messages]
        return await self._awrite(connection, drafts, lock_key=lock_key) if drafts else []

    def emit_tombstone(
        self,
        connection: Sync,
        of: type[TypedMessage],
        *,
        key: str,
        lock_key: bool = False,
        **extra: Unpack[Extra],
    ) -> UUID:
        """Write a message without payload, so that *key* is deleted from the topic of the class *of*; otherwise as `emit`."""
        draft = Tombstone(of=of, key=key, **extra)
        return self._write(connection, [draft], lock_key=lock_key)[0]

    async def aemit_tombstone(
        self,
        connection: Async,
        of: type[TypedMessage],
        *,
        key: str,
        lock_key: bool = False,
        **extra: Unpack[Extra],
    ) -> UUID:
        """Write a tombstone on an async *connection*; promises and raises what `emit_tombstone` does."""
        draft = Tombstone(of=of, key=key, **extra)
        return (await self._awrite(connection, [draft], lock_key=lock_key))[0]

    def lock_keys(self, connection: Sync, keys: Iterable[str | None]) -> None:
        """
        Lock *keys* until the transaction ends, so that first arrivals of each stand in commit order.

        Call it once, with all keys, before the transaction changes anything: locks are taken in one order, so two such
        calls never deadlock. Called again in the same transaction it only tries. Keys share 1,024 slots, so a
        transaction never holds more locks than that; a rollback to a savepoint gives up what was taken after it.

        Raises:
            KeysLocked: Another transaction holds a key, and this one has locked keys before: roll back and try again.
            UsageError: As `emit`; or *keys* is no list of texts.
        """
        from packhorse.producer import postgres

        if slots := slots_of(keys):
            driver = sync_driver(connection)
            postgres.run(driver, self._writer.locked(postgres.database_of(driver), slots))

    async def alock_keys(self, connection: Async, keys: Iterable[str | None]) -> None:
        """Lock *keys* on an async *connection*; promises and raises what `lock_keys` does."""
        from packhorse.producer import postgres

        if slots := slots_of(keys):
            driver = await async_driver(connection)
            await postgres.arun(driver, self._writer.locked(postgres.database_of(driver), slots))

    def _write(self, connection: Sync, drafts: Sequence[Draft], *, lock_key: bool) -> list[UUID]:
        from packhorse.producer import postgres

        with self._writer.span(drafts):
            driver = sync_driver(connection)
            return postgres.run(
                driver, self._writer.written(postgres.database_of(driver), drafts, lock_key=lock_key)
            )

    async def _awrite(self, connection: Async, drafts: Sequence[Draft], *, lock_key: bool) -> list[UUID]:
        from packhorse.producer import postgres

        with self._writer.span(drafts):
            driver = await async_driver(connection)
            steps = self._writer.written(postgres.database_of(driver), drafts, lock_key=lock_key)
            return await postgres.arun(driver, steps)
