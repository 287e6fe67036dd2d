"""The broker or the database away, packets that vanish, rows that are refused, a crash that loses commits."""

import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

import psycopg
import pytest
from tests.support.holds import held, relay
from tests.support.relay import RelayProcess, Relays, Writer, insert, relays
from tests.support.stack import PrivateBroker, PrivateDatabase
from tests.support.topics import first_arrivals, make_topic, records, set_limit, wait_for, wait_for_limit
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.local.settings import Endpoints
from packhorse.relay.postgres.status import read_status
from packhorse.relay.status import RelayStatus

ANSWER = 2.0
"""Seconds that these relays wait for any answer of the database."""


@pytest.fixture
def broken_database(
    tmp_path: Path, private_database: PrivateDatabase, stack: Endpoints, topic_prefix: str, topic: str
) -> Iterator[Relays]:
    """Provide relays whose database may be hurt; they reach it through its proxy."""
    with relays(
        tmp_path, database=private_database.url, bootstrap=stack.kafka_bootstrap, namespace=topic_prefix
    ) as made:
        made.environment["PACKHORSE_RELAY_DATABASE_TIMEOUT"] = str(ANSWER)
        yield made


@pytest.fixture
def broken_broker(
    tmp_path: Path, private_kafka: PrivateBroker, database: str, topic_prefix: str
) -> Iterator[Relays]:
    """Provide relays whose broker may be hurt."""
    make_topic(private_kafka.direct_bootstrap, f"{topic_prefix}.orders")
    with relays(
        tmp_path, database=database, bootstrap=private_kafka.bootstrap, namespace=topic_prefix
    ) as made:
        yield made


def in_trouble(database: str, what: str) -> RelayStatus:
    """Wait until the status says *what* is wrong."""

    def there() -> RelayStatus | None:
        status = read_status(database, "packhorse")
        return status if status.trouble is not None and what in status.trouble else None

    found = eventually(there, what=f"the status says {what!r}", timeout=30)
    assert found is not None
    return found


def healthy(database: str) -> None:
    eventually(lambda: read_status(database, "packhorse").healthy, what="the status is healthy", timeout=30)


@pytest.mark.case("R-06")
def test_rows_wait_for_a_broker_that_is_away_and_leave_in_order(
    broken_broker: Relays, private_kafka: PrivateBroker, database: str, topic_prefix: str
) -> None:
    """Fails when silence of the broker counts as confirmation, or costs the lease."""
    writer = Writer(database)
    writer.prepare()
    topic = f"{topic_prefix}.orders"
    with writer.running():
        broken_broker.start()
        wait_for(private_kafka.direct_bootstrap, topic, 10)
        private_kafka.kill()
        in_trouble(database, "the broker confirms nothing")
        status = read_status(database, "packhorse")
        assert status.owner is not None
        assert status.epoch == 1
        private_kafka.start()
        healthy(database)
    found = wait_for(private_kafka.direct_bootstrap, topic, writer.count)
    assert first_arrivals(found) == writer.committed
    assert read_status(database, "packhorse").epoch == 1


@pytest.mark.case("X-09")
def test_a_stop_is_bounded_while_the_broker_is_away_and_a_second_signal_leaves_at_once(
    broken_broker: Relays, private_kafka: PrivateBroker, database: str, topic_prefix: str
) -> None:
    """Fails when a stop waits for confirmations without bound, or the second signal is swallowed."""
    topic, bootstrap = f"{topic_prefix}.orders", private_kafka.direct_bootstrap
    ids: list[str] = []
    with psycopg.connect(database) as connection:

        def into_the_silence(**settings: object) -> RelayProcess:
            """Start a relay, let it send a row, silence the broker and let it send another."""
            process = broken_broker.start(**settings)
            ids.append(insert(connection, "k"))
            connection.commit()
            wait_for(bootstrap, topic, len(ids))
            private_kafka.pause()
            ids.append(insert(connection, "k"))
            connection.commit()
            in_trouble(database, "the broker confirms nothing")
            return process

        assert into_the_silence(stop_within=1).stop(timeout=10) == 0
        private_kafka.resume()
        hasty = into_the_silence(stop_within=600)
        hasty.send(signal.SIGTERM)
        hasty.wait_for("stopping")
        hasty.send(signal.SIGTERM)
        assert hasty.ended(timeout=5) == 128 + signal.SIGTERM
        private_kafka.resume()
        broken_broker.start()
        assert first_arrivals(wait_for(bootstrap, topic, len(ids))) == {b"k": ids}


