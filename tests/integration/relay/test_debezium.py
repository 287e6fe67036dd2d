"""One outbox, several carriers: the real Debezium connector and our relay put the same bytes on the topics."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from tests.support.connect import Connect
from tests.support.databases import fresh_database, unique_name
from tests.support.debezium import Carrier, carrier
from tests.support.relay import Relays, Writer, insert, relays
from tests.support.streams import streams
from tests.support.topics import Record, first_arrivals, make_topic, records, wait_for
from tests.support.wait import eventually

from packhorse.local.settings import Endpoints

PARTITIONS = 6
AT = datetime(2024, 2, 29, 23, 59, 59, 999_999)  # noqa: DTZ001 the column has no zone
"""Its microseconds must be cut to milliseconds, not rounded."""


def make_orders(bootstrap: str, namespace: str) -> None:
    """Make the topic; without a limit of time, since the rows' times are years ago and would be deleted soon."""
    make_topic(bootstrap, f"{namespace}.orders", partitions=PARTITIONS, retention_ms="-1")


@pytest.fixture(scope="module")
def beside(connect: Connect, stack: Endpoints, _template: str) -> Iterator[Carrier]:
    """Provide a connector that streams from an outbox of its own; relays may run beside it."""
    with fresh_database(stack.database_url, _template) as url, streams(url):
        namespace = unique_name("d")
        make_orders(stack.kafka_bootstrap, namespace)
        with carrier(connect, url=url, bootstrap=stack.kafka_bootstrap, namespace=namespace) as made:
            made.prepare()
            made.start()
            yield made


@pytest.fixture
def moving(
    connect: Connect, stack: Endpoints, database: str, topic_prefix: str, tmp_path: Path
) -> Iterator[tuple[Carrier, Relays]]:
    """Provide a connector without a slot yet and relays that may stream, of one outbox and one topic."""
    bootstrap = stack.kafka_bootstrap
    make_orders(bootstrap, topic_prefix)
    with (
        streams(database),
        relays(tmp_path, database=database, bootstrap=bootstrap, namespace=topic_prefix) as ours,
        carrier(connect, url=database, bootstrap=bootstrap, namespace=topic_prefix) as made,
    ):
        yield made, ours


def odd_rows() -> Iterator[dict[str, Any]]:
    """Yield rows of every shape: keys, payloads and headers that are there, empty, absent or odd."""
    full = {
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "a=1,b=2",
        "correlation_id": "ü €",
        "causation_id": "\U0001f40e",
        "origin": "'quoted' \"twice\"",
        "actor": "",
        "tenant": "a\nb\\n\tc",
        "expires_at": "2031-01-01T00:00:00Z",
        "headers": Jsonb({"b": "2", "a": 'ü"\n', "long": "x" * 5_000}),
    }
    yield {"key": "all", "payload": bytes(range(256)), **full}
    yield {"key": "none", "payload": b"\x00"}
    yield {"key": "gone", "payload": None}
    yield {"key": "gone", "payload": None, **full}
    yield {"key": "empty", "payload": b""}
    yield {"key": "", "payload": b"empty key"}
    yield {"key": "schlüssel \U0001f40e", "payload": b"x", "headers": Jsonb({})}
    yield {"key": "true", "payload": b"true", "tenant": "null", "actor": "1", "origin": "{}"}
    yield {"key": "large", "payload": Random(1).randbytes(900 * 1024)}
    for name, value in full.items():
        yield {"key": name, "payload": b"one", name: value}
    draw = Random(2)
    for _ in range(300):
        text = "".join(
            chr(draw.choice((draw.randint(32, 126), draw.randint(0xA0, 0x2FFF)))) for _ in range(12)
        )
        yield {"key": text[: draw.randint(1, 12)], "payload": draw.randbytes(draw.randint(0, 40))}
    for number in range(20):
        yield {"key": "same", "payload": b"%d" % number}


