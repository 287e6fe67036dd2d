"""
Adapter to psycopg: a lane's connection, and what a handler is lent of it.

A handler gets a connection object of its own on the lane's physical connection. It shares the lock and the prepared
statements, but not the state that a handler may leave behind (row factory, open `transaction()` blocks), and it is taken back
when the handler returns: whatever still holds it, or a cursor of it, is refused from then on. Whether it is still lent is
looked at with the connection's lock held, so a thread that comes late can't slip into the next message's transaction.
"""

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, NoReturn, Self

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row

from packhorse.processor.outcomes import TransactionRefused
from packhorse.processor.storing.guarding.cursors.postgres import (
    AsyncGuardedCursor,
    AsyncGuardedServerCursor,
    GuardedCursor,
    GuardedServerCursor,
    behind_queue,
)
from packhorse.processor.storing.guarding.lease import Lease, refuse
from packhorse.processor.storing.guarding.statements import OUTLIVING
from packhorse.processor.storing.pipelining.postgres import Pipe

FREE_WAIT = 2.0
"""Longest wait for who still uses a connection after its handler, in seconds."""


class _Guarded(psycopg.BaseConnection[Any]):
    """What connections of both kinds do alike."""

    lease: Lease | None = None
    """None: it is the lane's own."""
    lock: Any
    pipe: Pipe
    """What is queued on the physical connection."""

    def lend(self) -> Self:
        """Return a connection object for one handler; `take_back` ends its use."""
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__)
        view._notice_handlers, view._notify_handlers = [], []
        view.lease = Lease()
        return view

    def take_back(self) -> None:
        """Let nobody use it from now on; for connections that were lent."""
        if self.lease is not None:
            self.lease.is_over = True

    def check_lent(self) -> None:
        """Raise TransactionRefused when it was taken back."""
        if self.lease is not None:
            self.lease.check()

    @property
    def is_stuck(self) -> bool:
        """Return whether the connection is in the middle of something that is not the queue's."""
        if self.pipe.is_sending:
            return False
        return (
            self.pgconn.pipeline_status != PipelineStatus.OFF
            or self.pgconn.transaction_status == TransactionStatus.ACTIVE
        )

    def leftover(self) -> str:
        """Return what a handler that has returned left unfinished on the physical connection; empty when nothing."""
        if self.pipe.is_sending and not self.lock.locked():
            return ""
        if self.lock.locked():
            return "a COPY or a stream of it is not finished, or a thread still uses it"
        if self.pgconn.pipeline_status != PipelineStatus.OFF:
            return "its connection.pipeline() is still open"
        if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
            return "a COPY or a stream of it is not finished"
        return ""

    def __del__(self, *_: Any) -> None:
        if self.lease is None and hasattr(self, "pgconn"):
            super().__del__()

    def _exec_command(self, *command: Any, **more: Any) -> Generator[Any, Any, Any]:
        """Execute what `transaction()` sends, behind what is queued. Called with the lock held."""
        self.check_lent()
        yield from behind_queue(self)
        return (yield from super()._exec_command(*command, **more))

    def _check_intrans_gen(self, attribute: str) -> Generator[Any, Any, None]:
        """Refuse a handler that sets how transactions begin."""
        if self.lease is not None:
            raise TransactionRefused(f"{attribute}= {OUTLIVING}")
        yield from super()._check_intrans_gen(attribute)

    def _commit_gen(self) -> NoReturn:
        refuse("commit()")

    def _rollback_gen(self) -> NoReturn:
        refuse("rollback()")

    def _tpc_begin_gen(self, xid: Any) -> NoReturn:
        del xid
        refuse("tpc_begin()")

    def _tpc_prepare_gen(self) -> NoReturn:
        refuse("tpc_prepare()")

    def _tpc_finish_gen(self, *what: Any) -> NoReturn:
        del what
        refuse("tpc_commit() or tpc_rollback()")