@pytest.mark.case("R-07")
@pytest.mark.case("R-11")
def test_the_broker_refuses_one_row_of_a_batch_and_its_key_alone_waits(
    group: Relays, database: str, stack: Endpoints, topic: str
) -> None:
    """
    Fails when rows behind a refused one go on, when the horizon passes it without a hold on record, or other keys wait with it.

    The relay knows the limit from before it was lowered, so that the broker itself refuses the row.
    """
    large = Random(7).randbytes(20_000)
    process = group.start()
    with psycopg.connect(database) as connection:
        first = insert(connection, "k")
        connection.commit()
        wait_for(stack.kafka_bootstrap, topic, 1)
        set_limit(stack.kafka_bootstrap, topic, 10_000)
        wait_for_limit(stack.kafka_bootstrap, topic, large, refused=True)
        others = [insert(connection, f"o{n}") for n in range(5)]
        ids = [insert(connection, "k"), insert(connection, "k", payload=large), insert(connection, "k")]
        others += [insert(connection, f"o{n}") for n in range(5)]
        connection.commit()
        (view,) = held(database, "too_large")
        assert view.hold.fault.id == ids[1]
        assert str(large) not in str(process.events())
        eventually(lambda: read_status(database, "packhorse").lag_rows == 0, what="the relay is past them")
        arrived = first_arrivals(records(stack.kafka_bootstrap, topic))
        assert arrived[b"k"] == [first, ids[0]]
        assert sorted(id_ for n in range(5) for id_ in arrived[f"o{n}".encode()]) == sorted(others)
        set_limit(stack.kafka_bootstrap, topic, 1_000_000)
        wait_for_limit(stack.kafka_bootstrap, topic, large, refused=False)
        done = relay(group, "hold", "release", view.id, "--yes", "--wait", "30")
        assert done.code == 0, (done, process.events()[-10:])
        assert first_arrivals(records(stack.kafka_bootstrap, topic))[b"k"] == [first, *ids]
        healthy(database)


@pytest.mark.case("R-15")
@pytest.mark.parametrize("how", ["black_hole", "cut"])
def test_a_database_that_vanishes_is_told_within_a_bound_and_found_again(
    how: str, broken_database: Relays, private_database: PrivateDatabase, stack: Endpoints, topic: str
) -> None:
    """Fails when a wait for the database has no bound on this side."""
    writer = Writer(private_database.direct_url)
    writer.prepare()
    process = broken_database.start()
    with writer.running():
        wait_for(stack.kafka_bootstrap, topic, 10)
        getattr(private_database.proxy, how)()
        started = SYSTEM_CLOCK.monotonic()
        process.wait_for("the database is away", timeout=3 * ANSWER)
        assert SYSTEM_CLOCK.monotonic() - started < 2 * ANSWER
        private_database.proxy.resume()
        before = writer.count
        eventually(lambda: writer.count > before + 50, what="the applications go on")
    found = wait_for(stack.kafka_bootstrap, topic, writer.count)
    assert first_arrivals(found) == writer.committed


@pytest.mark.case("R-15")
def test_a_stop_does_not_hang_while_packets_to_the_database_vanish(
    broken_database: Relays, private_database: PrivateDatabase
) -> None:
    process = broken_database.start(stop_within=2)
    process.wait_for("this process owns the shard")
    private_database.proxy.black_hole()
    assert process.stop(timeout=4 * ANSWER + 4) == 0


@pytest.mark.case("R-19")
def test_what_a_crash_takes_back_is_on_no_topic(
    broken_database: Relays, private_database: PrivateDatabase, stack: Endpoints, topic: str
) -> None:
    """
    Fails when rows are sent as soon as they are visible: with synchronous_commit=off they are, before they are on disk.

    The order of first arrivals is judged on the rows that the database kept.
    """
    writer = Writer(private_database.direct_url, synchronous_commit="off")
    writer.prepare()
    broken_database.start(poll=0.001, idle_poll=0.001)
    with writer.running():
        wait_for(stack.kafka_bootstrap, topic, 200)
        private_database.kill()
    private_database.start()
    kept: dict[bytes, list[str]] = {}
    with psycopg.connect(private_database.direct_url) as connection:
        for key, id_ in connection.execute("SELECT aggregateid, id::text FROM packhorse.outbox ORDER BY seq"):
            kept.setdefault(key.encode(), []).append(id_)
    count = sum(len(ids) for ids in kept.values())
    found = wait_for(stack.kafka_bootstrap, topic, count)
    eventually(
        lambda: read_status(private_database.direct_url, "packhorse").lag_rows == 0,
        what="every row is published, by the table",
    )
    assert first_arrivals(found) == kept
