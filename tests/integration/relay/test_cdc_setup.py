"""`packhorse relay cdc-setup`: what it finds, makes, refuses and drops."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from tests.support.cli import Ran, packhorse
from tests.support.streams import DROP, DROP_ALL, start, streams

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.local.settings import DATABASE_VARIABLE

PUBLICATION = "packhorse_packhorse"


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with psycopg.connect(database, autocommit=True) as made:
        yield made
        made.execute(DROP)
        made.execute(DROP_ALL)


Connection = psycopg.Connection[tuple[Any, ...]]


def cdc_setup(url: str, *arguments: str) -> Ran:
    return packhorse("relay", "cdc-setup", *arguments, **{DATABASE_VARIABLE: url})


def steps(ran: Ran) -> dict[str, str]:
    return {step["what"].partition(" ")[0]: step["done"] for step in ran.json()["steps"]}


def counts(connection: Connection) -> tuple[int, int]:
    row = connection.execute(
        "SELECT (SELECT count(*) FROM pg_publication),"
        " (SELECT count(*) FROM pg_replication_slots WHERE database = current_database())"
    ).fetchone()
    assert row is not None
    return row


def test_it_makes_what_is_missing_once_and_asks_for_a_bound_on_the_log(
    database: str, connection: Connection
) -> None:
    """Fails when a server without max_slot_wal_keep_size passes in silence, or a second run makes anything."""
    refused = cdc_setup(database)
    assert refused.code == 1
    assert "max_slot_wal_keep_size" in refused.out
    assert "--unbounded-wal" in refused.out
    assert counts(connection) == (0, 0)
    planned = cdc_setup(database, "--dry-run", "--unbounded-wal", "--json")
    assert planned.code == 0
    assert steps(planned)["slot"] == steps(planned)["publication"] == "would be made"
    assert counts(connection) == (0, 0)
    made = cdc_setup(database, "--unbounded-wal", "--json")
    assert steps(made) == {
        "wal_level": "fine", "primary": "fine", "REPLICATION": "fine", "max_slot_wal_keep_size": "warning",
        "publication": "made", "slot": "made",
    }  # fmt: skip
    assert counts(connection) == (1, 1)
    again = cdc_setup(database, "--unbounded-wal", "--json")
    assert steps(again)["publication"] == steps(again)["slot"] == "fine"
    row = connection.execute(
        "SELECT pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot FROM pg_publication"
    ).fetchone()
    assert row == (True, False, False, False, True)


def test_it_makes_a_slot_for_each_shard(database: str, connection: Connection) -> None:
    connection.execute("INSERT INTO packhorse.relay (shard, horizon) VALUES (1, '1:1:')")
    made = cdc_setup(database, "--unbounded-wal", "--json")
    assert [step["done"] for step in made.json()["steps"]].count("made") == 3
    assert counts(connection) == (1, 2)


@pytest.mark.parametrize(
    ("definition", "fault"),
    [
        ("FOR TABLE packhorse.outbox", "updates, deletes or truncates"),
        ("FOR TABLE packhorse.outbox WITH (publish = 'insert')", "partitions instead of the outbox"),
        ("FOR TABLE packhorse.outbox, packhorse.relay WITH (publish = 'insert', publish_via_partition_root)", "1 other"),
        ("FOR TABLE packhorse.outbox WHERE (seq > 9) WITH (publish = 'insert', publish_via_partition_root)", "row filter"),
        ("FOR TABLE packhorse.outbox (id) WITH (publish = 'insert', publish_via_partition_root)", "column list"),
        ("FOR TABLES IN SCHEMA packhorse WITH (publish = 'insert', publish_via_partition_root)", "does not hold"),
        ("FOR ALL TABLES WITH (publish = 'insert', publish_via_partition_root)", "all tables"),
        ("", "does not hold"),
    ],
)  # fmt: skip
def test_a_publication_that_could_miss_or_add_rows_is_refused(
    database: str, connection: Connection, definition: str, fault: str
) -> None:
    """Fails when only the publication's name is looked at."""
    connection.execute(f"CREATE PUBLICATION {PUBLICATION} {definition}".encode())
    ran = cdc_setup(database, "--unbounded-wal", "--json")
    assert ran.code == 1
    assert steps(ran)["publication"] == "refused"
    assert fault in ran.out
    assert counts(connection) == (1, 0)


