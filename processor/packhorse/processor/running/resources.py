"""What a lane lends to the contexts of one transaction: its connection, a session on it, the outbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from packhorse.processor.outcomes import TransactionRefused
from packhorse.producer import Outbox, Outgoing, Tombstone

if TYPE_CHECKING:
    from packhorse.processor.storing.postgres import AsyncGuardedConnection, GuardedConnection
    from packhorse.processor.storing.sqlalchemy import AsyncSession, AsyncSessions, Session, Sessions


class Lent:
    """The resources of `def` handlers; `settle` and `drop` are the lane's."""

    def __init__(
        self, connection: GuardedConnection, sessions: Callable[[], Sessions], outbox: Outbox
    ) -> None:
        self._connection: GuardedConnection | None = connection
        self._sessions = sessions
        self._outbox = outbox
        self._session: Session | None = None

    @property
    def connection(self) -> GuardedConnection:
        """Return the connection. Raises TransactionRefused after the handler has returned."""
        if self._connection is None:
            raise _over()
        return self._connection

    @property
    def session(self) -> Session:
        """Return a session on the connection, made when it is first asked for."""
        if self._session is None:
            self._session = self._sessions().on(self.connection)
        return self._session

    def emit(self, drafts: list[Outgoing | Tombstone]) -> None:
        """Write follow-ups in the transaction; what the session has pending is flushed first."""
        if self._session is not None:
            self._session.flush()
        self._outbox.emit_many(self.connection, drafts)

    def settle(self) -> None:
        """Write what the session has pending, after the handler has returned."""
        if self._session is not None:
            self._session.commit()

    def drop(self) -> None:
        """Take everything back: a thread that outlives its handler gets an error instead of the transaction."""
        self._connection = None
        session, self._session = self._session, None
        if session is not None:
            self._sessions().drop(session)


class AsyncLent:
    """The resources of `async def` handlers."""

    def __init__(
        self, connection: AsyncGuardedConnection, sessions: Callable[[], AsyncSessions], outbox: Outbox
    ) -> None:
        self._connection: AsyncGuardedConnection | None = connection
        self._sessions = sessions
        self._outbox = outbox
        self._session: AsyncSession | None = None

    @property
    def connection(self) -> AsyncGuardedConnection:
        """Return the connection. Raises TransactionRefused after the handler has returned."""
        if self._connection is None:
            raise _over()
        return self._connection

    @property
    def session(self) -> AsyncSession:
        """Return a session on the connection, made when it is first asked for."""
        if self._session is None:
            self._session = self._sessions().on(self.connection)
        return self._session

    async def emit(self, drafts: list[Outgoing | Tombstone]) -> None:
        """Write follow-ups in the transaction; what the session has pending is flushed first."""
        if self._session is not None:
            await self._session.flush()
        await self._outbox.aemit_many(self.connection, drafts)

    async def settle(self) -> None:
        """Write what the session has pending, after the handler has returned."""
        if self._session is not None:
            await self._session.commit()

    async def drop(self) -> None:
        """Take everything back."""
        self._connection = None
        session, self._session = self._session, None
        if session is not None:
            await self._sessions().drop(session)


def _over() -> TransactionRefused:
    return TransactionRefused(
        "the handler has returned and its transaction is over: use a connection of your own in threads and tasks that "
        "outlive the handler"
    )
