"""Migrations on a real database: twice, at once, without rights, as a script, and with least rights."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.config import Config
from psycopg import errors as pg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from sqlalchemy import create_engine
from tests.support.accounts import AmountMoved
from tests.support.cli import packhorse
from tests.support.databases import unique_name
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import DatabaseUnavailable, NotReady, SettingsError
from packhorse.processor.storing.sql import queries_for
from packhorse.processor.storing.store import Store
from packhorse.producer import Outbox, alembic, migrate
from packhorse.producer.grants import grants
from packhorse.producer.partitions import DAYS_AHEAD, Day
from packhorse.producer.sql import TABLES
from packhorse.testing import register_for_tests

MOVED = AmountMoved(account="a", amount=1)

CATALOG = """
SELECT 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull::text,
    pg_get_expr(d.adbin, d.adrelid), a.attidentity::text
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'packhorse'::regnamespace AND c.relkind IN ('r', 'p')
UNION ALL SELECT 'index', tablename, indexname, indexdef, NULL, NULL, NULL FROM pg_indexes WHERE schemaname = 'packhorse'
UNION ALL SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(oid), tgenabled::text, NULL, NULL
FROM pg_trigger WHERE NOT tgisinternal AND tgrelid::regclass::text LIKE 'packhorse.%'
UNION ALL SELECT 'function', proname, prosrc, NULL, NULL, NULL, NULL FROM pg_proc WHERE pronamespace = 'packhorse'::regnamespace
UNION ALL SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), NULL, NULL, NULL
FROM pg_constraint WHERE connamespace = 'packhorse'::regnamespace
UNION ALL SELECT 'migration', version_num, NULL, NULL, NULL, NULL, NULL FROM packhorse.alembic_version
ORDER BY 1, 2, 3, 4"""


def catalog(url: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(CATALOG).fetchall()


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.fixture
def role(empty_database: str) -> Iterator[str]:
    """Provide a role that may log in and has no right at all."""
    name = unique_name("role")
    execute(empty_database, f"CREATE ROLE {name} LOGIN")
    yield name
    execute(empty_database, f"DROP OWNED BY {name} CASCADE", f"DROP ROLE {name}")


def as_role(url: str, role: str) -> str:
    return make_conninfo(url, user=role)


def test_up_makes_everything_and_again_changes_nothing(empty_database: str) -> None:
    before = migrate.status(empty_database)
    assert (before.current, before.ready, before.partitions_until) == (None, False, None)
    assert before.pending[-1] == before.head
    first = migrate.upgrade(empty_database)
    made = catalog(empty_database)
    assert first.ready
    tables = {
        name
        for kind, name, *_ in made
        if kind == "column" and not name.startswith(("outbox_", "inbox_default"))
    }
    assert tables - {"alembic_version"} == set(TABLES)
    assert first.partitions_until == SYSTEM_CLOCK.now().date() + timedelta(days=DAYS_AHEAD)
    assert migrate.upgrade(empty_database) == migrate.status(empty_database) == first
    assert catalog(empty_database) == made


PROCESSORS = (
    "inbox",
    "watermark",
    "failed_attempt",
    "quarantined_message",
    "parked_key",
    "parked_message",
    "retry_message",
    "in_hand",
    "started",
    "pause",
    "processor_member",
    "inbox_retention",
)
BEFORE_PARTITIONS = """
INSERT INTO packhorse.inbox (group_id, topic, message_id, outcome, partition, "offset", reason)
SELECT 'g', 't', gen_random_uuid(), CASE n WHEN 1 THEN 'retry' ELSE 'done' END, 0, n, 'r' FROM generate_series(1, 100) n;
INSERT INTO packhorse.watermark (group_id, topic_id, partition, topic, "offset", incarnation)
VALUES ('g', gen_random_uuid(), 0, 't', 101, 'i');
"""


@pytest.mark.case("X-10")
def test_a_filled_inbox_becomes_the_default_partition_with_its_rights(
    empty_database: str, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a row, a right or the owner is lost on the way, so that the processor of the version before stops, or when the migration
    makes everybody wait behind a transaction that is open."""
    owner = unique_name("owner")
    execute(empty_database, "CREATE SCHEMA packhorse", f"CREATE ROLE {owner}")
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(empty_database))
    with engine.begin() as connection:
        config = Config(attributes={"schema": "packhorse", "connection": connection})
        config.set_main_option("script_location", str(Path(alembic.__file__).parent / "migrations"))
        config.set_main_option("path_separator", "os")
        command.upgrade(config, "0005")
    engine.dispose()
    try:
        execute(
            empty_database,
            BEFORE_PARTITIONS,
            f"GRANT ALL ON SCHEMA packhorse TO {owner}",
            f"ALTER TABLE packhorse.inbox OWNER TO {owner}",
            f"GRANT USAGE ON SCHEMA packhorse TO {role}",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON packhorse.inbox TO {role}",
        )
        with psycopg.connect(empty_database) as busy, monkeypatch.context() as patched:
            patched.setattr(alembic, "TRIES", 2)
            busy.execute("SELECT FROM packhorse.inbox LIMIT 1")
            with pytest.raises(DatabaseUnavailable, match="through 2 tries of a second each"):
                migrate.upgrade(empty_database, days_ahead=0)
        assert migrate.upgrade(empty_database, days_ahead=0).ready
        with psycopg.connect(as_role(empty_database, role), autocommit=True) as connection_of_role:
            counts = connection_of_role.execute(
                "SELECT count(*), count(*) FILTER (WHERE outcome = 'retry'), count(digest) FROM packhorse.inbox"
            ).fetchone()
            assert counts == (100, 1, 0)
            again = "INSERT INTO packhorse.inbox SELECT * FROM packhorse.inbox LIMIT 1"
            with pytest.raises(pg.UniqueViolation):
                connection_of_role.execute(again)
            assert connection_of_role.execute(f"{again} ON CONFLICT DO NOTHING").rowcount == 0
            assert connection_of_role.execute("UPDATE packhorse.inbox SET reason = 's'").rowcount == 100
        with psycopg.connect(empty_database) as asked:
            owners = asked.execute(
                "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'packhorse' AND tablename LIKE 'inbox%'"
                " AND tablename <> 'inbox_retention'"
            ).fetchall()
            assert owners == [(owner,)]
            first = asked.execute("SELECT first_at = '-infinity' FROM packhorse.watermark").fetchone()
            assert first == (True,)
    finally:
        execute(empty_database, f"DROP OWNED BY {owner} CASCADE", f"DROP ROLE {owner}")


