"""Adapter to psycopg: cursors that refuse to end the transaction, and wait for what is queued before them."""

from collections.abc import Generator
from typing import Any

import psycopg

from packhorse.processor.outcomes import TransactionRefused
from packhorse.processor.storing.guarding.lease import Lease
from packhorse.processor.storing.guarding.statements import OUTLIVING, verdict_on
from packhorse.processor.storing.pipelining.postgres import text_of


def behind_queue(connection: Any) -> Generator[Any, Any, None]:
    """Wait for what is queued on *connection*; called with its lock held."""
    if not connection.pipe.is_waiting:
        return
    if connection._pipeline is not None:  # noqa: SLF001 psycopg's cursors ask it the same way
        raise TransactionRefused(
            "ctx.pipeline inside `with connection.pipeline():` is refused: two queues have no order; use one of them"
        )
    yield from connection.pipe.sync_gen()


class _GuardedQueries:
    """What cursors of all kinds do alike: every query comes by here, with the connection's lock held."""

    _conn: Any

    def _start_query(self, query: Any = None) -> Generator[Any, Any, None]:
        connection = self._conn
        lease: Lease | None = connection.lease
        if lease is not None:
            lease.check()
            if query is not None:
                lease.admit(verdict_on(text_of(query)))
            if getattr(self, "_withhold", False):
                raise TransactionRefused(f"a cursor WITH HOLD {OUTLIVING}")
        yield from behind_queue(connection)
        yield from super()._start_query(query)  # type: ignore[misc]  # of the cursor that this is mixed into

    def _start_copy_gen(self, statement: Any, params: Any = None) -> Generator[Any, Any, None]:
        if self._conn.lease is not None:
            self._conn.lease.admit(verdict_on(text_of(statement)))
        yield from super()._start_copy_gen(statement, params)  # type: ignore[misc]  # as above


class GuardedCursor(_GuardedQueries, psycopg.Cursor[Any]):
    """A cursor that refuses to end the transaction that was lent out."""

    def executemany(self, *query: Any, **more: Any) -> None:
        """Execute as psycopg does, behind what is queued: it begins a pipeline of its own."""
        self._conn.sync()
        super().executemany(*query, **more)


class _GuardedNamed(_GuardedQueries):
    """What named cursors of both kinds do alike."""

    def __del__(self, *_: Any) -> None:
        """Warn of one left open as psycopg does, unless its handler has ended: then the transaction closes it."""
        connection = getattr(self, "_conn", None)
        if connection is not None and connection.lease is not None and connection.lease.is_over:
            return
        super().__del__()  # type: ignore[misc]  # of the cursor that this is mixed into


class GuardedServerCursor(_GuardedNamed, psycopg.ServerCursor[Any]):
    """A named cursor that refuses to end the transaction, and to outlive it."""


class AsyncGuardedCursor(_GuardedQueries, psycopg.AsyncCursor[Any]):
    """A cursor that refuses to end the transaction that was lent out."""

    async def executemany(self, *query: Any, **more: Any) -> None:
        """Execute as psycopg does, behind what is queued: it begins a pipeline of its own."""
        await self._conn.sync()
        await super().executemany(*query, **more)


class AsyncGuardedServerCursor(_GuardedNamed, psycopg.AsyncServerCursor[Any]):
    """A named cursor that refuses to end the transaction, and to outlive it."""
