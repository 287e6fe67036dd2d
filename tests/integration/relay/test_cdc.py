"""The relay while it streams, and on its way in and out, in processes of its own on a real broker and database."""

import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.support.relay import Relays, Writer, insert, relays
from tests.support.stack import PrivateBroker
from tests.support.streams import Streams, read_all, streams
from tests.support.topics import first_arrivals, make_topic, records, wait_for
from tests.support.wait import eventually

from packhorse.local.settings import Endpoints
from packhorse.relay.cdc.stream import lsn
from packhorse.relay.model import ID


@pytest.fixture
def made(database: str) -> Iterator[Streams]:
    """Provide the publication; every slot is gone afterwards."""
    with streams(database) as found:
        yield found


@pytest.fixture
def cdc(made: Streams, group: Relays) -> Relays:
    """Provide relays that stream when they can; they end before the slots are dropped."""
    del made
    group.environment |= {"PACKHORSE_RELAY_MODE": "auto", "PACKHORSE_RELAY_STREAM_RETRY": "0.3"}
    return group


@pytest.fixture
def writer(database: str) -> Writer:
    found = Writer(database)
    found.prepare()
    return found


def mode(database: str) -> tuple[str, str | None, int]:
    """Return how the owner reads, why, and how often that changed."""
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute(
            "SELECT mode, mode_cause, moves FROM packhorse.relay WHERE shard = 0"
        ).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


def streaming(database: str) -> None:
    eventually(lambda: mode(database)[0] == "cdc", what="the relay streams", timeout=20)


def polling(database: str) -> None:
    eventually(lambda: mode(database)[0] == "polling", what="the relay polls", timeout=20)


def confirmed(database: str) -> int:
    """Return the slot's confirmed position."""
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE database = current_database()"
        ).fetchone()
    assert row is not None
    return lsn(row[0])


def behind_the_slot(made: Streams) -> set[str]:
    """Return the ids that the slot still holds, as a fresh reader finds them."""
    stream = made.new()
    at = confirmed(made.direct)
    eventually(lambda: not stream.held().active_pid, what="the dead relay's slot is free")
    stream.start("1:1:", at)
    return {row[ID] for row in read_all(stream)}


@pytest.mark.case("C-01")
@pytest.mark.parametrize("point", ["confirmed", "saved"])
def test_a_kill_while_streaming_loses_nothing_and_the_slot_is_never_ahead_of_the_broker(
    point: str, cdc: Relays, made: Streams, writer: Writer, database: str, stack: Endpoints, topic: str
) -> None:
    """
    Fails when a position is confirmed to the slot with the rows that were read, or sent, instead of those that the broker
    confirmed.
    """
    killed = cdc.start(point, "4" if point == "saved" else "20")
    streaming(database)
    with writer.running():
        assert killed.ended(timeout=60) == -signal.SIGKILL
        assert mode(database)[0] == "cdc"
    arrived = {record.id for record in records(stack.kafka_bootstrap, topic)}
    committed = {id_ for ids in writer.committed.values() for id_ in ids}
    assert committed <= arrived | behind_the_slot(made)
    for stream in made.made:
        stream.close()
    cdc.start()
    found = wait_for(stack.kafka_bootstrap, topic, writer.count)
    assert first_arrivals(found) == writer.committed
    streaming(database)


@pytest.mark.case("C-02")
def test_a_slot_that_somebody_moved_ahead_loses_no_row(
    cdc: Relays, writer: Writer, database: str, stack: Endpoints, topic: str
) -> None:
    """Fails when a relay begins to stream where the slot stands instead of polling from the horizon first."""
    first = cdc.start()
    with writer.running(threads=1):
        streaming(database)
        first.send(signal.SIGKILL)
        first.ended()
        eventually(lambda: writer.count > 100, what="rows are written while no relay runs")
    with psycopg.connect(database, autocommit=True) as connection:
        eventually(lambda: advanced(connection), what="the slot is moved to the end")
    cdc.start()
    found = wait_for(stack.kafka_bootstrap, topic, writer.count)
    assert first_arrivals(found) == writer.committed
    streaming(database)


