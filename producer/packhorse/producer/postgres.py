"""Adapter to psycopg: run steps on the caller's own connection, in the caller's own transaction."""

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format, TransactionStatus
from psycopg.rows import tuple_row

from packhorse.core.errors import NotReady, UsageError
from packhorse.producer.connections import ASYNC_ALLOWED, SYNC_ALLOWED, wrong_kind
from packhorse.producer.statements import Answer, Bytes, Statement, Steps, Texts, Uuids

T = TypeVar("T")

SyncConnection = psycopg.Connection[Any]
AsyncConnection = psycopg.AsyncConnection[Any]


def checked(given: object) -> SyncConnection:
    """Return *given* when it is a sync connection; raise UsageError otherwise."""
    if isinstance(given, psycopg.Connection):
        return given
    raise wrong_kind(given, SYNC_ALLOWED)


def checked_async(given: object) -> AsyncConnection:
    """Return *given* when it is an async connection; raise UsageError otherwise."""
    if isinstance(given, psycopg.AsyncConnection):
        return given
    raise wrong_kind(given, ASYNC_ALLOWED)


def run(connection: SyncConnection, steps: Steps[T]) -> T:
    """
    Run *steps* on *connection* and return their result; begins, commits and repeats nothing.

    In pipeline mode a statement without rows is only queued.

    Raises:
        UsageError: The connection is in autocommit mode and no transaction is open.
        NotReady: A table, function or right is missing.
    """
    if _in_doubt(connection):
        with connection.pipeline():
            pass  # leaving it waits until the server has answered all that is queued
    _check_transaction(connection)
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor, _translated():
        ongoing = _Ongoing(steps)
        while (statement := ongoing.next()) is not None:
            if statement.columns:
                _teach(cursor)
            cursor.execute(statement.text, statement.parameters)
            ongoing.answer = cursor.fetchall() if statement.returns else ()
        return ongoing.result


async def arun(connection: AsyncConnection, steps: Steps[T]) -> T:
    """Run *steps* on an async *connection*; promises and raises what `run` does."""
    if _in_doubt(connection):
        async with connection.pipeline():
            pass
    _check_transaction(connection)
    async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
        with _translated():
            ongoing = _Ongoing(steps)
            while (statement := ongoing.next()) is not None:
                if statement.columns:
                    _teach(cursor)
                await cursor.execute(statement.text, statement.parameters)
                ongoing.answer = await cursor.fetchall() if statement.returns else ()
            return ongoing.result


class _Ongoing(Generic[T]):
    """Steps on their way: `next` gives the next statement, None at the end, when `result` is there."""

    result: T

    def __init__(self, steps: Steps[T]) -> None:
        self._steps = steps
        self.answer: Answer | None = None

    def next(self) -> Statement | None:
        try:
            return next(self._steps) if self.answer is None else self._steps.send(self.answer)
        except StopIteration as done:
            self.result = done.value
            return None


def database_of(connection: SyncConnection | AsyncConnection) -> str:
    """Return which database *connection* is on, for what is remembered about it; asks no server."""
    pgconn = connection.pgconn
    return b"\0".join((pgconn.host, pgconn.port, pgconn.db)).decode(errors="replace")


def _in_doubt(connection: SyncConnection | AsyncConnection) -> bool:
    """
    Return True when only the server knows whether a transaction is open: autocommit, in a pipeline.

    psycopg counts the `transaction()` blocks that it is in; only without one the pipeline must be waited for.
    """
    status = connection.pgconn.transaction_status
    counted = getattr(connection, "_num_transactions", 0)
    return connection.autocommit and status == TransactionStatus.ACTIVE and not counted


def _check_transaction(connection: SyncConnection | AsyncConnection) -> None:
    if connection.autocommit and connection.pgconn.transaction_status == TransactionStatus.IDLE:
        raise UsageError(
            "the connection is in autocommit mode and no transaction is open, so the message would be committed apart "
            "from your rows; emit inside `with connection.transaction():`"
        )


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (pg.UndefinedTable, pg.UndefinedFunction, pg.UndefinedColumn, pg.InvalidSchemaName) as error:
        raise NotReady(
            f"{_first_line(error)}; run `packhorse migrate up`, and check the outbox's schema setting"
        ) from error
    except pg.InsufficientPrivilege as error:
        raise NotReady(
            f"{_first_line(error)}; `packhorse migrate sql --grants writer=ROLE` has the grants"
        ) from error


def _first_line(error: psycopg.Error) -> str:
    return str(error).strip().partition("\n")[0]


class _ArrayDumper(Dumper):
    """Dump one column as a binary array; psycopg's own dumper of lists takes three times as long."""

    format = Format.BINARY
    element_oid = 0

    def dump(self, obj: Any) -> Buffer | None:
        parts = [struct.pack("!iiIii", 1, 1, self.element_oid, len(obj.values), 1)]
        for value in self.encoded(obj.values):
            if value is None:
                parts.append(_NULL)
            else:
                parts += (_LENGTH.pack(len(value)), value)
        return b"".join(parts)

    def encoded(self, values: Sequence[Any]) -> Sequence[bytes | None]:
        return values


_NULL = b"\xff\xff\xff\xff"
_LENGTH = struct.Struct("!i")


class _TextsDumper(_ArrayDumper):
    oid, element_oid = 1009, 25

    def encoded(self, values: Sequence[Any]) -> Sequence[bytes | None]:
        encoding = self.connection.info.encoding if self.connection else "utf-8"
        return [value if value is None else value.encode(encoding) for value in values]


class _UuidsDumper(_ArrayDumper):
    oid, element_oid = 2951, 2950

    def encoded(self, values: Sequence[Any]) -> Sequence[bytes | None]:
        return [value.bytes for value in values]


class _BytesDumper(_ArrayDumper):
    oid, element_oid = 1001, 17


def _teach(cursor: psycopg.Cursor[Any] | psycopg.AsyncCursor[Any]) -> None:
    cursor.adapters.register_dumper(Texts, _TextsDumper)
    cursor.adapters.register_dumper(Uuids, _UuidsDumper)
    cursor.adapters.register_dumper(Bytes, _BytesDumper)