@pytest.mark.case("C-08")
def test_an_old_slot_is_named_with_what_it_holds_and_dropped_only_on_order(
    database: str, connection: Connection
) -> None:
    """Fails when a slot left by a rename is not found, is dropped unasked, or cannot be dropped."""
    old = f"packhorse_old_0_{connection.info.backend_pid}"
    connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (old,))
    connection.execute("SELECT pg_logical_emit_message(false, 'x', repeat('x', 2000000))")
    with streams(database) as made:
        stream: Any = made.started()
        (other,) = stream.held().others
        assert (other.name, other.active) == (old, False)
        assert other.held_bytes > 2_000_000
        ran = cdc_setup(database, "--unbounded-wal")
        assert ran.code == 0
        assert f"slot {old}: no shard streams from it, and it holds" in ran.out
        listed = cdc_setup(database, "--list", "--json").json()["slots"]
        assert [(slot["used"], slot["active"]) for slot in listed] == [(True, True), (False, False)]
        assert "nobody reads it; no shard needs it" in cdc_setup(database, "--list").out
        name = stream.held().name
        refused = cdc_setup(database, "--drop-slot", name)
        assert refused.code == 2
        assert "is read by a relay now" in refused.err
        assert cdc_setup(database, "--drop-slot", "packhorse_none").code == 2
        assert counts(connection)[1] == 2
        dropped = cdc_setup(database, "--drop-slot", old, "--json")
        assert dropped.json()["dropped"]["held_bytes"] > 2_000_000
        assert counts(connection)[1] == 1
        start(stream, database)
    row = connection.execute("SELECT act, detail ->> 'slot' FROM packhorse.audit").fetchone()
    assert row == ("drop-slot", old)


def test_a_foreign_slot_is_not_ours_to_drop(database: str, connection: Connection) -> None:
    foreign = f"debezium_{connection.info.backend_pid}"
    connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (foreign,))
    assert cdc_setup(database, "--list").out == "there are no slots of ours in this database\n"
    assert cdc_setup(database, "--drop-slot", foreign).code == 2
    assert counts(connection)[1] == 1


def test_two_acts_at_once_are_refused(database: str) -> None:
    assert cdc_setup(database, "--list", "--drop-slot", "x").code == 2


def test_a_missing_right_is_named_and_is_no_outage(database: str, connection: Connection) -> None:
    """Fails when a role that may not read the tables, or not publish them, is told that nobody answers or that all is fine."""
    role = f"cdc_{SYSTEM_CHANCE.token().hex}"
    connection.execute(f"CREATE ROLE {role} LOGIN")
    try:
        url = make_conninfo(database, user=role)
        for flag in ("--list", "--dry-run"):
            ran = cdc_setup(url, flag)
            assert ran.code == 3, ran.err
            assert "permission denied" in ran.err
        connection.execute(f"GRANT USAGE ON SCHEMA packhorse TO {role}")
        connection.execute(f"GRANT SELECT ON packhorse.relay, packhorse.outbox TO {role}")
        assert steps(cdc_setup(url, "--dry-run", "--unbounded-wal", "--json"))["publication"] == "refused"
    finally:
        connection.execute(f"DROP OWNED BY {role}")
        connection.execute(f"DROP ROLE {role}")


def test_a_database_without_the_tables_is_told_what_makes_them(empty_database: str) -> None:
    ran = cdc_setup(empty_database, "--unbounded-wal")
    assert ran.code != 0
    assert "packhorse migrate up" in ran.err
