"""Retention on a real database: what goes, what stays and why, who waits, and with which rights."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial

import psycopg
import pytest
from psycopg import errors as pg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from tests.support.cli import Ran, packhorse
from tests.support.databases import unique_name
from tests.support.pgbouncer import Pooler
from tests.support.relay import Relays, insert
from tests.support.retention import (
    Connection,
    Retention,
    codes,
    count,
    fill,
    names,
    partitions,
    past,
    publish,
    today,
)
from tests.support.stack import PrivateDatabase
from tests.support.wait import eventually

from packhorse.core.errors import NotReady
from packhorse.producer.grants import PURPOSES, grants
from packhorse.relay.postgres.connection import Reach
from packhorse.relay.retention.model import Code, Empty, Facts, Make, Outcome, Rules
from packhorse.relay.retention.postgres import PostgresPartitions
from packhorse.relay.retention.shell import run_once

DEFAULT = "outbox_default"
AHEAD = 15
"""Day partitions from today on, as migrations make them."""


@pytest.fixture
def retention(database: str) -> Iterator[Retention]:
    made = Retention(database)
    yield made
    made.close()


class Writers:
    """
    Applications that write all the time, each row in its own transaction.

    Their own lock_timeout is the judge: a statement that waits longer than that for a lock fails. It counts waiting for
    locks alone, so a busy machine doesn't fail the test.
    """

    LONGEST = "1s"

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self.written = 0
        self.errors: list[psycopg.Error] = []

    def _write(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("SET synchronous_commit = off")
            connection.execute(f"SET lock_timeout = '{self.LONGEST}'".encode())
            while not self._stop.wait(0.001):
                try:
                    insert(connection, "k")
                except psycopg.Error as error:
                    self.errors.append(error)
                    return
                self.written += 1

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write meanwhile."""
        with ThreadPoolExecutor(2) as pool:
            writers = [pool.submit(self._write) for _ in range(2)]
            try:
                yield
            finally:
                self._stop.set()
        for writer in writers:
            writer.result()

    def more(self, rows: int) -> None:
        """Wait until they have written *rows* more."""
        wanted = self.written + rows
        eventually(lambda: self.written >= wanted or self.errors, what="the writers write on")


@pytest.mark.case("B-09")
def test_writers_write_on_while_old_days_are_emptied_and_dropped(
    connection: Connection, database: str, retention: Retention
) -> None:
    """
    Fails when drop_partition asks for its lock without a time-out: the transaction that stays open then stops all writers.

    It fails as well when a drop that had to wait for writers is not tried again by a later run.
    """
    old = past(connection, 18)[:4]
    fill(connection, 40)
    publish(connection)
    writers = Writers(database)
    with psycopg.connect(database) as slow, writers.running():
        insert(slow, "k")  # holds its lock on the outbox until it ends
        writers.more(20)
        first = codes(retention.run().outcomes)
        assert [first[f"empty {name}"] for name in [*old, DEFAULT]] == ["emptied"] * 5
        assert first[f"drop {old[0]}"] == "busy"
        assert f"drop {old[1]}" not in first, "one wait of the writers is enough for a run"
        writers.more(20)
        slow.commit()
        eventually(
            lambda: retention.run().overdue == () and not set(old) & names(connection),
            what="the empty partitions are dropped",
        )
        writers.more(20)
    assert writers.errors == []
    assert DEFAULT in partitions(connection)
    assert count(connection) == writers.written + 1 + 14 * 20


@pytest.mark.case("B-09")
def test_making_a_day_gives_way_to_whoever_reads_the_default_partition(
    connection: Connection, database: str, retention: Retention
) -> None:
    """Fails when make_day_partition waits for its lock as long as it takes: rows for the default partition queue behind it."""
    with psycopg.connect(database) as reader:
        reader.execute("SELECT count(*) FROM packhorse.outbox")
        connection.execute("SET lock_timeout = '1s'")
        with ThreadPoolExecutor(1) as pool:
            run = pool.submit(retention.run, None, ahead=16)
            for _ in range(30):
                fill(connection, 3)
            assert set(codes(run.result().outcomes).values()) == {"busy"}
    assert set(codes(retention.run(None, ahead=16).outcomes).values()) == {"made"}


