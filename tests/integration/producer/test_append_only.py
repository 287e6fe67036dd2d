from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors as pg
from tests.support.accounts import AmountMoved

from packhorse.producer import Outbox

Connection = psycopg.Connection[Any]


@pytest.fixture
def connection(url: str) -> Iterator[Connection]:
    with psycopg.connect(url) as writer:
        Outbox().emit(writer, AmountMoved(account="a", amount=1), key="a")
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def partition_of_the_row(connection: Connection) -> str:
    row = connection.execute("SELECT tableoid::regclass::text FROM packhorse.outbox").fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.case("B-04")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {} SET payload = NULL",
        "UPDATE {} SET created_at = created_at + interval '1 day'",
        "DELETE FROM {}",
        "MERGE INTO {} o USING (SELECT 'a' AS k) s ON o.aggregateid = s.k WHEN MATCHED THEN DELETE",
    ],
)
@pytest.mark.parametrize("directly", [False, True])
def test_a_change_by_hand_is_refused_and_says_why(
    connection: Connection, statement: str, directly: bool
) -> None:
    """Fails when migration 0001 leaves the trigger refuse_change out, or a partition does not have it."""
    table = partition_of_the_row(connection) if directly else "packhorse.outbox"
    assert (table != "packhorse.outbox") == directly
    with pytest.raises(
        pg.ObjectNotInPrerequisiteState, match=r"refused: the outbox is append-only"
    ) as caught:
        connection.execute(statement.format(table).encode())
    assert "Emit a new message instead" in (caught.value.diag.message_hint or "")
    kept = connection.execute("SELECT aggregateid, payload IS NULL FROM packhorse.outbox").fetchall()
    assert kept == [("a", False)]


@pytest.mark.case("B-04")
def test_the_default_partition_refuses_changes_too(connection: Connection) -> None:
    """Fails when the default partition is attached without the trigger."""
    connection.execute(
        "INSERT INTO packhorse.outbox (id, aggregatetype, type, schema_version, created_at) "
        "VALUES (gen_random_uuid(), 'a', 't', '1', '2001-01-01')"
    )
    with pytest.raises(pg.ObjectNotInPrerequisiteState, match="outbox_default is refused"):
        connection.execute("DELETE FROM packhorse.outbox_default")


@pytest.mark.case("B-04")
def test_only_the_truncate_of_a_partition_is_allowed(connection: Connection) -> None:
    """Fails when the trigger refuse_truncate is missing, or is made for each partition as well."""
    with pytest.raises(pg.ObjectNotInPrerequisiteState, match=r"TRUNCATE on .*outbox is refused"):
        connection.execute("TRUNCATE packhorse.outbox")
    connection.execute(f"TRUNCATE {partition_of_the_row(connection)}".encode())
    assert connection.execute("SELECT count(*) FROM packhorse.outbox").fetchone() == (0,)


def test_nobody_chooses_a_sequence_value(connection: Connection) -> None:
    with pytest.raises(pg.GeneratedAlways):
        connection.execute(
            "INSERT INTO packhorse.outbox (id, aggregatetype, type, schema_version, seq) "
            "VALUES (gen_random_uuid(), 'a', 't', '1', 1)"
        )


@pytest.mark.case("O-14")
@pytest.mark.parametrize(
    "statement",
    ["UPDATE packhorse.audit SET why = ''", "DELETE FROM packhorse.audit", "TRUNCATE packhorse.audit"],
)
def test_what_people_did_stays_on_the_record(connection: Connection, statement: str) -> None:
    """Fails when migration 0008 leaves the trigger refuse_forgetting out: an act could be taken off the record by SQL."""
    connection.execute("INSERT INTO packhorse.audit (actor, act, why) VALUES ('ann', 'discard', 'a test')")
    before = connection.execute("SELECT * FROM packhorse.audit ORDER BY id").fetchall()
    with pytest.raises(pg.ObjectNotInPrerequisiteState, match="stays on the record"):
        connection.execute(statement.encode())
    assert connection.execute("SELECT * FROM packhorse.audit ORDER BY id").fetchall() == before
