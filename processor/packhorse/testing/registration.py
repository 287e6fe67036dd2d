"""Let a test's database know schemas without a registry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from packhorse.core.message import MessageType, TypedMessage
from packhorse.core.naming import checked_identifier
from packhorse.producer import postgres
from packhorse.producer.connections import async_driver, sync_driver
from packhorse.producer.jobs.messages import JobReference
from packhorse.producer.statements import Statement, Steps
from packhorse.schemas.binding import message_type
from packhorse.schemas.text import fingerprint
from packhorse.testing.sql import REGISTER

if TYPE_CHECKING:
    from packhorse.producer.connections import Async, Sync


def register_for_tests(
    connection: Sync, *classes: type[TypedMessage], database_schema: str = "packhorse"
) -> None:
    """
    Write the schemas of *classes* into the database's table, in the transaction of *connection*; a job's reference always.

    It stands for `packhorse schemas register` where no registry is wanted. What is registered already keeps its id. The
    ids are made from subject and version: the same in every test, and none of a real registry.

    Raises:
        SchemaError: Something is no message class.
    """
    postgres.run(sync_driver(connection), _registered(classes, database_schema))


async def aregister_for_tests(
    connection: Async, *classes: type[TypedMessage], database_schema: str = "packhorse"
) -> None:
    """Write the schemas of *classes* on an async *connection*; promises and raises what `register_for_tests` does."""
    await postgres.arun(await async_driver(connection), _registered(classes, database_schema))


def schema_id_for_tests(kind: MessageType) -> int:
    """Return the id that `register_for_tests` gives a schema version."""
    return crc32(f"{kind.subject} {kind.version}".encode()) & 0x7FFF_FFFF


def _registered(classes: Sequence[type[TypedMessage]], database_schema: str) -> Steps[None]:
    checked_identifier(database_schema, what="database schema")
    statement = REGISTER.format(schema=database_schema).encode()
    for cls in (*classes, JobReference):
        kind = message_type(cls)
        values = (
            kind.subject,
            kind.version,
            fingerprint(kind.schema),
            schema_id_for_tests(kind),
            kind.schema,
        )
        yield Statement(statement, values)
