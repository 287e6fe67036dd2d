"""
Adapter to SQLAlchemy: sessions over the lane's physical connection, inside the lane's transaction.

A session joins by savepoint: its commit releases one, its rollback undoes to it, and neither ends the transaction. The
engine never commits, rolls back or closes the lane's connection: asked by a handler it refuses, on clean-up it does
nothing.
"""

from contextlib import suppress
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from packhorse.core.errors import UsageError
from packhorse.processor.outcomes import TransactionRefused

__all__ = ["AsyncSession", "AsyncSessions", "Session", "Sessions"]

_URL = "postgresql+psycopg://"


class _Guard:
    """Stand in for what the dialect would do to the lane's connection."""

    def __init__(self) -> None:
        self.cleaning = False

    def install(self, engine: Engine) -> None:
        """Let the dialect ask here; after its first connection, which it sets itself up with."""
        dialect: Any = engine.dialect
        dialect.do_commit = self.refuse
        dialect.do_rollback = self.refuse
        dialect.do_close = self.ignore
        dialect.do_terminate = self.ignore

    def refuse(self, connection: object) -> None:
        """Refuse a handler's commit or rollback; on clean-up there is nothing to do."""
        del connection
        if not self.cleaning:
            raise TransactionRefused(
                "commit and rollback of the session's connection are refused: the message's inbox row is in the same "
                "transaction; use session.commit(), which releases a savepoint, or raise an error to undo"
            )

    def ignore(self, connection: object) -> None:
        """Leave the connection to the lane."""


def _lent(connection: Any) -> Any:
    """Return what the session of one handler uses of *connection*: one of its own where it is a lane's."""
    return connection.lend() if hasattr(connection, "lend") else connection


def _take_back(view: Any) -> None:
    if hasattr(view, "take_back"):
        view.take_back()


class Sessions:
    """
    Make sessions for one lane of `def` handlers, one at a time.

    Each has a connection of its own on the lane's physical one, which is taken back with it: what a thread still holds of the
    session, its connections too, is refused.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._guard = _Guard()
        self._engine: Engine | None = None
        self._view: Any = None
        self._connection: Connection | None = None

    def on(self, connection: psycopg.Connection[Any]) -> Session:
        """Return a new session in the transaction of *connection*; the first one in a lane connects once more."""
        engine = self._ready()
        self._view = _lent(connection)
        found = self._connection = engine.connect()
        found.begin()
        return Session(bind=found, join_transaction_mode="create_savepoint")

    def drop(self, session: Session) -> None:
        """Take a session back; the lane ends the transaction itself."""
        self._guard.cleaning = True
        found, self._connection = self._connection, None
        try:
            with suppress(SQLAlchemyError, psycopg.Error):
                session.close()
            if found is not None:
                with suppress(SQLAlchemyError, psycopg.Error):
                    found.close()
        finally:
            self._guard.cleaning = False
            session.bind = None
            _take_back(self._view)

    def _ready(self) -> Engine:
        if self._engine is None:
            self._view = psycopg.connect(self._conninfo)
            engine = create_engine(
                _URL, creator=lambda: self._view, poolclass=NullPool, pool_reset_on_return=None
            )
            with engine.connect():
                pass
            self._view.close()
            self._guard.install(engine)
            self._engine = engine
        return self._engine


class AsyncSessions:
    """
    Make sessions for one lane of `async def` handlers, one at a time; for one event loop.

    A property can't wait, so `prepare` and `drop` make the next session's connection ready.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._guard = _Guard()
        self._engine: AsyncEngine | None = None
        self._lent: Any = None
        self._view: Any = None
        self._connection: AsyncConnection | None = None

    async def prepare(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Make ready for sessions on *connection*."""
        if self._engine is None:
            first = self._view = await psycopg.AsyncConnection.connect(self._conninfo)
            self._engine = create_async_engine(
                _URL, async_creator=self._lend, poolclass=NullPool, pool_reset_on_return=None
            )
            async with self._engine.connect():
                pass
            await first.close()
            self._guard.install(self._engine.sync_engine)
        await self._close()
        self._lent = connection
        await self._next()

    async def _next(self) -> None:
        assert self._engine is not None
        self._view = _lent(self._lent)
        self._connection = await self._engine.connect()

    async def _lend(self) -> Any:
        return self._view

    def on(self, connection: psycopg.AsyncConnection[Any]) -> AsyncSession:
        """Return a new session in the transaction of *connection*."""
        found = self._connection
        if found is None or self._lent is not connection:
            raise UsageError(
                "ctx.session is not ready: import sqlalchemy in the module that declares the handlers"
            )
        found.sync_connection.begin()  # type: ignore[union-attr]  # connected in prepare
        return AsyncSession(bind=found, join_transaction_mode="create_savepoint")

    async def drop(self, session: AsyncSession) -> None:
        """Take a session back; the lane ends the transaction itself."""
        self._guard.cleaning = True
        try:
            with suppress(SQLAlchemyError, psycopg.Error):
                await session.close()
        finally:
            self._guard.cleaning = False
            session.bind = session.sync_session.bind = None
        await self._close()
        await self._next()

    async def _close(self) -> None:
        found, self._connection = self._connection, None
        self._guard.cleaning = True
        try:
            if found is not None:
                with suppress(SQLAlchemyError, psycopg.Error):
                    await found.close()
        finally:
            self._guard.cleaning = False
            _take_back(self._view)
