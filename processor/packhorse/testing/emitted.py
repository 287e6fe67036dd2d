"""See what the current transaction has written to the outbox, decoded as a consumer would decode it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload
from uuid import UUID

from packhorse.core.errors import UnknownSchema
from packhorse.core.message import TypedMessage
from packhorse.core.naming import checked_identifier
from packhorse.producer import postgres
from packhorse.producer.connections import async_driver, sync_driver
from packhorse.producer.statements import Answer, Statement, Steps
from packhorse.schemas.binding import message_type
from packhorse.schemas.codec import classes_in_use
from packhorse.schemas.decode import Decoder
from packhorse.testing.sql import EMITTED, SCHEMAS

if TYPE_CHECKING:
    from packhorse.producer.connections import Async, Sync

M = TypeVar("M", bound=TypedMessage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted(Generic[M]):
    """
    One message as it stands in the outbox.

    Attributes:
        id: Its id.
        of: Its class.
        key: Its key; None: no order is kept.
        message: Its values; None is a tombstone.
        headers: The further headers.
        correlation_id, causation_id, origin, actor, tenant, expires_at, traceparent: As their headers have them.
        payload: The bytes as they will stand on the topic.
    """

    id: UUID
    of: type[M]
    key: str | None
    message: M | None
    headers: Mapping[str, str] = field(default_factory=dict)
    correlation_id: str | None = None
    causation_id: str | None = None
    origin: str | None = None
    actor: str | None = None
    tenant: str | None = None
    expires_at: str | None = None
    traceparent: str | None = None
    payload: bytes | None = field(repr=False, default=None)


@overload
def emitted(connection: Sync, /, *, database_schema: str = "packhorse") -> list[Emitted[Any]]: ...
@overload
def emitted(connection: Sync, of: type[M], /, *, database_schema: str = "packhorse") -> list[Emitted[M]]: ...
def emitted(
    connection: Sync, of: type[M] | None = None, /, *, database_schema: str = "packhorse"
) -> list[Emitted[Any]]:
    """
    Return what the open transaction of *connection* has emitted so far, in order; with *of*, messages of that class alone.

    Jobs are found by `submitted`. Needs the right to SELECT on the outbox. A session is flushed first.

    Raises:
        LookupError: A row is of a class that this process has never used; pass the class.
    """
    return postgres.run(sync_driver(connection), _found(of, database_schema))


@overload
async def aemitted(connection: Async, /, *, database_schema: str = "packhorse") -> list[Emitted[Any]]: ...
@overload
async def aemitted(
    connection: Async, of: type[M], /, *, database_schema: str = "packhorse"
) -> list[Emitted[M]]: ...
async def aemitted(
    connection: Async, of: type[M] | None = None, /, *, database_schema: str = "packhorse"
) -> list[Emitted[Any]]:
    """Return what an async *connection* has emitted; promises and raises what `emitted` does."""
    return await postgres.arun(await async_driver(connection), _found(of, database_schema))


def _found(of: type[M] | None, database_schema: str) -> Steps[list[Emitted[Any]]]:
    checked_identifier(database_schema, what="database schema")
    rows = yield Statement(EMITTED.format(schema=database_schema).encode(), (), returns=True)
    if not rows:
        return []
    schemas = yield Statement(SCHEMAS.format(schema=database_schema).encode(), (), returns=True)
    decoder = Decoder(Table(dict(cast("Sequence[tuple[int, str]]", schemas))))
    return decoded(rows, decoder, of)


def decoded(rows: Answer, decoder: Decoder, of: type[M] | None) -> list[Emitted[Any]]:
    """Return the *rows* of `sql.EMITTED` as objects; with *of*, those of its type alone."""
    wanted = message_type(of).type if of else None
    return [_decoded(row, decoder, of) for row in rows if wanted in {None, row[3]}]


def _decoded(row: tuple[Any, ...], decoder: Decoder, of: type[M] | None) -> Emitted[Any]:
    cls = of or class_of(row[3], row[4])
    payload = None if row[5] is None else bytes(row[5])
    return Emitted(
        id=row[0],
        of=cls,
        key=row[2],
        message=None if payload is None else decoder.decode(payload, cls),
        payload=payload,
        traceparent=row[6],
        correlation_id=row[7],
        causation_id=row[8],
        origin=row[9],
        actor=row[10],
        tenant=row[11],
        expires_at=row[12],
        headers=json.loads(row[13]) if row[13] else {},
    )


def class_of(type_name: str, version: str) -> type[TypedMessage]:
    """Return the class of a type and version that this process has used; raise LookupError where it has used none."""
    for cls in reversed(classes_in_use()):
        kind = message_type(cls)
        if (kind.type, str(kind.version)) == (type_name, version):
            return cast("type[TypedMessage]", cls)
    raise LookupError(
        f"{type_name} version {version} was written, and no class of it was used here: pass the class"
    )


class Table:
    """Be the schema source of a decoder from rows that were read before."""

    def __init__(self, schemas: Mapping[int, str]) -> None:
        self._schemas = schemas

    def schema_of(self, schema_id: int) -> str:
        if schema_id not in self._schemas:
            raise UnknownSchema(f"schema id {schema_id} is not in the table schema_version")
        return self._schemas[schema_id]
