"""Rows from a real slot: the same as polling reads, in the order of the commits, with memory and log bounded."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from tests.support.relay import Writer, insert
from tests.support.streams import Streams, read_all, read_to_mark, read_until, start, streams
from tests.support.tls import Authority, TlsFront
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.relay.cdc.pgoutput import Visible
from packhorse.relay.cdc.stream import Cause, StreamUnavailable
from packhorse.relay.model import AGGREGATEID, ID, PAYLOAD, SEQ, WITHHELD, Position, Row
from packhorse.relay.postgres.connection import Reach
from packhorse.relay.postgres.outbox import PostgresOutbox

MIB = 1024 * 1024


@pytest.fixture
def made(database: str) -> Iterator[Streams]:
    with streams(database) as found:
        yield found


@pytest.fixture
def writer(database: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


Connection = psycopg.Connection[tuple[object, ...]]


def keys(rows: list[Row]) -> list[str]:
    return [row[AGGREGATEID] for row in rows]


def test_rows_equal_those_that_polling_reads(database: str, made: Streams, writer: Connection) -> None:
    """Fails when a column is decoded in another way than the driver and the SELECT do."""
    stream = made.started()
    insert(writer, "plain")
    insert(writer, None, payload=None)
    insert(writer, "", payload=b"")
    insert(writer, "käse \U0001f9c0 \t\n\\", payload=bytes(range(256)))
    insert(writer, "large", payload=b"\0\xff" * (5 * MIB // 2))
    insert(writer, "middle", payload=b"m" * 20_000)
    texts: dict[str, Any] = {name: f"{name} ü" for name in (
        "traceparent", "tracestate", "correlation_id", "causation_id", "origin", "actor", "tenant", "expires_at",
    )}  # fmt: skip
    insert(writer, "all", headers='{"b": "\\u00fc\\n\\"", "a": [1.50, null, {}], "\\t": true}', **texts)
    insert(writer, "json", headers="null")
    for time in (
        "infinity",
        "-infinity",
        "1969-12-31 23:59:59.999999",
        "0044-03-15 BC",
        "2026-01-02 03:04:05.9999",
    ):
        insert(writer, time, created_at=time)
    writer.execute("SET TimeZone = 'Asia/Kolkata'")
    insert(writer, "in another zone")
    polled = PostgresOutbox(database, "packhorse", batch_rows=1_000)
    try:
        polled.check_ready()
        rows = polled.fetch(Position(horizon="1:1:"), 1_000).rows
    finally:
        polled.close()
    streamed = read_all(stream)
    assert len(streamed) == 14
    assert [row[:WITHHELD] for row in streamed] == [row[:WITHHELD] for row in rows]
    assert [[type(value) for value in row[:WITHHELD]] for row in streamed] == [
        [type(value) for value in row[:WITHHELD]] for row in rows
    ]
    assert {len(row) for row in streamed} == {WITHHELD + 1}


def test_transactions_come_whole_in_commit_order_and_what_rolled_back_never(
    database: str, made: Streams, writer: Connection
) -> None:
    """Fails when rows come as they are written, or in the order of their transaction ids."""
    stream = made.started()
    with psycopg.connect(database) as slow, psycopg.connect(database) as gone:
        insert(slow, "slow 1")
        insert(gone, "gone")
        insert(writer, "quick 1")
        with slow.transaction():
            insert(slow, "slow 2, in a savepoint")
        with slow.transaction(force_rollback=True):
            insert(slow, "slow 3, rolled back")
        insert(slow, "slow 4")
        insert(writer, "quick 2")  # last: what nobody committed may stay unflushed, and a mark lies behind it
        assert keys(read_all(stream)) == ["quick 1", "quick 2"]
        slow.commit()
        gone.rollback()
    insert(writer, "last")
    assert keys(read_all(stream)) == ["slow 1", "slow 2, in a savepoint", "slow 4", "last"]


def test_rows_that_the_horizon_sees_are_left_out_and_those_of_transactions_that_ran_then_come(
    database: str, made: Streams, writer: Connection
) -> None:
    """Fails when a stream leaves out by position alone, or repeats what is published."""
    stream = made.new()
    slot = stream.prepare()
    insert(writer, "published")
    with psycopg.connect(database) as slow:
        insert(slow, "slow")
        row = writer.execute("SELECT pg_current_snapshot()::text").fetchone()
        assert row is not None
        insert(writer, "new")
        slow.commit()
    stream.start(str(row[0]), slot.at)
    assert keys(read_all(stream)) == ["new", "slow"]


@pytest.mark.case("C-05")
def test_partitions_that_come_and_go_bring_their_rows_and_nothing_else(
    made: Streams, writer: Connection
) -> None:
    """Fails without publish_via_partition_root, and when a delete or a truncate is taken for a message."""
    stream = made.started()
    table = "packhorse.outbox"
    insert(writer, "before", created_at="2031-01-01")
    writer.execute("TRUNCATE packhorse.outbox_default")
    days = "FOR VALUES FROM ('2031-01-01') TO ('2031-01-02')"
    writer.execute(f"CREATE TABLE packhorse.outbox_20310101 (LIKE {table} INCLUDING ALL EXCLUDING IDENTITY)")
    writer.execute(f"ALTER TABLE {table} ATTACH PARTITION packhorse.outbox_20310101 {days}")
    insert(writer, "attached", created_at="2031-01-01")
    writer.execute(
        f"CREATE TABLE packhorse.outbox_20310102 PARTITION OF {table} FOR VALUES FROM ('2031-01-02') TO ('2031-01-03')"
    )
    insert(writer, "made", created_at="2031-01-02")
    writer.execute("TRUNCATE packhorse.outbox_20310102")
    insert(writer, "emptied", created_at="2031-01-02")
    writer.execute(f"ALTER TABLE {table} DETACH PARTITION packhorse.outbox_20310101")
    writer.execute("DELETE FROM packhorse.outbox_20310101")
    writer.execute("DROP TABLE packhorse.outbox_20310101")
    writer.execute("DROP TABLE packhorse.outbox_20310102")
    insert(writer, "after", created_at="2031-01-01")
    assert keys(read_all(stream)) == ["before", "attached", "made", "emptied", "after"]


def test_copy_into_several_partitions_comes_in_seq_order(made: Streams, writer: Connection) -> None:
    """Fails when rows are given as they lie in the log: COPY writes partition by partition."""
    stream = made.started()
    writer.execute(
        "CREATE TABLE packhorse.outbox_x PARTITION OF packhorse.outbox FOR VALUES FROM ('2031-01-01') TO ('2031-01-02')"
    )
    text = (
        "COPY packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, created_at) FROM STDIN"
    )
    with writer.cursor().copy(text) as copy:
        for number in range(40):
            copy.write_row((f"{number:032x}", "orders", "k", "t", "1", f"203{1 + number % 2}-01-01"))
    rows = read_all(stream)
    assert [row[SEQ] for row in rows] == sorted(row[SEQ] for row in rows)
    assert len(rows) == 40


def resident() -> int:
    """Return the bytes of memory that this process has in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize(
    ("rows", "size"), [(200_000, 20), (3_000, 32 * 1024)], ids=["many rows", "many bytes"]
)
def test_a_large_transaction_is_read_in_bounded_memory(
    made: Streams, writer: Connection, rows: int, size: int
) -> None:
    """Fails when the stream is read to the end of the transaction, or without a bound in bytes."""
    stream = made.started()
    writer.execute(
        "INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, payload)"
        f" SELECT gen_random_uuid(), 'orders', 'k', 't', '1', convert_to(repeat('x', {size}), 'UTF8') FROM generate_series(1, {rows})"
    )
    before, count, last, most = resident(), 0, 0, 0
    while count < rows:
        batch = stream.read(10, limit=5_000, confirmed=0, ask=False)
        assert 0 < len(batch.rows) <= 5_000
        assert sum(len(row[PAYLOAD]) for row in batch.rows) <= 17 * MIB
        assert batch.rows[0][SEQ] > last
        last, count, most = batch.rows[-1][SEQ], count + len(batch.rows), max(most, resident())
    assert count == rows
    assert most - before < 64 * MIB


