"""
How long each question of `packhorse top`, `status` and `explain` takes on a large database.

    python -m bench.top postgresql://user@host:5432/database [--open 1000000] [--inbox 10000000] [--rounds 30]

Makes and drops a database schema of its own, filled on the server: *open* messages (three tenths wait for a retry, six tenths lie behind parked
keys, one tenth rests in quarantine), *inbox* rows that are done, a redrive of 100,000 members. Wants 4 GB of disk for 10⁷ inbox rows.
"""

import argparse
import statistics
import time
from collections import defaultdict

import psycopg

from packhorse.console.acting.person import this_process
from packhorse.console.acting.postgres import opened
from packhorse.console.compose import rooms
from packhorse.console.settings import ConsoleSettings
from packhorse.console.top.postgres import TopTables
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.producer import migrate

SCHEMA = "bench_top"
PORTION = 500_000
DONE = f"""
INSERT INTO {SCHEMA}.inbox (group_id, topic, message_id, outcome, partition, "offset", type)
SELECT 'group-' || n %% 5, 'shop.orders', gen_random_uuid(), 'done', n %% 6, n, 'shop.OrderPlaced'
FROM generate_series(%(first)s::bigint, %(last)s) AS n"""
OPEN = (
    f"""
INSERT INTO {SCHEMA}.inbox (group_id, topic, message_id, outcome, partition, "offset", type)
SELECT 'group-' || n %% 5, 'shop.orders', md5('open' || n)::uuid,
    (ARRAY['retry', 'retry', 'retry', 'parked', 'parked', 'parked', 'parked', 'parked', 'parked', 'quarantine'])[1 + n %% 10], n %% 6, n, 'shop.OrderPlaced'
FROM generate_series(1, %(rows)s::bigint) AS n""",
    f"""
INSERT INTO {SCHEMA}.retry_message (group_id, topic, message_id, attempt, tier, due_at, topic_id, partition, "offset", payload, headers)
SELECT 'group-' || n %% 5, 'shop.orders', md5('open' || n)::uuid, 2, '5m', clock_timestamp() + (n %% 300) * interval '1 second',
    '00000000-0000-0000-0000-000000000001', n %% 6, n, decode(repeat(md5(n::text), 25), 'hex'), '[]'
FROM generate_series(1, %(rows)s::bigint) AS n WHERE n %% 10 < 3""",
    f"""
INSERT INTO {SCHEMA}.parked_message (group_id, topic, message_id, key_hash, topic_age, topic_id, partition, "offset", payload, headers)
SELECT 'group-' || n %% 5, 'shop.orders', md5('open' || n)::uuid, md5('key' || n %% 100000), 0,
    '00000000-0000-0000-0000-000000000001', n %% 6, n, decode(repeat(md5(n::text), 25), 'hex'), '[]'
FROM generate_series(1, %(rows)s::bigint) AS n WHERE n %% 10 BETWEEN 3 AND 8""",
    f"""
INSERT INTO {SCHEMA}.parked_key (group_id, topic, key_hash, partition, head_id)
SELECT 'group-' || n %% 5, 'shop.orders', md5('key' || n), n %% 6, md5('open' || n)::uuid FROM generate_series(0, 99999) AS n""",
    f"""
INSERT INTO {SCHEMA}.quarantined_message (group_id, topic, message_id, topic_id, partition, "offset", key, payload, headers, type, reason,
    error, attempts, first_failed_at, key_hash)
SELECT 'group-' || n %% 5, 'shop.orders', md5('open' || n)::uuid, '00000000-0000-0000-0000-000000000001', n %% 6, n, 'k',
    decode(repeat(md5(n::text), 25), 'hex'), '[]', 'shop.Type' || n %% 8, 'permanent', 'ValueError at a.py:' || n %% 40, 5, clock_timestamp(),
    md5('key' || n %% 100000)
FROM generate_series(1, %(rows)s::bigint) AS n WHERE n %% 10 = 9""",
    f"""
INSERT INTO {SCHEMA}.watermark (group_id, topic_id, partition, topic, "offset", incarnation)
SELECT 'group-' || g, md5('t' || g)::uuid, p, 'shop.orders', 1, 'i' FROM generate_series(0, 4) AS g, generate_series(0, 199) AS p""",
    f"""
INSERT INTO {SCHEMA}.redrive (state, wanted, members, rate, stages, previewed_by, expires_at)
VALUES ('running', '{{}}', 100000, 100, '{{1}}', 'bench', clock_timestamp() + interval '1 hour')""",
    f"""
INSERT INTO {SCHEMA}.redrive_member (redrive_id, ordinal, group_id, topic, message_id, partition, "offset", attempt, redrives, quarantined_at)
SELECT r.id, n, 'group-0', 'shop.orders', md5('open' || n * 10 - 1)::uuid, 0, n, 5, 0, clock_timestamp()
FROM {SCHEMA}.redrive AS r, generate_series(1, 100000) AS n""",
    f"""
INSERT INTO {SCHEMA}.outbox (id, aggregatetype, aggregateid, type, schema_version, payload)
SELECT gen_random_uuid(), 'orders', 'k' || n, 'shop.OrderPlaced', '1', decode(repeat(md5(n::text), 12), 'hex')
FROM generate_series(1, 100000) AS n""",
)
LIMIT = 0.050
"""Seconds that one question of top may take."""


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("--open", type=int, default=1_000_000)
    parser.add_argument("--inbox", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args()
    with psycopg.connect(given.url, autocommit=True) as connection:
        try:
            fill(given.url, connection, given.open, given.inbox)
            measure(given.url, given.rounds)
        finally:
            connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())


