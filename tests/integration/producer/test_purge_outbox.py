"""Rows of the outbox leave by one function alone: those that are published, and whom no hold keeps."""

from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import errors as pg
from tests.support.console_rows import horizon_past_all, recorded
from tests.support.roles import Roles

Connection = psycopg.Connection[Any]


def purged(connection: Connection, *ids: UUID, unpublished: bool = False) -> list[tuple[str, bool]]:
    return connection.execute(
        "SELECT fate, gone FROM packhorse.purge_outbox(%s, %s)", (list(ids), unpublished)
    ).fetchall()


def left(connection: Connection) -> int:
    row = connection.execute("SELECT count(*) FROM packhorse.outbox").fetchone()
    assert row is not None
    return int(row[0])


def hold(connection: Connection, scope: str, message_id: UUID) -> None:
    connection.execute(
        "INSERT INTO packhorse.relay_hold (shard, scope, aggregatetype, aggregateid, message_id, seq, code, reason, heals, horizon)"
        " VALUES (0, %s, 'aircraft', 'N14228', %s, 1, 'too_large', 'x', false, '1:1:')",
        (scope, message_id),
    )


@pytest.mark.case("P1")
def test_what_is_not_published_stays_unless_it_is_ordered(connection: Connection) -> None:
    """Fails when a row goes that some shard has not published: its message would be lost."""
    first = recorded(connection)
    assert purged(connection, first) == [("unpublished", False)]
    horizon_past_all(connection)
    second = recorded(connection)
    assert purged(connection, first, second) == [("published", True), ("unpublished", False)]
    connection.execute("INSERT INTO packhorse.relay (shard, horizon) VALUES (1, '1:1:')")
    third = recorded(connection)
    connection.execute("UPDATE packhorse.relay SET horizon = (SELECT pg_current_snapshot()) WHERE shard = 0")
    assert purged(connection, third) == [("unpublished", False)]
    connection.execute("UPDATE packhorse.relay SET mode = 'cdc' WHERE shard = 0")
    assert purged(connection, third, unpublished=True) == [("streamed", False)]
    connection.execute("UPDATE packhorse.relay SET mode = 'polling'")
    assert purged(connection, second, third, unpublished=True) == [("unpublished", True)] * 2
    assert left(connection) == 0


@pytest.mark.case("P1")
@pytest.mark.parametrize("scope", ["row", "key", "partition", "topic"])
@pytest.mark.parametrize("unpublished", [False, True])
def test_what_a_hold_keeps_stays(connection: Connection, scope: str, unpublished: bool) -> None:
    message_id = recorded(connection)
    hold(connection, scope, message_id)
    horizon_past_all(connection)
    assert purged(connection, message_id, unpublished=unpublished) == [("held", False)]
    connection.execute("UPDATE packhorse.relay_hold SET state = 'ended'")
    assert purged(connection, message_id) == [("published", True)]


def test_a_horizon_of_another_server_counts_for_nothing(connection: Connection) -> None:
    message_id = recorded(connection)
    horizon_past_all(connection)
    connection.execute("UPDATE packhorse.relay SET incarnation = '1/00000001'")
    assert purged(connection, message_id) == [("unpublished", False)]


@pytest.mark.case("B-04")
def test_by_hand_nothing_is_deleted_before_after_or_with_a_mark_that_somebody_sets(
    connection: Connection, roles: Roles
) -> None:
    """Fails when the mark of a purge outlives the function, or the trigger believes whoever sets it."""
    first, second = recorded(connection), recorded(connection)
    horizon_past_all(connection)
    delete = "DELETE FROM packhorse.outbox"
    with connection.transaction(force_rollback=True):
        assert purged(connection, first) == [("published", True)]
        with pytest.raises(pg.ObjectNotInPrerequisiteState):
            connection.execute(delete)
    assert left(connection) == 2
    for change in ("UPDATE packhorse.outbox SET type = ''", delete):
        with connection.transaction(force_rollback=True):
            connection.execute("SELECT set_config('packhorse.purging', '1', true)")
            with pytest.raises(pg.ObjectNotInPrerequisiteState):
                connection.execute(change.encode())
    role = roles.make("admin")
    connection.execute(f"GRANT DELETE, UPDATE ON packhorse.outbox TO {role}".encode())
    with psycopg.connect(roles.url(role), autocommit=True) as stranger:
        for change in ("UPDATE packhorse.outbox SET type = ''", delete):
            with stranger.transaction(force_rollback=True):
                stranger.execute("SELECT set_config('packhorse.purging', pg_current_xact_id()::text, true)")
                with pytest.raises(pg.ObjectNotInPrerequisiteState):
                    stranger.execute(change.encode())
        assert purged(stranger, second) == [("published", True)]


@pytest.mark.case("P8")
def test_only_an_admin_may_purge_and_nobody_reads_the_salt(connection: Connection, roles: Roles) -> None:
    """Fails when the grants of people show them the salt: whoever may look could find out who was purged."""
    for purpose, may in (("operator", False), ("admin", True)):
        with psycopg.connect(roles.url(roles.make(purpose)), autocommit=True) as person:
            with pytest.raises(pg.InsufficientPrivilege):
                person.execute("SELECT * FROM packhorse.purge_secret")
            for call in ("purge_mark('ann')", "purge_outbox('{}')"):
                statement = f"SELECT * FROM packhorse.{call}".encode()
                if may:
                    person.execute(statement)
                else:
                    with pytest.raises(pg.InsufficientPrivilege):
                        person.execute(statement)
    marks = connection.execute("SELECT packhorse.purge_mark('ann'), packhorse.purge_mark('ann')").fetchone()
    assert marks is not None
    assert (marks[0] == marks[1], len(marks[0])) == (True, 64)
