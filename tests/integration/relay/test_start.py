"""What a relay refuses to start with, and what its commands say."""

import json
import os
import subprocess
import sys

import psycopg
import pytest
from psycopg import sql
from tests.support.relay import Relays, insert
from tests.support.topics import wait_for

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.local.settings import Endpoints

NOT_READY = 3


def packhorse(environment: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "packhorse.cli.main", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refused(environment: dict[str, str]) -> str:
    """Run `packhorse relay run`; return what it says before it leaves as not ready."""
    done = packhorse(environment, "relay", "run")
    assert done.returncode == NOT_READY, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.case("X-11")
def test_missing_tables_are_named(group: Relays, empty_database: str) -> None:
    said = refused({**group.environment, "PACKHORSE_DATABASE_URL": empty_database})
    assert "packhorse.outbox" in said
    assert "packhorse migrate up" in said


@pytest.mark.case("X-11")
def test_a_missing_topic_of_a_registered_schema_is_named_and_not_made(
    group: Relays, database: str, topic_prefix: str
) -> None:
    """Fails when the relay starts without its topics, or looks at those of other namespaces."""
    with psycopg.connect(database, autocommit=True) as connection:
        for subject in (
            f"{topic_prefix}.invoices-shop.Paid",
            f"{topic_prefix}.orders-shop.Placed",
            "else.where-x.Y",
        ):
            connection.execute(
                "INSERT INTO packhorse.schema_version (subject, version, fingerprint, schema_id, schema)"
                " VALUES (%s, 1, 'f', 1, '{}')",
                (subject,),
            )
    for _ in range(2):
        said = refused(group.environment)
        assert f"{topic_prefix}.invoices" in said
        assert "packhorse topics apply" in said
        assert "orders" not in said
        assert "else.where" not in said


@pytest.mark.case("X-11")
def test_a_missing_right_is_named(group: Relays, database: str) -> None:
    role = f"poor_{SYSTEM_CHANCE.token().hex[:12]}"
    with psycopg.connect(database, autocommit=True) as connection:
        name = sql.Identifier(role)
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(name))
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA packhorse TO {}").format(name))
        connection.execute(sql.SQL("GRANT SELECT ON packhorse.outbox, packhorse.relay TO {}").format(name))
        try:
            url = database.replace("postgres@", f"{role}@")
            said = refused({**group.environment, "PACKHORSE_DATABASE_URL": url})
        finally:
            connection.execute(sql.SQL("DROP OWNED BY {}").format(name))
            connection.execute(sql.SQL("DROP ROLE {}").format(name))
    assert "UPDATE on packhorse.relay" in said
    assert "--grants relay=" in said


@pytest.mark.case("R-09")
def test_a_client_setting_that_breaks_order_is_refused_by_name(group: Relays) -> None:
    environment = {**group.environment, "PACKHORSE_KAFKA_PROPERTIES": '{"acks": "1"}'}
    done = packhorse(environment, "relay", "run")
    assert done.returncode == 2
    assert "acks=1" in done.stderr


def test_a_missing_shard_is_named(group: Relays, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DELETE FROM packhorse.relay")
    assert "no row for shard 0" in refused(group.environment)


def test_a_namespace_that_no_schema_belongs_to_is_told(group: Relays, database: str) -> None:
    """Fails when a relay with a mistyped namespace sends rows to topics that nobody reads, without a word."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO packhorse.schema_version VALUES ('elsewhere.order-elsewhere.Placed', 1, 'x', 7, '{}')"
        )
    group.start().wait_for("is PACKHORSE_NAMESPACE right?")


def test_a_horizon_ahead_of_the_database_is_named_and_not_taken_for_published(
    group: Relays, database: str
) -> None:
    """Fails when the relay starts on a dump that was loaded into a cluster with lower transaction ids."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE packhorse.relay SET horizon = '9000000000:9000000000:'")
    said = refused(group.environment)
    assert "9000000000" in said
    assert "docs/runbooks" in said


def test_a_sequence_with_a_cache_is_refused(group: Relays, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("ALTER TABLE packhorse.outbox ALTER COLUMN seq SET CACHE 20")
    assert "cache 20" in refused(group.environment)


def test_status_tells_owner_horizon_lag_and_trouble(
    group: Relays, database: str, stack: Endpoints, topic: str
) -> None:
    def status() -> tuple[int, dict[str, object]]:
        done = packhorse(group.environment, "relay", "status", "--json", "--sample", "0")
        return done.returncode, json.loads(done.stdout)["shards"][0]

    with psycopg.connect(database) as connection:
        insert(connection, "k")
        insert(connection, "k")
        connection.commit()
    code, found = status()
    assert (code, found["owner"], found["lag_rows"], found["published"]) == (1, None, 2, 0)
    group.start().wait_for("this process owns the shard")
    wait_for(stack.kafka_bootstrap, topic, 2)
    code, found = status()
    assert (code, found["healthy"], found["lag_rows"], found["published"], found["epoch"]) == (
        0,
        True,
        0,
        2,
        1,
    )
    text = packhorse(group.environment, "relay", "status").stdout
    assert "2 rows, 0 a second" in text
