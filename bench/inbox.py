"""
Whether the inbox's insert rate is flat as it grows, with ids that hold their time and with random ones, and what retention costs.

    python -m bench.inbox postgresql://user@host:5432/database [--rows 10000000] [--rounds 10]

Makes and drops database schemas of its own, a small and a large one for each kind of ids, filled on the server. Then they take turns:
batches of 500 are looked up and inserted as a lane does, a commit each. Judge by the ratios within a round. Wants 6 GB of disk for 10⁷ rows.
"""

import argparse
import itertools
import os
import statistics
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg

from packhorse.core.ids import uuid7_from
from packhorse.processor.inbox.model import InboxRules
from packhorse.processor.inbox.postgres import InboxTables
from packhorse.processor.inbox.retention import InboxRetention
from packhorse.producer import migrate

SMALL = 10_000
BATCH = 500
FILL = """
INSERT INTO {schema}.inbox (group_id, topic, message_id, outcome, partition, "offset", type, recorded_at, changed_at)
SELECT 'figures', 'airline.aircraft', CASE WHEN %(timed)s THEN (lpad(to_hex(extract(epoch FROM at)::bigint * 1000), 12, '0')
        || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid ELSE gen_random_uuid() END,
    'done', n %% 6, n / 6, 'airline.FlightDeparted', at, at
FROM (SELECT n, clock_timestamp() - n %% 22 * interval '1 day' AS at FROM generate_series(%(first)s::bigint, %(last)s) AS n) AS r"""
LOOK_UP = """
SELECT i.message_id, i.outcome FROM {schema}.inbox AS i
WHERE i.message_id = ANY(%s::uuid[]) AND i.message_id >= %s AND i.message_id <= %s AND i.group_id = 'figures' AND i.topic = 'airline.aircraft'"""
INSERT = """
INSERT INTO {schema}.inbox (group_id, topic, message_id, outcome, attempt, partition, "offset", type)
SELECT 'figures', 'airline.aircraft', r.id, 'done', 1, r.partition, r."offset", 'airline.FlightDeparted'
FROM unnest(%s::uuid[], %s::int[], %s::bigint[]) AS r (id, partition, "offset")"""


WATERMARKS = """
INSERT INTO {schema}.watermark (group_id, topic_id, partition, topic, "offset", incarnation, first_at)
SELECT 'figures', gen_random_uuid(), p, 'airline.aircraft', 1::bigint << 40, 'i', '-infinity' FROM generate_series(0, 5) AS p"""
Connection = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One inbox: how many rows, which ids."""

    rows: int
    timed: bool

    @property
    def schema(self) -> str:
        """Return its database schema."""
        return f"bench_inbox_{self.rows}_{'timed' if self.timed else 'random'}"

    def sql(self, text: str) -> bytes:
        """Return a statement on this one."""
        return text.format(schema=self.schema).encode()


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    tables = [Table(rows=rows, timed=timed) for timed in (True, False) for rows in (SMALL, given.rows)]
    with psycopg.connect(given.url, autocommit=True) as connection:
        try:
            for table in tables:
                make(given.url, connection, table)
            connection.execute("CHECKPOINT")
            compare(connection, tables, given.rounds)
            for table in tables:
                if table.rows > SMALL:
                    retain(given.url, connection, table)
        finally:
            for table in tables:
                connection.execute(f"DROP SCHEMA IF EXISTS {table.schema} CASCADE".encode())


def make(url: str, connection: Connection, table: Table) -> None:
    """Make the partitions of three weeks of the past and of tomorrow, and fill them."""
    connection.execute(f"DROP SCHEMA IF EXISTS {table.schema} CASCADE".encode())
    migrate.upgrade(url, table.schema, days_ahead=0)
    today = datetime.now(UTC).date()
    for n in range(-23, 2):
        day = today + timedelta(days=n)
        bounds = connection.execute(
            table.sql("SELECT {schema}.inbox_bound(%s), {schema}.inbox_bound(%s)"),
            (day, day + timedelta(days=1)),
        ).fetchone()
        assert bounds is not None
        made = "CREATE TABLE {schema}.inbox_%s PARTITION OF {schema}.inbox FOR VALUES FROM ('%s') TO ('%s')"
        connection.execute(table.sql(made % (day.strftime("%Y%m%d"), *bounds)))
    began = time.perf_counter()
    for first in range(0, table.rows, 250_000):
        last = min(first + 250_000, table.rows) - 1
        connection.execute(table.sql(FILL), {"timed": table.timed, "first": first, "last": last})
    connection.execute(table.sql("VACUUM ANALYZE {schema}.inbox"))
    print(f"{table.schema} filled in {time.perf_counter() - began:.0f} s", flush=True)


def compare(connection: Connection, tables: list[Table], rounds: int) -> None:
    """Let the tables take turns, and print rates, look-ups and the ratios of large to small."""
    found: dict[Table, list[tuple[float, float]]] = {table: [] for table in tables}
    for _ in range(rounds):
        for table in tables:
            found[table].append(batches(connection, table, 20))
    for small, large in itertools.pairwise(tables):
        if small.timed is not large.timed:
            continue
        for table in (small, large):
            rates, looks = zip(*found[table], strict=True)
            print(
                f"{table.schema:<30} {statistics.median(rates):>7.0f} rows/s ({min(rates):.0f} - {max(rates):.0f})  "
                f"look-up of {BATCH}: {statistics.median(looks) * 1000:.1f} ms",
            )
        ratios = [big[0] / little[0] for big, little in zip(found[large], found[small], strict=True)]
        print(
            f"large / small: {statistics.median(ratios):.2f} ({min(ratios):.2f} - {max(ratios):.2f})",
            flush=True,
        )


def batches(connection: Connection, table: Table, count: int) -> tuple[float, float]:
    """Look up and insert *count* batches; return rows a second and the median look-up in seconds."""
    looks = []
    began = time.perf_counter()
    for n in range(count):
        now = datetime.now(UTC)
        ids = [
            uuid7_from(now, os.urandom(10)) if table.timed else UUID(bytes=os.urandom(16), version=4)
            for _ in range(BATCH)
        ]
        at = time.perf_counter()
        connection.execute(table.sql(LOOK_UP), (ids, min(ids), max(ids))).fetchall()
        looks.append(time.perf_counter() - at)
        offsets = list(range(n * BATCH, (n + 1) * BATCH))
        with connection.transaction():
            connection.execute(table.sql(INSERT), (ids, [0] * BATCH, offsets))
    return count * BATCH / (time.perf_counter() - began), statistics.median(looks)


def retain(url: str, connection: Connection, table: Table) -> None:
    """Let a turn of retention keep half of the days, and say what each step cost."""
    connection.execute(table.sql(WATERMARKS))
    retention = InboxRetention(
        InboxTables(url, table.schema), InboxRules(keep_days=11, ahead=0), every=60, by="bench"
    )
    spent: list[float] = []
    last = [time.perf_counter()]

    def wait(_: float) -> None:
        spent.append(time.perf_counter() - last[0])
        last[0] = time.perf_counter()

    counter = itertools.count()
    turn = retention.run(wait, lambda: float(next(counter)))
    assert turn is not None
    print(
        f"{table.schema}: {len(turn.dropped)} days dropped, {turn.removed} rows one by one, without pauses {sum(spent):.1f} s; "
        f"{len(spent)} steps, median {statistics.median(spent) * 1000:.1f} ms, longest {max(spent) * 1000:.0f} ms",
        flush=True,
    )


if __name__ == "__main__":
    main()
