"""Kill -9 at named points, freezes and take-overs, on a real broker and a real database."""

import signal

import psycopg
import pytest
from tests.support.relay import Relays, Writer, insert
from tests.support.topics import first_arrivals, records, wait_for
from tests.support.wait import eventually

from packhorse.local.settings import Endpoints
from packhorse.relay.postgres.status import read_status


def all_published(database: str) -> None:
    """Wait until the table says that nothing waits."""

    def nothing_waits() -> bool:
        status = read_status(database, "packhorse")
        return status.lag_rows == 0 and status.target is None

    eventually(nothing_waits, what="every row is published, by the table", timeout=30)


@pytest.fixture
def writer(database: str) -> Writer:
    made = Writer(database)
    made.prepare()
    return made


@pytest.mark.case("R-04")
@pytest.mark.parametrize("point", ["fetched", "sent", "confirmed", "saved"])
def test_a_kill_at_any_point_loses_nothing_and_keeps_each_key_s_order(
    point: str, group: Relays, writer: Writer, database: str, stack: Endpoints, topic: str
) -> None:
    """
    Fails when the horizon is saved before the broker's confirmation, or a restart begins behind the saved position.

    "fetched" is before publish; "confirmed" is after publish and before the horizon moves.
    """
    with writer.running():
        for number in (1, 3):
            killed = group.start(point, str(number), batch_rows=10)
            assert killed.ended() == -signal.SIGKILL
        group.start().wait_for("this process owns the shard")
    found = wait_for(stack.kafka_bootstrap, topic, writer.count)
    all_published(database)
    assert first_arrivals(found) == writer.committed


@pytest.mark.case("R-04")
def test_a_kill_repeats_no_more_than_came_since_the_last_save(
    group: Relays, database: str, stack: Endpoints, topic: str
) -> None:
    """Fails when progress inside a target is not saved: the whole backlog would go out again."""
    rows = 40_000
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, payload)"
            " SELECT gen_random_uuid(), 'orders', 'k' || n %% 50, 't.T', '1', 'x' FROM generate_series(1, %s) AS n",
            (rows,),
        )
    killed = group.start("saved", "1", batch_rows=500)
    assert killed.ended() == -signal.SIGKILL
    before = len(records(stack.kafka_bootstrap, topic))
    saved = read_status(database, "packhorse")
    assert saved.target is not None
    assert 0 < saved.published < rows
    group.start()
    found = wait_for(stack.kafka_bootstrap, topic, rows)
    assert len(found) - rows <= before - saved.published


@pytest.mark.case("R-12")
def test_a_frozen_relay_that_wakes_is_refused_and_skips_no_row(
    group: Relays, writer: Writer, database: str, stack: Endpoints, topic: str
) -> None:
    """
    Fails when a process that wakes goes on as owner: without the look at the deadline, the keeper's and the save's refusal.

    Each of the three alone holds it; tests/unit/relay has one for each.
    """
    with writer.running(threads=1):
        frozen = group.start()
        wait_for(stack.kafka_bootstrap, topic, 10)
        frozen.send(signal.SIGSTOP)
        standby = group.start()
        standby.wait_for("this process owns the shard")
        frozen.send(signal.SIGCONT)
        frozen.wait_for("no longer owns the shard")
    found = wait_for(stack.kafka_bootstrap, topic, writer.count)
    all_published(database)
    assert read_status(database, "packhorse").epoch == 2
    arrived = first_arrivals(found)
    assert {key: sorted(ids) for key, ids in arrived.items()} == {
        key: sorted(ids) for key, ids in writer.committed.items()
    }
    assert arrived == writer.committed


@pytest.mark.case("R-12")
@pytest.mark.case("R-13")
def test_a_refused_save_ends_an_owner_that_does_not_know_of_its_successor(
    group: Relays, writer: Writer, database: str, stack: Endpoints, topic: str
) -> None:
    """Fails when a save does not compare the token, or a refused save is not the end of sending."""
    with writer.running(threads=1):
        first = group.start(lease=60)
        wait_for(stack.kafka_bootstrap, topic, 10)
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(
                "UPDATE packhorse.relay SET lease_until = clock_timestamp() - interval '1 second'"
            )
        second = group.start(lease=60)
        second.wait_for("this process owns the shard")
        first.wait_for("the save was refused")
    found = wait_for(stack.kafka_bootstrap, topic, writer.count)
    all_published(database)
    assert read_status(database, "packhorse").epoch == 2
    assert first_arrivals(found) == writer.committed


@pytest.mark.case("X-09")
def test_a_clean_stop_saves_all_and_a_standby_is_at_work_at_once(
    group: Relays, writer: Writer, database: str, stack: Endpoints, topic: str
) -> None:
    """Fails when the lease is not given back: the standby would wait until it ends."""
    first = group.start(lease=60)
    first.wait_for("this process owns the shard")
    second = group.start(lease=60)
    with writer.running(threads=1):
        wait_for(stack.kafka_bootstrap, topic, 10)
        assert first.stop() == 0
        published = read_status(database, "packhorse").published
        second.wait_for("this process owns the shard", timeout=10)
    found = wait_for(stack.kafka_bootstrap, topic, writer.count)
    assert first_arrivals(found) == writer.committed
    assert len(found) == writer.count, "a clean stop repeats nothing"
    assert published >= 10


@pytest.mark.case("R-01")
@pytest.mark.case("R-03")
def test_a_long_transaction_holds_up_only_itself(
    group: Relays, database: str, stack: Endpoints, topic: str
) -> None:
    """Fails when the cycle stops at the oldest running transaction, or rows that commit late are passed over."""
    with psycopg.connect(database) as long, psycopg.connect(database) as short:
        late = insert(long, "late")
        group.start()
        quick = []
        for _ in range(3):
            quick.append(insert(short, "quick"))
            short.commit()
            found = wait_for(stack.kafka_bootstrap, topic, len(quick))
            assert first_arrivals(found) == {b"quick": quick}
        long.commit()
        found = wait_for(stack.kafka_bootstrap, topic, len(quick) + 1)
        assert first_arrivals(found) == {b"quick": quick, b"late": [late]}
