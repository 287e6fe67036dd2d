"""The tables outbox and relay, as the relay reads and writes them: the port `Outbox`."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import psycopg

from packhorse.core.errors import DatabaseUnavailable, NotReady
from packhorse.core.jobs import REFERENCE_SUBJECT
from packhorse.relay import needs_sql, sql
from packhorse.relay.deciding.commands import Save
from packhorse.relay.errors import StatementFailed
from packhorse.relay.holds import Hold, Leg, Scope
from packhorse.relay.identity.facts import Facts, Memory
from packhorse.relay.identity.judge import Verdict
from packhorse.relay.identity.look import Judge
from packhorse.relay.model import (
    AGGREGATEID,
    AGGREGATETYPE,
    CREATED_MS,
    PAYLOAD,
    SEQ,
    WITHHELD,
    Batch,
    Position,
    Row,
)
from packhorse.relay.needs import check_cache, check_needs
from packhorse.relay.ports import Orders, Ownership
from packhorse.relay.postgres import holds
from packhorse.relay.postgres.connection import Reach, connect, translated
from packhorse.relay.postgres.holds import HeldRows
from packhorse.relay.postgres.lowest import CHUNK, Lowest

BATCH_BYTES = 16 * 1024 * 1024
"""Payload bytes in one fetch, about: what keeps memory bounded when messages are large."""
LAG_COUNTED = 10_000
"""The gauge of waiting rows ends here; `packhorse relay status` counts further."""
INLINE_BYTES = 16 * 1024
"""A larger payload is read apart from its row, so that a batch of large ones can be cut before it is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cycle:
    """What a large cycle needs to know for each of its fetches; void with the connection."""

    horizon: str
    target: str
    before: str
    low: int
    late: tuple[str, ...]


_STATEMENTS = (
    "POLL", "TARGET", "PAYLOADS", "RUNNING_THEN", "LOWEST", "FETCH", "LOG_REACHED", "FLUSH_LOG", "OWN", "SAVE", "SAVE_HOLDS",
    "HOLDS", "ORDERS", "HELD", "TOP", "RECORD_MODE", "RECORD_TROUBLE", "RELEASE", "SUBJECTS", "LAG",
)  # fmt: skip


