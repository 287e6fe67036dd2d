"""
How long operators wait for lists and counts of a million quarantined messages, and what counting costs whoever quarantines.

    python -m bench.operators postgresql://user@host:5432/database [--rows 1000000] [--rounds 50]

Makes and drops a database schema of its own, filled on the server: 40 groups of failures, 2,000 tenants, 60 days, payloads of 400 bytes. Asks
through the service, as the command and the API do. Wants 2 GB of disk for 10⁶ rows.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import psycopg

from packhorse.console.acting.person import this_process
from packhorse.console.acting.postgres import opened
from packhorse.console.compose import rooms
from packhorse.console.quarantine.groups.model import By, GroupFilter
from packhorse.console.quarantine.pages import Filter, Position
from packhorse.console.service import Service
from packhorse.console.settings import ConsoleSettings
from packhorse.producer import migrate

SCHEMA = "bench_operators"
FILL = f"""
INSERT INTO {SCHEMA}.quarantined_message (group_id, topic, message_id, topic_id, partition, "offset", key, payload, headers, type, tenant,
    reason, error, attempts, first_failed_at, quarantined_at, state, copy_partition, copy_offset)
SELECT 'group-' || r.kind %% 5, 'shop.orders', gen_random_uuid(), '00000000-0000-0000-0000-000000000001', r.n %% 6, r.n,
    convert_to('customer-' || r.n %% 200000, 'UTF8'), decode(repeat(md5(r.n::text), 25), 'hex'), '[["type", "c2hvcC5PcmRlclBsYWNlZA=="]]',
    'shop.Type' || r.kind %% 8, 'tenant-' || (power(random(), 2) * 2000)::int, (ARRAY['attempts-exhausted', 'permanent', 'crashed', 'refused'])[1 + r.kind %% 4],
    'ValueError at shop/handlers.py:' || r.kind || ' in placed: order ' || r.n, 5, r.at, r.at,
    (ARRAY['quarantined', 'quarantined', 'quarantined', 'redriven', 'discarded'])[1 + r.n %% 5], 0, 0
FROM (SELECT n, (power(random(), 2) * 40)::int %% 40 AS kind, clock_timestamp() - (1000000 - n) * interval '5.184 s' AS at
    FROM generate_series(%(first)s::bigint, %(last)s) AS n) AS r"""
SINGLE = f"""
INSERT INTO {SCHEMA}.quarantined_message (group_id, topic, message_id, topic_id, partition, "offset", key, payload, headers, type, reason, error,
    attempts, first_failed_at)
SELECT 'figures', 'shop.orders', gen_random_uuid(), '00000000-0000-0000-0000-000000000001', 0, n, 'k', 'x', '[]', 'shop.X', 'crashed',
    'ValueError at a.py:1', 5, clock_timestamp() FROM generate_series(1, %(rows)s) AS n"""
SWITCH = f"ALTER TABLE {SCHEMA}.quarantined_message %s TRIGGER tally_insert"


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=50)
    given = parser.parse_args()
    with psycopg.connect(given.url, autocommit=True) as connection:
        try:
            fill(given.url, connection, given.rows)
            with opened(given.url, schema=SCHEMA, timeout=60) as database:
                settings = ConsoleSettings.load({"database_url": given.url})
                ask(
                    rooms(database, this_process(), settings, topics=None, payloads=None),
                    given.rounds,
                )
            failing_path(connection, given.rounds)
        finally:
            connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())


def fill(url: str, connection: psycopg.Connection[tuple[object, ...]], rows: int) -> None:
    """Fill the quarantine in portions, folding the counts as the processor's upkeep does."""
    connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
    migrate.upgrade(url, SCHEMA, days_ahead=0)
    began = time.perf_counter()
    for first in range(0, rows, 100_000):
        connection.execute(FILL.encode(), {"first": first, "last": min(first + 100_000, rows) - 1})
        while connection.execute(f"SELECT {SCHEMA}.fold_quarantine(50000)".encode()).fetchone() != (0,):
            pass
    tallies = f"{SCHEMA}.quarantine_tally, {SCHEMA}.quarantine_tenant_tally, {SCHEMA}.quarantine_change"
    connection.execute(f"VACUUM ANALYZE {SCHEMA}.quarantined_message, {tallies}".encode())
    for table in ("quarantined_message", "quarantine_tally", "quarantine_tenant_tally"):
        row = connection.execute(
            f"SELECT count(*), pg_size_pretty(pg_total_relation_size('{SCHEMA}.{table}')) FROM {SCHEMA}.{table}".encode()
        ).fetchone()
        print(table, *(row or ()))
    print(f"filled in {time.perf_counter() - began:.0f} s", flush=True)


def ask(service: Service, rounds: int) -> None:
    """Ask for pages and counts, each *rounds* times."""
    deep: Position | None = None
    for _ in range(49):
        deep = service.quarantine.page(Filter(), after=deep, limit=50).next
    failures = service.groups.page(GroupFilter(), limit=40).groups
    message = service.quarantine.page(Filter(), after=deep, limit=1).messages[0]

    def page(wanted: Filter, after: Position | None = None) -> Callable[[], object]:
        return lambda: service.quarantine.page(wanted, after=after, limit=50)

    questions: dict[str, Callable[[], object]] = {
        "first page": page(Filter()),
        "page 50": page(Filter(), deep),
        "of a large group of failures": page(Filter(failure=failures[0].name)),
        "of a small group of failures, by eight digits": page(Filter(failure=failures[-1].name[:8])),
        "by key": page(Filter(key=message.key)),
        "by id": page(Filter(id=message.id)),
        "by tenant (a full look)": page(Filter(tenant="tenant-1999")),
        "by text that is there": page(Filter(text="ORDER 9")),
        "by text that is nowhere (a full look)": page(Filter(text="nowhere")),
        **{f"groups by {by.value}": partial(service.groups.page, GroupFilter(), by=by) for by in By},
        "groups of one tenant": lambda: service.groups.page(GroupFilter(tenant="tenant-7")),
        "one group, whole": lambda: service.groups.show(failures[0].name),
        "one message": lambda: service.quarantine.show(
            message.id, group=message.group, topic=None, payload=False
        ),
    }
    for name, question in questions.items():
        timed(name, question, rounds)


def timed(name: str, question: Callable[[], object], rounds: int) -> None:
    """Print median and 95th percentile of *question* in milliseconds."""
    question()
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        question()
        took.append((time.perf_counter() - began) * 1000)
    took.sort()
    print(
        f"{name:<48} p50 {statistics.median(took):7.1f} ms  p95 {took[int(len(took) * 0.95)]:7.1f} ms",
        flush=True,
    )


def failing_path(connection: psycopg.Connection[tuple[object, ...]], rounds: int) -> None:
    """Say what the trigger costs a statement that quarantines, alone and in batches of a thousand, taking turns."""
    for rows in (1, 1_000):
        found: dict[str, list[float]] = {"DISABLE": [], "ENABLE": []}
        for _ in range(rounds if rows > 1 else rounds * 10):
            for switch, times in found.items():
                connection.execute((SWITCH % switch).encode())
                began = time.perf_counter()
                with suppress(psycopg.Rollback), connection.transaction():
                    connection.execute(SINGLE.encode(), {"rows": rows})
                times.append((time.perf_counter() - began) * 1000)
        without, with_ = (statistics.median(times) for times in found.values())
        print(
            f"{rows:>5} rows to a statement: without counting {without:.2f} ms, with {with_:.2f} ms, ratio {with_ / without:.2f}"
        )


if __name__ == "__main__":
    main()
