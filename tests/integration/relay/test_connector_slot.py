"""The relay's horizon follows a connector's slot, and never passes what the slot has not confirmed."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from tests.support.cli import packhorse
from tests.support.databases import unique_name
from tests.support.relay import insert

from packhorse.core.errors import NotReady
from packhorse.core.person import Person
from packhorse.relay.debezium.sql import PREPARATION
from packhorse.relay.postgres.connector import ConnectorSlot


@pytest.fixture
def slot(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Provide the name of a slot that the test makes; it is dropped afterwards."""
    name = unique_name("debezium")
    yield name
    connection.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", (name,)
    )


def prepare(connection: psycopg.Connection[Any], slot: str) -> None:
    """Run the printed SQL, for a role that is there."""
    role = connection.info.user
    printed = PREPARATION.format(schema="packhorse", slot=slot, publication="made_here", role=role)
    lines = [line for line in printed.splitlines() if not line.startswith("--")]
    for statement in filter(str.strip, "\n".join(lines).split(";\n")):
        connection.execute(statement.encode())


def advance(connection: psycopg.Connection[Any], slot: str, at: str | None = None) -> None:
    """Confirm up to *at*, or all that was written before: what a connector does once its records are on the topics."""
    connection.execute(
        "SELECT pg_logical_emit_message(true, 'test', 'flush')"
    )  # a slot moves to what is on disk
    connection.execute(
        "SELECT pg_replication_slot_advance(%s, coalesce(%s::pg_lsn, pg_current_wal_flush_lsn()))", (slot, at)
    )


def seen(connection: psycopg.Connection[Any]) -> set[str]:
    """Return the ids of the rows that the horizon has as published."""
    rows = connection.execute(
        "SELECT o.id::text FROM packhorse.outbox AS o, packhorse.relay AS r "
        "WHERE r.shard = 0 AND pg_visible_in_snapshot(o.xid, r.horizon)"
    )
    return {row[0] for row in rows}


def position(connection: psycopg.Connection[Any]) -> str:
    found = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    assert found is not None
    return str(found[0])


def follow(database: str, slot: str, pause: Any = lambda _: None, wait: float = 1) -> int:
    with ConnectorSlot(database, "packhorse", slot) as followed:
        return followed.follow(wait=wait, pause=pause, person=Person(user="ann"))


@pytest.mark.case("C-09")
def test_the_horizon_holds_nothing_that_the_connector_may_not_have_sent(
    database: str, connection: psycopg.Connection[Any], slot: str
) -> None:
    """
    Fails when the snapshot is taken after the slot was found to have come so far: a row that committed in between would
    never leave. Fails, too, when a transaction that runs at that moment counts as published.
    """
    prepare(connection, slot)
    confirmed = insert(connection, "a")
    with psycopg.connect(database) as other:
        running = insert(other, "b")
        later: list[str] = []

        def meanwhile(_: float) -> None:
            at = position(connection)
            later.append(insert(connection, "c"))
            advance(connection, slot, at)

        assert follow(database, slot, meanwhile) == 1
        other.commit()
    assert confirmed in seen(connection)
    assert later
    assert not seen(connection) & {running, *later}


def test_a_connector_that_does_not_confirm_moves_nothing(
    database: str, connection: psycopg.Connection[Any], slot: str
) -> None:
    """Fails when the wait ends without a refusal, or the refusal does not say what to look at."""
    prepare(connection, slot)
    unconfirmed = insert(connection, "a")
    with pytest.raises(NotReady, match=rf"slot {slot} stands at .* bytes before .*does the connector run"):
        follow(database, slot)
    assert unconfirmed not in seen(connection)


def test_each_move_of_the_horizon_is_audited(
    database: str, connection: psycopg.Connection[Any], slot: str
) -> None:
    prepare(connection, slot)
    assert follow(database, slot, lambda _: advance(connection, slot)) == 1
    horizon = connection.execute("SELECT horizon::text FROM packhorse.relay").fetchone()
    actor = f"ann (role {connection.info.user})"
    found = connection.execute(
        "SELECT actor, detail FROM packhorse.audit WHERE act = 'move-horizon-to-connector'"
    ).fetchall()
    assert horizon is not None
    assert found == [
        (
            actor,
            {"slot": slot, "horizon": horizon[0]},
        )
    ]


def owned(connection: psycopg.Connection[Any], _: str) -> None:
    connection.execute(
        "UPDATE packhorse.relay SET token = gen_random_uuid(), owner = 'ours:1', "
        "lease_until = clock_timestamp() + interval '1 minute'"
    )


def held(connection: psycopg.Connection[Any], _: str) -> None:
    connection.execute(
        "INSERT INTO packhorse.relay_hold (shard, scope, aggregatetype, code, reason, heals, horizon) "
        "VALUES (0, 'topic', 'orders', 'missing', 'gone', true, '1:1:')"
    )


def elsewhere(connection: psycopg.Connection[Any], _: str) -> None:
    connection.execute("UPDATE packhorse.relay SET incarnation = '1/00000001'")


def ahead(connection: psycopg.Connection[Any], _: str) -> None:
    connection.execute("UPDATE packhorse.relay SET horizon = '900000000:900000000:'")


def nameless(connection: psycopg.Connection[Any], _: str) -> None:
    connection.execute("ALTER TABLE packhorse.audit DISABLE TRIGGER refuse_forgetting")
    connection.execute("DELETE FROM packhorse.audit")


def gone(connection: psycopg.Connection[Any], slot: str) -> None:
    connection.execute("SELECT pg_drop_replication_slot(%s)", (slot,))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (owned, r"a relay runs and moves the horizon itself: ours:1 \(shard 0\); stop it"),
        (held, "1 holds are open"),
        (elsewhere, "saved on another server"),
        (ahead, "saved on another server"),
        (nameless, "nothing says which rows are older than slot"),
        (gone, "is not there; .*debezium-config --format sql"),
    ],
)
def test_what_is_in_the_way_is_named_and_nothing_moves(
    database: str, connection: psycopg.Connection[Any], slot: str, change: Any, told: str
) -> None:
    """Fails when any of the refusals is left out: each of them would lose rows."""
    prepare(connection, slot)
    insert(connection, "a")
    change(connection, slot)
    before = connection.execute("SELECT horizon::text FROM packhorse.relay").fetchone()

    def confirms(_: float) -> None:
        advance(connection, slot)

    with pytest.raises(NotReady, match=told):
        follow(database, slot, confirms)
    assert connection.execute("SELECT horizon::text FROM packhorse.relay").fetchone() == before


def test_a_row_older_than_the_slot_waits_for_the_relay(
    database: str, connection: psycopg.Connection[Any], slot: str
) -> None:
    """Fails when rows that no slot brings and no relay has published are taken for published."""
    older = insert(connection, "a")
    prepare(connection, slot)
    advance(connection, slot)
    with pytest.raises(NotReady, match="1 rows older than the slot are not published; the relay must run on"):
        follow(database, slot)
    ran = packhorse("relay", "debezium-ready", "--slot", slot, PACKHORSE_DATABASE_URL=database)
    assert (ran.code, "the relay must run on" in ran.out) == (1, True)
    connection.execute("UPDATE packhorse.relay SET horizon = pg_current_snapshot()")
    ran = packhorse("relay", "debezium-ready", "--slot", slot, PACKHORSE_DATABASE_URL=database)
    assert ran.code == 0, ran.out
    assert older in seen(connection)