def test_over_tls_no_row_stays_with_the_cipher(
    database: str, made: Streams, writer: Connection, tmp_path: Path
) -> None:
    """Fails when a row, or the rest of one, comes only with the next: the cipher works in pieces of up to 16 KiB."""
    authority, parts = Authority(tmp_path), urlsplit(database)
    target = (parts.hostname or "127.0.0.1", parts.port or 5432)
    with TlsFront(target, authority.certificate("localhost")) as front:
        netloc = f"{parts.username or 'postgres'}:{parts.password or 'p'}@localhost:{front.port}"
        query = f"sslmode=verify-full&sslrootcert={authority.root}"
        made.url = parts._replace(netloc=netloc, query=query).geturl()
        stream = made.started()
        for size in range(500, 45_000, 1_700):
            insert(writer, "k", payload=SYSTEM_CHANCE.token().bytes * (size // 16))
            at = SYSTEM_CLOCK.monotonic()
            rows: list[Row] = []
            while not rows:
                rows = list(stream.read(2, limit=10, confirmed=0, ask=False).rows)
                assert SYSTEM_CLOCK.monotonic() - at < 1.5, f"{size} bytes"
        stream.close()


@pytest.mark.case("C-06")
def test_a_quiet_outbox_in_a_busy_database_holds_no_log(made: Streams, writer: Connection) -> None:
    """Fails when the confirmed position moves with rows alone."""
    stream = made.started()
    writer.execute("CREATE TABLE busy AS SELECT 0 AS n")
    for _ in range(3):
        writer.execute("INSERT INTO busy SELECT generate_series(1, 100000)")
        rows, received = read_to_mark(stream)
        assert rows == []
    writer.execute(
        "CHECKPOINT"
    )  # tells the server what runs, which the slot's restart waits for; it comes by itself too

    def settled(_: list[Row], at: int) -> bool:
        state = stream.held()
        assert state.lag_bytes is not None
        assert state.held_bytes is not None
        assert at > received - 1
        return state.lag_bytes < MIB and state.held_bytes < MIB

    read_until(stream, settled, what="the slot lets the log go")


def test_a_reader_that_only_tends_stays_and_one_that_says_nothing_is_ended(
    made: Streams, writer: Connection
) -> None:
    """Fails when a sign of life goes out with a read alone, or when the server is not told how long to wait."""
    stream = made.started(silence=1.5)
    writer.execute(
        "INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, payload)"
        " SELECT gen_random_uuid(), 'orders', 'k', 't', '1', convert_to(repeat('x', 1000), 'UTF8') FROM generate_series(1, 20000)"
    )
    until = SYSTEM_CLOCK.monotonic() + 2.2
    pause = threading.Event()
    while SYSTEM_CLOCK.monotonic() < until:
        stream.tend()
        pause.wait(0.05)
    assert len(read_all(stream)) == 20_000

    eventually(lambda: stream.held().active_pid is None, what="the server ends the silent reader")
    with pytest.raises(StreamUnavailable) as caught:
        read_until(stream, lambda *_: False, what="the reader hears of it")
    assert caught.value.cause is Cause.STREAM_FAILED


def terminate(writer: Connection, slot: str) -> None:
    writer.execute(
        "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots WHERE slot_name = %s",
        (slot,),
    )


def test_after_its_server_process_was_killed_what_was_not_confirmed_comes_again(
    database: str, made: Streams, writer: Connection
) -> None:
    """Fails when the server is told of rows that were only read."""
    stream = made.started()
    first = insert(writer, "confirmed")
    rows, received = read_until(stream, lambda rows, _: len(rows) == 1, what="the first row")
    assert [row[ID] for row in rows] == [first]
    stream.read(0, limit=10, confirmed=received, ask=True)
    row = writer.execute("SELECT pg_current_snapshot()::text").fetchone()
    assert row is not None
    again = insert(writer, "read and not confirmed")

    def read() -> bool:
        return bool(stream.read(0.05, limit=10, confirmed=received, ask=False).rows)

    eventually(read, what="the second row")
    terminate(writer, stream.held().name)
    with pytest.raises(StreamUnavailable) as caught:
        stream.read(1, limit=10, confirmed=received, ask=False)
    assert caught.value.cause is Cause.STREAM_FAILED
    with pytest.raises(StreamUnavailable, match="no stream"):
        stream.read(1, limit=10, confirmed=received, ask=False)
    stream.start(str(row[0]), received)
    assert [row[ID] for row in read_all(stream)] == [again]


@pytest.mark.case("C-03")
def test_a_slot_dropped_under_a_stream_is_told_and_made_anew(made: Streams, writer: Connection) -> None:
    """Fails when a missing slot is an error at each start."""
    stream = made.started()
    name = stream.held().name
    terminate(writer, name)
    writer.execute("SELECT pg_drop_replication_slot(%s)", (name,))
    with pytest.raises(StreamUnavailable, match="is gone") as caught:
        stream.read(1, limit=10, confirmed=0, ask=False)
    assert caught.value.cause is Cause.SLOT_LOST
    assert not stream.held().exists
    with pytest.raises(StreamUnavailable, match="makes a new one") as caught:
        stream.start("1:1:", 1)
    assert caught.value.cause is Cause.SLOT_LOST
    start(stream, made.direct)
    insert(writer, "k")
    assert keys(read_all(stream)) == ["k"]


def test_a_slot_that_another_reads_is_told(made: Streams, writer: Connection) -> None:
    second = made.new()
    slot = second.prepare()
    first = made.started()
    for call in (lambda: second.start("1:1:", slot.at), second.prepare, second.drop):
        with pytest.raises(StreamUnavailable, match="read by") as caught:
            call()
        assert caught.value.cause is Cause.SLOT_IN_USE
    first.stop()

    def taken() -> bool:
        try:
            start(second, made.direct)
        except StreamUnavailable:
            return False
        return True

    eventually(taken, what="the slot is free")
    insert(writer, "k")
    assert keys(read_all(second)) == ["k"]


def test_a_stream_that_was_left_can_be_taken_up_or_given_up_at_once(
    made: Streams, writer: Connection
) -> None:
    """Fails when nobody waits for one's own old server process."""
    stream = made.started()
    for _ in range(5):
        start(stream, made.direct)
    insert(writer, "k")
    assert keys(read_all(stream)) == ["k"]
    stream.drop()
    stream.drop()
    assert not stream.held().exists


@pytest.mark.case("C-02")
def test_a_slot_ahead_of_what_is_known_as_published_is_refused(made: Streams, writer: Connection) -> None:
    """Fails when a stream begins where the slot happens to stand."""
    stream = made.new()
    slot = stream.prepare()
    insert(writer, "k")
    writer.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", (slot.name,))
    with pytest.raises(StreamUnavailable, match="ahead of") as caught:
        stream.start("1:1:", slot.at)
    assert caught.value.cause is Cause.SLOT_LOST
    start(stream, made.direct)


def test_a_slot_that_a_long_transaction_delays_is_told_and_not_left_half_made(
    database: str, made: Streams, writer: Connection
) -> None:
    """Fails when making a slot waits for as long as the transaction lasts."""
    stream = made.new(reach=Reach(answer=1.0))
    stream.drop()
    with psycopg.connect(database) as slow:
        insert(slow, "slow")
        with pytest.raises(StreamUnavailable, match=rf"process {slow.info.backend_pid}") as caught:
            stream.prepare()
        assert caught.value.cause is Cause.NOT_SET_UP
        assert not stream.held().exists
    start(stream, made.direct)


def test_what_is_visible_at_a_mark_has_been_given_when_the_position_is_reached(
    database: str, made: Streams, writer: Connection
) -> None:
    """Fails when the position is read before the snapshot, or `received` runs ahead of the rows."""
    writing = Writer(url=database)
    writing.prepare()
    stream = made.started()
    given: set[str] = set()
    confirmed = 0
    with writing.running(threads=4):
        for _ in range(40):
            snapshot, until = stream.mark()

            def reached(until: int = until) -> bool:
                nonlocal confirmed
                batch = stream.read(0.02, limit=50, confirmed=confirmed, ask=True)
                given.update(row[ID] for row in batch.rows)
                confirmed = batch.received
                return confirmed >= until

            eventually(reached, what="the position is reached")
            sees = Visible(snapshot)
            rows = writer.execute("SELECT id::text, xid::text FROM packhorse.outbox").fetchall()
            assert {str(id_) for id_, xid in rows if sees.holds(int(str(xid)))} <= given
    assert not writing.errors


def test_a_publication_that_is_changed_meanwhile_ends_the_stream(made: Streams, writer: Connection) -> None:
    """Fails when rows could be missing from the stream and the horizon still moves past them."""
    publication = "packhorse_packhorse"
    changes = [
        f"ALTER PUBLICATION {publication} SET (publish = 'delete')",
        f"ALTER PUBLICATION {publication} DROP TABLE packhorse.outbox",
        f"ALTER PUBLICATION {publication} SET TABLE packhorse.outbox WHERE (seq > 5)",
        f"DROP PUBLICATION {publication}",
    ]
    stream = made.started()
    for change in changes:
        writer.execute(change)
        with pytest.raises(StreamUnavailable, match="cdc-setup") as caught:
            stream.mark()
        assert caught.value.cause is Cause.NOT_SET_UP
        with pytest.raises(StreamUnavailable, match="cdc-setup"):
            stream.prepare()
        writer.execute(f"DROP PUBLICATION IF EXISTS {publication}")
        writer.execute(
            f"CREATE PUBLICATION {publication} FOR TABLE packhorse.outbox"
            " WITH (publish = 'insert', publish_via_partition_root = true)"
        )
        start(stream, made.direct)
        writer.execute(f"ALTER PUBLICATION {publication} SET (publish_via_partition_root = true)")
        with pytest.raises(StreamUnavailable):
            stream.mark()
        start(stream, made.direct)
