"""
What the retention of jobs costs, and whom: rate and steps over many finished jobs, submits beside it, and day partitions in its place.

    python -m bench.job_retention postgresql://user@host:5432/database [--jobs 1000000]

Makes and drops a database schema of its own and fills it on the server with jobs of the last hundred days. Two connections submit
all the time: before retention, while it goes with its pauses, and while it goes without. Then it compares how a batch of 500 is claimed and
ended in a plain table and in one with a partition for each day, and what dropping a day costs. Wants 4 GB of disk for 10⁶ jobs.
"""

import argparse
import itertools
import os
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import psycopg

from packhorse.console.acting.person import this_process
from packhorse.console.acting.postgres import Database
from packhorse.console.reconciling.postgres import ReconcilingTables
from packhorse.console.reconciling.service import Reconciling
from packhorse.core.ids import uuid7_from
from packhorse.processor.jobs.keeping.model import DAY, JobRules
from packhorse.processor.jobs.keeping.postgres import JobTables
from packhorse.processor.jobs.keeping.retention import JobRetention
from packhorse.producer import migrate

SCHEMA = "bench_job_retention"
BATCH = 500
FILL = f"""
WITH i AS (
    SELECT n, (lpad(to_hex(extract(epoch FROM at)::bigint * 1000), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8'
        || substr(md5(n::text), 4, 15))::uuid AS id, at
    FROM (SELECT n, clock_timestamp() - (%(days)s * n / %(jobs)s::float8) * interval '1 day' AS at
          FROM generate_series(%(first)s::bigint, %(last)s) AS n) AS r
), j AS (
    INSERT INTO {SCHEMA}.job (id, type, version, topic, group_id, state, attempt, input, tenant, request_key, accepted_at, changed_at,
        changed_by, started_at, finished_at, result)
    SELECT id, 'airline.ReportRequest', 1, 'airline.reports', 'reports', 'succeeded', 1, decode(repeat(md5(n::text), 9), 'hex'), 'acme',
        CASE WHEN n %% 5 = 0 THEN 'key ' || n END, at, at, 'worker', at, at, jsonb_build_object('report', repeat(md5(n::text), 4))
    FROM i
), t AS (
    INSERT INTO {SCHEMA}.job_transition (job_id, at, before, after, actor, attempt)
    SELECT i.id, i.at, w.before, w.after, w.actor, 1 FROM i, (VALUES (NULL, 'accepted', 'app'), ('accepted', 'running', 'worker'),
        ('running', 'succeeded', 'worker')) AS w (before, after, actor)
), k AS (
    INSERT INTO {SCHEMA}.job_request (type, tenant, request_key, job_id, digest)
    SELECT 'airline.ReportRequest', 'acme', 'key ' || n, id, md5(n::text) FROM i WHERE n %% 5 = 0
), s AS (
    INSERT INTO {SCHEMA}.job_step (job_id, name, attempt, result) SELECT id, 'read', 1, '7' FROM i WHERE n %% 3 = 0
)
INSERT INTO {SCHEMA}.job_effect (job_id, key, idempotency_key, digest, state, attempt, timeout, changed_by, answer)
SELECT id, 'mail', id::text, md5(n::text), 'answered', 1, 30, 'worker', '7' FROM i WHERE n %% 10 = 0"""
SUBMIT = f"""
WITH job AS (
    INSERT INTO {SCHEMA}.job (id, type, version, topic, input, tenant, changed_by) VALUES (%s, 'busy', 1, 't', %s, 'acme', 'app')
    RETURNING id, type
), asked AS (
    INSERT INTO {SCHEMA}.job_request (type, tenant, request_key, job_id, digest)
    SELECT j.type, 'acme', j.id::text, j.id, 'd' FROM job AS j ON CONFLICT DO NOTHING
)
INSERT INTO {SCHEMA}.outbox (id, aggregatetype, type, schema_version, payload) SELECT j.id, 'reports', j.type, '1', %s FROM job AS j"""
PLAIN = f"""
CREATE TABLE {SCHEMA}.plain (LIKE {SCHEMA}.job INCLUDING DEFAULTS INCLUDING STORAGE) WITH (fillfactor = 85);
ALTER TABLE {SCHEMA}.plain ADD PRIMARY KEY (id);
CREATE INDEX ON {SCHEMA}.plain (state, type, id) WHERE state <> 'succeeded';
CREATE TABLE {SCHEMA}.parted (LIKE {SCHEMA}.job INCLUDING DEFAULTS INCLUDING STORAGE) PARTITION BY RANGE (id);
ALTER TABLE {SCHEMA}.parted ADD PRIMARY KEY (id);
CREATE INDEX ON {SCHEMA}.parted (state, type, id) WHERE state <> 'succeeded'"""
ACCEPT = """INSERT INTO {table} (id, type, version, topic, input, changed_by)
SELECT id, 'busy', 1, 't', %(input)s, 'app' FROM unnest(%(ids)s::uuid[]) AS id"""
CLAIM = """UPDATE {table} AS j SET state = 'running', token = gen_random_uuid(), changed_at = clock_timestamp(),
    lease_until = clock_timestamp() + interval '30 s' FROM unnest(%(ids)s::uuid[]) AS w (id) WHERE j.id = w.id AND j.state = 'accepted'"""