@pytest.mark.case("B-09")
def test_no_lock_is_held_until_a_standby_has_answered(private_database: PrivateDatabase) -> None:
    """Fails when a step commits as the server is set: its locks would stay while a synchronous standby is away, and writers wait."""
    url = private_database.direct_url
    waits = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    with psycopg.connect(url, autocommit=True) as connection, ThreadPoolExecutor(1) as pool:
        old = past(connection, 15)[0]
        publish(connection)
        retention = Retention(url)
        retention.facts()
        try:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
            connection.execute("SELECT pg_reload_conf()")
            run = pool.submit(retention.run, ahead=15)
            seen = eventually(
                lambda: connection.execute(waits).fetchall() or run.done(), what="the run is over"
            )
        finally:
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            connection.execute("SELECT pg_reload_conf()")
        assert seen is True
        assert sorted(codes(run.result().outcomes).values()) == ["dropped", "emptied", "made"]
        assert old not in names(connection)
        retention.close()


@pytest.mark.case("B-10")
@pytest.mark.parametrize("how", ["down", "running", "other shard"])
def test_an_unpublished_row_keeps_its_partition_and_is_named(
    connection: Connection, database: str, retention: Retention, how: str
) -> None:
    """Fails when empty_partition leaves out the look at the horizon, its running transactions, or the other shards' rows."""
    if how == "other shard":
        connection.execute("INSERT INTO packhorse.relay (shard, horizon) SELECT 1, pg_current_snapshot()")
    old = past(connection, 16)[0]
    with psycopg.connect(database) as writer:
        if how == "running":  # begun before the horizon, committed after it
            fill(writer, 16)
            fill(connection, 3)
        publish(connection)
        if how == "other shard":
            connection.execute("UPDATE packhorse.relay SET horizon = '3:3:' WHERE shard = 1")
    if how == "down":
        fill(connection, 16, kind="payments")
    report = retention.run()
    (overdue,) = [each for each in report.overdue if each.name == old]
    assert overdue.cause == "unpublished"
    assert overdue.aggregatetype == ("payments" if how == "down" else "orders")
    kept = connection.execute(f"SELECT id::text FROM packhorse.{old}".encode()).fetchall()
    assert (overdue.message_id,) in kept
    assert f"not published by shard {1 if how == 'other shard' else 0}" in overdue.told
    assert retention.partitions.last().overdue == report.overdue
    connection.execute("UPDATE packhorse.relay SET horizon = pg_current_snapshot()")
    assert retention.run().overdue == ()
    assert old not in partitions(connection)


HOLD = """
INSERT INTO packhorse.relay_hold (shard, scope, aggregatetype, aggregateid, message_id, code, reason, heals, horizon)
SELECT 0, %(scope)s, %(kind)s, %(key)s, %(id)s, 'too_large', 'r', false, horizon FROM packhorse.relay
RETURNING id"""


@pytest.mark.case("B-10")
@pytest.mark.parametrize("scope", ["row", "key", "partition", "topic"])
def test_a_row_that_a_hold_still_has_to_publish_keeps_its_partition(
    connection: Connection, retention: Retention, scope: str
) -> None:
    """Fails when empty_partition leaves out the look at open holds; or keeps days in which the hold has no row."""
    free, held, both = past(connection, 17)[:3]
    connection.execute("UPDATE packhorse.relay SET horizon = pg_current_snapshot()")
    days = {name: 17 - n for n, name in enumerate((free, held, both))}
    ids = {}
    for name in (held, both):
        fill(connection, days[name], kind="payments")
        row = connection.execute(
            f"SELECT id::text FROM packhorse.{name} WHERE aggregatetype = 'payments'".encode()
        ).fetchone()
        assert row is not None
        ids[name] = row[0]
    values = {"scope": scope, "kind": "payments", "key": "k1", "id": ids[held] if scope == "row" else None}
    (hold,) = connection.execute(HOLD, values).fetchone() or (None,)
    publish(connection)  # the relay went on without them
    report = retention.run()
    waiting = [held] if scope == "row" else [held, both]
    assert [(each.name, each.cause, each.hold) for each in report.overdue] == [
        (name, "held", hold) for name in waiting
    ]
    assert report.overdue[0].message_id == ids[held]
    assert names(connection) & {free, held, both} == set(waiting)
    connection.execute("UPDATE packhorse.relay_hold SET state = 'ended', ended_at = now()")
    assert retention.run().overdue == ()
    assert not names(connection) & {free, held, both}