def write(url: str) -> set[str]:
    """Write the odd rows, several to a transaction, and what else a relay leaves in the log; return their ids."""
    written: list[str] = []
    with psycopg.connect(url) as connection:
        for row in [*odd_rows(), *({"key": None, "payload": b"%d" % number} for number in range(5))]:
            at = AT + timedelta(microseconds=len(written) * 700)
            written.append(insert(connection, row.pop("key"), created_at=at, **row))
            if len(written) % 50 == 0:
                connection.execute("SELECT pg_logical_emit_message(true, 'packhorse', 'flush')")
                connection.commit()
    return set(written)


def await_mode(database: str, mode: str) -> None:
    """Wait until a relay reads in this way."""

    def reads() -> bool:
        with psycopg.connect(database, autocommit=True) as connection:
            found = connection.execute("SELECT mode FROM packhorse.relay WHERE token IS NOT NULL").fetchone()
        return found == (mode,)

    eventually(reads, what=f"the relay reads by {mode}", timeout=60)


def arrived(bootstrap: str, topic: str, written: set[str]) -> list[Record]:
    """Wait for the *written* messages and return theirs; a relay may repeat what was before."""

    def there() -> list[Record]:
        found = [record for record in records(bootstrap, topic) if record.id in written]
        return found if {record.id for record in found} == written else []

    return eventually(there, what=f"{len(written)} messages stand on {topic}", timeout=30)


def compared(found: list[Record], *, nulls: bool) -> list[tuple[Any, ...]]:
    """Return what must be equal, in the order of each partition; without a key, the partition is any."""
    keyed = [record for record in found if record.key is not None]
    others = sorted((record for record in found if record.key is None), key=lambda record: record.id)
    return [
        (
            None if record.key is None else record.partition,
            record.key,
            record.value,
            tuple(header for header in record.headers if nulls or header[1] is not None),
            record.timestamp,
        )
        for record in [*keyed, *others]
    ]


@pytest.mark.case("C-09", "B-07", "B-03")
@pytest.mark.parametrize(("mode", "nulls"), [("polling", True), ("cdc", True), ("polling", False)])
def test_the_relay_and_debezium_send_the_same_bytes(
    beside: Carrier, stack: Endpoints, topic_prefix: str, tmp_path: Path, mode: str, nulls: bool
) -> None:
    """
    Fails when a header, its place or its bytes change in either; when the partitioner is another; when the timestamp is
    rounded; and when the connector is not told to leave the relay's own log messages alone: its task would end.
    """
    bootstrap = stack.kafka_bootstrap
    make_orders(bootstrap, topic_prefix)
    with relays(tmp_path, database=beside.url, bootstrap=bootstrap, namespace=topic_prefix) as made:
        relay = made.start(null_headers=nulls, mode=mode)
        await_mode(beside.url, mode)
        written = write(beside.url)
        ours = arrived(bootstrap, f"{topic_prefix}.orders", written)
        theirs = beside.arrived(bootstrap, f"{beside.namespace}.orders", written)
        assert relay.stop() == 0
    assert compared(ours, nulls=True) == compared(theirs, nulls=nulls)
    assert len(ours) == len(theirs) == len(written)
    assert {record.partition for record in ours} == set(range(PARTITIONS))
    assert any(value is None for record in theirs for _, value in record.headers)