def advanced(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    try:
        connection.execute(
            "SELECT pg_replication_slot_advance(slot_name, pg_current_wal_lsn()) FROM pg_replication_slots"
            " WHERE database = current_database()"
        )
    except psycopg.errors.ObjectInUse:
        return False
    return True


@pytest.mark.case("C-03")
def test_a_slot_that_is_taken_away_is_made_anew_and_no_row_is_missed(
    cdc: Relays, writer: Writer, database: str, stack: Endpoints, topic: str
) -> None:
    """Fails when the relay ends with a lost slot, or goes on from where a new slot stands."""
    cdc.start()
    with writer.running(threads=1), psycopg.connect(database, autocommit=True) as connection:
        streaming(database)
        before = mode(database)[2]
        connection.execute(
            "SELECT pg_terminate_backend(active_pid, 5000), pg_drop_replication_slot(slot_name)"
            " FROM pg_replication_slots WHERE database = current_database()"
        )
        eventually(
            lambda: mode(database)[2] >= before + 2,
            what="the relay left the stream and came back",
            timeout=30,
        )
        streaming(database)
    found = wait_for(stack.kafka_bootstrap, topic, writer.count)
    assert first_arrivals(found) == writer.committed


@pytest.mark.case("C-04")
@pytest.mark.case("C-08")
def test_writers_see_no_seam_from_polling_to_streaming_and_back(
    cdc: Relays, writer: Writer, database: str, stack: Endpoints, topic: str
) -> None:
    """
    Fails when the stream begins without a fence, a snapshot becomes the horizon before all up to its position is
    confirmed, or polling goes on from anything but the horizon. The slot that a change of mode leaves is named.
    """
    seams, late = 3, []
    with (
        writer.running(threads=3),
        psycopg.connect(database) as slow,
        psycopg.connect(database, autocommit=True) as other,
    ):
        relay = cdc.start()
        for _ in range(seams):
            streaming(database)
            late.append(insert(slow, "late"))
            other.execute(
                "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots WHERE database = current_database()"
            )
            polling(database)
            late.append(insert(slow, "late"))
            slow.commit()
        streaming(database)
        assert relay.stop() == 0
        cdc.start(mode="polling").wait_for("nobody reads a replication slot of ours")
    found = wait_for(stack.kafka_bootstrap, topic, writer.count + len(late))
    assert first_arrivals(found) == {**writer.committed, b"late": late}
    assert len(found) - writer.count < 2_000 * seams, "repeats are bounded by what came since the last save"


@pytest.fixture
def starved(
    made: Streams, database: str, tmp_path: Path, private_kafka: PrivateBroker, topic_prefix: str
) -> Iterator[Relays]:
    """Provide relays that stream to a broker that the test can take away."""
    del made
    make_topic(private_kafka.direct_bootstrap, f"{topic_prefix}.orders")
    with relays(
        tmp_path, database=database, bootstrap=private_kafka.bootstrap, namespace=topic_prefix
    ) as group:
        group.environment |= {"PACKHORSE_RELAY_MODE": "auto", "PACKHORSE_RELAY_STREAM_RETRY": "0.3"}
        yield group


@pytest.mark.case("C-01")
def test_the_slot_is_told_of_no_row_that_the_broker_has_not_confirmed(
    starved: Relays, made: Streams, database: str, private_kafka: PrivateBroker
) -> None:
    """Fails when what was received is confirmed to the server, or what was handed to the client."""
    relay = starved.start()
    with psycopg.connect(database, autocommit=True) as connection:
        streaming(database)
        private_kafka.proxy.black_hole()
        id_ = insert(connection, "k")
        row = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
        assert row is not None

        def received() -> bool:
            told = connection.execute(
                "SELECT r.write_lsn >= %s::pg_lsn FROM pg_stat_replication AS r"
                " JOIN pg_replication_slots AS s ON s.active_pid = r.pid WHERE s.database = current_database()",
                (row[0],),
            ).fetchone()
            return told == (True,)

        eventually(received, what="the relay told the server that it has the row")
        relay.send(signal.SIGKILL)
        relay.ended()
    assert id_ in behind_the_slot(made)


@pytest.mark.case("C-07")
def test_a_slot_over_its_budget_is_given_up_while_the_broker_is_away(
    starved: Relays, database: str, private_kafka: PrivateBroker, topic_prefix: str
) -> None:
    """Fails when the relay clings to a slot that the database keeps log for without end."""
    relay = starved.start(wal_budget=64 * 1024 * 1024)
    with psycopg.connect(database, autocommit=True) as connection:
        streaming(database)
        private_kafka.proxy.black_hole()
        ids = [insert(connection, "k")]
        for _ in range(9):
            connection.execute("SELECT pg_logical_emit_message(false, 'x', repeat('x', 8000000))")
        relay.wait_for("over_budget", timeout=30)
        eventually(lambda: slots(connection) == 0, what="the slot is gone")
        ids.append(insert(connection, "k"))
        private_kafka.proxy.resume()
        found = wait_for(private_kafka.direct_bootstrap, f"{topic_prefix}.orders", 2, timeout=60)
        assert first_arrivals(found) == {b"k": ids}
        streaming(database)


def slots(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    row = connection.execute(
        "SELECT count(*)::int FROM pg_replication_slots WHERE database = current_database()"
    ).fetchone()
    assert row is not None
    assert isinstance(row[0], int)
    return row[0]