@pytest.mark.case("B-10")
def test_a_transaction_that_is_still_open_keeps_its_partition_and_is_named(
    connection: Connection, database: str, retention: Retention
) -> None:
    """Fails when empty_partition truncates by any way that does not wait for who writes, or says nothing of the wait."""
    old = past(connection, 15)[0]
    publish(connection)
    with psycopg.connect(database, application_name="billing") as writer:
        fill(writer, 15)
        (overdue,) = retention.run().overdue
        assert (overdue.name, overdue.cause) == (old, "busy")
        assert f"pid {writer.info.backend_pid} (billing), open for 0 s, wrote rows" in overdue.told
    with psycopg.connect(database) as reader:
        reader.execute(f"SELECT FROM packhorse.{old}".encode())
        connection.execute("UPDATE packhorse.relay SET horizon = pg_current_snapshot()")
        assert codes(retention.run().outcomes) == {f"empty {old}": "busy"}
        assert retention.run().overdue == (), "a reader of a moment is nothing to wake somebody for"
    retention.run()
    assert old not in partitions(connection)


@pytest.mark.case("B-10")
@pytest.mark.parametrize("what", ["row", "published row", "hold"])
def test_what_comes_between_the_look_and_the_lock_is_seen(
    connection: Connection, database: str, what: str
) -> None:
    """Fails when empty_partition does not look again under its lock: at rows, at what it could not see before, at holds."""
    old = past(connection, 15)[0]
    publish(connection)
    retention = Retention(database, patience=20)
    with psycopg.connect(database) as other, ThreadPoolExecutor(1) as pool:
        other.execute(f"LOCK TABLE packhorse.{old} IN ROW EXCLUSIVE MODE".encode())
        run = pool.submit(retention.run)
        eventually(lambda: asks_for(connection, old), what="retention has looked, and asks for its lock")
        if what == "hold":
            values = {"scope": "topic", "kind": "orders", "key": None, "id": None}
            other.execute(HOLD, values)
        else:
            fill(other, 15)
        if what == "published row":
            other.execute("UPDATE packhorse.relay SET horizon = '9000000:9000000:'")
        other.commit()
        outcome = codes(run.result(timeout=30).outcomes)[f"empty {old}"]
    retention.close()
    assert outcome == ("unpublished" if what == "row" else "changed")
    assert partitions(connection)[old] == 20 + (what != "hold")


def asks_for(connection: Connection, table: str) -> bool:
    waiting = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = %s::regclass)"
    return connection.execute(waiting, (f"packhorse.{table}",)).fetchone() == (True,)


@pytest.mark.case("B-10")
def test_nothing_goes_where_the_horizon_is_not_this_database_s_own(
    connection: Connection, retention: Retention
) -> None:
    """Fails when a horizon ahead of the database, of another server, or none at all, counts as published."""
    old = past(connection, 15)[0]
    for change in (
        "SET horizon = '9000000000:9000000000:'",
        "SET horizon = pg_current_snapshot(), incarnation = '1/00000001'",
    ):
        connection.execute(f"UPDATE packhorse.relay {change}".encode())
        assert [each.cause for each in retention.run().overdue] == ["no_horizon"]
    connection.execute("DELETE FROM packhorse.relay")
    assert [each.cause for each in retention.run().overdue] == ["no_horizon"]
    assert partitions(connection)[old] == 20


@pytest.mark.case("B-11")
def test_weeks_of_load_leave_as_many_partitions_and_rows_as_are_kept(
    connection: Connection, retention: Retention
) -> None:
    """Fails when emptied partitions are not dropped, or days stay that are over: each day that passes adds to the count."""
    past(connection, 30)
    fill(connection, 45, rows=20)
    publish(connection)
    for keep_days in range(29, 13, -1):  # a day passes
        assert retention.run(keep_days).overdue == ()
        found = partitions(connection)
        assert len(found) == keep_days + AHEAD + 1
        assert sum(found.values()) == keep_days * 20
    assert codes(retention.run().outcomes) == {}


class Together(PostgresPartitions):
    """Partitions of one of several processes: no look begins before all steps are over, and no step before all looks are."""

    def __init__(self, url: str, *gates: threading.Barrier) -> None:
        super().__init__(url, "packhorse", reach=Reach(answer=20))
        self._gates = gates

    def facts(self) -> Facts:
        before, after = self._gates
        before.wait(20)
        found = super().facts()
        after.wait(20)
        return found


