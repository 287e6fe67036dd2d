"""Orders to the relay need the right to act, looked up in the transaction of the order."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.cli import Ran, packhorse
from tests.support.console_rows import horizon_past_all
from tests.support.roles import Roles

ROW = "019b76da-a800-7000-8000-000000000000"
HOLD = """
INSERT INTO packhorse.relay_hold (shard, scope, aggregatetype, aggregateid, message_id, seq, code, reason, heals, horizon)
SELECT 0, 'key', 'orders', 'k', %s, o.seq, 'too_large', 'larger than the limit', false, '1:1:' FROM packhorse.outbox AS o
RETURNING id
"""


@pytest.fixture
def connection(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Provide the connection to a database in which one row is published."""
    connection.execute(
        "INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version)"
        " VALUES (%s, 'orders', 'k', 't', '1')",
        (ROW,),
    )
    horizon_past_all(connection)
    return connection


def standing(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    """Return all that an order changes."""
    return connection.execute(
        "SELECT r.orders, (SELECT count(*) FROM packhorse.relay_discard), (SELECT array_agg(h::text ORDER BY h.id) FROM"
        " packhorse.relay_hold AS h), (SELECT count(*) FROM packhorse.audit WHERE act NOT LIKE 'operators-%') FROM packhorse.relay AS r"
    ).fetchall()


def orders(hold: int) -> dict[str, tuple[object, ...]]:
    return {
        "release holds": ("hold", "release", hold),
        "give up rows of the outbox": ("hold", "discard", hold, "--row", ROW),
        "send rows again": ("republish", "--aggregatetype", "orders", "--from", 1),
    }


def order(url: str, arguments: tuple[object, ...], **environ: str) -> Ran:
    return packhorse("relay", *arguments, "--why", "test", "--yes", PACKHORSE_DATABASE_URL=url, **environ)


@pytest.mark.case("O-13")
@pytest.mark.parametrize("by", ["role", "token"])
def test_without_the_right_to_act_nothing_is_ordered(
    connection: psycopg.Connection[Any], database: str, roles: Roles, by: str
) -> None:
    """Fails when an order to the relay asks for grants of the database alone, or a token is not looked at."""
    row = connection.execute(HOLD, (ROW,)).fetchone()
    assert row is not None
    ann = roles.make("operator")
    url, environ, name = roles.url(ann), {}, ann
    if by == "role":
        connection.execute("UPDATE packhorse.operator SET role = 'viewer'")
    else:
        made = packhorse("operators", "token", "eve", "--role", "viewer", PACKHORSE_DATABASE_URL=database)
        environ, name = {"PACKHORSE_CONSOLE_TOKEN": made.out.strip()}, "eve"
    before = standing(connection)
    for doing, arguments in orders(row[0]).items():
        refused = order(url, arguments, **environ)
        assert (refused.code, f"{name} may not {doing}" in refused.err) == (8, True), refused.err
    assert standing(connection) == before


@pytest.mark.case("O-14")
def test_the_holder_of_a_token_orders_under_their_own_name(
    connection: psycopg.Connection[Any], database: str
) -> None:
    """Fails when the audit names the database's role instead of who brought the token."""
    row = connection.execute(HOLD, (ROW,)).fetchone()
    assert row is not None
    made = packhorse("operators", "token", "ann", "--role", "operator", PACKHORSE_DATABASE_URL=database)
    done = order(database, ("hold", "release", row[0]), PACKHORSE_CONSOLE_TOKEN=made.out.strip())
    assert done.code == 0, done.err
    acts = connection.execute("SELECT act, actor, why FROM packhorse.audit WHERE act = 'release'").fetchall()
    assert acts == [("release", "ann (token)", "test")]


@pytest.mark.case("O-13")
def test_a_token_of_the_settings_file_counts_for_the_relays_orders_as_for_all_others(
    connection: psycopg.Connection[Any], database: str, tmp_path: Path
) -> None:
    """Fails when an order looks for the token elsewhere than the console does: it would be done as the owner of the tables."""
    row = connection.execute(HOLD, (ROW,)).fetchone()
    assert row is not None
    made = packhorse("operators", "token", "eve", "--role", "viewer", PACKHORSE_DATABASE_URL=database)
    file = tmp_path / "packhorse.toml"
    file.write_text(f'[console]\nport = 8401\ntoken = "{made.out.strip()}"\n')
    me = packhorse("operators", "me", "--json", PACKHORSE_DATABASE_URL=database, PACKHORSE_CONFIG=str(file))
    assert me.json()["name"] == "eve"
    for arguments in orders(row[0]).values():
        refused = order(database, arguments, PACKHORSE_CONFIG=str(file), PACKHORSE_CONSOLE_PORT="8402")
        assert (refused.code, "eve may not" in refused.err) == (8, True), refused.err


@pytest.mark.case("O-13")
@pytest.mark.parametrize(
    ("doing", "arguments"),
    [
        ("change the number of shards", ("shards", 2, "--why", "test", "--yes")),
        ("change the number of shards", ("shards", "--abort", "--why", "test")),
        ("adopt the outbox of another server", ("adopt", "--why", "test", "--yes")),
        ("drop a replication slot", ("cdc-setup", "--why", "test", "--drop-slot", "SLOT")),
    ],
    ids=["shards", "abort", "adopt", "slot"],
)
@pytest.mark.parametrize("role", ["operator", "admin"])
def test_what_changes_the_installation_needs_the_right_to_administer(
    connection: psycopg.Connection[Any], database: str, role: str, doing: str, arguments: tuple[object, ...]
) -> None:
    """Fails when a token without the right does such an act by the role that is connected, which owns the tables; or when it is not
    on the record under its holder's name."""
    slot = f"packhorse_old_0_{connection.info.backend_pid}"
    connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,))
    made = packhorse("operators", "token", "eve", "--role", role, PACKHORSE_DATABASE_URL=database)
    if "--abort" in arguments:
        connection.execute("UPDATE packhorse.relay SET finish = true, shards_wanted = 2")
    if "adopt" in arguments:
        connection.execute(
            "UPDATE packhorse.relay SET incarnation = '1/00000001', saved_at = clock_timestamp()"
        )
        connection.execute("UPDATE packhorse.relay SET horizon = '9000000000000:9000000000000:'")
    before = connection.execute("SELECT r::text FROM packhorse.relay AS r").fetchall()
    environ = {"PACKHORSE_CONSOLE_TOKEN": made.out.strip(), "PACKHORSE_DATABASE_URL": database}
    try:
        ran = packhorse("relay", *(slot if one == "SLOT" else one for one in arguments), **environ)
        acts = connection.execute(
            "SELECT actor, role, why FROM packhorse.audit WHERE act NOT LIKE 'operators-%'"
        ).fetchall()
        if role == "operator":
            assert (ran.code, f"eve may not {doing}" in ran.err) == (8, True), ran.err
            assert connection.execute("SELECT r::text FROM packhorse.relay AS r").fetchall() == before
            assert acts == []
        else:
            assert ran.code == 0, ran.err
            assert set(acts) == {("eve (token)", connection.info.user, "test")}
    finally:
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
            (slot,),
        )
