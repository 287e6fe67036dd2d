"""A row and the record that comes of it, byte for byte."""

from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from tests.support.relay import Relays, insert
from tests.support.topics import Record, wait_for

from packhorse.core.message import HEADER_COLUMNS
from packhorse.local.settings import Endpoints

AT = datetime(2024, 2, 29, 23, 59, 59, 999_999)  # noqa: DTZ001 the column has no zone
"""Its microseconds must be cut to milliseconds, not rounded."""


def java_partition(key: bytes, partitions: int) -> int:
    """Return where the Java client's partitioner puts *key*: murmur2, the sign bit taken off."""
    length, mask = len(key), 0xFFFFFFFF
    h = (0x9747B28C ^ length) & mask
    for start in range(0, length - length % 4, 4):
        k = int.from_bytes(key[start : start + 4], "little") * 0x5BD1E995 & mask
        k = (k ^ k >> 24) * 0x5BD1E995 & mask
        h = (h * 0x5BD1E995 & mask) ^ k
    rest = key[length - length % 4 :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * 0x5BD1E995 & mask
    h = (h ^ h >> 13) * 0x5BD1E995 & mask
    return ((h ^ h >> 15) & 0x7FFFFFFF) % partitions


def test_every_column_arrives_where_the_contract_puts_it(
    group: Relays, database: str, stack: Endpoints, topic: str
) -> None:
    """Fails when a header's name, place or bytes change, or the timestamp is rounded."""
    columns: dict[str, Any] = {
        column: f"{name} ü".strip()
        for name, column in HEADER_COLUMNS
        if column not in {"id", "type", "schema_version", "headers"}
    }
    payload = bytes(range(256)) * 200
    with psycopg.connect(database) as connection:
        id_ = insert(
            connection,
            "schlüssel",
            payload=payload,
            created_at=AT,
            headers=Jsonb({"b": "2", "a": "1"}),
            **columns,
        )
        text = connection.execute("SELECT headers::text FROM packhorse.outbox").fetchone()
        connection.commit()
    assert text is not None
    group.start()
    record = wait_for(stack.kafka_bootstrap, topic, 1)[0]
    wanted = {"id": id_, "type": "t.Happened", "schema-version": "1", "headers": text[0]}
    wanted |= {name: str(columns[column]) for name, column in HEADER_COLUMNS if column in columns}
    assert record.headers == tuple((name, wanted[name].encode()) for name, _ in HEADER_COLUMNS)
    assert (record.key, record.value) == ("schlüssel".encode(), payload)
    assert record.timestamp == int(AT.replace(tzinfo=UTC).timestamp()) * 1000 + 999
    assert record.partition == java_partition("schlüssel".encode(), 3)


@pytest.mark.case("B-07")
def test_a_row_without_payload_becomes_a_tombstone_and_an_empty_one_stays_empty(
    group: Relays, database: str, stack: Endpoints, topic: str
) -> None:
    """Fails when NULL and empty bytes, or NULL and an empty key, are taken for each other."""
    with psycopg.connect(database) as connection:
        ids = {
            insert(connection, "gone", payload=None): (b"gone", None),
            insert(connection, "empty", payload=b""): (b"empty", b""),
            insert(connection, "", payload=b"x"): (b"", b"x"),
            insert(connection, None, payload=b"y"): (None, b"y"),
        }
        connection.commit()
    group.start()
    found = wait_for(stack.kafka_bootstrap, topic, 4)
    assert {record.id: (record.key, record.value) for record in found} == ids


@pytest.mark.case("B-03")
def test_messages_of_one_transaction_stand_in_the_order_of_the_calls(
    group: Relays, database: str, stack: Endpoints, topic: str
) -> None:
    with psycopg.connect(database) as connection:
        ids = [insert(connection, "k") for _ in range(300)]
        connection.commit()
    group.start(batch_rows=7)
    found = wait_for(stack.kafka_bootstrap, topic, len(ids))
    assert [record.id for record in found] == ids


def test_large_messages_leave_in_batches_that_memory_holds(
    group: Relays, database: str, stack: Endpoints, topic: str
) -> None:
    """40 MB in one transaction, and 16 MB at most in one batch; small rows stand between."""
    with psycopg.connect(database) as connection:
        ids = []
        for number in range(100):
            ids.append(insert(connection, "k", payload=bytes([number]) * 400_000))
            ids.append(insert(connection, "k", payload=bytes([number])))
        connection.commit()
    group.start()
    found: list[Record] = wait_for(stack.kafka_bootstrap, topic, len(ids))
    assert [record.id for record in found] == ids
    assert all(len(record.value or b"") in {400_000, 1} for record in found)
