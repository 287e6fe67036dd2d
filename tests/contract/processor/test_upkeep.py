"""Counting and telling, on a real database: exact sums, one teller, one transaction with the notice."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.contract.processor.parties import STORE, app
from tests.support.console_rows import rested
from tests.support.roles import Roles

from packhorse.processor.noticing.messages import NeedsPerson
from packhorse.processor.noticing.notices import notice_class
from packhorse.processor.noticing.upkeep import EVERY, Upkeep
from packhorse.processor.plant import Plant
from packhorse.processor.storing import postgres
from packhorse.producer import Outbox
from packhorse.schemas import fingerprint

GROUP = STORE.group


class Ground:
    """One process's upkeep, on a connection of its own."""

    def __init__(self, url: str) -> None:
        self.now = 0.0
        self.plant = Plant(
            app=app(),
            sources={},
            member=UUID(int=1),
            conninfo=postgres.settings_of(url, idle_ms=20_000, lock_ms=5_000),
            store=STORE,
            decoder=None,  # type: ignore[arg-type]
            copies=None,  # type: ignore[arg-type]
            broker=None,  # type: ignore[arg-type]
            outbox=Outbox(origin="contract"),
        )
        self.upkeep = Upkeep(self.plant)
        self.connection = postgres.connect(self.plant.conninfo)

    def look(self) -> int:
        return self.upkeep.look(self.connection)


@pytest.fixture
def ground(database: str) -> Iterator[Ground]:
    made = Ground(database)
    yield made
    made.connection.end()


def registered(connection: psycopg.Connection[Any]) -> None:
    """Register the notice's schema, as `packhorse schemas register --notices` does in the database."""
    kind = notice_class("airline").__packhorse__
    connection.execute(
        "INSERT INTO packhorse.schema_version (subject, version, schema_id, schema, fingerprint) VALUES (%s, 1, 7, %s, %s)",
        (kind.subject, kind.schema, fingerprint(kind.schema)),
    )


def counts(connection: psycopg.Connection[Any]) -> object:
    row = connection.execute(
        "SELECT (SELECT count(*) FROM packhorse.quarantine_change), (SELECT sum(n)::int FROM packhorse.quarantine_tally),"
        " (SELECT sum(n)::int FROM packhorse.quarantine_tenant_tally)"
    ).fetchone()
    assert row is not None
    return row


def notices(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    return connection.execute(
        "SELECT aggregatetype, type, aggregateid, origin FROM packhorse.outbox ORDER BY seq"
    ).fetchall()


@pytest.mark.case("O-09")
def test_what_was_counted_apart_is_added_up_in_portions(
    ground: Ground, connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a look ends after its first portion, or a portion is added twice."""
    monkeypatch.setattr("packhorse.processor.noticing.table.STEP", 2)
    monkeypatch.setattr("packhorse.processor.noticing.upkeep.STEP", 2)
    for _ in range(5):
        rested(connection, group="another")
    ground.look()
    assert counts(connection) == (0, 5, 5)
    assert notices(connection) == []


def test_without_a_registered_schema_the_log_alone_tells(
    ground: Ground, connection: psycopg.Connection[Any]
) -> None:
    rested(connection, group=GROUP)
    assert ground.look() == 1
    assert ground.look() == 0
    assert notices(connection) == []


@pytest.mark.case("O-09")
def test_a_group_of_failures_is_told_of_once_and_again_when_it_has_grown_or_a_day_is_over(
    ground: Ground, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a notice is sent at each look, at growth below tenfold, or never again."""
    registered(connection)
    rested(connection, group=GROUP, key=b"ann", error="ValueError at x.py:1: ann", tenant="acme")
    assert ground.look() == 1
    (row,) = notices(connection)
    assert row[:2] == ("packhorse-notice", "packhorse.NeedsPerson")
    payload = connection.execute("SELECT payload FROM packhorse.outbox").fetchone()
    assert payload is not None
    assert b"ann" not in payload[0]
    for _ in range(8):
        rested(connection, group=GROUP)
        rested(connection, group=GROUP, error="ValueError at x.py:1: bob")
    assert ground.look() == 1, "the other group of failures"
    rested(connection, group=GROUP, error="ValueError at x.py:1")
    assert ground.look() == 1
    connection.execute("UPDATE packhorse.failure_group SET told_at = told_at - interval '1 day'")
    assert ground.look() == 2
    connection.execute(
        "UPDATE packhorse.failure_group SET acknowledged_at = now(), told_at = told_at - interval '1 day'"
    )
    assert ground.look() == 0


@pytest.mark.case("O-02")
def test_of_two_processes_one_tells(database: str, connection: psycopg.Connection[Any]) -> None:
    """Fails when what was read before is not compared when it is written: both would tell."""
    registered(connection)
    rested(connection, group=GROUP)
    first, second = Ground(database), Ground(database)
    table = second.upkeep._table
    ((failing,), _) = postgres.run(second.connection, table.failing())
    assert first.look() == 1
    assert not postgres.run(second.connection, table.tell(failing, None))
    assert len(notices(connection)) == 1
    for each in (first, second):
        each.connection.end()


@pytest.mark.case("O-04")
def test_a_notice_and_that_it_was_told_are_one_transaction(
    ground: Ground, connection: psycopg.Connection[Any]
) -> None:
    """Fails when either is committed before the other."""
    registered(connection)
    rested(connection, group=GROUP)
    connection.execute(
        "ALTER TABLE packhorse.outbox ADD CONSTRAINT refuses CHECK (aggregatetype <> 'packhorse-notice')"
    )
    ground.upkeep._next = 0.0
    ground.upkeep.turn(ground.connection)
    assert connection.execute("SELECT count(*) FROM packhorse.failure_group").fetchone() == (0,)
    connection.execute("ALTER TABLE packhorse.outbox DROP CONSTRAINT refuses")
    assert ground.look() == 1


def test_a_role_without_the_right_goes_on_and_says_so_once(
    roles: Roles, connection: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    role = roles.make("processor")
    connection.execute(f"REVOKE EXECUTE ON FUNCTION packhorse.fold_quarantine(int) FROM {role}".encode())
    rested(connection, group=GROUP)
    made = Ground(roles.url(role))
    try:
        for _ in range(2):
            made.upkeep._next = 0.0
            made.upkeep.turn(made.connection)
        told = [record for record in caplog.records if "not counted" in record.getMessage()]
        assert len(told) == 1
        connection.execute(f"GRANT EXECUTE ON FUNCTION packhorse.fold_quarantine(int) TO {role}".encode())
        assert made.look() == 1, "the processor's grants are enough"
    finally:
        made.connection.end()


def test_the_class_for_a_namespace_is_one(ground: Ground) -> None:
    del ground
    assert notice_class("a") is notice_class("a")
    assert issubclass(notice_class("a"), NeedsPerson)
    assert EVERY > 0