OLD_PROCESSOR = """
GRANT USAGE ON SCHEMA packhorse TO {role};
GRANT SELECT ON packhorse.alembic_version, packhorse.schema_version TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON packhorse.inbox, packhorse.watermark, packhorse.failed_attempt, packhorse.quarantined_message,
    packhorse.parked_key, packhorse.parked_message, packhorse.retry_message, packhorse.in_hand, packhorse.started, packhorse.pause,
    packhorse.processor_member, packhorse.inbox_retention TO {role};
GRANT INSERT ON packhorse.audit TO {role};
"""
"""What `migrate sql --grants processor=…` gave at migration 0007."""
OLD_OPERATOR = """
GRANT USAGE ON SCHEMA packhorse TO {role};
GRANT SELECT ON ALL TABLES IN SCHEMA packhorse TO {role};
GRANT UPDATE ON packhorse.inbox, packhorse.quarantined_message, packhorse.watermark, packhorse.parked_key TO {role};
GRANT INSERT ON packhorse.watermark, packhorse.audit, packhorse.relay_discard TO {role};
"""
REST = """
INSERT INTO packhorse.quarantined_message
    (group_id, topic, message_id, topic_id, partition, "offset", payload, headers, type, tenant, reason, error, attempts,
     first_failed_at, state)
SELECT 'g', 't', gen_random_uuid(), gen_random_uuid(), 0, n, 'x', '[]', CASE n % 2 WHEN 0 THEN 'a.B' END,
    CASE n % 3 WHEN 0 THEN 'x' END, 'failed', 'E at f.py:1: ' || n, 1, clock_timestamp(),
    CASE n % 5 WHEN 0 THEN 'discarded' WHEN 1 THEN 'redriven' ELSE 'quarantined' END
  FROM generate_series(1, {many}) AS n
"""
AT_0007 = """
INSERT INTO packhorse.audit (actor, act, why) VALUES ('ann (role ops)', 'redrive', 'before');
INSERT INTO packhorse.parked_key (group_id, topic, key_hash, key, partition) VALUES ('g', 't', md5('k'), 'k', 0);
INSERT INTO packhorse.outbox (id, aggregatetype, type, schema_version) VALUES (gen_random_uuid(), 'a', 't', '1');
"""
COUNTED = """
SELECT sum(c.n)::int FROM (SELECT t.state, t.n FROM packhorse.{tally} AS t
    UNION ALL SELECT q.state, q.n FROM packhorse.quarantine_change AS q) AS c WHERE c.state = %s
"""


