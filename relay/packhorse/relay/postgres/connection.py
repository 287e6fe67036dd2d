"""Connections whose every wait is bounded on this side of the network, and the driver's errors in our words."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.rows import tuple_row

from packhorse.core.connecting import next_step
from packhorse.core.errors import DatabaseUnavailable, NotReady
from packhorse.core.redaction import without_secrets
from packhorse.relay import sql
from packhorse.relay.errors import StatementFailed
from packhorse.relay.postgres.pooled import PooledConnection, PooledCursor, renames

_OPTIONS = (
    "-c plan_cache_mode=force_generic_plan -c jit=off -c enable_seqscan=off -c enable_bitmapscan=off "
    "-c statement_timeout={statement} -c lock_timeout={lock}"
)
"""Every statement of the relay is meant to read an index in its order and stop; a planner that expects few rows sorts instead."""
RELAY_RIGHTS = "`packhorse migrate sql --grants relay=ROLE` prints what a relay's role needs"
OWNER_RIGHTS = "run this as the role that owns the tables"


C = TypeVar("C", bound="_Bounded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """
    How long to wait for the database, in seconds.

    Attributes:
        connect: For a connection.
        answer: For any answer, and for the peer's acknowledgement of what was sent.
    """

    connect: float = 5.0
    answer: float = 10.0


class _Bounded(psycopg.Connection[tuple[Any, ...]]):
    """A connection that never waits longer than `answer` for an answer, whatever becomes of the network."""

    answer = 10.0

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        return super().wait(gen, interval, self.answer if timeout is None else timeout)


class _Pooled(_Bounded, PooledConnection):
    """The same through a pooler."""


_OPTIONS_REFUSED = re.compile(r"startup parameter|options", re.IGNORECASE)
"""PgBouncer: `unsupported startup parameter: options`; others name the options too. A wrong guess costs one more try."""


def connect(url: str, reach: Reach) -> psycopg.Connection[tuple[Any, ...]]:
    """
    Open a connection in autocommit; each statement on it has the relay's planner settings and time-outs.

    Whether a pooler stands in between is found out: it refuses or drops the settings at the start, or the process that
    answers is not the one that greeted. Then nothing rests on the session, see `packhorse.relay.postgres.pooled`.

    Raises:
        DatabaseUnavailable: There is none within the time; the text holds no password.
    """
    milliseconds = int(reach.answer * 1000)
    limits = {"statement": milliseconds * 4 // 5, "lock": milliseconds // 2}
    try:
        return _direct(url, reach, limits) or _pooled(url, reach, limits)
    except psycopg.Error as error:
        raise DatabaseUnavailable(
            f"{_told('no connection to the database', error)}; {next_step(str(error))}"
        ) from error


def _direct(url: str, reach: Reach, limits: dict[str, int]) -> psycopg.Connection[tuple[Any, ...]] | None:
    """Return a connection whose settings hold as long as it does; None when a pooler is in between."""
    try:
        connection = _opened(_Bounded, url, reach, options=_OPTIONS.format(**limits))
    except psycopg.OperationalError as error:
        if _OPTIONS_REFUSED.search(str(error)):
            return None
        raise
    row = connection.execute(sql.SESSION).fetchone()
    if row == (connection.info.backend_pid, "force_generic_plan"):
        return connection
    connection.close()
    return None


def _pooled(url: str, reach: Reach, limits: dict[str, int]) -> psycopg.Connection[tuple[Any, ...]]:
    connection = _opened(_Pooled, url, reach)
    server = connection.execute(sql.SERVER).fetchone()
    assert server is not None
    connection.lead(sql.PREAMBLE.format(server=server[0], **limits), renames=renames(connection))
    connection.cursor_factory = PooledCursor
    return connection


def _opened(kind: type[C], url: str, reach: Reach, **more: Any) -> C:
    connection = kind.connect(
        url,
        autocommit=True,
        row_factory=tuple_row,
        application_name="packhorse-relay",
        connect_timeout=max(int(reach.connect), 1),
        tcp_user_timeout=int(reach.answer * 1000),
        keepalives_idle=max(int(reach.answer), 1),
        keepalives_interval=1,
        keepalives_count=3,
        **more,
    )
    connection.answer = reach.answer
    return connection


def _told(what: str, error: psycopg.Error) -> str:
    first = str(error).strip().partition("\n")[0]
    return without_secrets(f"{what}: {first or type(error).__name__}")


@contextmanager
def translated(connection: psycopg.Connection[Any], *, rights: str = RELAY_RIGHTS) -> Iterator[None]:
    """
    Run the block; turn the driver's errors into ours. *rights* is the next step where one is missing.

    Raises:
        NotReady: A table, column or right is missing.
        DatabaseUnavailable: The connection is gone, no answer came, or this server is read-only by now; it is closed.
        StatementFailed: The statement failed and the connection is still good.
    """
    try:
        yield
    except pg.InsufficientPrivilege as error:
        raise NotReady(f"{_told('the database is not ready', error)}; {rights}") from error
    except (pg.UndefinedTable, pg.UndefinedColumn, pg.UndefinedFunction, pg.InvalidSchemaName) as error:
        raise NotReady(_told("the database is not ready", error) + "; run `packhorse migrate up`") from error
    except psycopg.Error as error:
        elsewhere = isinstance(error, pg.ReadOnlySqlTransaction)
        idle = connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
        if connection.closed or connection.broken or not idle or elsewhere:
            connection.close()
            raise DatabaseUnavailable(_told("the database does not answer", error)) from error
        waits = isinstance(error, (pg.LockNotAvailable, pg.QueryCanceled))
        step = "; who holds the tables: pg_locks, pg_stat_activity" if waits else ""
        raise StatementFailed(_told("a statement failed", error) + step) from error