@pytest.mark.case("B-11")
def test_of_several_processes_one_works_at_a_time(connection: Connection, database: str) -> None:
    """
    Fails when a step does not take the advisory lock, and asks for locks that another process's step has.

    All take each step at the same moment. Nobody looks meanwhile: a look has the lock of a partition for as long as it reads
    its size, a drop does not wait for that, and it would be busy by right.
    """
    old = past(connection, 34)[:20]
    publish(connection)
    gates = threading.Barrier(3), threading.Barrier(3)

    def run() -> list[tuple[str, str]]:
        done: list[tuple[str, str]] = []
        rules = Rules(keep_days=14, ahead=14)
        with closing(Together(database, *gates)) as mine:
            while True:
                taken: list[Outcome] = []
                run_once(mine, rules, by="test", tell=taken.append, ended=partial(bool, taken))
                if not taken:
                    return done
                done += codes(taken).items()

    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(run) for _ in range(3)]
        found = [each for one in runs for each in one.result()]
    assert sorted(step for step, code in found if code == "emptied") == sorted(
        f"empty {name}" for name in old
    )
    assert sorted(step for step, code in found if code == "dropped") == sorted(f"drop {name}" for name in old)
    assert {code for _, code in found} <= {"emptied", "dropped", "elsewhere", "gone"}


def test_a_day_without_a_partition_refuses_no_writer_and_its_rows_go_when_they_are_old(
    connection: Connection, retention: Retention
) -> None:
    """Fails when a row without a partition is refused, when a day whose rows lie in the net ends the run, or the net is never emptied."""
    now = today(connection)
    for name in names(connection) - {DEFAULT}:
        connection.execute(f"DROP TABLE packhorse.{name}".encode())
    insert(connection, "k")
    fill(connection, 20)
    assert partitions(connection) == {DEFAULT: 2}
    first = retention.run()
    assert first.overdue == (), "a row of today that waits for the relay is no reason for an alarm"
    publish(connection)
    found = codes(first.outcomes)
    assert found.pop(f"make {Make(day=now).name}") == "net"
    assert found.pop(f"empty {DEFAULT}") == "young"
    assert len(found) == 14
    assert set(found.values()) == {"made"}
    assert partitions(connection)[DEFAULT] == 2, "rows never move between partitions"
    outcome = retention.partitions.take(Empty(name=DEFAULT, keep=now))
    assert outcome.code is Code.YOUNG
    connection.execute(f"TRUNCATE packhorse.{DEFAULT}".encode())
    fill(connection, 20)
    publish(connection)
    found = codes(retention.run().outcomes)
    assert found == {f"make {Make(day=now).name}": "made", f"empty {DEFAULT}": "emptied"}


@pytest.mark.case("B-09")
def test_a_large_net_is_not_read_under_a_lock(connection: Connection, retention: Retention) -> None:
    """Fails when a day is attached whatever the default partition holds: its writers wait while it is read."""
    tomorrow = Make(day=today(connection) + timedelta(days=1))
    connection.execute(f"DROP TABLE packhorse.{tomorrow.name}".encode())
    connection.execute(
        "INSERT INTO packhorse.outbox (id, aggregatetype, type, schema_version, headers, created_at)"
        " SELECT gen_random_uuid(), 'a', 't', '1', to_jsonb(repeat('x', 1500)), '2001-01-01' FROM generate_series(1, 11000)"
    )
    (overdue,) = retention.run(None).overdue
    assert (overdue.name, overdue.cause) == (tomorrow.name, "large")
    assert "packhorse migrate up" in overdue.told


@contextmanager
def role_for(database: str, purpose: str) -> Iterator[str]:
    """Provide the URL for a role that has the rights of *purpose* alone."""
    role = unique_name(purpose)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
        for statement in grants("packhorse", [(purpose, role)]):
            connection.execute(statement.encode())
        try:
            yield make_conninfo(database, user=role)
        finally:
            connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def refused(url: str, *statements: str) -> None:
    for statement in statements:
        with psycopg.connect(url) as connection, pytest.raises(pg.InsufficientPrivilege):
            connection.execute(statement.encode())


