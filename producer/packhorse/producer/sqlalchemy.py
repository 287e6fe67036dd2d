"""
Adapter to SQLAlchemy: find the psycopg connection under a Connection or Session, sync or async.

The session is flushed first, so that its own UPDATE locks rows before our sequence value is drawn. SQLAlchemy's
transaction is begun where it would begin by itself at the first statement: otherwise its commit would not know of ours.
"""

from typing import Any, TypeVar

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from packhorse.core.errors import UsageError
from packhorse.producer.connections import ASYNC_ALLOWED, SYNC_ALLOWED, wrong_kind

C = TypeVar("C")

SyncConnectable = Connection | Session | scoped_session[Any]
AsyncConnectable = AsyncConnection | AsyncSession | async_scoped_session[Any]


def driver_of(given: object) -> psycopg.Connection[Any]:
    """
    Return the psycopg connection under *given*, in its transaction; a session is flushed first.

    Raises:
        UsageError: The driver is not psycopg, the session is flushing just now, or *given* is of another kind.
    """
    if isinstance(given, scoped_session):
        given = given()
    if isinstance(given, Session):
        _flush(given)
        given = given.connection()
    if not isinstance(given, Connection):
        raise wrong_kind(given, SYNC_ALLOWED)
    return _checked(_begun(given), psycopg.Connection)


async def async_driver_of(given: object) -> psycopg.AsyncConnection[Any]:
    """Return the psycopg connection under an async *given*; promises and raises what `driver_of` does."""
    if isinstance(given, async_scoped_session):
        given = given()
    if isinstance(given, AsyncSession):
        await given.run_sync(_flush)
        given = await given.connection()
    if not isinstance(given, AsyncConnection):
        raise wrong_kind(given, ASYNC_ALLOWED)
    return _checked(await given.run_sync(_begun), psycopg.AsyncConnection)


def _flush(session: Session) -> None:
    try:
        session.flush()
    except InvalidRequestError as error:
        if "already flushing" not in str(error):
            raise
        raise UsageError(
            "emit was called while the session flushes; call it after the flush, or pass session.connection()"
        ) from error


def _begun(connection: Connection) -> object:
    if not connection.in_transaction():
        connection.begin()
    return connection.connection.driver_connection


def _checked(found: object, wanted: type[C]) -> C:
    if not isinstance(found, wanted):
        raise UsageError(
            f"the engine's driver is {type(found).__module__.partition('.')[0]}; use an engine of postgresql+psycopg://"
        )
    return found
