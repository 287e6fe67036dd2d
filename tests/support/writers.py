"""The six kinds of connection that an outbox writes through, behind one face, so that one test body serves all."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from typing import Any
from uuid import UUID

import psycopg
import sqlalchemy
from sqlalchemy import NullPool
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from packhorse.core.message import TypedMessage
from packhorse.producer import Outbox
from packhorse.testing import Emitted, aemitted, aregister_for_tests, emitted, register_for_tests

Rows = list[tuple[Any, ...]]

KINDS = (
    "psycopg.Connection",
    "psycopg.AsyncConnection",
    "sqlalchemy.Connection",
    "sqlalchemy.Session",
    "sqlalchemy.AsyncConnection",
    "sqlalchemy.AsyncSession",
)


class Writer:
    """One connection of the caller's; `raw` is what is handed to the outbox."""

    def __init__(
        self,
        raw: Any,
        execute: Callable[[str], Awaitable[Rows]],
        savepoint: Callable[[], AbstractAsyncContextManager[None]],
        *,
        is_async: bool,
    ) -> None:
        self.raw = raw
        self.execute = execute
        self.savepoint = savepoint
        self.is_async = is_async

    async def call(self, outbox: Outbox, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the outbox in the colour of the connection."""
        if self.is_async:
            return await getattr(outbox, f"a{method}")(self.raw, *arguments, **named)
        return getattr(outbox, method)(self.raw, *arguments, **named)

    async def emit(self, outbox: Outbox, message: TypedMessage, **named: Any) -> UUID:
        found: UUID = await self.call(outbox, "emit", message, **named)
        return found

    async def emit_many(self, outbox: Outbox, messages: Iterable[Any], **named: Any) -> list[UUID]:
        found: list[UUID] = await self.call(outbox, "emit_many", messages, **named)
        return found

    async def register(self, *classes: type[TypedMessage]) -> None:
        if self.is_async:
            await aregister_for_tests(self.raw, *classes)
        else:
            register_for_tests(self.raw, *classes)

    async def emitted(self) -> list[Emitted[Any]]:
        return await aemitted(self.raw) if self.is_async else emitted(self.raw)

    async def commit(self) -> None:
        done = self.raw.commit()
        if self.is_async:
            await done

    async def rollback(self) -> None:
        done = self.raw.rollback()
        if self.is_async:
            await done


@asynccontextmanager
async def opened(kind: str, url: str) -> AsyncIterator[Writer]:
    """Open a connection of *kind*, with no transaction open yet."""
    make = {
        "psycopg.Connection": _psycopg,
        "psycopg.AsyncConnection": _psycopg_async,
        "sqlalchemy.Connection": _connection,
        "sqlalchemy.Session": _session,
        "sqlalchemy.AsyncConnection": _async_connection,
        "sqlalchemy.AsyncSession": _async_session,
    }[kind]
    async with make(url) as writer:
        yield writer


def alchemy(url: str) -> str:
    """Return *url* as SQLAlchemy wants it."""
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


@asynccontextmanager
async def _psycopg(url: str) -> AsyncIterator[Writer]:
    with psycopg.connect(url) as connection:
        yield Writer(
            connection,
            _sync(lambda text: _rows(connection.execute(text.encode()))),
            lambda: _entered(connection.transaction()),
            is_async=False,
        )


@asynccontextmanager
async def _psycopg_async(url: str) -> AsyncIterator[Writer]:
    async with await psycopg.AsyncConnection.connect(url) as connection:

        async def execute(text: str) -> Rows:
            cursor = await connection.execute(text.encode())
            return await cursor.fetchall() if cursor.description else []

        @asynccontextmanager
        async def savepoint() -> AsyncIterator[None]:
            async with connection.transaction():
                yield

        yield Writer(connection, execute, savepoint, is_async=True)


@asynccontextmanager
async def _connection(url: str) -> AsyncIterator[Writer]:
    engine = sqlalchemy.create_engine(alchemy(url), poolclass=NullPool)
    with engine.connect() as connection:
        yield Writer(
            connection,
            _sync(lambda text: _results(connection.exec_driver_sql(text))),
            lambda: _entered(connection.begin_nested()),
            is_async=False,
        )


@asynccontextmanager
async def _session(url: str) -> AsyncIterator[Writer]:
    engine = sqlalchemy.create_engine(alchemy(url), poolclass=NullPool)
    with Session(engine) as session:
        yield Writer(
            session,
            _sync(lambda text: _results(session.connection().exec_driver_sql(text))),
            lambda: _entered(session.begin_nested()),
            is_async=False,
        )


@asynccontextmanager
async def _async_connection(url: str) -> AsyncIterator[Writer]:
    engine = create_async_engine(alchemy(url), poolclass=NullPool)
    async with engine.connect() as connection:
        yield _async_writer(connection, lambda: _connected(connection), connection.begin_nested)


@asynccontextmanager
async def _async_session(url: str) -> AsyncIterator[Writer]:
    engine = create_async_engine(alchemy(url), poolclass=NullPool)
    async with AsyncSession(engine) as session:
        yield _async_writer(session, session.connection, session.begin_nested)


def _async_writer(
    raw: object,
    connection: Callable[[], Awaitable[AsyncConnection]],
    nested: Callable[[], AbstractAsyncContextManager[Any]],
) -> Writer:
    async def execute(text: str) -> Rows:
        return _results(await (await connection()).exec_driver_sql(text))

    @asynccontextmanager
    async def savepoint() -> AsyncIterator[None]:
        async with nested():
            yield

    return Writer(raw, execute, savepoint, is_async=True)


async def _connected(connection: AsyncConnection) -> AsyncConnection:
    return connection


def _sync(run: Callable[[str], Rows]) -> Callable[[str], Awaitable[Rows]]:
    async def execute(text: str) -> Rows:
        return run(text)

    return execute


@asynccontextmanager
async def _entered(block: AbstractContextManager[Any]) -> AsyncIterator[None]:
    with block:
        yield


def _rows(cursor: psycopg.Cursor[Any]) -> Rows:
    return cursor.fetchall() if cursor.description else []


def _results(result: sqlalchemy.CursorResult[Any]) -> Rows:
    return [tuple(row) for row in result] if result.returns_rows else []
