"""
Adapter to SQLAlchemy: sessions over the lane's physical connection, inside the lane's transaction.

A session joins by savepoint: its commit releases one, its rollback undoes to it, and neither ends the transaction. The
engine never commits, rolls back or closes the lane's connection: asked by a handler it refuses, on clean-up it does
nothing.
"""

import threading
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


def _lent(connection: Any, **more: Any) -> Any:
    """Return what sessions use of *connection*: one of their own where it is a lane's."""
    return connection.lend(**more) if hasattr(connection, "lend") else connection


class Sessions:
    """Make sessions for one lane of `def` handlers; for one thread."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._guard = _Guard()
        self._engine: Engine | None = None
        self._lent: Any = None
        self._view: Any = None
        self._connection: Connection | None = None

    def on(self, connection: psycopg.Connection[Any]) -> Session:
        """
        Return a new session in the transaction of *connection*; the first one in a lane connects once more.

        Threads other than the one that asks first can't use it, so one that outlives its handler is refused.
        """
        found = self._connection
        if found is None or found.invalidated or self._lent is not connection:
            self._lent, self._view = connection, _lent(connection, thread=threading.get_ident())
            found = self._connection = self._ready().connect()
        if not found.in_transaction():
            found.begin()
        return Session(bind=found, join_transaction_mode="create_savepoint")

    def drop(self, session: Session) -> None:
        """Take a session back; the lane ends the transaction itself."""
        self._guard.cleaning = True
        try:
            session.close()
            session.bind = None
            if self._connection is not None:
                self._connection.rollback()
        except (SQLAlchemyError, psycopg.Error):
            self._connection = None
        finally:
            self._guard.cleaning = False

    def _ready(self) -> Engine:
        if self._engine is None:
            view, self._view = self._view, psycopg.connect(self._conninfo)
            engine = create_engine(
                _URL, creator=lambda: self._view, poolclass=NullPool, pool_reset_on_return=None
            )
            with engine.connect():
                pass
            self._view.close()
            self._view = view
            self._guard.install(engine)
            self._engine = engine
        return self._engine


class AsyncSessions:
    """Make sessions for one lane of `async def` handlers; for one event loop."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._guard = _Guard()
        self._engine: AsyncEngine | None = None
        self._lent: Any = None
        self._view: Any = None
        self._connection: AsyncConnection | None = None

    async def prepare(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Make ready for sessions on *connection*; what a property can't wait for."""
        if self._engine is None:
            first = self._view = await psycopg.AsyncConnection.connect(self._conninfo)
            self._engine = create_async_engine(
                _URL, async_creator=self._lend, poolclass=NullPool, pool_reset_on_return=None
            )
            async with self._engine.connect():
                pass
            await first.close()
            self._guard.install(self._engine.sync_engine)
        self._lent, self._view = connection, _lent(connection)
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
        if not found.in_transaction():
            found.sync_connection.begin()  # type: ignore[union-attr]  # connected in prepare
        return AsyncSession(bind=found, join_transaction_mode="create_savepoint")

    async def drop(self, session: AsyncSession) -> None:
        """Take a session back; the lane ends the transaction itself."""
        self._guard.cleaning = True
        try:
            await session.close()
            session.bind = session.sync_session.bind = None
            if self._connection is not None:
                await self._connection.rollback()
        except (SQLAlchemyError, psycopg.Error):
            self._connection = None
        finally:
            self._guard.cleaning = False
