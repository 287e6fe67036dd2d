"""The outbox's partitions through the functions of migration 0003: the port `Partitions`."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
from psycopg import errors as pg

from packhorse.core.errors import NotReady
from packhorse.relay.postgres.connection import Reach, connect, translated
from packhorse.relay.postgres.pooled import PooledConnection
from packhorse.relay.retention import sql
from packhorse.relay.retention.model import (
    Blocker,
    Code,
    Drop,
    Empty,
    Facts,
    KeptRow,
    LastRun,
    Make,
    Outcome,
    Overdue,
    Partition,
    Report,
    Step,
)

PATIENCE = 0.05
"""Seconds that a lock is waited for, and so the longest that a writer can wait behind us."""
ANSWER = 300.0
"""Seconds: proving that a large partition has no row of a held key reads it whole."""


class PostgresPartitions:
    """Be the port `Partitions`."""

    def __init__(
        self, url: str, schema: str, *, patience: float = PATIENCE, reach: Reach | None = None
    ) -> None:
        self._url = url
        self._schema = schema
        self._patience = int(patience * 1000)
        self._reach = reach or Reach(answer=ANSWER)
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._sql = {
            name: getattr(sql, name).format(schema=schema).strip()
            for name in ("FACTS", "MAKE", "EMPTY", "DROP", "RECORD", "LAST")
        }

    def facts(self) -> Facts:
        with self._asked() as connection:
            rows = connection.execute(self._sql["FACTS"]).fetchall()
        if not rows:
            raise NotReady(
                f"table {self._schema}.outbox has no partition of ours, not even outbox_default; run `packhorse migrate up`, "
                "and see docs/how-to/retention.md"
            )
        partitions = tuple(Partition(name=name, day=day, size=size or 0) for _, name, day, size in rows)
        return Facts(today=rows[0][0], partitions=partitions)

    def take(self, step: Step) -> Outcome:
        match step:
            case Make(day=day):
                return self._call(step, "MAKE", day=day)
            case Empty(name=name, keep=keep):
                return self._call(step, "EMPTY", name=name, keep=keep, act=True)
            case Drop(name=name, keep=keep):
                return self._call(step, "DROP", name=name, keep=keep)

    def look(self, step: Step) -> Outcome:
        if isinstance(step, Empty):
            return self._call(step, "EMPTY", name=step.name, keep=step.keep, act=False)
        return Outcome(step=step, code=Code.DUE)

    def record(self, report: Report, *, by: str, keep_days: int | None) -> None:
        told = json.dumps([each.as_dict() for each in report.overdue])
        with self._asked() as connection:
            connection.execute(self._sql["RECORD"], {"by": by, "keep_days": keep_days, "overdue": told})

    def last(self) -> LastRun:
        with self._asked() as connection:
            row = connection.execute(self._sql["LAST"]).fetchone()
        if row is None:
            raise NotReady(
                f"{self._schema}.retention has lost its row; run INSERT INTO {self._schema}.retention DEFAULT VALUES"
            )
        ran_at, ran_by, keep_days, overdue = row
        return LastRun(
            ran_at=ran_at,
            ran_by=ran_by,
            keep_days=keep_days,
            overdue=tuple(Overdue(**each) for each in overdue),
        )

    def cancel(self) -> None:
        connection = self._connection
        if connection is not None and not connection.closed:
            with contextlib.suppress(psycopg.Error):
                connection.cancel_safe(timeout=1)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _call(self, step: Step, statement: str, **values: object) -> Outcome:
        with self._asked() as connection:
            row = connection.execute(self._sql[statement], {"patience": self._patience, **values}).fetchone()
        assert row is not None
        return _outcome(step, row[0])

    @contextlib.contextmanager
    def _asked(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._url, self._reach)
            if not isinstance(self._connection, PooledConnection):
                self._connection.execute(sql.SESSION)
        with translated(self._connection):
            try:
                yield self._connection
            except (pg.UndefinedFunction, pg.UndefinedTable) as error:
                raise NotReady(
                    f"database schema {self._schema} has no functions for retention; run `packhorse migrate up`"
                ) from error
            except pg.InsufficientPrivilege as error:
                raise NotReady(
                    f"this database role may not run retention in {self._schema}; "
                    "`packhorse migrate sql --grants relay=ROLE` prints what it needs"
                ) from error


def _outcome(step: Step, answer: Mapping[str, Any]) -> Outcome:
    row, blocker = answer.get("row"), answer.get("blocker")
    return Outcome(
        step=step,
        code=Code(answer["outcome"]),
        row=None if row is None else KeptRow(**row),
        blocker=None if blocker is None else Blocker(**blocker),
        size=answer.get("bytes", 0),
        text=answer.get("text"),
    )
