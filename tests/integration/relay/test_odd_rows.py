"""Rows that no library of ours writes, and a right that goes away: nothing stands still unnamed."""

from pathlib import Path

import psycopg
import pytest
from tests.support.relay import Relays, insert
from tests.support.topics import wait_for
from tests.support.wait import eventually

from packhorse.local.settings import Endpoints
from packhorse.producer.grants import grants
from packhorse.relay.postgres.status import read_status


@pytest.mark.parametrize("kind", ["first", "later"])
def test_rows_of_any_time_leave(
    group: Relays, database: str, stack: Endpoints, topic: str, kind: str
) -> None:
    """Fails when an infinite created_at is made a number: no row at all would leave any more, and nobody would say why."""
    times = ["infinity", "-infinity", "1960-01-01"]
    with psycopg.connect(database) as connection:
        if kind == "first":
            ids = [insert(connection, None, created_at=at) for at in times]
        else:
            ids = [insert(connection, "k")]
            ids += [insert(connection, "k", created_at=at, payload=b"x" * 20_000) for at in times]
    status = read_status(database, "packhorse")
    assert status.lag_rows == len(ids)
    group.start()
    found = wait_for(stack.kafka_bootstrap, topic, len(ids))
    assert sorted((record.headers[0][1] or b"").decode() for record in found) == sorted(ids)


@pytest.mark.case("X-04")
def test_a_right_that_goes_away_is_told_by_the_status_and_comes_back(
    group: Relays, database: str, stack: Endpoints, topic: str, topic_prefix: str, tmp_path: Path
) -> None:
    """Fails when a statement that keeps failing is told by the log alone: the status would say that all is well."""
    role, table = topic_prefix, "packhorse.outbox"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN SUPERUSER")
        try:
            connection.execute(f"ALTER ROLE {role} NOSUPERUSER")
            for statements in grants("packhorse", [("relay", role)]):
                connection.execute(statements.encode())
            place = database.rpartition("@")[2].removeprefix("postgresql://")
            group.environment["PACKHORSE_DATABASE_URL"] = f"postgresql://{role}@{place}"
            relay = group.start()
            insert(connection, "k")
            wait_for(stack.kafka_bootstrap, topic, 1)
            connection.execute(f"REVOKE SELECT ON {table} FROM {role}")
            trouble = eventually(lambda: read_status(database, "packhorse").trouble, what="it is told")
            assert "permission denied for table outbox" in (trouble or "")
            connection.execute(f"GRANT SELECT ON {table} TO {role}")
            eventually(lambda: read_status(database, "packhorse").healthy, what="it is well again")
            assert relay.stop() == 0
        finally:
            connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
