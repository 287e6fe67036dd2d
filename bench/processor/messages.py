"""The two kinds of message that everybody reads, and topics full of them."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar
from uuid import UUID

from confluent_kafka import Producer

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.message import MessageType
from packhorse.schemas.codec import encode_message

NOTE = (
    "please leave it with the neighbours at number 12, and ring twice; the bell of the side door is out of order. "
    * 2
)
ORDER = json.dumps(
    {
        "type": "record", "name": "bench.OrderPlaced",
        "fields": [
            {"name": "n", "type": "long"}, {"name": "customer", "type": "string"}, {"name": "product", "type": "string"},
            {"name": "quantity", "type": "int"}, {"name": "price", "type": "double"}, {"name": "currency", "type": "string"},
            {"name": "note", "type": "string"},
        ],
    }
)  # fmt: skip
BLOB = json.dumps(
    {
        "type": "record", "name": "bench.Blob",
        "fields": [
            {"name": "n", "type": {"type": "fixed", "name": "bench.Number", "size": 8}}, {"name": "body", "type": "bytes"},
        ],
    }
)  # fmt: skip
"""The least that a payload can be: the others take its number from the bytes without decoding anything."""


@cache
def order(namespace: str) -> Any:
    """Return the message class with seven fields, some 300 bytes."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class OrderPlaced:
        n: int
        customer: str
        product: str
        quantity: int
        price: float
        currency: str
        note: str

        __packhorse__: ClassVar[MessageType] = MessageType(
            type="bench.OrderPlaced", version=1, namespace=namespace, aggregatetype="avro", schema=ORDER
        )

    return OrderPlaced


@cache
def blob(namespace: str) -> Any:
    """Return the message class that has nothing to decode."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Blob:
        n: bytes
        body: bytes

        __packhorse__: ClassVar[MessageType] = MessageType(
            type="bench.Blob", version=1, namespace=namespace, aggregatetype="bytes", schema=BLOB
        )

    return Blob


FORMS: dict[str, Callable[[str], Any]] = {"avro": order, "bytes": blob}


def _value(form: str, cls: Any, n: int) -> Any:
    if form == "bytes":
        return cls(n=n.to_bytes(8, "big"), body=b"x" * 280)
    return cls(
        n=n, customer=f"customer-{n % 977}", product=f"product-{n % 97}", quantity=n % 7, price=n % 1_000 / 4,
        currency="EUR", note=NOTE,
    )  # fmt: skip


def record(form: str, namespace: str, schema_id: int, n: int, keys: int) -> dict[str, Any]:
    """Return what is produced as number *n*, with one of *keys* keys (0: none)."""
    cls = FORMS[form](namespace)
    message_id: UUID = SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now())
    headers = [
        ("id", str(message_id).encode()), ("type", cls.__packhorse__.type.encode()), ("schema-version", b"1"),
        ("origin", b"bench"),
    ]  # fmt: skip
    key = f"key-{n % keys}".encode() if keys else None
    return {"value": encode_message(_value(form, cls, n), schema_id), "key": key, "headers": headers}


def produce(servers: str, topic: str, records: Iterator[dict[str, Any]]) -> None:
    """
    Put *records* into *topic*.

    Raises:
        RuntimeError: The broker did not confirm all of them.
    """
    producer = Producer(
        {
            "bootstrap.servers": servers, "linger.ms": 50, "acks": "all", "enable.idempotence": True,
            "compression.type": "lz4", "partitioner": "murmur2_random", "queue.buffering.max.messages": 1_000_000,
        }
    )  # fmt: skip
    for number, each in enumerate(records):
        producer.produce(topic, **each)
        if number % 10_000 == 0:
            producer.poll(0)
    if left := producer.flush(60):
        raise RuntimeError(f"{topic}: {left} records were not confirmed")