@pytest.mark.case("B-04")
def test_the_relay_s_role_removes_what_is_published_and_can_remove_nothing_else(
    connection: Connection, database: str
) -> None:
    """Fails when retention needs a table of its own role's, or when its functions let a caller remove what is not published."""
    old, kept = past(connection, 16)[:2]
    connection.execute("UPDATE packhorse.relay SET horizon = pg_current_snapshot()")
    fill(connection, 15)
    with role_for(database, "relay") as url:
        retention = Retention(url)
        found = retention.run(ahead=15)
        retention.close()
        assert [each.name for each in found.overdue] == [kept]
        assert codes(found.outcomes)[f"drop {old}"] == "dropped"
        assert found.count(Code.MADE) == 1
        refused(
            url,
            f"TRUNCATE packhorse.{kept}",
            f"DROP TABLE packhorse.{kept}",
            "DELETE FROM packhorse.outbox",
            "TRUNCATE packhorse.outbox",
            "CREATE TABLE packhorse.mine ()",
            f"SELECT packhorse.unpublished_row('packhorse.{kept}')",
            f"SELECT packhorse.lock_holder('packhorse.{kept}')",
        )
        with psycopg.connect(url) as caller, pytest.raises(pg.InvalidParameterValue, match="rows of today"):
            caller.execute("SELECT packhorse.empty_partition('outbox_default', current_date + 2)")
        with psycopg.connect(url) as caller:
            caller.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            with pytest.raises(pg.InvalidTransactionState, match="READ COMMITTED"):
                caller.execute(f"SELECT packhorse.empty_partition('{kept}', current_date)".encode())
    for statement in ("DELETE FROM packhorse.outbox", "TRUNCATE packhorse.outbox"):
        with pytest.raises(pg.ObjectNotInPrerequisiteState, match="append-only"):
            connection.execute(statement.encode())
    assert partitions(connection)[kept] == 21


SHAPE = """
SELECT string_agg(d.text, ';' ORDER BY d.text) FROM (
    SELECT replace(i.indexdef, i.tablename, '') FROM pg_indexes AS i WHERE i.tablename = %(name)s
    UNION ALL SELECT replace(pg_get_triggerdef(t.oid), %(name)s, '') FROM pg_trigger AS t WHERE t.tgrelid = %(table)s::regclass
    UNION ALL SELECT a.attname || format_type(a.atttypid, a.atttypmod) || a.attnotnull::text || a.attidentity::text ||
        coalesce(pg_get_expr(v.adbin, v.adrelid), '') FROM pg_attribute AS a
        LEFT JOIN pg_attrdef AS v ON v.adrelid = a.attrelid AND v.adnum = a.attnum
       WHERE a.attrelid = %(table)s::regclass AND a.attnum > 0
    UNION ALL SELECT c.relowner::regrole::text FROM pg_class AS c WHERE c.oid = %(table)s::regclass) AS d (text)"""


def test_a_day_made_for_the_relay_s_role_is_like_one_that_migrations_make(
    connection: Connection, database: str
) -> None:
    """Fails when make_day_partition leaves out a default, an index or the owner: the day would not refuse changes, or not be read fast."""
    with role_for(database, "relay") as url:
        retention = Retention(url)
        (outcome,) = retention.run(ahead=15).outcomes
        retention.close()
    made = [outcome.step.name, Make(day=today(connection)).name]
    shapes = [
        connection.execute(SHAPE, {"name": name, "table": f"packhorse.{name}"}).fetchone() for name in made
    ]
    assert shapes[0] == shapes[1]
    assert "refuse_change" in str(shapes[0])


@pytest.mark.case("B-04")
def test_no_other_role_may_call_retention(connection: Connection, database: str) -> None:
    """Fails when EXECUTE stays with PUBLIC, or is granted to a purpose that has no need of it."""
    old = past(connection, 15)[0]
    publish(connection)
    for purpose in set(PURPOSES) - {"relay"}:
        with role_for(database, purpose) as url:
            refused(
                url,
                f"SELECT packhorse.empty_partition('{old}', current_date)",
                f"SELECT packhorse.drop_partition('{old}', current_date)",
                "SELECT packhorse.make_day_partition(current_date)",
            )
            retention = Retention(url)
            with pytest.raises(NotReady, match="--grants relay=ROLE"):
                retention.run()
            retention.close()


def test_a_database_whose_default_is_another_isolation_level_is_served_too(
    connection: Connection, database: str
) -> None:
    """Fails when a step runs at the role's default level: the look under the lock would see the past."""
    old = past(connection, 15)[0]
    publish(connection)
    name = database.rpartition("/")[2]
    connection.execute(
        f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'".encode()
    )
    retention = Retention(database)
    assert codes(retention.run().outcomes) == {f"empty {old}": "emptied", f"drop {old}": "dropped"}
    retention.close()


