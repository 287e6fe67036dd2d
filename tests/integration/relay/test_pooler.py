"""Relay, writers and commands through a real PgBouncer that lends each transaction another server connection."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from tests.support.accounts import AmountMoved
from tests.support.cli import packhorse
from tests.support.pgbouncer import Pooler, pgbouncer
from tests.support.relay import Relays, insert, relays
from tests.support.stack import PrivateDatabase
from tests.support.topics import first_arrivals, make_topic, wait_for
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import DatabaseUnavailable
from packhorse.local.settings import Endpoints
from packhorse.producer import Outbox
from packhorse.relay.deciding.commands import Save
from packhorse.relay.errors import StatementFailed
from packhorse.relay.model import Position
from packhorse.relay.postgres.connection import Reach, connect
from packhorse.relay.postgres.lease import PostgresLease
from packhorse.relay.postgres.outbox import PostgresOutbox
from packhorse.relay.postgres.status import read_status
from packhorse.testing import register_for_tests

TOKEN = UUID(int=7)
OUTBOX = Outbox(origin="tests")


@pytest.fixture
def pooled(database: str, pooler: Pooler) -> str:
    """Provide the URL of the fresh database through the pooler, whose two server connections are both in use."""
    pooler.lend_both(database)
    return pooler.url(database)


class Accounts:
    """Applications behind the pooler, that emit under a lock of the key; `committed` has each key's ids in commit order."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.committed: dict[bytes, list[str]] = {}
        self._stop = threading.Event()

    def write(self) -> None:
        with psycopg.connect(self.url, prepare_threshold=None) as connection:
            n = 0
            while not self._stop.wait(0.003):
                key = f"k{(n := n + 1) % 5}"
                id_ = OUTBOX.emit(connection, AmountMoved(account=key, amount=n), key=key, lock_key=True)
                self.committed.setdefault(key.encode(), []).append(str(id_))  # the key is locked still
                connection.commit()

    def __enter__(self) -> "Accounts":
        with psycopg.connect(self.url) as connection:
            register_for_tests(connection, AmountMoved)
        self._threads = [threading.Thread(target=self.write) for _ in range(2)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    @property
    def count(self) -> int:
        return sum(len(ids) for ids in self.committed.values())


@pytest.fixture
def group(tmp_path: Path, pooled: str, stack: Endpoints, topic_prefix: str) -> Iterator[Relays]:
    """Provide relays that reach their database through the pooler."""
    with relays(tmp_path, database=pooled, bootstrap=stack.kafka_bootstrap, namespace=topic_prefix) as made:
        yield made


@pytest.mark.case("R-04")
@pytest.mark.case("R-12")
def test_rows_of_writers_behind_the_pooler_leave_in_order_over_kills_and_take_overs(
    group: Relays, pooled: str, stack: Endpoints, topic_prefix: str
) -> None:
    """Fails when anything rests on the session: the lease, a prepared statement by a name of its own, a time-out."""
    topic = f"{topic_prefix}.account"
    make_topic(stack.kafka_bootstrap, topic)
    with Accounts(pooled) as accounts:
        for point in ("sent", "saved"):
            assert group.start(point, "2", batch_rows=10).ended() == -signal.SIGKILL
        frozen = group.start()
        frozen.wait_for("this process owns the shard")
        frozen.send(signal.SIGSTOP)
        standby = group.start()
        standby.wait_for("this process owns the shard")
        frozen.send(signal.SIGCONT)
        frozen.wait_for("no longer owns the shard")
        more = accounts.count + 50
        eventually(lambda: accounts.count > more, what="the applications go on")
    found = wait_for(stack.kafka_bootstrap, topic, accounts.count)
    assert first_arrivals(found) == accounts.committed
    eventually(lambda: read_status(pooled, "packhorse").lag_rows == 0, what="the table says so too")
    assert read_status(pooled, "packhorse").healthy
    assert standby.stop() == 0


def test_statements_are_planned_once_for_each_server(pooled: str, database: str) -> None:
    """Fails when the driver no longer asks us for names: each poll would be planned anew, over all partitions."""
    outbox = PostgresOutbox(pooled, "packhorse", batch_rows=500)
    owned = outbox.own(TOKEN, "tests", 600.0)
    assert owned is not None
    for _ in range(40):
        outbox.fetch(owned.position, 500)
    with psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as connection:
        for _ in range(2):
            found = connection.execute(
                "SELECT pg_backend_pid(), generic_plans, custom_plans FROM pg_prepared_statements"
                " WHERE name ~ '^(packhorse|PGBOUNCER)' AND statement LIKE '%pg_snapshot_xip%'"
            ).fetchall()
            assert len(found) == 1
            _, generic, custom = found[0]
            assert generic > 10
            assert custom == 0
    outbox.close()


@pytest.mark.case("R-15")
def test_time_outs_hold_through_the_pooler_and_the_connection_goes_on(pooled: str, database: str) -> None:
    """Fails when time-outs are asked for at the start of a session alone: the pooler drops them."""
    reach = Reach(answer=1.0)
    outbox = PostgresOutbox(pooled, "packhorse", batch_rows=500, reach=reach)
    owned = outbox.own(TOKEN, "tests", 600.0)
    assert owned is not None
    with psycopg.connect(database) as other:
        other.execute("SELECT FROM packhorse.relay FOR UPDATE")
        with pytest.raises(StatementFailed, match="lock timeout; who holds the tables"):
            outbox.record_trouble(TOKEN, "trouble")
    assert outbox.record_trouble(TOKEN, None)
    outbox.close()
    with connect(pooled, reach) as connection:
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SELECT pg_sleep(5)")
        assert connection.execute("SELECT 1").fetchone() == (1,)
        with connection.transaction():
            connection.execute("UPDATE packhorse.relay SET trouble = 'x'")
            assert connection.execute("SELECT trouble FROM packhorse.relay").fetchone() == ("x",)
        for _ in range(2):
            with connection.transaction():
                assert connection.execute("SHOW lock_timeout").fetchone() == ("500ms",)
                connection.execute("SELECT set_config('lock_timeout', '7ms', true)")
                assert connection.execute("SHOW lock_timeout").fetchone() == ("7ms",), "its own stays"


def _kill_the_server(server: PrivateDatabase) -> None:
    server.kill()
    server.start()


def _crash_a_backend(server: PrivateDatabase) -> None:
    """Kill one process of the server: the others end too, and it recovers without a new start."""
    with psycopg.connect(server.direct_url) as victim, psycopg.connect(server.direct_url) as other:
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        with pytest.raises(psycopg.OperationalError):
            other.execute("SELECT pg_sleep(20)")
    eventually(lambda: _answers(server), what="the server has recovered")


def _answers(server: PrivateDatabase) -> bool:
    try:
        with psycopg.connect(server.direct_url):
            return True
    except psycopg.OperationalError:
        return False


@pytest.mark.case("R-15")
@pytest.mark.parametrize("end", [_kill_the_server, _crash_a_backend])
def test_what_was_read_before_the_server_ended_is_void_though_the_pooler_hides_the_end(
    end: Callable[[PrivateDatabase], None],
    private_database: PrivateDatabase,
    pooler: Pooler,
) -> None:
    """Fails without the comparison ahead of each statement: a snapshot from before would be saved as the horizon."""
    with pgbouncer(private_database.direct_url) as hiding:
        url = hiding.url(private_database.direct_url)
        outbox, lease = (
            PostgresOutbox(url, "packhorse", batch_rows=500),
            PostgresLease(url, "packhorse", lease=6.0),
        )
        owned = outbox.own(TOKEN, "tests", 600.0)
        assert owned is not None
        assert lease.renew(TOKEN, 600.0) is not None
        target = outbox.fetch(owned.position, 500).target
        end(private_database)
        with pytest.raises(DatabaseUnavailable, match="another server answers"):
            outbox.save(TOKEN, Save(owned.position, Position(horizon=target), 0))
        again = outbox.own(TOKEN, "tests", 600.0)
        assert again is not None
        assert again.position == owned.position, "nothing was saved"
        assert again.epoch == owned.epoch
        with pytest.raises(DatabaseUnavailable):
            lease.renew(TOKEN, 600.0)
        assert lease.renew(TOKEN, 600.0) is not None
        outbox.close()
        lease.close()


@pytest.mark.case("R-15")
def test_packets_that_vanish_behind_the_pooler_are_told_within_the_bound(
    private_database: PrivateDatabase, pooler: Pooler
) -> None:
    """Fails when the wait for a pipeline's answers has no bound, or is begun anew after it ended."""
    with pgbouncer(private_database.url) as before_the_proxy:
        url = before_the_proxy.url(private_database.url)
        outbox = PostgresOutbox(url, "packhorse", batch_rows=500, reach=Reach(answer=2.0))
        owned = outbox.own(TOKEN, "tests", 600.0)
        assert owned is not None
        private_database.proxy.black_hole()
        started = SYSTEM_CLOCK.monotonic()
        with pytest.raises(DatabaseUnavailable):
            outbox.fetch(owned.position, 500)
        assert SYSTEM_CLOCK.monotonic() - started < 3.9
        private_database.proxy.resume()
        assert outbox.own(TOKEN, "tests", 600.0) is not None
        outbox.close()


def test_the_commands_work_through_the_pooler(
    empty_database: str, pooler: Pooler, stack: Endpoints, topic_prefix: str
) -> None:
    environ = stack.variables() | {
        "PACKHORSE_DATABASE_URL": pooler.url(empty_database),
        "PACKHORSE_NAMESPACE": topic_prefix,
    }
    assert packhorse("migrate", "up", **environ).code == 0
    assert packhorse("migrate", "status", **environ).code == 0
    done = packhorse("schemas", "register", "--avro-dir", "tests/support/avro", **environ)
    assert done.code == 0, done.err
    with psycopg.connect(empty_database) as connection:
        id_ = insert(connection, "k")
    said = packhorse("relay", "status", "--json", "--sample", "0", **environ)
    assert said.json()["shards"][0]["lag_rows"] == 1, said.err
    assert packhorse("status", id_, "--json", **environ).json()["published"] == "not yet"
    doctor = packhorse("doctor", "--json", **environ)
    assert "Traceback" not in doctor.err