END = """UPDATE {table} AS j SET state = 'succeeded', token = NULL, lease_until = NULL, finished_at = clock_timestamp(), result = '7'
FROM unnest(%(ids)s::uuid[]) AS w (id) WHERE j.id = w.id AND j.state = 'running'"""
Connection = psycopg.Connection[tuple[object, ...]]


class Submits:
    """Two connections that submit all the time; *took* has the seconds of each submit since `begin`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self.took: list[float] = []
        self._threads = [threading.Thread(target=self._work) for _ in range(2)]

    def _work(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            payload = bytes(300)
            while not self._stop.wait(0.002):
                at = time.perf_counter()
                connection.execute(
                    SUBMIT.encode(), (uuid7_from(datetime.now(UTC), os.urandom(10)), payload, payload)
                )
                self.took.append(time.perf_counter() - at)

    def __enter__(self) -> "Submits":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def begin(self) -> None:
        """Forget what was measured."""
        self.took = []

    def said(self) -> str:
        """Return what was measured."""
        took = sorted(self.took)
        at = [took[int(len(took) * share)] * 1000 for share in (0.5, 0.99)]
        return (
            f"{len(took)} submits, p50 {at[0]:.1f} ms, p99 {at[1]:.1f} ms, longest {took[-1] * 1000:.0f} ms"
        )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    given = parser.parse_args()
    with psycopg.connect(given.url, autocommit=True) as connection:
        try:
            fill(given.url, connection, given.jobs)
            reconcile(connection)
            with Submits(given.url) as submits:
                time.sleep(10)
                print(f"before: {submits.said()}", flush=True)
                retain(given.url, submits, keep=95 * DAY, pause=0.05)
                retain(given.url, submits, keep=50 * DAY, pause=0.0)
                retain(given.url, submits, keep=50 * DAY, pause=0.0)
            partitions(connection)
        finally:
            connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())


def fill(url: str, connection: Connection, jobs: int) -> None:
    """Make the tables and fill them, without the triggers."""
    connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
    migrate.upgrade(url, SCHEMA, days_ahead=0)
    began = time.perf_counter()
    connection.execute("SET session_replication_role = replica")
    for first in range(0, jobs, 50_000):
        values = {"first": first, "last": min(first + 50_000, jobs) - 1, "jobs": jobs, "days": 100}
        connection.execute(FILL.encode(), values)
    connection.execute("SET session_replication_role = DEFAULT")
    connection.execute(
        f"VACUUM ANALYZE {SCHEMA}.job, {SCHEMA}.job_transition, {SCHEMA}.job_request, {SCHEMA}.job_step".encode()
    )
    connection.execute("CHECKPOINT")
    print(f"{jobs} jobs filled in {time.perf_counter() - began:.0f} s", flush=True)


def reconcile(connection: Connection) -> None:
    """Say how long a reconciliation takes; the inbox is empty, and keeps nothing of that time."""
    connection.execute(
        f"INSERT INTO {SCHEMA}.inbox_retention (group_id, kept_from) VALUES ('reports', clock_timestamp())".encode()
    )
    tables = ReconcilingTables(Database(lambda: nullcontext(connection), schema=SCHEMA, timeout=60))
    began = time.perf_counter()
    report = Reconciling(tables, this_process()).look()
    assert report.is_well, list(report.found())
    print(f"reconciled: {report.looked} rows in {time.perf_counter() - began:.1f} s", flush=True)


def retain(url: str, submits: Submits, *, keep: float, pause: float) -> None:
    """Do a turn that removes what is older than *keep* seconds and empties all older than 30 days, and say what it cost."""
    submits.begin()
    spent: list[float] = []
    last = [time.perf_counter()]

    def wait(_: float) -> None:
        spent.append(time.perf_counter() - last[0])
        time.sleep(pause)
        last[0] = time.perf_counter()

    counter = itertools.count()
    retention = JobRetention(JobTables(url, SCHEMA), JobRules(keep=keep), every=60, by=f"bench {keep}")
    began = time.perf_counter()
    turn = retention.run(wait, lambda: float(next(counter)) / 100)
    took = time.perf_counter() - began
    assert turn is not None
    jobs, results = sum(turn.jobs.values()), sum(turn.results.values())
    print(
        f"pauses of {pause * 1000:.0f} ms: {jobs} jobs and {results} results of {turn.seen} gone in {took:.1f} s, {(jobs + results) / took:.0f}/s; "
        f"{len(spent)} steps, median {statistics.median(spent) * 1000:.1f} ms, longest {max(spent) * 1000:.0f} ms\n"
        f"  beside it: {submits.said()}",
        flush=True,
    )


def partitions(connection: Connection) -> None:
    """Compare a plain table with one that has a partition a day, for a hundred days."""
    connection.execute(PLAIN.encode())
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for n in range(-100, 2):
        low, high = (uuid7_from(today + timedelta(days=n + more), bytes(10)) for more in (0, 1))
        connection.execute(
            f"CREATE TABLE {SCHEMA}.parted_{n + 100} PARTITION OF {SCHEMA}.parted FOR VALUES FROM ('{low}') TO ('{high}')".encode()
        )
    for table in ("plain", "parted"):
        connection.execute(
            f"INSERT INTO {SCHEMA}.{table} SELECT * FROM {SCHEMA}.job WHERE id > '{uuid7_from(today - timedelta(days=99), bytes(10))}'".encode()
        )
        connection.execute(f"VACUUM ANALYZE {SCHEMA}.{table}".encode())
    found: dict[str, list[float]] = {"plain": [], "parted": []}
    for _ in range(20):
        for table, took in found.items():
            took.append(batch(connection, f"{SCHEMA}.{table}"))
    for table, took in found.items():
        print(
            f"{table}: {BATCH} accepted, claimed and ended in {statistics.median(took) * 1000:.1f} ms (median of 20)"
        )
    ratios = [parted / plain for plain, parted in zip(found["plain"], found["parted"], strict=True)]
    print(f"parted / plain: {statistics.median(ratios):.2f} ({min(ratios):.2f} - {max(ratios):.2f})")
    one = connection.execute(f"SELECT id FROM {SCHEMA}.plain LIMIT 1 OFFSET 1000".encode()).fetchone()
    assert one is not None
    for table in found:
        looks = [look_up(connection, f"{SCHEMA}.{table}", one) for _ in range(200)]
        print(f"{table}: looked up by id in {statistics.median(looks) * 1000:.2f} ms")
    print(
        f"a day dropped in {timed(lambda: connection.execute(f'DROP TABLE {SCHEMA}.parted_60'.encode())) * 1000:.0f} ms",
        flush=True,
    )


def batch(connection: Connection, table: str) -> float:
    """Accept, claim and end a batch, a commit each; return the seconds."""
    values = {"ids": [uuid7_from(datetime.now(UTC), os.urandom(10)) for _ in range(BATCH)]}

    def all_three() -> None:
        connection.execute(ACCEPT.format(table=table).encode(), {**values, "input": bytes(300)})
        connection.execute(CLAIM.format(table=table).encode(), values)
        connection.execute(END.format(table=table).encode(), values)

    return timed(all_three)


def look_up(connection: Connection, table: str, values: tuple[object, ...]) -> float:
    """Look a job up by its id; return the seconds."""
    return timed(lambda: connection.execute(f"SELECT state FROM {table} WHERE id = %s".encode(), values))


def timed(do: Callable[[], object]) -> float:
    """Return how many seconds *do* takes."""
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
