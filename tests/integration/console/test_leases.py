"""Leases of runs on the real tables: one runner at a time, and the one of before writes nothing."""

from typing import Any

import psycopg
import pytest

from packhorse.console.acting.postgres import Database
from packhorse.console.running.lease import LeaseLost
from packhorse.console.running.postgres import Leases
from packhorse.console.running.sql import REDRIVES, REPLAYS, Statements

_REDRIVE = """
INSERT INTO packhorse.redrive (state, wanted, rate, stages, previewed_by, expires_at)
VALUES ('running', '{}', 1, '{1}', 'ann', 'infinity') RETURNING id
"""
_REPLAY = """
INSERT INTO packhorse.replay (state, group_id, topic, topic_id, wanted, rate, planned_by, expires_at)
VALUES ('running', 'g', 't', gen_random_uuid(), '{}', 1, 'ann', 'infinity') RETURNING id
"""


def put(database: str, statement: str, *values: object) -> Any:
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute(statement, values).fetchone()
    return None if row is None else row[0]


@pytest.mark.parametrize(
    ("statements", "insert", "table"), [(REDRIVES, _REDRIVE, "redrive"), (REPLAYS, _REPLAY, "replay")]
)
def test_a_run_has_one_runner_and_the_one_of_before_writes_nothing(
    tables: Database, database: str, statements: Statements, insert: str, table: str
) -> None:
    """Fails when a live lease is taken over, or a token is not asked for before a write."""
    leases, run = Leases(tables, statements), put(database, insert)
    assert leases.free() == run
    first = leases.take(run, "first")
    assert first is not None
    assert leases.take(run, "second") is None
    assert leases.free() is None
    put(database, f"UPDATE packhorse.{table} SET lease_until = clock_timestamp() RETURNING id")  # killed
    assert leases.free() == run
    second = leases.take(run, "second")
    assert second is not None
    assert not leases.renew(first)
    with pytest.raises(LeaseLost), leases.writing(first) as rows:
        rows.count("UPDATE {schema}.audit SET why = 'never'")
    with leases.writing(second) as rows:
        assert rows.first("SELECT 1 AS one") == {"one": 1}
    leases.leave(first)
    standing = leases.standing(run)
    assert standing is not None
    assert (standing.runner, standing.alive) == ("second", True)
    leases.leave(second)
    assert leases.free() == run


def test_a_paused_run_is_nobodys(tables: Database, database: str) -> None:
    """Fails when a person's pause is not seen by the runner's next write."""
    leases, run = Leases(tables, REDRIVES), put(database, _REDRIVE)
    lease = leases.take(run, "first")
    assert lease is not None
    put(database, "UPDATE packhorse.redrive SET state = 'paused' RETURNING id")
    assert not leases.renew(lease)
    assert leases.free() is None
    with pytest.raises(LeaseLost), leases.writing(lease):
        pass
    with pytest.raises(LeaseLost):
        leases.close(lease, state="ended", said=None, final=True)
    put(database, "UPDATE packhorse.redrive SET state = 'running' RETURNING id")
    leases.close(lease, state="halted", said="failures returned", final=False)
    standing = leases.standing(run)
    assert standing is not None
    assert (standing.state, standing.said, standing.alive) == ("halted", "failures returned", False)