class GuardedConnection(_Guarded, psycopg.Connection[Any]):
    """A lane's connection: savepoints are the handler's, the transaction is not."""

    def __init__(self, pgconn: Any, *row_factory: Any) -> None:
        super().__init__(pgconn, *row_factory)
        self.cursor_factory = GuardedCursor
        self.server_cursor_factory = GuardedServerCursor
        self.pipe = Pipe(self)

    def __enter__(self) -> NoReturn:
        refuse("`with connection:`")

    def close(self) -> None:
        """Refuse while a transaction is lent out."""
        if self.lease is not None or self.pgconn.transaction_status in _OPEN:
            refuse("close()")
        super().close()

    def sync(self) -> None:
        """Wait until all that is queued has run; raises what `Pipe.sync_gen` does, and TransactionRefused as cursors do."""
        self.check_lent()
        if self.pipe.is_waiting:
            with self.lock:
                self.wait(self.pipe.sync_gen())

    @contextmanager
    def transaction(self, *named: Any, **more: Any) -> Iterator[psycopg.Transaction]:
        """Begin a savepoint as psycopg does; what is queued inside it belongs to it, and fails inside it."""
        with super().transaction(*named, **more) as block:
            try:
                yield block
            except BaseException:
                if self.pipe.is_waiting:
                    with self.lock:
                        self.wait(self.pipe.forget_gen())
                raise
            self.sync()

    @contextmanager
    def pipeline(self) -> Iterator[psycopg.Pipeline]:
        """Begin a pipeline of psycopg's, behind what is queued."""
        self.sync()
        with super().pipeline() as pipeline:
            yield pipeline

    def free(self) -> None:
        """
        Get the physical connection back from who still uses it: end its query, wait a while, else close the connection.

        For the lane alone, after a handler.
        """
        if self.lock.locked():
            with suppress(psycopg.Error):
                self.cancel_safe(timeout=FREE_WAIT)
            if not self.lock.acquire(timeout=FREE_WAIT):
                self.end()
                return
            self.lock.release()
        if self.is_stuck:
            self.end()

    def end(self) -> None:
        """Close, whatever is open; for the lane alone."""
        super().close()


class AsyncGuardedConnection(_Guarded, psycopg.AsyncConnection[Any]):
    """An async lane's connection, guarded in the same way."""

    def __init__(self, pgconn: Any, *row_factory: Any) -> None:
        super().__init__(pgconn, *row_factory)
        self.cursor_factory = AsyncGuardedCursor
        self.server_cursor_factory = AsyncGuardedServerCursor
        self.pipe = Pipe(self)

    async def __aenter__(self) -> NoReturn:
        refuse("`async with connection:`")

    async def close(self) -> None:
        """Refuse while a transaction is lent out."""
        if self.lease is not None or self.pgconn.transaction_status in _OPEN:
            refuse("close()")
        await super().close()

    async def sync(self) -> None:
        """Wait until all that is queued has run, as `GuardedConnection.sync`."""
        self.check_lent()
        if self.pipe.is_waiting:
            async with self.lock:
                await self.wait(self.pipe.sync_gen())

    @asynccontextmanager
    async def transaction(self, *named: Any, **more: Any) -> AsyncIterator[psycopg.AsyncTransaction]:
        """Begin a savepoint, as `GuardedConnection.transaction`."""
        async with super().transaction(*named, **more) as block:
            try:
                yield block
            except BaseException:
                if self.pipe.is_waiting:
                    async with self.lock:
                        await self.wait(self.pipe.forget_gen())
                raise
            await self.sync()

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator[psycopg.AsyncPipeline]:
        """Begin a pipeline of psycopg's, behind what is queued."""
        await self.sync()
        async with super().pipeline() as pipeline:
            yield pipeline

    async def free(self) -> None:
        """Get the physical connection back from who still uses it, as `GuardedConnection.free`."""
        if self.lock.locked():
            with suppress(psycopg.Error):
                await self.cancel_safe(timeout=FREE_WAIT)
            try:
                await asyncio.wait_for(self.lock.acquire(), FREE_WAIT)
            except TimeoutError:
                await self.end()
                return
            self.lock.release()
        if self.is_stuck:
            await self.end()

    async def end(self) -> None:
        """Close, whatever is open; for the lane alone."""
        await super().close()


_OPEN = {TransactionStatus.INTRANS, TransactionStatus.INERROR}

Guarded = GuardedConnection | AsyncGuardedConnection


def adopted(connection: Any) -> Any:
    """Return a lane's connection object on the physical connection of *connection*, which is the caller's to close."""
    kind = AsyncGuardedConnection if isinstance(connection, psycopg.AsyncConnection) else GuardedConnection
    made: Any = object.__new__(kind)
    made.__dict__.update(connection.__dict__)
    made._pool = None  # noqa: SLF001 psycopg then leaves it to somebody else to close it
    made.row_factory = tuple_row
    made.cursor_factory, made.server_cursor_factory = _CURSORS[kind]
    made.pipe = Pipe(made)
    return made


_CURSORS: dict[type, tuple[type, type]] = {
    GuardedConnection: (GuardedCursor, GuardedServerCursor),
    AsyncGuardedConnection: (AsyncGuardedCursor, AsyncGuardedServerCursor),
}
