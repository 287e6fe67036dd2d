"""
Connections through a pooler that lends a server connection for one transaction: nothing may rest on a session.

What a direct connection says once, at its start, goes ahead of each statement here, in the same transaction and the same
round trip: the planner's settings, the time-outs, and a comparison that fails when another server answers, or this one after a
crash. For a pooler hides the end of a server from its clients, and what was read before it is void: transaction ids may have
been given to others since.
"""

import contextlib
import functools
import hashlib
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any, Self, cast

import psycopg
import psycopg.sql
from psycopg import errors as pg
from psycopg.abc import Params
from psycopg.pq import TransactionStatus

from packhorse.relay import sql

NAMED_FROM = 5
"""Uses of a statement before it is prepared; planning one anew over 15 partitions takes 2 ms, its round trip 0.3 ms."""


class PooledConnection(psycopg.Connection[tuple[Any, ...]]):
    """
    A connection to a pooler; `lead` must be called before the first statement.

    It stays in pipeline mode until it is closed, with one Sync for each statement: leaving the mode would send a Flush, and a Flush on its own
    makes a pooler lend a server that it doesn't get back until the next statement.
    """

    turn: threading.Lock
    _mode: contextlib.AbstractContextManager[psycopg.Pipeline] | None = None

    def lead(self, preamble: str, *, renames: bool) -> None:
        """
        Send *preamble* ahead of each statement from now on.

        Args:
            preamble: One statement that returns a row.
            renames: The pooler gives each server the prepared statements that a client named; otherwise their names are
                passed on, and a name must mean the same for all clients of the pool.
        """
        self.turn = threading.Lock()
        self.preamble = preamble
        self.prepare_threshold = NAMED_FROM if renames else None
        self.renames = renames
        self.uses: Counter[str] = Counter()
        self.led = False
        self._mode = self.pipeline()
        self.flow = self._mode.__enter__()

    @contextlib.contextmanager
    def transaction(self, *arguments: Any, **named: Any) -> Iterator[psycopg.Transaction]:
        if self.info.transaction_status == TransactionStatus.IDLE:
            self.led = False  # its first statement is led, and what it then sets for itself stays
        with super().transaction(*arguments, **named) as block:
            yield block

    def close(self) -> None:
        super().close()
        mode, self._mode = self._mode, None
        if mode is not None:
            with contextlib.suppress(psycopg.Error):
                mode.__exit__(
                    None, None, None
                )  # says that there is no connection any more; unasked, it would log that

    def settle(self, failed: psycopg.Error | None) -> None:
        """
        Send what is queued and take in all answers.

        Raises:
            psycopg.Error: *failed*, or the first failure among the answers; the connection is closed if it was the connection's.
        """
        if failed is None or failed.sqlstate is not None:
            try:
                self.flow.sync()
            except psycopg.Error as error:
                failed = failed or error
        if failed is None:
            return
        if failed.sqlstate is None:
            self.close()  # no answer, or none within the time: nobody knows what is still on its way
        elif not self.closed:
            self.flow.sync()  # takes in what the failure left behind
        raise failed


class PooledCursor(psycopg.Cursor[tuple[Any, ...]]):
    """A cursor whose every statement is a transaction of its own, or a part of the one that is open, behind the preamble."""

    _way: str | None = None

    def execute(
        self,
        query: Any,
        params: Params | None = None,
        *,
        prepare: bool | None = None,
        binary: bool | None = None,
    ) -> Self:
        connection = cast("PooledConnection", self._conn)
        with connection.turn:
            for way in self._ways(connection, query):
                self._way = way
                try:
                    self._once(connection, query, params, prepare=prepare, binary=binary)
                except (pg.InvalidSqlStatementName, pg.DuplicatePreparedStatement):
                    if way is None:
                        raise
                except pg.DivisionByZero as error:
                    connection.close()
                    raise psycopg.OperationalError(
                        "behind the pooler another server answers, or this one after a crash"
                    ) from error
                else:
                    break
        return self

    def _ways(self, connection: PooledConnection, query: object) -> Iterator[str | None]:
        """
        Yield how to try the statement: by its name as a server knows it, naming it first, and at last without a name.

        Each failure may have met another server of the pool, and undid the whole transaction, in which nothing else was done.
        Inside a transaction of the caller there is no second try, hence no name.
        """
        if not connection.renames and isinstance(query, str):
            connection.uses[query] += 1
            in_transaction = connection.info.transaction_status == TransactionStatus.INTRANS
            if connection.uses[query] > NAMED_FROM and not in_transaction:
                yield from ("use", "name", "use", "name")
        yield None

    def _once(
        self,
        connection: PooledConnection,
        query: Any,
        params: Params | None,
        *,
        prepare: bool | None,
        binary: bool | None,
    ) -> None:
        failed: psycopg.Error | None = None
        try:
            if not connection.led:
                psycopg.Cursor(connection).execute(connection.preamble)
            super().execute(query, params, prepare=prepare, binary=binary)
        except psycopg.Error as error:
            failed = error
        connection.settle(failed)
        connection.led = connection.info.transaction_status == TransactionStatus.INTRANS

    def _get_prepared(self, pgq: Any, prepare: bool | None = None) -> Any:
        """Answer the driver's question for a statement's name, where names are ours to choose; not asked, they go unnamed."""
        if self._way is None:
            return super()._get_prepared(pgq, prepare)
        from psycopg._preparing import Prepare

        return (Prepare.YES if self._way == "use" else Prepare.SHOULD), _name(pgq.query, pgq.types)


@functools.lru_cache(maxsize=256)
def _name(query: bytes, types: tuple[int, ...]) -> bytes:
    """Return a name that stands for this text with these types, whoever prepared it."""
    return f"packhorse_{hashlib.sha256(repr((query, types)).encode()).hexdigest()[:24]}".encode()


def renames(connection: psycopg.Connection[Any]) -> bool:
    """
    Find out whether the pooler keeps prepared statements apart by client, by preparing one and asking the server for its name.

    It is let go of in the same transaction, so that no other client of the pool meets it.
    """
    try:
        with connection.transaction():
            connection.execute(sql.PROBE, prepare=True)
            found = connection.execute(sql.PROBED).fetchone()
            if found is None:
                return False
            ours = str(found[0]).startswith("_pg3_")
            if ours:
                name = psycopg.sql.Identifier(found[0])
                connection.execute(psycopg.sql.SQL("DEALLOCATE {}").format(name))
            return not ours
    except pg.DuplicatePreparedStatement:
        return False
