"""Lists and counts of jobs stay quick beside very many that are finished: their plans read an index, and a bounded part of the table."""

from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier
from tests.support.job_rows import TYPE, accepted

from packhorse.console.jobs import sql
from packhorse.console.top.sql import JOBS

FINISHED = 50_000
FILL = """
INSERT INTO packhorse.job (id, type, version, topic, group_id, state, changed_by, finished_at, result)
SELECT (lpad(to_hex(n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid, %s, 1, 'reports.requests', 'reports',
    'succeeded', 'worker', now(), '{"n": 1}' FROM generate_series(1, %s) AS n
"""
VALUES: dict[str, Any] = dict.fromkeys(
    ("after", "low", "high", "type", "tenant", "topic", "since", "until", "text", "stuck")
) | {"states": ["accepted"], "limit": 51, "look": 20_000, "most": 10_000}


@pytest.mark.parametrize("statement", ["COUNTS", "PAGE_OPEN", "FAR_OPEN", "JOBS"])
def test_what_is_not_finished_is_found_without_a_look_at_what_is(
    connection: psycopg.Connection[Any], statement: str
) -> None:
    """Fails when a statement reads the table from end to end: its predicate is not the index's any more."""
    connection.execute("ALTER TABLE packhorse.job DISABLE TRIGGER USER")
    connection.execute(FILL, (TYPE, FINISHED))
    connection.execute("ALTER TABLE packhorse.job ENABLE TRIGGER USER")
    for _ in range(20):
        accepted(connection)
    connection.execute("VACUUM ANALYZE packhorse.job")
    text = {"COUNTS": sql.COUNTS, "PAGE_OPEN": sql.PAGE_OPEN, "FAR_OPEN": sql.FAR_OPEN, "JOBS": JOBS}[
        statement
    ]
    read, pages = read_by(connection, text, VALUES)
    assert read < pages / 4


def test_few_that_have_succeeded_are_not_looked_for_in_all_that_there_is(
    connection: psycopg.Connection[Any],
) -> None:
    """Fails when the count of those that have succeeded goes on until it has found so many."""
    connection.execute("ALTER TABLE packhorse.job DISABLE TRIGGER USER")
    connection.execute(FILL.replace("'succeeded'", "'cancelled'"), (TYPE, FINISHED))
    connection.execute("VACUUM ANALYZE packhorse.job")
    read, pages = read_by(connection, sql.SUCCEEDED, {"look": FINISHED // 20})
    assert read < pages / 4


def read_by(connection: psycopg.Connection[Any], text: str, values: dict[str, Any]) -> tuple[int, int]:
    """Return how many pages a statement reads, and how many the table of jobs has."""
    query = SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + text).format(schema=Identifier("packhorse"))
    row = connection.execute(query, values).fetchone()
    pages = connection.execute(
        "SELECT relpages FROM pg_class WHERE oid = 'packhorse.job'::regclass"
    ).fetchone()
    assert row is not None
    assert pages is not None
    plan = row[0][0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], pages[0]
