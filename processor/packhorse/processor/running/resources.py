"""What a lane lends to the contexts of one run of a handler: its connection, a session on it, the queue, the outbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from packhorse.processor.outcomes import TransactionRefused
from packhorse.processor.storing.guarding.lease import Lease
from packhorse.processor.storing.pipelining.lent import AsyncPipeline, Pipeline
from packhorse.producer import Outbox, Outgoing, Tombstone

if TYPE_CHECKING:
    from packhorse.processor.storing.guarding.postgres import AsyncGuardedConnection, GuardedConnection
    from packhorse.processor.storing.sqlalchemy import AsyncSession, AsyncSessions, Session, Sessions


class _Lending:
    """
    What lending of both kinds keeps.

    Attributes:
        is_over: The handler has returned.
    """

    def __init__(self, lane: GuardedConnection | AsyncGuardedConnection, member: object) -> None:
        self.is_over = False
        self._queueing: Lease | None = None
        self._pipe = lane.pipe
        self._pipe.begin(member)

    @property
    def is_exposed(self) -> bool:
        """Return whether queued statements of the handler were sent, so that a failure must roll them back."""
        return self._pipe.is_exposed

    def _lease_of_queue(self) -> Lease:
        """Return what ends the use of the queue with the handler; a lent connection costs as much as queueing a statement."""
        self._check()
        self._queueing = Lease()
        return self._queueing

    def _end(self) -> None:
        self.is_over = True
        if self._queueing is not None:
            self._queueing.is_over = True

    def _check(self) -> None:
        if self.is_over:
            raise TransactionRefused(
                "the handler has returned and its transaction is over: use a connection of your own in threads and tasks "
                "that outlive the handler"
            )


class Lent(_Lending):
    """
    The resources of `def` handlers; `settle` and `drop` are the lane's.

    Args:
        lane: The lane's connection; the handler gets one of its own on it.
        sessions: Makes what makes sessions, when it is first asked for.
        outbox: Writes follow-ups.
        member: Whose run it is; errors of queued statements name it.
    """

    def __init__(
        self,
        lane: GuardedConnection,
        sessions: Callable[[], Sessions],
        outbox: Outbox,
        member: object = None,
    ) -> None:
        super().__init__(lane, member)
        self._lane = lane
        self._sessions = sessions
        self._outbox = outbox
        self._connection: GuardedConnection | None = None
        self._pipeline: Pipeline | None = None
        self._session: Session | None = None

    @property
    def connection(self) -> GuardedConnection:
        """Return the handler's connection. Raises TransactionRefused after the handler has returned."""
        self._check()
        if self._connection is None:
            self._connection = self._lane.lend()
        return self._connection

    @property
    def session(self) -> Session:
        """Return a session on the connection, made when it is first asked for."""
        self._check()
        if self._session is None:
            self._session = self._sessions().on(self._lane)
        return self._session

    @property
    def pipeline(self) -> Pipeline:
        """Return the queue of statements whose result is not read."""
        if self._pipeline is None:
            self._pipeline = Pipeline(self._lane, self._lease_of_queue())
        return self._pipeline

    def emit(self, drafts: list[Outgoing | Tombstone]) -> None:
        """Write follow-ups in the transaction; what the session has pending is flushed first."""
        if self._session is not None:
            self._session.flush()
        self._outbox.emit_many(self.connection, drafts)

    def settle(self, *, sync: bool = False) -> None:
        """
        Write what the session has pending and keep what was queued, after the handler has returned.

        Args:
            sync: Wait until what was queued has run, so that a statement that fails is seen while its member is in hand.

        Raises:
            TransactionRefused: The handler left something unfinished on the connection.
            psycopg.Error: With *sync*, a statement failed.
        """
        if self._session is not None:
            self._session.commit()
        if self._connection is not None and (left := self._connection.leftover()):
            raise _left(left)
        if sync and self._pipe.has_own:
            self._lane.sync()
        if self._pipe.keep() and self._pipe.may_send:
            with self._lane.lock:
                self._lane.wait(self._pipe.send_gen())

    def drop(self) -> None:
        """
        Take everything back: a thread that outlives its handler gets an error instead of the transaction.

        The query of one that still uses the connection is cancelled; when that does not help, the connection is closed.
        """
        self._end()
        if self._connection is not None:
            self._connection.take_back()
        if self._lane.lock.locked() or self._lane.is_stuck:
            self._lane.free()
        self._pipe.drop()
        session, self._session = self._session, None
        if session is not None:
            self._sessions().drop(session)


class AsyncLent(_Lending):
    """The resources of `async def` handlers, as `Lent`."""

    def __init__(
        self,
        lane: AsyncGuardedConnection,
        sessions: Callable[[], AsyncSessions],
        outbox: Outbox,
        member: object = None,
    ) -> None:
        super().__init__(lane, member)
        self._lane = lane
        self._sessions = sessions
        self._outbox = outbox
        self._connection: AsyncGuardedConnection | None = None
        self._pipeline: AsyncPipeline | None = None
        self._session: AsyncSession | None = None

    @property
    def connection(self) -> AsyncGuardedConnection:
        """Return the handler's connection. Raises TransactionRefused after the handler has returned."""
        self._check()
        if self._connection is None:
            self._connection = self._lane.lend()
        return self._connection

    @property
    def session(self) -> AsyncSession:
        """Return a session on the connection, made when it is first asked for."""
        self._check()
        if self._session is None:
            self._session = self._sessions().on(self._lane)
        return self._session

    @property
    def pipeline(self) -> AsyncPipeline:
        """Return the queue of statements whose result is not read."""
        if self._pipeline is None:
            self._pipeline = AsyncPipeline(self._lane, self._lease_of_queue())
        return self._pipeline

    async def emit(self, drafts: list[Outgoing | Tombstone]) -> None:
        """Write follow-ups in the transaction; what the session has pending is flushed first."""
        if self._session is not None:
            await self._session.flush()
        await self._outbox.aemit_many(self.connection, drafts)

    async def settle(self, *, sync: bool = False) -> None:
        """Write what the session has pending and keep what was queued; raises what `Lent.settle` does."""
        if self._session is not None:
            await self._session.commit()
        if self._connection is not None and (left := self._connection.leftover()):
            raise _left(left)
        if sync and self._pipe.has_own:
            await self._lane.sync()
        if self._pipe.keep() and self._pipe.may_send:
            async with self._lane.lock:
                await self._lane.wait(self._pipe.send_gen())

    async def drop(self) -> None:
        """Take everything back."""
        self._end()
        if self._connection is not None:
            self._connection.take_back()
        if self._lane.lock.locked() or self._lane.is_stuck:
            await self._lane.free()
        self._pipe.drop()
        session, self._session = self._session, None
        if session is not None:
            await self._sessions().drop(session)


def _left(what: str) -> TransactionRefused:
    return TransactionRefused(
        f"the handler returned and {what}: end with-blocks, and join threads and await tasks that use the connection, before "
        "the handler returns"
    )