class PostgresOutbox:
    """Be the port `Outbox`; one thread at a time."""

    def __init__(
        self, url: str, schema: str, *, batch_rows: int, shard: int = 0, reach: Reach | None = None
    ) -> None:
        self._url = url
        self._reach = reach or Reach()
        self._schema = schema
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._cycle: _Cycle | None = None
        self._shard = shard
        self._judge = Judge(schema, shard)
        self._memory: Memory | None = None
        self._large = False
        self._limit = batch_rows
        self._sql: dict[str, str] = {}
        self._write_down(shards=1)
        self._held_rows = HeldRows(self._rows)

    def _write_down(self, *, shards: int) -> None:
        """Put the statements together; which rows are this shard's is part of them."""
        self._shards = shards
        names = {
            "schema": self._schema,
            "limit": self._limit,
            "over": self._limit + 1,
            "inline": INLINE_BYTES,
            "chunk": CHUNK,
            "count": LAG_COUNTED,
            "shard": self._shard,
            "mine": sql.MINE.format(shards=shards, shard=self._shard) if shards > 1 else "",
        }
        self._sql = {name: getattr(sql, name).format(**names) for name in _STATEMENTS}

    def check_ready(self) -> None:
        """
        Look for tables, functions, the rights on them, and the sequence's cache.

        Raises:
            NotReady: Names what is missing or wrong, and the command that mends it.
            DatabaseUnavailable: No connection, or no answer.
        """
        self._open()
        check_needs(self._schema, self._ask(needs_sql.NEEDS.format(schema=self._schema), {}))
        check_cache(self._schema, self._ask(needs_sql.CACHE.format(schema=self._schema), {}))
        self._judged()

    def _judged(self) -> tuple[Facts, Verdict]:
        """
        Return what the server is to the position that it holds.

        Raises:
            NotReady: The position can't be trusted here; nothing may be published before somebody has mended that.
        """
        facts, verdict = self._judge.look(self._ask, self._memory)
        if verdict.refusal is not None:
            raise NotReady(verdict.refusal)
        return facts, verdict

    def registered_topics(self) -> list[str]:
        """Return the topics of the registered schemas: those that applications of this database write to, and others."""
        self._open()
        subjects = {subject for (subject,) in self._rows("SUBJECTS")} - {REFERENCE_SUBJECT}
        return sorted({subject.rpartition("-")[0] for subject in subjects})

    def own(self, token: UUID, owner: str, lease: float) -> Ownership | None:
        self._cycle = None
        self._held_rows.forget()
        self._open()
        facts, verdict = self._judged()
        rows = self._rows("OWN", token=token, owner=owner, lease=lease, incarnation=facts.here)
        if not rows:
            return None
        horizon, target, progress, epoch, trouble, orders, finish, mode, shards = rows[0]
        if shards != self._shards:
            self._write_down(shards=shards)
        position = Position(horizon=horizon, target=target, progress=progress if target else 0)
        self._memory = Memory(epoch=epoch, published=facts.published)
        return Ownership(
            position=position, epoch=epoch, trouble=trouble, verdict=verdict, holds=self._holds(), orders=orders,
            finish=finish, mode=mode, shard=self._shard, shards=shards,
        )  # fmt: skip

    def _holds(self) -> tuple[Hold, ...]:
        return tuple(holds.read(row) for row in self._rows("HOLDS"))

    def orders(self) -> Orders:
        rows = self._rows("ORDERS")
        if not rows:
            raise StatementFailed(f"shard {self._shard} is gone: there are fewer shards now")
        orders, finish = rows[0]
        return Orders(holds=self._holds(), orders=orders, finish=finish)

    def fetch_held(self, scope: Scope, leg: Leg, limit: int) -> Batch:
        return self._filled(self._held_rows.fetch(scope, leg, limit))

    def fetch(self, position: Position, limit: int) -> Batch:
        assert limit == self._limit, "the limit is part of the prepared statements"
        if position.target is not None:
            return self._next(position, position.target, unflushed=None)
        head, *rows = self._rows("TARGET" if self._large else "POLL", horizon=position.horizon)
        target, unflushed = head[AGGREGATETYPE], None if head[CREATED_MS] else head[AGGREGATEID]
        if self._large or len(rows) > limit:
            return self._next(position, target, unflushed=unflushed)
        return self._filled(
            Batch(start=position, target=target, rows=rows, complete=True, unflushed=unflushed)
        )

    def _next(self, position: Position, target: str, *, unflushed: str | None) -> Batch:
        cycle = self._cycle
        if cycle is None or (cycle.horizon, cycle.target) != (position.horizon, target):
            cycle = self._cycle = self._look_over(position.horizon, target)
        rows = self._rows(
            "FETCH", low=max(cycle.low - 1, position.progress), before=cycle.before, target=target,
            late=list(cycle.late), progress=position.progress,
        )  # fmt: skip
        complete = len(rows) < self._limit
        self._large = not (complete and position.target is None)
        return self._filled(
            Batch(start=position, target=target, rows=rows, complete=complete, unflushed=unflushed)
        )

    def _filled(self, batch: Batch) -> Batch:
        """Bring the payloads that were held back, cut before they grow too large together."""
        held = [(n, row[WITHHELD]) for n, row in enumerate(batch.rows) if row[WITHHELD] is not None]
        if not held:
            return batch
        total, cut = 0, len(batch.rows)
        for n, size in held:
            total += size
            if total > BATCH_BYTES and n != held[0][0]:
                cut = n
                break
        rows = list(batch.rows[:cut])
        numbers = [rows[n][SEQ] for n, _ in held if n < cut]
        payloads: dict[int, bytes] = dict(self._rows("PAYLOADS", seqs=numbers))
        if len(payloads) < len(numbers):
            raise StatementFailed("rows vanished between two reads; they are read again")
        for n, _ in held:
            if n < cut:
                row = rows[n]
                rows[n] = (*row[:PAYLOAD], payloads[row[SEQ]], *row[PAYLOAD + 1 :])
        if cut == len(batch.rows):
            return replace(batch, rows=rows)
        return replace(batch, rows=rows, complete=False, reach=0)

    def _look_over(self, horizon: str, target: str) -> _Cycle:
        """Find where a large cycle begins."""
        lowest = Lowest(self._rows, horizon, target)
        while not lowest.done:
            lowest.look()
        before = f"{lowest.xmax}:{lowest.xmax}:"
        return _Cycle(
            horizon=horizon, target=target, before=before, low=lowest.low or 0, late=tuple(lowest.late)
        )

    def log_reached(self, until: str) -> bool:
        return bool(self._rows("LOG_REACHED", until=until)[0][0])

    def flush_log(self) -> None:
        self._rows("FLUSH_LOG")

    def save(self, token: UUID, save: Save) -> bool:
        values: dict[str, object] = {
            "token": token, "rows": save.rows, "horizon": save.new.horizon, "target": save.new.target, "progress": save.new.progress,
            "old_horizon": save.old.horizon, "old_target": save.old.target, "old_progress": save.old.progress,
        }  # fmt: skip
        if save.holds:
            saved = bool(self._rows("SAVE_HOLDS", **values, **holds.written(save.holds))[0][0])
        else:
            saved = self._changed("SAVE", **values)
        if saved and self._memory is not None:
            self._memory = replace(self._memory, published=self._memory.published + save.rows)
        return saved

    def record_mode(self, token: UUID, mode: str, cause: str) -> bool:
        return self._changed("RECORD_MODE", token=token, mode=mode, cause=cause)

    def record_trouble(self, token: UUID, text: str | None) -> bool:
        return self._changed("RECORD_TROUBLE", token=token, text=text)

    def release(self, token: UUID) -> None:
        self._changed("RELEASE", token=token)

    def lag(self, position: Position) -> tuple[int, float]:
        rows, seconds = self._rows(
            "LAG", horizon=position.horizon, target=position.target, progress=position.progress
        )[0]
        return rows, seconds or 0.0

    def close(self) -> None:
        connection, self._connection, self._cycle = self._connection, None, None
        if connection is not None:
            connection.close()

    def _rows(self, name: str, **values: object) -> list[Row]:
        return self._ask(self._sql[name], values)

    def _ask(self, text: str, values: dict[str, object]) -> list[Row]:
        connection = self._held()
        with translated(connection):
            return connection.cursor(binary=True).execute(text, values).fetchall()

    def _changed(self, name: str, **values: object) -> bool:
        connection = self._held()
        with translated(connection):
            return connection.execute(self._sql[name], values).rowcount == 1

    def _held(self) -> psycopg.Connection[tuple[Any, ...]]:
        """
        Return the connection that everything was read through.

        Raises:
            DatabaseUnavailable: It is gone; only `own` begins anew, for what was read through it is void.
        """
        if self._connection is None or self._connection.closed:
            raise DatabaseUnavailable("the connection to the database is gone")
        return self._connection

    def _open(self) -> None:
        if self._connection is None or self._connection.closed:
            self.close()
            self._connection = connect(self._url, self._reach)
