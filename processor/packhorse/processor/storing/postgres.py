"""Adapter to psycopg: guarded connections for lanes, steps executed on them, errors classed."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from packhorse.core.errors import DatabaseUnavailable, NotReady, PackhorseError, SettingsError
from packhorse.core.redaction import without_secrets
from packhorse.processor.running.endings import Contention
from packhorse.processor.running.faults import is_contention, is_unavailable
from packhorse.processor.storing.guarding.postgres import (
    AsyncGuardedConnection,
    Guarded,
    GuardedConnection,
)
from packhorse.processor.storing.pipelining.postgres import TO_SAVEPOINT
from packhorse.processor.storing.sql import BEGIN, WAS_COMMITTED
from packhorse.processor.storing.store import Answer, Steps

__all__ = [
    "AsyncConnection",
    "AsyncGuardedConnection",
    "Connection",
    "Guarded",
    "GuardedConnection",
    "IntegrityError",
    "UniqueViolation",
    "abandon",
    "abegin",
    "acommand",
    "aconnect",
    "arun",
    "async_abandon",
    "async_sync",
    "async_undo",
    "awas_committed",
    "begin",
    "command",
    "connect",
    "run",
    "savepoint",
    "settings_of",
    "standing",
    "sync",
    "translated",
    "undo",
    "was_committed",
]

T = TypeVar("T")

Connection = psycopg.Connection[Any]
AsyncConnection = psycopg.AsyncConnection[Any]

UniqueViolation = pg.UniqueViolation
IntegrityError = psycopg.IntegrityError


def settings_of(url: str, *, idle_ms: int, lock_ms: int, connect_s: int = 5) -> str:
    """
    Return *url* with what a lane needs: bounded waits, so that neither a frozen owner nor a dead network blocks the next.

    Args:
        url: libpq URL or connection string.
        idle_ms: Longest time a transaction may lie idle before the server ends it.
        lock_ms: Longest wait for a lock.
        connect_s: Longest time to connect.

    Raises:
        SettingsError: *url* is no connection string.
    """
    ours = f"-c idle_in_transaction_session_timeout={idle_ms} -c lock_timeout={lock_ms}"
    try:
        given = conninfo_to_dict(url).get("options")
        options = f"{given} {ours}" if given else ours
        return make_conninfo(
            url,
            connect_timeout=connect_s,
            options=options,
            application_name="packhorse processor",
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
            tcp_user_timeout=15_000,
        )
    except psycopg.ProgrammingError as error:
        raise SettingsError(f"PACKHORSE_DATABASE_URL is no connection string: {_first_line(error)}") from None


def connect(conninfo: str) -> GuardedConnection:
    """
    Return a new connection, between transactions.

    Raises:
        DatabaseUnavailable: The server does not answer or takes no more connections.
        NotReady: It refuses user or database.
    """
    with translated():
        return GuardedConnection.connect(conninfo, autocommit=True)


async def aconnect(conninfo: str) -> AsyncGuardedConnection:
    """Return a new async connection; promises and raises what `connect` does."""
    with translated():
        return await AsyncGuardedConnection.connect(conninfo, autocommit=True)


def terminate(conninfo: str, pid: int, then: Steps[None] | None = None) -> None:
    """Have the server end the session *pid* of this role, and do *then*, from a thread of its own; best effort."""

    def end() -> None:
        with suppress(psycopg.Error, PackhorseError):
            connection = connect(conninfo)
            try:
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
                if then is not None:
                    run(connection, then)
            finally:
                connection.end()

    threading.Thread(target=end, name="packhorse-terminate", daemon=True).start()


def run(connection: GuardedConnection, steps: Steps[T]) -> T:
    """
    Execute *steps* on *connection* and return their result.

    Raises:
        DatabaseUnavailable, Contention, NotReady: As `translated` says; a unique violation passes through.
    """
    with translated(connection), psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        sync(connection)
        answer: Answer | None = None
        while True:
            try:
                statement = next(steps) if answer is None else steps.send(answer)
            except StopIteration as done:
                result: T = done.value
                return result
            cursor.execute(statement.text, statement.parameters)
            answer = Answer(cursor.fetchall() if cursor.description else (), cursor.rowcount)


async def arun(connection: AsyncGuardedConnection, steps: Steps[T]) -> T:
    """Execute *steps* on an async *connection*; promises and raises what `run` does."""
    with translated(connection):
        async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
            await async_sync(connection)
            answer: Answer | None = None
            while True:
                try:
                    statement = next(steps) if answer is None else steps.send(answer)
                except StopIteration as done:
                    result: T = done.value
                    return result
                await cursor.execute(statement.text, statement.parameters)
                answer = Answer(await cursor.fetchall() if cursor.description else (), cursor.rowcount)


def begin(connection: GuardedConnection) -> str:
    """Begin a transaction and return its id."""
    with translated(connection), psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        cursor.execute(BEGIN)
        cursor.nextset()
        return str(cursor.fetchall()[0][0])


async def abegin(connection: AsyncGuardedConnection) -> str:
    """Begin a transaction and return its id."""
    with translated(connection):
        async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
            await cursor.execute(BEGIN)
            cursor.nextset()
            return str((await cursor.fetchall())[0][0])


def command(connection: GuardedConnection, text: bytes) -> None:
    """
    Execute one command around transactions and savepoints, behind what is queued; a rollback forgets that.

    Raises:
        StatementFailed: Something that was queued failed; nothing of *text* was done.
        DatabaseUnavailable, Contention, NotReady: As `translated` says.
    """
    with translated(connection), psycopg.Cursor(connection) as cursor:
        if text.startswith(b"ROLLBACK"):
            abandon(connection)
        else:
            sync(connection)
        cursor.execute(text)


async def acommand(connection: AsyncGuardedConnection, text: bytes) -> None:
    """Execute one command on an async *connection*; promises and raises what `command` does."""
    with translated(connection):
        async with psycopg.AsyncCursor(connection) as cursor:
            if text.startswith(b"ROLLBACK"):
                await async_abandon(connection)
            else:
                await async_sync(connection)
            await cursor.execute(text)


def savepoint(connection: Guarded) -> None:
    """Set a savepoint before the next handler, once that does anything: one that does nothing costs nothing."""
    connection.pipe.guard()


def undo(connection: GuardedConnection) -> None:
    """
    Undo what the last handler did since its savepoint; nothing is sent when nothing of it was.

    Raises:
        StatementFailed: A statement of an earlier member has failed: all is to be rolled back.
        DatabaseUnavailable, Contention, NotReady: As `translated` says.
    """
    if connection.pipe.is_exposed:
        with connection.lock:
            connection.wait(connection.pipe.undo_gen())
        command(connection, TO_SAVEPOINT)


async def async_undo(connection: AsyncGuardedConnection) -> None:
    """Undo what the last handler did, as `undo`."""
    if connection.pipe.is_exposed:
        async with connection.lock:
            await connection.wait(connection.pipe.undo_gen())
        await acommand(connection, TO_SAVEPOINT)


def sync(connection: GuardedConnection) -> None:
    """
    Wait until all that is queued has run.

    Raises:
        StatementFailed: One statement failed, and the transaction with it; it names the member.
        psycopg.Error: The transaction lost to another one, or the connection was lost.
    """
    connection.sync()


async def async_sync(connection: AsyncGuardedConnection) -> None:
    """Wait until all that is queued has run; raises what `sync` does."""
    await connection.sync()


def abandon(connection: GuardedConnection) -> None:
    """Forget what is queued: the transaction is rolled back."""
    connection.pipe.failed = None
    if connection.pipe.is_waiting:
        with connection.lock:
            connection.wait(connection.pipe.abandon_gen())


async def async_abandon(connection: AsyncGuardedConnection) -> None:
    """Forget what is queued: the transaction is rolled back."""
    connection.pipe.failed = None
    if connection.pipe.is_waiting:
        async with connection.lock:
            await connection.wait(connection.pipe.abandon_gen())


def was_committed(connection: GuardedConnection, xid: str) -> bool:
    """Return whether the transaction *xid*, which a handler has ended, was committed."""
    with translated(connection), psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        abandon(connection)
        row = cursor.execute(WAS_COMMITTED, (xid,)).fetchone()
        return bool(row and row[0])


async def awas_committed(connection: AsyncGuardedConnection, xid: str) -> bool:
    """Return whether the transaction *xid*, which a handler has ended, was committed."""
    with translated(connection):
        async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
            await async_abandon(connection)
            row = await (await cursor.execute(WAS_COMMITTED, (xid,))).fetchone()
            return bool(row and row[0])


def standing(connection: Guarded) -> str:
    """Return where the transaction stands: "open", "failed", "none" or "lost"."""
    match connection.pgconn.transaction_status:
        case TransactionStatus.INTRANS | TransactionStatus.ACTIVE:
            return "open"
        case TransactionStatus.INERROR:
            return "failed"
        case TransactionStatus.IDLE:
            return "none"
        case _:
            return "lost"


@contextmanager
def translated(connection: Guarded | None = None) -> Iterator[None]:
    """
    Raise the driver's errors as those of our tree, with the cause chained; on *connection*, any that ended it says so.

    Raises:
        Contention: The transaction lost to another one.
        DatabaseUnavailable: The server is away, or ended the connection.
        NotReady: A table or right is missing, or the server refuses user or database.
    """
    try:
        yield
    except (pg.UndefinedTable, pg.UndefinedColumn, pg.InvalidSchemaName) as error:
        raise NotReady(f"{_first_line(error)}; run `packhorse migrate up`") from error
    except (pg.InsufficientPrivilege, pg.InvalidCatalogName, pg.InvalidAuthorizationSpecification) as error:
        raise NotReady(f"{_first_line(error)}; check PACKHORSE_DATABASE_URL and the role's grants") from error
    except psycopg.Error as error:
        if is_contention(error):
            raise Contention(f"the transaction lost to another one: {type(error).__name__}") from error
        ended = connection is not None and connection.closed
        if ended or is_unavailable(error) or isinstance(error, _OF_THE_LINK):
            raise DatabaseUnavailable(
                f"the database is away: {_first_line(error)}; is it up, and is PACKHORSE_DATABASE_URL right?"
            ) from error
        raise


_OF_THE_LINK = (psycopg.OperationalError, psycopg.InterfaceError)


def _first_line(error: psycopg.Error) -> str:
    return without_secrets(str(error).strip().partition("\n")[0])
