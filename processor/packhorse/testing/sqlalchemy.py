"""Adapter to SQLAlchemy: sessions for handlers on the connection that a test's own session or connection has."""

from typing import Any

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session


class Joined:
    """Make sessions that join the transaction of a test's Session or Connection, by savepoint as in production."""

    def __init__(self, given: Any) -> None:
        given = given() if isinstance(given, scoped_session) else given
        self._bind: Connection = given.connection() if isinstance(given, Session) else given

    def on(self, connection: object) -> Session:
        """Return a new session."""
        del connection
        return Session(bind=self._bind, join_transaction_mode="create_savepoint")

    def drop(self, session: Session) -> None:
        """Take a session back; what it has not committed is undone."""
        session.close()


class AsyncJoined:
    """Make sessions that join the transaction of a test's AsyncSession or AsyncConnection."""

    def __init__(self, bind: AsyncConnection) -> None:
        self._bind = bind

    @classmethod
    async def to(cls, given: Any) -> "AsyncJoined":
        """Return the maker of sessions for *given*."""
        given = given() if isinstance(given, async_scoped_session) else given
        return cls(await given.connection() if isinstance(given, AsyncSession) else given)

    def on(self, connection: object) -> AsyncSession:
        """Return a new session."""
        del connection
        return AsyncSession(bind=self._bind, join_transaction_mode="create_savepoint")

    async def drop(self, session: AsyncSession) -> None:
        """Take a session back; what it has not committed is undone."""
        await session.close()