def test_it_works_behind_a_pooler_that_lends_servers_by_the_transaction(
    connection: Connection, database: str, pooler: Pooler
) -> None:
    """Fails when a step rests on what an earlier statement of the session did: here each is on another server."""
    old, kept = past(connection, 16)[:2]
    connection.execute("UPDATE packhorse.relay SET horizon = pg_current_snapshot()")
    fill(connection, 15)
    retention = Retention(pooler.url(database))
    report = retention.run(ahead=15)
    assert sorted(codes(report.outcomes).values()) == ["dropped", "emptied", "made", "unpublished"]
    assert retention.partitions.last().overdue == report.overdue
    retention.close()
    assert old not in names(connection)
    assert partitions(connection)[kept] == 21


def test_partitions_of_another_form_are_somebody_else_s(connection: Connection, retention: Retention) -> None:
    """Fails when a table is taken for a day by its name alone, or emptied whatever its name."""
    for name, bounds in (
        ("outbox_old", "FROM ('2001-01-01') TO ('2002-01-01')"),
        ("outbox_20030101", "FROM ('2003-01-01') TO ('2003-02-01')"),
    ):
        connection.execute(
            f"CREATE TABLE packhorse.{name} (LIKE packhorse.outbox INCLUDING DEFAULTS)".encode()
        )
        connection.execute(
            f"ALTER TABLE packhorse.outbox ATTACH PARTITION packhorse.{name} FOR VALUES {bounds}".encode()
        )
    publish(connection)
    assert codes(retention.run().outcomes) == {}
    assert {"outbox_old", "outbox_20030101"} <= names(connection)


def test_an_object_that_needs_an_old_partition_is_named(connection: Connection, retention: Retention) -> None:
    old = past(connection, 15)[0]
    publish(connection)
    connection.execute(f"CREATE VIEW packhorse.last_month AS SELECT id FROM packhorse.{old}".encode())
    (overdue,) = retention.run().overdue
    assert (overdue.name, overdue.cause) == (old, "depended")
    assert partitions(connection)[old] == 0


def test_the_command_says_what_it_does_and_by_its_exit_code_whether_somebody_should_look(
    connection: Connection, database: str
) -> None:
    old, kept = past(connection, 16)[:2]
    connection.execute("UPDATE packhorse.relay SET horizon = pg_current_snapshot()")
    fill(connection, 15)

    def retention(*arguments: object) -> Ran:
        return packhorse("retention", *arguments, PACKHORSE_DATABASE_URL=database)

    dry = retention("run", "--dry-run")
    assert f"{old}  would be emptied" in dry.out
    assert (dry.code, count(connection)) == (1, 321)
    done = retention("run", "--json")
    assert done.code == 1
    told = done.json()
    assert {"partition": old, "act": "drop", "outcome": "dropped", "text": "dropped"} in told["steps"]
    assert [each["name"] for each in told["overdue"]] == [kept]
    assert "is not published by shard 0" in told["overdue"][0]["told"]
    status = retention("status")
    assert status.code == 1
    assert f"overdue    {kept}: stays: row " in status.out
    publish(connection)
    done = retention("run", "--keep-days", 1)
    assert (done.code, count(connection)) == (0, 20)
    assert retention("status").code == 0
    assert retention("run").out == "nothing is due\n"


def test_a_running_relay_does_it_by_itself_and_raises_the_alarm(
    group: Relays, connection: Connection, database: str, topic: str
) -> None:
    """Fails when the relay does not run retention beside its own loop, or keeps an overdue partition to itself."""
    assert topic
    old, open_one = past(connection, 16)[:2]
    with psycopg.connect(database, application_name="billing") as writer:
        fill(writer, 15)
        relay = group.start(retention_every=1)
        relay.wait_for("a partition is overdue")
        (alarm,) = [record for record in relay.events() if record["event"] == "a partition is overdue"]
        assert (alarm["level"], alarm["partition"], alarm["cause"]) == ("error", open_one, "busy")
        assert "(billing)" in alarm["reason"]
        writer.rollback()
    eventually(lambda: not {old, open_one} & names(connection), what="the relay drops both", timeout=20)
    relay.wait_for("no partition is overdue any more")
    assert relay.stop() == 0
