"""Outboxes with days behind them: partitions of the past, rows of the past, and what is published."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

import psycopg

from packhorse.producer.partitions import Day
from packhorse.relay.postgres.connection import Reach
from packhorse.relay.retention.model import Facts, Outcome, Report, Rules
from packhorse.relay.retention.postgres import PostgresPartitions
from packhorse.relay.retention.shell import run_once

Connection = psycopg.Connection[Any]

ROWS = """
INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, payload, created_at)
SELECT gen_random_uuid(), %s, 'k' || n %% 50, 't.T', '1', decode(repeat('5a', 100), 'hex'), %s::timestamp + n * interval '1 ms'
  FROM generate_series(1, %s) AS n"""


def today(connection: Connection) -> date:
    """Return the database's day, UTC."""
    row = connection.execute("SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date").fetchone()
    assert row is not None
    found: date = row[0]
    return found


def past(connection: Connection, days: int, *, rows: int = 20, kind: str = "orders") -> list[str]:
    """Make the partitions of the last *days* days with *rows* rows each; return their names, the oldest first."""
    made = []
    for n in range(days, 0, -1):
        day = Day(first=today(connection) - timedelta(days=n))
        for statement in day.statements("packhorse"):
            connection.execute(statement.encode())
        fill(connection, n, rows=rows, kind=kind)
        made.append(day.name)
    return made


def fill(connection: Connection, days_ago: int, *, rows: int = 1, kind: str = "orders") -> None:
    """Write *rows* rows that say they are of the day *days_ago* days before today."""
    connection.execute(ROWS, (kind, today(connection) - timedelta(days=days_ago), rows))


def publish(connection: Connection) -> None:
    """Say that every row committed so far is published."""
    connection.execute(
        "UPDATE packhorse.relay SET horizon = pg_current_snapshot(), target = NULL, progress = 0"
    )


def names(connection: Connection) -> set[str]:
    """Return the names of the outbox's partitions."""
    found = connection.execute(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE i.inhparent = 'packhorse.outbox'::regclass"
    ).fetchall()
    return {name for (name,) in found}


def partitions(connection: Connection) -> dict[str, int]:
    """Return the outbox's partitions with the number of their rows, while nobody drops any."""
    return {name: count(connection, name) for name in names(connection)}


def count(connection: Connection, table: str = "outbox") -> int:
    """Return how many rows there are."""
    row = connection.execute(f"SELECT count(*) FROM packhorse.{table}".encode()).fetchone()
    assert row is not None
    return int(row[0])


class Retention:
    """Retention of one database, without a process of its own."""

    def __init__(self, url: str, *, patience: float = 0.05) -> None:
        self.partitions = PostgresPartitions(url, "packhorse", patience=patience, reach=Reach(answer=20))

    def run(self, keep_days: int | None = 14, *, ahead: int = 14) -> Report:
        """Run once."""
        return run_once(self.partitions, Rules(keep_days=keep_days, ahead=ahead), by="test")

    def facts(self) -> Facts:
        """Return how the outbox stands."""
        return self.partitions.facts()

    def close(self) -> None:
        """Drop the connection."""
        self.partitions.close()


def codes(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """Return what came of each step, e.g. {"empty outbox_20260101": "emptied"}."""
    return {
        f"{type(outcome.step).__name__.lower()} {outcome.step.name}": outcome.code.value
        for outcome in outcomes
    }
