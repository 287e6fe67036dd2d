"""
Adapter to psycopg and libpq: statements whose result is not read, sent in libpq's pipeline mode.

A statement is converted when it is queued, so that a value that can't be sent is refused there, and sent once its handler has
returned, so that a handler that fails has nothing to undo. What was sent runs on the server while the next handlers run here.
Whatever else is executed on the connection comes behind what is queued: the cursors of `guarding` wait for it first.

Sending goes through libpq directly: 4 µs a statement of the client's time, where `Connection.pipeline()` takes 22.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg
from psycopg import errors as pg
from psycopg import sql
from psycopg._queries import PostgresQuery
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.waiting import Ready, Wait

from packhorse.processor.outcomes import TransactionRefused
from packhorse.processor.running.faults import is_contention, is_unavailable
from packhorse.processor.storing.guarding.statements import LONGEST_REMEMBERED, verdict_on
from packhorse.processor.storing.pipelining.failing import StatementFailed
from packhorse.processor.storing.pipelining.preparing.postgres import hear

Parameters = Sequence[Any] | Mapping[str, Any] | None
Steps = Generator[Any, Any, None]

SEND_FROM = 16
"""Statements of members that have returned, from which on they are sent: 4.0 µs each; 5.9 with 64, 5.5 with 256."""
MOST = 1000
"""Statements on their way, from which on the next ones wait for their results: a bound on memory here and there."""
PREPARED_MAX = 100
"""Most statements that are prepared on one connection, as psycopg has it."""

_WELL = {ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK, ExecStatus.EMPTY_QUERY}


SAVEPOINT = b"SAVEPOINT packhorse_member"
TO_SAVEPOINT = b"ROLLBACK TO SAVEPOINT packhorse_member"


class Entry(NamedTuple):
    """One queued statement, converted; of which member."""

    member: object
    query: bytes
    types: tuple[int, ...]
    parameters: Sequence[Any] | None
    formats: Sequence[Any] | None


class Pipe:
    """
    What is queued on one connection; for one thread or task at a time.

    The lane calls `begin` before a handler, then `keep` when it returned or `drop` when it failed, and `sync` before it ends
    the transaction. The methods that wait are generators for the connection's `wait`, called with its lock held.

    Attributes:
        own: What the member in hand has queued; another list for each, so that a thread that comes late finds none.
        is_sending: The connection is in pipeline mode.
        failed: How a member's statement failed while it was not in hand, until the transaction is rolled back: a handler that
            runs when an earlier member's statement fails may hide it, and may be hit by its time-out meanwhile.
        is_exposed: Something of the member in hand was sent, so its failure must be rolled back.
    """

    def __init__(self, connection: psycopg.BaseConnection[Any]) -> None:
        self._pgconn = connection.pgconn
        self._transformer = Transformer(connection)
        self._converted: dict[tuple[Any, bool], PostgresQuery] = {}
        self._seen: set[tuple[bytes, tuple[int, ...]]] = set()
        self._names: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        self._named = 0
        self._kept: list[Entry] = []
        self.own: list[Entry] = []
        self._expected: deque[tuple[Entry | None, bool]] = deque()
        self._failure: tuple[Entry, pg.Error] | None = None
        self._member: object = None
        self._in_hand = False
        self._guards = False
        self.is_sending = False
        self.failed: StatementFailed | None = None
        self.is_exposed = False
        hear(connection, self)

    def forget_names(self) -> None:
        """Prepare anew what was prepared: psycopg has the server forget all that is."""
        self._names.clear()

    @property
    def is_waiting(self) -> bool:
        """Return whether something is queued or on its way."""
        return self.is_sending or bool(self.own or self._kept)

    @property
    def has_own(self) -> bool:
        """Return whether the member in hand has queued something, its savepoint apart."""
        return bool(self.own) and (len(self.own) > 1 or self.own[0].query is not SAVEPOINT)

    @property
    def may_send(self) -> bool:
        """Return whether sending now hides nothing: the transaction has not failed."""
        return self.is_sending or self._pgconn.transaction_status == TransactionStatus.INTRANS

    def guard(self) -> None:
        """Let the next member begin with a savepoint; it is sent with the first thing of that member that is sent."""
        self._guards = True

    def begin(self, member: object) -> None:
        """Begin *member*, which errors of its statements will name."""
        self._member, self._in_hand = member, True
        self.own = [Entry(member, SAVEPOINT, (), None, None)] if self._guards else []
        self._guards = False
        self.is_exposed = False

    def keep(self) -> bool:
        """End the member in hand, which has returned; return whether it is time to `send_gen`."""
        self._in_hand = False
        if self.has_own:
            self._kept += self.own
        self.own = []
        return len(self._kept) >= SEND_FROM

    def drop(self) -> None:
        """End the member in hand, which has failed: what it queued and was not sent is forgotten."""
        self._in_hand = False
        self.own = []

    def add(self, own: list[Entry], query: Any, parameters: Parameters = None) -> bool:
        """
        Queue a statement in *own*; return whether so many are queued that `send_gen` is due.

        Raises:
            TransactionRefused: It would end the transaction, or can't be queued.
            psycopg.Error: The parameters can't be converted.
        """
        key = query, parameters is None
        converted = self._converted.get(key) if isinstance(query, str | bytes) else None
        if converted is None:
            converted = self._convert(query, parameters)
            if isinstance(query, str | bytes) and len(query) <= LONGEST_REMEMBERED:
                if len(self._converted) >= PREPARED_MAX:
                    self._converted.clear()
                self._converted[key] = converted
        else:
            converted.dump(parameters)
        own.append(Entry(self._member, converted.query, converted.types, converted.params, converted.formats))
        return len(own) >= MOST

    def _convert(self, query: Any, parameters: Parameters) -> PostgresQuery:
        verdict = verdict_on(text_of(query))
        if verdict.refused:
            raise TransactionRefused(verdict.refused)
        if verdict.copies or verdict.sets or verdict.uses:
            raise TransactionRefused(
                "COPY and savepoints can't be queued: use ctx.connection, which keeps its place behind what is queued"
            )
        converted = PostgresQuery(self._transformer)
        converted.convert(query, parameters)
        return converted

    def send_gen(self) -> Steps:
        """
        Send what is queued, without waiting for results; with very many on their way, wait for half of those.

        Raises:
            psycopg.OperationalError: The connection was lost.
        """
        self._send()
        pgconn = self._pgconn
        many = len(self._expected) > MOST
        if many:
            pgconn.send_flush_request()
        unsent = pgconn.flush()
        if not (many or unsent):
            # Waiting would let go of the interpreter's lock, which other lanes hold for milliseconds.
            pgconn.consume_input()
            self._receive()
            return
        while True:
            ready = yield (Wait.RW if unsent or not many else Wait.R)
            if ready & Ready.R:
                pgconn.consume_input()
                self._receive()
            if unsent:
                unsent = pgconn.flush()
            if not many or len(self._expected) <= MOST // 2:
                return

    def sync_gen(self) -> Steps:
        """
        Send what is queued and wait until all of it has run.

        Raises:
            StatementFailed: One failed, and the transaction with it; it names the member.
            psycopg.OperationalError: The connection was lost.
        """
        if not self.is_waiting:
            return
        self._send()
        self._pgconn.pipeline_sync()
        self._expected.append((None, False))
        unsent = self._pgconn.flush()
        while self._expected:
            ready = yield (Wait.RW if unsent else Wait.R)
            if ready & Ready.R:
                self._pgconn.consume_input()
                self._receive()
            if unsent:
                unsent = self._pgconn.flush()
        self._pgconn.exit_pipeline_mode()
        self.is_sending = False
        self._raise_failure()

    def abandon_gen(self) -> Steps:
        """Forget what is queued, and wait for what is on its way whatever becomes of it: the transaction is rolled back."""
        self._kept.clear()
        yield from self.forget_gen()
        self.drop()
        self.failed = None

    def undo_gen(self) -> Steps:
        """
        Forget what the last member queued and was not sent, and wait for the rest, before its savepoint is gone back to.

        Raises:
            StatementFailed: One of an earlier member had failed, so that savepoint was never set: the one of that name which is
                there is an earlier member's.
        """
        yield from self.forget_gen()
        if self.failed is not None and self.failed.member is not self._member:
            raise self.failed
        self.failed = None

    def forget_gen(self) -> Steps:
        """Forget what the member in hand queued and was not sent, and wait for the rest: its savepoint is gone back to."""
        self.own.clear()
        if self.is_sending:
            with suppress(StatementFailed, psycopg.Error):  # a lost connection says so again at once
                yield from self.sync_gen()

    def _send(self) -> None:
        if not self.is_sending:
            self._pgconn.enter_pipeline_mode()
            self.is_sending = True
        for entry in self._kept:
            self._send_one(entry)
        for entry in self.own:
            self._send_one(entry)
        self.is_exposed = self.is_exposed or bool(self.own)
        self._kept.clear()
        self.own.clear()

    def _send_one(self, entry: Entry) -> None:
        key = entry.query, entry.types
        name = self._names.get(key)
        if name is None and key in self._seen and len(self._names) < PREPARED_MAX:
            self._named += 1
            name = self._names[key] = b"packhorse_%d" % self._named
            self._pgconn.send_prepare(name, entry.query, entry.types)
            self._expected.append((entry, True))
        if name is None:
            if len(self._seen) >= MOST:
                self._seen.clear()
            self._seen.add(key)
            self._pgconn.send_query_params(entry.query, entry.parameters, entry.types, entry.formats)
        else:
            self._pgconn.send_query_prepared(name, entry.parameters, entry.formats)
        self._expected.append((entry, False))

    def _receive(self) -> None:
        """Take the results that are there."""
        pgconn, expected = self._pgconn, self._expected
        ended = False
        while expected and not pgconn.is_busy():
            result = pgconn.get_result()
            if result is None:
                if ended:
                    return
                ended = True
                continue
            ended = False
            entry, prepares = expected.popleft()
            if entry is None or result.status in _WELL:
                continue
            if prepares:
                self._names.pop((entry.query, entry.types), None)
            if self._failure is None and result.status == ExecStatus.FATAL_ERROR:
                self._failure = entry, pg.error_from_result(result, encoding=pgconn._encoding)  # noqa: SLF001 psycopg asks it the same way

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is None:
            return
        entry, error = failure
        if isinstance(error, pg.InvalidSqlStatementName):
            self._names.clear()
        is_own = self._in_hand and entry.member is self._member
        if not is_own:
            self.failed = StatementFailed(entry.member, type(error).__name__)
            self.failed.__cause__ = error
        if (
            self.failed is None
            or is_own
            or self._pgconn.status == ConnStatus.BAD
            or is_contention(error)
            or is_unavailable(error)
        ):
            raise error
        raise self.failed from error


def text_of(query: Any) -> bytes:
    """Return the text of *query* as bytes; empty where psycopg alone knows how."""
    if isinstance(query, str):
        return query.encode(errors="replace")
    if isinstance(query, bytes):
        return query
    return query.as_bytes(None) if isinstance(query, sql.Composable) else b""