def fill(url: str, connection: psycopg.Connection[tuple[object, ...]], open_rows: int, inbox: int) -> None:
    """Fill the tables in portions, and let the planner know."""
    connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
    migrate.upgrade(url, SCHEMA)
    began = time.perf_counter()
    for statement in OPEN:
        connection.execute(statement.encode(), {"rows": open_rows})
    for first in range(0, inbox, PORTION):
        connection.execute(DONE.encode(), {"first": first, "last": min(first + PORTION, inbox) - 1})
    while connection.execute(f"SELECT {SCHEMA}.fold_quarantine(50000)".encode()).fetchone() != (0,):
        pass
    connection.execute(b"VACUUM ANALYZE")
    print(f"{open_rows:,} open and {inbox:,} done, filled in {time.perf_counter() - began:.0f} s", flush=True)


def measure(url: str, rounds: int) -> None:
    """Ask, and print the median and the slowest of each question."""
    took: dict[str, list[float]] = defaultdict(list)
    with opened(url, schema=SCHEMA, timeout=60) as database:
        tables, person = (
            TopTables(database, told=lambda name, seconds: took[name].append(seconds)),
            this_process(),
        )
        settings = ConsoleSettings.load({"database_url": url})
        truth = rooms(database, person, settings, topics=None, payloads=None).truth
        with psycopg.connect(url) as connection:
            ids = [
                row[0]
                for row in connection.execute(
                    f"(SELECT message_id FROM {SCHEMA}.parked_message LIMIT 10) UNION ALL (SELECT message_id FROM"
                    f" {SCHEMA}.quarantined_message LIMIT 10) UNION ALL (SELECT id FROM {SCHEMA}.outbox LIMIT 10)".encode()
                )
            ]
        for _ in range(rounds):
            began = time.perf_counter()
            tables.look(person)
            took["all of one look"].append(time.perf_counter() - began)
            for message_id in ids:
                began = time.perf_counter()
                truth.explain(message_id, search=False, local=SYSTEM_CLOCK.local)
                took["explain one message"].append(time.perf_counter() - began)
    for name, found in took.items():
        slow = sorted(found)[int(len(found) * 0.95)]
        mark = "  over the limit" if slow > LIMIT and not name.startswith("all") else ""
        print(
            f"{name:<20} median {statistics.median(found) * 1000:7.1f} ms   p95 {slow * 1000:7.1f} ms{mark}"
        )


if __name__ == "__main__":
    main()