@pytest.mark.case("C-06")
def test_the_connector_s_slot_moves_on_while_the_outbox_is_quiet(beside: Carrier) -> None:
    """Fails when heartbeats are filtered away, or when the driver may not confirm what the server says is not for us."""
    with psycopg.connect(beside.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE busy AS SELECT generate_series(1, 50000) AS number")
        at = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
        assert at is not None

        def moved() -> bool:
            found = connection.execute(
                "SELECT confirmed_flush_lsn >= %s::pg_lsn FROM pg_replication_slots WHERE slot_name = %s",
                (at[0], beside.name),
            ).fetchone()
            return found == (True,)

        eventually(moved, what="the slot is past what other tables wrote", timeout=30)


def test_a_missing_topic_stops_all_in_silence_and_its_making_lets_all_go_on(
    beside: Carrier, stack: Endpoints
) -> None:
    """What docs/how-to/debezium.md warns of: fails when the connector tells it by its status one day."""
    bootstrap, late = stack.kafka_bootstrap, f"late_{unique_name('t')}"
    with psycopg.connect(beside.url) as connection:
        missing = insert(connection, "k", kind=late)
        behind = insert(connection, "k")
    refused = f"{beside.namespace}.{late}=UNKNOWN_TOPIC_OR_PARTITION"
    eventually(lambda: refused in beside.connect.log.read_text(), what="the log names the topic", timeout=30)
    beside.connect.await_running(beside.name)
    assert behind not in {record.id for record in records(bootstrap, f"{beside.namespace}.orders")}
    make_topic(bootstrap, f"{beside.namespace}.{late}")
    beside.arrived(bootstrap, f"{beside.namespace}.{late}", {missing})
    beside.arrived(bootstrap, f"{beside.namespace}.orders", {behind})


@pytest.mark.case("C-09", "C-04")
@pytest.mark.parametrize("mode", ["polling", "cdc"])
def test_moves_to_debezium_and_back_leave_no_gap(
    moving: tuple[Carrier, Relays], database: str, stack: Endpoints, topic_prefix: str, mode: str
) -> None:
    """
    Writers run all the time. Fails when the connector may start before the relay has published what is older than its
    slot, when the slot is made after the fence, and when the horizon does not follow the connector.
    """
    debezium, ours = moving
    topic, bootstrap = f"{topic_prefix}.orders", stack.kafka_bootstrap
    writer = Writer(database)
    writer.prepare()
    with writer.running():
        eventually(lambda: writer.count > 100, what="writers wrote")
        debezium.prepare()
        early = debezium.packhorse("debezium-ready")
        assert early.code == 1
        assert "rows older than the slot are not published" in early.out
        relay = ours.start(mode=mode)
        await_mode(database, mode)
        eventually(lambda: debezium.packhorse("debezium-ready").code == 0, what="what is older is published")
        debezium.start()
        by_debezium(bootstrap, topic, more_than=0)
        assert "a relay runs" in debezium.packhorse("debezium-horizon").err
        assert relay.stop() == 0

        sent = ids_of_ours(bootstrap, topic)
        before = len(by_debezium(bootstrap, topic, more_than=0))
        settled = {record.id for record in by_debezium(bootstrap, topic, more_than=before + 200)} - sent
        moved = debezium.packhorse("debezium-horizon")
        assert moved.code == 0, moved.err

        back = ours.start(mode=mode)
        eventually(lambda: ids_of_ours(bootstrap, topic) - sent, what="the relay sends again")
        debezium.stop()
        count = writer.count
        eventually(lambda: writer.count > count + 100, what="writers wrote on")
    found = wait_for(bootstrap, topic, writer.count)
    assert first_arrivals(found) == writer.committed
    again = settled & {record.id for record in found if not by_router(record)}
    assert not again, "the relay began where it had stopped, not where the connector was"
    assert back.stop() == 0


def by_router(record: Record) -> bool:
    """Tell whether the connector sent it: it alone sends absent headers as null."""
    return any(value is None for _, value in record.headers)


def by_debezium(bootstrap: str, topic: str, *, more_than: int) -> list[Record]:
    """Wait until the connector has sent more than so many; return what it has."""

    def sent() -> list[Record]:
        found = [record for record in records(bootstrap, topic) if by_router(record)]
        return found if len(found) > more_than else []

    return eventually(sent, what=f"the connector has sent more than {more_than}", timeout=30)


def ids_of_ours(bootstrap: str, topic: str) -> set[str]:
    """Return the ids of what our relay has sent."""
    return {record.id for record in records(bootstrap, topic) if not by_router(record)}
