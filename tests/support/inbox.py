"""Inboxes with days behind them: partitions and rows of the past, watermarks, and a turn of retention."""

from datetime import date, timedelta
from itertools import count as numbers
from typing import Any

import psycopg

from packhorse.processor.inbox.model import InboxRules, Turn
from packhorse.processor.inbox.postgres import InboxTables
from packhorse.processor.inbox.retention import InboxRetention

Connection = psycopg.Connection[Any]

ROWS = """
INSERT INTO packhorse.inbox (group_id, topic, message_id, outcome, partition, "offset", error, recorded_at, changed_at)
SELECT %(group)s, %(topic)s, CASE WHEN %(timed)s THEN (lpad(to_hex(extract(epoch FROM %(at)s)::bigint * 1000 + n), 12, '0')
        || '70008' || lpad(to_hex(%(offset)s + n), 15, '0'))::uuid ELSE overlay(gen_random_uuid()::text PLACING 'f' FROM 1)::uuid END,
    %(outcome)s, 0, %(offset)s + n, %(error)s, %(at)s, %(at)s
FROM generate_series(0, %(rows)s - 1) AS n RETURNING message_id"""
WATERMARK = """
INSERT INTO packhorse.watermark (group_id, topic_id, partition, topic, "offset", incarnation, moved_at, first_at)
VALUES (%(group)s, coalesce(%(topic_id)s, md5(%(topic)s)::uuid), 0, %(topic)s, %(offset)s, 'i', clock_timestamp() - %(ago)s,
    coalesce(clock_timestamp() - %(first)s::interval, '-infinity'))
ON CONFLICT (group_id, topic_id, partition) DO UPDATE SET "offset" = EXCLUDED."offset", moved_at = EXCLUDED.moved_at"""


class Inbox:
    """One database's inbox: topic "t", partition 0, group "g" unless said otherwise."""

    def __init__(self, url: str, connection: Connection) -> None:
        self.url = url
        self.connection = connection

    def today(self) -> date:
        """Return the database's day, UTC."""
        found: date = self.one("SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date")
        return found

    def one(self, statement: str, *values: object) -> Any:
        """Return the first value that a query answers; None without one."""
        row = self.connection.execute(statement.encode(), values or None).fetchone()
        return None if row is None else row[0]

    def day(self, days_ago: int) -> str:
        """Make the partition of a day of the past, and return its name."""
        day = self.today() - timedelta(days=days_ago)
        name = f"inbox_{day:%Y%m%d}"
        low, high = (
            self.one("SELECT packhorse.inbox_bound(%s)", each) for each in (day, day + timedelta(days=1))
        )
        self.connection.execute(
            f"CREATE TABLE packhorse.{name} PARTITION OF packhorse.inbox FOR VALUES FROM ('{low}') TO ('{high}')".encode()
        )
        return name

    def fill(
        self,
        days_ago: float,
        rows: int = 1,
        *,
        outcome: str = "done",
        group: str = "g",
        topic: str = "t",
        offset: int = 0,
        timed: bool = True,
        error: str | None = None,
    ) -> list[Any]:
        """
        Write rows that were recorded *days_ago* days before noon of today; return their ids.

        Ids that are not *timed* lie where no day's partition is: by chance alone, one in some thousand would fall into one.
        """
        at = self.one(
            "SELECT date_trunc('day', clock_timestamp(), 'UTC') + interval '12 hours' - %s",
            timedelta(days=days_ago),
        )
        found = self.connection.execute(
            ROWS.encode(),
            {
                "group": group,
                "topic": topic,
                "timed": timed,
                "at": at,
                "outcome": outcome,
                "offset": offset,
                "error": error,
                "rows": rows,
            },
        ).fetchall()
        return [row[0] for row in found]

    def watermark(
        self,
        offset: int,
        *,
        group: str = "g",
        topic: str = "t",
        ago: timedelta = timedelta(0),
        topic_id: object = None,
        first: timedelta | None = None,
    ) -> None:
        """Set a watermark that moved last *ago* before now."""
        values = {"group": group, "topic": topic, "offset": offset, "ago": ago, "topic_id": topic_id}
        self.connection.execute(WATERMARK.encode(), {**values, "first": first})

    def parts(self) -> dict[str, int]:
        """Return the partitions of the past with the number of their rows; without empty defaults."""
        today = f"inbox_{self.today():%Y%m%d}"
        names = [
            row[0]
            for row in self.connection.execute("SELECT name FROM packhorse.inbox_partitions() ORDER BY name")
        ]
        return {name: self.count(name) for name in names if name < today}

    def count(self, table: str = "inbox") -> int:
        """Return how many rows there are."""
        return int(self.one(f"SELECT count(*) FROM packhorse.{table}"))

    def turn(self, keep_days: int | None = 22, *, ahead: int = 0, **rules: int) -> Turn:
        """Do one turn of retention, without pauses."""
        turn = self.tried(keep_days, ahead=ahead, by="test", **rules)
        assert turn is not None, "somebody else has the turn"
        return turn

    def tried(self, keep_days: int | None = 22, *, ahead: int = 0, by: str, **rules: int) -> Turn | None:
        """Do one turn of retention, without pauses; None: somebody else has it."""
        tables = InboxTables(self.url, "packhorse")
        made = InboxRetention(tables, InboxRules(keep_days=keep_days, ahead=ahead, **rules), every=60, by=by)
        clock = numbers()
        return made.run(lambda _: None, lambda: float(next(clock)))