def migrated_to(url: str, revision: str) -> None:
    execute(url, "CREATE SCHEMA packhorse")
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    with engine.begin() as connection:
        config = Config(attributes={"schema": "packhorse", "connection": connection})
        config.set_main_option("script_location", str(Path(alembic.__file__).parent / "migrations"))
        config.set_main_option("path_separator", "os")
        command.upgrade(config, revision)
    engine.dispose()


@pytest.mark.case("X-10")
@pytest.mark.parametrize("hardened", [False, True])
def test_from_0007_with_data_the_processors_of_before_go_on_by_their_grants_and_are_counted(
    empty_database: str, role: str, hardened: bool
) -> None:
    """
    Fails when a trigger or index of 0008 needs a right that the processors of before have not: they could quarantine nothing more,
    also where default privileges give PUBLIC nothing; or when what was there before is not counted, or takes on a role that it had not.
    """
    if hardened:
        execute(empty_database, "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
    migrated_to(empty_database, "0007")
    execute(empty_database, OLD_PROCESSOR.format(role=role), REST.format(many=100), AT_0007)
    assert migrate.upgrade(empty_database, days_ahead=0).ready
    with psycopg.connect(as_role(empty_database, role), autocommit=True) as old:
        store = Store(queries=queries_for("packhorse"), group="g", schema="packhorse")
        statement = next(store.check_ready())
        rows = old.execute(statement.text, statement.parameters).fetchall()
        assert [name for name, may, _ in rows if not may] == []
        old.execute(REST.format(many=10).encode())
        old.execute("UPDATE packhorse.quarantined_message SET state = 'redriven' WHERE \"offset\" = 2")
        old.execute('DELETE FROM packhorse.quarantined_message WHERE "offset" = 3')
        old.execute("UPDATE packhorse.parked_key SET paused = true")
        old.execute("INSERT INTO packhorse.audit (actor, act) VALUES ('p', 'reset offsets')")
        for right in ("SELECT FROM packhorse.operator", "SELECT packhorse.operator_standing(NULL, true)"):
            with pytest.raises(pg.InsufficientPrivilege):
                old.execute(right.encode())
    with psycopg.connect(empty_database, autocommit=True) as owner:
        for state in ("quarantined", "redriven", "discarded"):
            there = owner.execute(
                "SELECT count(*) FROM packhorse.quarantined_message WHERE state = %s", (state,)
            ).fetchone()
            for tally in ("quarantine_tally", "quarantine_tenant_tally"):
                assert owner.execute(COUNTED.format(tally=tally).encode(), (state,)).fetchone() == there
        acts = owner.execute("SELECT actor, role, why FROM packhorse.audit ORDER BY id").fetchall()
        assert acts == [("ann (role ops)", None, "before"), ("p", role, None)]
        owner.execute("SELECT packhorse.fold_quarantine(1000)")


@pytest.mark.case("X-10")
def test_an_operators_grants_of_before_name_what_is_missing_and_the_new_ones_do(
    empty_database: str, role: str
) -> None:
    """Fails when a person whose role has the grants of 0007 is let act without a right, or is not told the next step."""
    migrated_to(empty_database, "0007")
    execute(empty_database, OLD_OPERATOR.format(role=role), REST.format(many=3))
    assert migrate.upgrade(empty_database, days_ahead=0).ready
    url = as_role(empty_database, role)
    order = ("quarantine", "groups")
    refused = packhorse(*order, PACKHORSE_DATABASE_URL=url)
    assert (refused.code, "migrate sql --grants operator=ROLE" in refused.err) == (3, True), refused.err
    execute(empty_database, *grants("packhorse", [("operator", role)]))
    assert packhorse(*order, PACKHORSE_DATABASE_URL=url).code == 0
    me = packhorse("operators", "me", "--json", PACKHORSE_DATABASE_URL=url).json()
    assert (me["name"], me["role"]) == (role, "operator")


ASK_OF_BEFORE = "SELECT name, role, personal, edit, expired FROM packhorse.operator_standing({}, {})"
AT_0010 = """
INSERT INTO packhorse.operator (kind, name, role, token_hash, made_by) VALUES ('token', 'ci', 'viewer', sha256('ci'), 'before');
INSERT INTO packhorse.operator (kind, name, role, expires_at, made_by)
VALUES ('role', '{role}', 'operator', NULL, 'before'), ('role', 'ann', 'admin', now(), 'before');
GRANT USAGE ON SCHEMA packhorse TO {role};
GRANT EXECUTE ON FUNCTION packhorse.operator_standing(bytea, boolean) TO {role};
"""


@pytest.mark.case("X-10")
@pytest.mark.parametrize("hardened", [False, True])
def test_from_0010_those_of_before_ask_on_by_their_grants_and_users_come_besides(
    empty_database: str, role: str, hardened: bool
) -> None:
    """Fails when what consoles of before ask changes its answer, or is taken for a user; or when everybody may ask for users."""
    if hardened:
        execute(empty_database, "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
    migrated_to(empty_database, "0010")
    execute(empty_database, AT_0010.format(role=role))
    add_user = (
        "INSERT INTO packhorse.operator (kind, name, role, made_by) VALUES ('user', '{}', 'admin', 'test')"
    )
    with psycopg.connect(empty_database) as owner, pytest.raises(pg.CheckViolation):
        owner.execute(add_user.format(role).encode())

    def answers() -> list[Any]:
        with psycopg.connect(as_role(empty_database, role)) as old:
            return [
                old.execute(ASK_OF_BEFORE.format(token, hold).encode()).fetchall()
                for token in ("NULL", "sha256('ci')", "'ann'", "'\\x00'")
                for hold in (False, True)
            ]

    before = answers()
    assert before[0] == [(role, "operator", False, False, False)]
    assert migrate.upgrade(empty_database, days_ahead=0).ready
    execute(empty_database, add_user.format(role), add_user.format("ann"), add_user.format("ci"))
    assert answers() == before
    ask = "SELECT name, role, expired FROM packhorse.user_standing('ann', true)"
    refused(as_role(empty_database, role), ask)
    with psycopg.connect(empty_database) as owner, pytest.raises(pg.CheckViolation):
        owner.execute("UPDATE packhorse.operator SET token_hash = sha256('ann') WHERE kind = 'user'")
    for purpose in ("viewer", "operator", "admin"):
        execute(empty_database, *grants("packhorse", [(purpose, role)]))
        with psycopg.connect(as_role(empty_database, role)) as connection:
            assert connection.execute(ask.encode()).fetchall() == [("ann", "admin", False)]
        execute(empty_database, f"DROP OWNED BY {role}")


@pytest.mark.case("X-10")
def test_tables_of_a_later_version_are_left_as_they_are(database: str) -> None:
    """Fails when an old version that starts beside a new one trips over the number it does not know."""
    execute(database, "UPDATE packhorse.alembic_version SET version_num = '9999'")
    found = migrate.upgrade(database)
    assert (found.current, found.newer, found.ready, found.pending) == ("9999", True, True, ())


def test_several_at_once_make_everything_once(empty_database: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: migrate.upgrade(empty_database), range(4)))
    assert all(one.ready for one in found)
    assert len(set(found)) == 1


def test_two_schemas_of_one_database_are_apart(empty_database: str) -> None:
    migrate.upgrade(empty_database, "north")
    assert not migrate.status(empty_database, "south").ready
    migrate.upgrade(empty_database, "south", days_ahead=0)
    with psycopg.connect(empty_database) as connection:
        register_for_tests(connection, AmountMoved, database_schema="south")
        Outbox(schema="south").emit(connection, MOVED, key="a", lock_key=True)
        assert connection.execute("SELECT count(*) FROM north.outbox").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM south.outbox").fetchone() == (1,)


def test_the_printed_script_makes_what_up_makes(database: str, empty_database: str) -> None:
    script = migrate.sql(today=SYSTEM_CLOCK.now().date())
    execute(empty_database, script)
    assert catalog(empty_database) == catalog(database)
    assert migrate.upgrade(empty_database).ready


def test_a_name_that_postgres_reserves_for_its_grammar_is_quoted(empty_database: str) -> None:
    migrate.upgrade(empty_database, "order", days_ahead=0)
    with psycopg.connect(empty_database) as connection:
        register_for_tests(connection, AmountMoved, database_schema="order")
        Outbox(schema="order").emit(connection, MOVED, key="a", lock_key=True)
    with pytest.raises(SettingsError, match="database schema"):
        migrate.upgrade(empty_database, 'x"; DROP SCHEMA public; --')


def test_no_superuser_is_needed(empty_database: str, role: str) -> None:
    name = empty_database.rpartition("/")[2]
    execute(empty_database, f"GRANT CREATE ON DATABASE {name} TO {role}")
    assert migrate.upgrade(as_role(empty_database, role)).ready


def test_who_owns_the_schema_needs_no_right_on_the_database(empty_database: str, role: str) -> None:
    execute(empty_database, f"CREATE SCHEMA packhorse AUTHORIZATION {role}")
    assert migrate.upgrade(as_role(empty_database, role)).ready


@pytest.mark.case("X-11")
def test_a_missing_right_is_named_with_the_way_out(empty_database: str, role: str) -> None:
    """Fails when the driver's error reaches the user untranslated."""
    with pytest.raises(NotReady, match=r"permission denied for database .* `packhorse migrate sql`"):
        migrate.upgrade(as_role(empty_database, role))
    assert not migrate.status(empty_database).ready


@pytest.mark.case("X-11")
def test_what_a_database_refuses_is_told_in_one_line(empty_database: str) -> None:
    """Fails when an error of the driver's, or of Alembic's, reaches the user as it is: statement and stack."""
    execute(empty_database, "CREATE SCHEMA packhorse", "CREATE TABLE packhorse.outbox (a int)")
    with pytest.raises(
        NotReady, match=r'"outbox" already exists, and packhorse.alembic_version does not say'
    ) as caught:
        migrate.upgrade(empty_database)
    assert "\n" not in str(caught.value)
    read_only = make_conninfo(empty_database, options="-c default_transaction_read_only=on")
    with pytest.raises(
        NotReady, match=r"cannot execute CREATE SCHEMA in a read-only transaction \(SQLSTATE 25006\)"
    ):
        migrate.upgrade(read_only, "north")
    head = migrate.upgrade(empty_database, "south", days_ahead=0).head
    execute(empty_database, "INSERT INTO south.alembic_version VALUES ('foreign')")
    with pytest.raises(NotReady, match=rf"south.alembic_version names {head}, foreign"):
        migrate.upgrade(empty_database, "south")


@pytest.mark.case("X-11")
def test_a_server_that_is_too_old_is_refused_before_anything_is_made(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when the migrations begin before the server's version was looked at."""
    monkeypatch.setattr(alembic, "SERVER_VERSION", "SELECT 140022")
    with pytest.raises(
        NotReady, match="the server is Postgres 14; 15 or later is needed, nothing was changed"
    ):
        migrate.upgrade(empty_database)
    assert catalog_is_empty(empty_database)


def catalog_is_empty(url: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT to_regnamespace('packhorse')").fetchone() == (None,)


def test_a_partition_that_somebody_else_made_is_left_alone(database: str) -> None:
    """Fails when every partition's name is read as a day."""
    before = migrate.status(database)
    execute(
        database,
        "CREATE TABLE packhorse.outbox_old (LIKE packhorse.outbox INCLUDING DEFAULTS)",
        "ALTER TABLE packhorse.outbox ATTACH PARTITION packhorse.outbox_old FOR VALUES FROM ('2001-01-01') TO ('2002-01-01')",
    )
    assert migrate.upgrade(database) == before


@pytest.mark.case("X-08")
def test_a_database_that_does_not_answer_is_named_without_its_password() -> None:
    """Fails when the URL goes into the error as it is."""
    with pytest.raises(DatabaseUnavailable, match="PACKHORSE_DATABASE_URL") as caught:
        migrate.status("postgresql://ada:lovelace@127.0.0.1:1/nowhere?connect_timeout=2")
    assert "lovelace" not in str(caught.value)


def test_a_database_that_takes_the_connection_and_says_nothing_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fails, by hanging, when connecting has no limit of its own; a limit in the URL wins."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"postgresql://127.0.0.1:{mute.getsockname()[1]}/nowhere"
        monkeypatch.setattr(alembic, "CONNECT_SECONDS", 2)
        with pytest.raises(DatabaseUnavailable, match="timeout"):
            migrate.status(url)
        monkeypatch.setattr(alembic, "CONNECT_SECONDS", 600)
        with pytest.raises(DatabaseUnavailable, match="timeout"):
            migrate.status(f"{url}?connect_timeout=2")


def test_status_says_by_its_exit_code_whether_something_is_pending(empty_database: str) -> None:
    def status() -> "subprocess.CompletedProcess[str]":
        arguments = [sys.executable, "-m", "packhorse.cli.main", "migrate", "status", "--json"]
        environment = {"PACKHORSE_DATABASE_URL": empty_database}
        return subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)

    before = status()
    migrate.upgrade(empty_database, days_ahead=0)
    after = status()
    assert (before.returncode, json.loads(before.stdout)["ready"]) == (3, False)
    assert (after.returncode, json.loads(after.stdout)["ready"]) == (0, True)


def test_rows_lie_in_the_partition_of_their_day_and_others_in_the_net(database: str) -> None:
    insert = (
        "INSERT INTO packhorse.outbox (id, aggregatetype, type, schema_version, created_at) "
        "VALUES (gen_random_uuid(), 'a', 't', '1', coalesce(%s, clock_timestamp() AT TIME ZONE 'UTC')) "
        "RETURNING tableoid::regclass::text"
    )
    with psycopg.connect(database) as connection:
        connection.execute("SET TIME ZONE 'Pacific/Auckland'")
        today = connection.execute("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')").fetchone()
        assert today is not None
        assert connection.execute(insert, (None,)).fetchone() == (f"packhorse.outbox_{today[0]}",)
        assert connection.execute(insert, (datetime(2001, 1, 1),)).fetchone() == ("packhorse.outbox_default",)  # noqa: DTZ001
    assert migrate.status(database).default_rows


def test_a_day_whose_rows_lie_in_the_net_already_is_left_there(database: str) -> None:
    """Postgres refuses such a partition; the rows are safe where they are, and the days after it are made."""
    end = SYSTEM_CLOCK.now().date() + timedelta(days=DAYS_AHEAD + 1)
    with psycopg.connect(database) as connection:
        connection.execute(
            "INSERT INTO packhorse.outbox (id, aggregatetype, type, schema_version, created_at) "
            "VALUES (gen_random_uuid(), 'a', 't', '1', %s)",
            (datetime(end.year, end.month, end.day, 12, tzinfo=UTC).replace(tzinfo=None),),
        )
    found = migrate.upgrade(database, days_ahead=DAYS_AHEAD + 2)
    assert found.ready
    assert found.default_rows
    assert found.partitions_until == end + timedelta(days=1)
    with psycopg.connect(database) as connection:
        left = connection.execute("SELECT to_regclass(%s)", (f"packhorse.{Day(first=end).name}",)).fetchone()
    assert left == (None,)


def test_partitions_are_made_while_writers_hold_their_transactions_open(database: str) -> None:
    """Fails when a partition is made in a form that wants a lock on the whole outbox."""
    with psycopg.connect(database) as writer:
        register_for_tests(writer, AmountMoved)
        writer.commit()
        Outbox().emit(writer, MOVED, key="a")
        assert migrate.upgrade(database, days_ahead=DAYS_AHEAD + 1).partitions_until == (
            SYSTEM_CLOCK.now().date() + timedelta(days=DAYS_AHEAD + 1)
        )


def test_making_partitions_gives_way_to_who_holds_the_net(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alembic, "GIVE_WAY", "SET LOCAL lock_timeout = '20ms'")
    with psycopg.connect(database) as reader, ThreadPoolExecutor(1) as pool:
        reader.execute("LOCK TABLE packhorse.outbox_default IN ACCESS SHARE MODE")
        with pytest.raises(DatabaseUnavailable, match="others held the tables through 10 tries"):
            migrate.upgrade(database, days_ahead=DAYS_AHEAD + 1)
        monkeypatch.setattr(alembic, "TRIES", 1000)
        later = pool.submit(migrate.upgrade, database, days_ahead=DAYS_AHEAD + 1)
        eventually(lambda: asks_for_a_lock(database), what="migrate asks for the lock on the net")
        reader.rollback()
        assert later.result(timeout=20).ready


def asks_for_a_lock(url: str) -> bool:
    with psycopg.connect(url) as connection:
        waiting = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'packhorse.outbox_default'::regclass)"
        return connection.execute(waiting).fetchone() == (True,)


def granted(url: str, purpose: str, role: str) -> str:
    """Return the URL for *role*, which has the rights of *purpose* and no others."""
    migrate.upgrade(url, days_ahead=0)
    script = migrate.sql(today=SYSTEM_CLOCK.now().date(), roles=[(purpose, role)])
    execute(url, script[script.index("\nGRANT USAGE") :].replace("COMMIT;", ""))
    return as_role(url, role)


def refused(url: str, *statements: str) -> None:
    for statement in statements:
        with psycopg.connect(url) as connection, pytest.raises(pg.InsufficientPrivilege):
            connection.execute(statement.encode())


@pytest.mark.case("X-11")
def test_a_writer_writes_and_can_do_nothing_else(empty_database: str, role: str) -> None:
    """Fails when the grants leave out what `emit` uses, or give a writer more."""
    with psycopg.connect(as_role(empty_database, role)) as connection:
        with pytest.raises(NotReady, match=r"packhorse\.outbox is missing"):
            Outbox().emit(connection, MOVED, key="a")
        migrate.upgrade(empty_database, days_ahead=0)
        with pytest.raises(NotReady, match=rf"role {role} lacks INSERT .* --grants writer={role}"):
            Outbox().emit(connection, MOVED, key="a")
        assert connection.execute("SELECT 1").fetchone() == (1,)
    url = granted(empty_database, "writer", role)
    with psycopg.connect(empty_database) as connection:
        register_for_tests(connection, AmountMoved)
    with psycopg.connect(url) as connection:
        Outbox().emit(connection, MOVED, key="a", lock_key=True)
        Outbox().emit_many(connection, [(MOVED, "a"), (MOVED, None)])
        Outbox().emit_tombstone(connection, AmountMoved, key="a")
    insert = "INSERT INTO packhorse.outbox (id, aggregatetype, type, schema_version, {}) VALUES (gen_random_uuid(), 'a', 't', '1', {})"
    refused(
        url,
        "SELECT FROM packhorse.outbox",
        "UPDATE packhorse.outbox SET type = ''",
        "DELETE FROM packhorse.outbox",
        "TRUNCATE packhorse.outbox_default",
        insert.format("xid", "'3'"),
        insert.format("created_at", "now()"),
        "INSERT INTO packhorse.schema_version VALUES ('s', 1, 'f', 1, '{}')",
        "SELECT FROM packhorse.relay",
        "SELECT FROM packhorse.inbox",
        "CREATE TABLE packhorse.mine ()",
    )


def test_a_relay_reads_the_outbox_and_keeps_its_own_row(empty_database: str, role: str) -> None:
    url = granted(empty_database, "relay", role)
    with psycopg.connect(url) as connection:
        connection.execute("SELECT * FROM packhorse.outbox")
        connection.execute("UPDATE packhorse.relay SET epoch = epoch + 1 WHERE shard = 0")
    refused(
        url,
        "INSERT INTO packhorse.outbox (id, aggregatetype, type, schema_version) VALUES (gen_random_uuid(), 'a', 't', '1')",
        "DELETE FROM packhorse.relay",
        "SELECT FROM packhorse.inbox",
    )


def test_a_registrar_fills_the_table_of_schemas_alone(empty_database: str, role: str) -> None:
    url = granted(empty_database, "registrar", role)
    with psycopg.connect(url) as connection:
        register_for_tests(connection, AmountMoved)
        connection.execute("UPDATE packhorse.schema_version SET schema_id = 7")
    refused(url, "DELETE FROM packhorse.schema_version", "SELECT FROM packhorse.outbox")


def test_a_processor_and_an_operator_have_their_tables(empty_database: str, role: str) -> None:
    processor = granted(empty_database, "processor", role)
    with psycopg.connect(processor) as connection:
        for table in PROCESSORS:
            connection.execute(sql.SQL("DELETE FROM packhorse.{}").format(sql.Identifier(table)))
        connection.execute("INSERT INTO packhorse.audit (actor, act) VALUES ('p', 'a')")
    refused(
        processor,
        "SELECT FROM packhorse.relay",
        "DELETE FROM packhorse.audit",
        "UPDATE packhorse.outbox SET type = ''",
        "DROP TABLE packhorse.inbox_default",
        "TRUNCATE packhorse.inbox",
    )
    execute(empty_database, f"DROP OWNED BY {role}")
    operator = granted(empty_database, "operator", role)
    with psycopg.connect(operator) as connection:
        for table in ("outbox", "relay", "inbox", "quarantined_message", "audit", "failed_attempt"):
            connection.execute(sql.SQL("SELECT FROM packhorse.{}").format(sql.Identifier(table)))
        connection.execute("UPDATE packhorse.quarantined_message SET state = 'redriven'")
    refused(
        operator,
        "DELETE FROM packhorse.audit",
        "DELETE FROM packhorse.inbox",
        "UPDATE packhorse.relay SET epoch = 0",
    )
