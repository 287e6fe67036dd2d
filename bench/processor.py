"""
Measure the processor against hand-written loops, interleaved, in one run.

    python -m bench.processor [--records 20000] [--rounds 3] [--partitions 4] [--latency-seconds 10]

Needs PACKHORSE_DATABASE_URL (a user that may create databases), PACKHORSE_KAFKA_BOOTSTRAP_SERVERS and
PACKHORSE_REGISTRY_URL, for example from `packhorse dev env`. Rates compare only within one run: judge by the ratios.

Contestants, all one process, Avro payloads of some 300 bytes, one row written for each message:

* packhorse: a `def` handler with one INSERT; inbox, watermark and offsets as always;
* packhorse idle: a handler that writes nothing: the product's own cost;
* batch loop: 500 messages a transaction, results by one INSERT … unnest, inbox by INSERT … ON CONFLICT, then the offset;
* batch loop, no inbox: the same without the inbox: a redelivery would count twice;
* transaction a message: one INSERT, commit, and the offset now and then; no inbox.
"""

import argparse
import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
from confluent_kafka import Consumer, Producer
from tests.support.databases import fresh_database, make_tables, unique_name
from tests.support.processing import Ground, Running, noted

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.local.settings import Endpoints
from packhorse.processor import Context, Processor
from packhorse.processor.compose import Composed
from packhorse.schemas.codec import encode_message
from packhorse.schemas.decode import Decoder

INBOX = """
INSERT INTO seen SELECT * FROM unnest(%s::uuid[]) ON CONFLICT DO NOTHING RETURNING id
"""
RESULTS = "INSERT INTO result (id, n) SELECT * FROM unnest(%s::uuid[], %s::bigint[])"
ONE = "INSERT INTO result (id, n) VALUES (%s, %s)"
BATCH = 500


def main() -> None:
    options = _options()
    endpoints = _endpoints()
    with fresh_database(endpoints.database_url) as url:
        make_tables(url)
        ground = Ground(endpoints, url, unique_name("bench"), partitions=options.partitions)
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE seen (id uuid PRIMARY KEY)")
        ground.make_topics(Processor("none"))
        fill(ground, options.records)
        rates: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
        for _ in range(options.rounds):
            for name, run in CONTESTANTS.items():
                rates[name].append(options.records / run(ground, options.records))
                print(f"{name:<24} {rates[name][-1]:>9,.0f} records/s", flush=True)
        found = {name: statistics.median(values) for name, values in rates.items()}
        found["ratios"] = {  # type: ignore[assignment]
            f"packhorse / {name}": round(found["packhorse"] / rate, 2)
            for name, rate in found.items()
            if name != "packhorse"
        }
        found["latency"] = latency(ground, options.latency_seconds, options.rate)  # type: ignore[assignment]
        print(json.dumps(found, indent=2))


def fill(ground: Ground, records: int) -> None:
    """Put the backlog into the topic."""
    producer = Producer({"bootstrap.servers": ground.kafka, "linger.ms": 20})
    for n in range(records):
        producer.produce(ground.topic, partition=n % ground.partitions, **_message(ground, n))
        if n % 1000 == 0:
            producer.poll(0)
    producer.flush()


def _message(ground: Ground, n: int) -> dict[str, Any]:
    message_id = SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now())
    payload = encode_message(ground.message(n=n, what="x" * 280), ground.schema_id)
    headers = [
        ("id", str(message_id).encode()),
        ("type", b"tests.Noted"),
        ("schema-version", b"1"),
        ("origin", b"bench"),
    ]
    return {"key": f"key-{n % 1000}".encode(), "value": payload, "headers": headers}


def packhorse(ground: Ground, records: int, *, idle: bool = False) -> float:
    """Return the seconds from the first record to the last watermark."""
    app = Processor(unique_name("group"))
    began: list[float] = []

    def handle(message: Any, ctx: Context) -> None:
        if not began:
            began.append(time.perf_counter())
        if not idle:
            ctx.connection.execute(ONE, (ctx.id, message.n))

    app.handler(noted(ground.namespace))(handle)
    ground.make_topics(app)
    with _running(app, ground), psycopg.connect(ground.database, autocommit=True) as connection:
        query = (
            'SELECT coalesce(sum("offset"), 0) FROM packhorse.watermark WHERE group_id = %s AND topic = %s'
        )
        while connection.execute(query, (app.group, ground.topic)).fetchone() != (records,):
            time.sleep(0.01)
        return time.perf_counter() - began[0]


@contextmanager
def _running(app: Processor, ground: Ground) -> Iterator[Running]:
    running = Running(Composed(app, ground.settings(concurrency=4)))
    running.thread.start()
    try:
        yield running
    finally:
        running.stop()


def _consumed(ground: Ground, records: int, most: int, deal: Callable[[list[Any]], None]) -> float:
    group = unique_name("loop")
    consumer = Consumer(
        {
            "bootstrap.servers": ground.kafka,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([ground.topic])
    left, began = records, 0.0
    while left:
        messages = consumer.consume(most, 0.05)
        if messages and not began:
            began = time.perf_counter()
        if messages:
            deal(messages)
            consumer.commit(message=messages[-1], asynchronous=True)
            left -= len(messages)
    took = time.perf_counter() - began
    consumer.close()
    return took


def _decoded(ground: Ground) -> Callable[[Any], tuple[UUID, int]]:
    decoder = Decoder(_registry(ground))

    def decode(message: Any) -> tuple[UUID, int]:
        headers = dict(message.headers())
        return UUID(headers["id"].decode()), decoder.decode(message.value(), ground.message).n

    return decode


def _registry(ground: Ground) -> Any:
    from packhorse.schemas.registry import Registry

    return Registry(ground.settings())


def batch_loop(ground: Ground, records: int, *, inbox: bool = True) -> float:
    """Return the seconds of the loop that a careful person writes."""
    decode = _decoded(ground)
    with psycopg.connect(ground.database) as connection:
        connection.execute("TRUNCATE seen")
        connection.commit()

        def deal(messages: list[Any]) -> None:
            rows = dict(decode(message) for message in messages)
            if inbox:
                new = connection.execute(INBOX, (list(rows),)).fetchall()
                rows = {row[0]: rows[row[0]] for row in new}
            connection.execute(RESULTS, (list(rows), list(rows.values())))
            connection.commit()

        return _consumed(ground, records, BATCH, deal)


def transaction_a_message(ground: Ground, records: int) -> float:
    """Return the seconds of the loop that commits each message; over a tenth of the records, scaled."""
    decode = _decoded(ground)
    with psycopg.connect(ground.database) as connection:

        def deal(messages: list[Any]) -> None:
            for message in messages:
                connection.execute(ONE, decode(message))
                connection.commit()

        return _consumed(ground, records, BATCH, deal)


CONTESTANTS: dict[str, Callable[[Ground, int], float]] = {
    "packhorse": packhorse,
    "packhorse idle": lambda ground, records: packhorse(ground, records, idle=True),
    "batch loop": batch_loop,
    "batch loop, no inbox": lambda ground, records: batch_loop(ground, records, inbox=False),
    "transaction a message": transaction_a_message,
}


def latency(ground: Ground, seconds: float, rate: float) -> dict[str, float]:
    """Return p50 and p99 from send to the handler's return, in milliseconds, at *rate* messages a second."""
    app, found = Processor(unique_name("group")), []
    sent: dict[int, float] = {}

    def handle(message: Any, ctx: Context) -> None:
        ctx.connection.execute(ONE, (ctx.id, message.n))
        if message.n in sent:
            found.append(time.perf_counter() - sent[message.n])

    app.handler(noted(ground.namespace))(handle)
    ground.make_topics(app)
    producer = Producer({"bootstrap.servers": ground.kafka, "linger.ms": 0})
    with _running(app, ground):
        with psycopg.connect(ground.database, autocommit=True) as connection:
            query = 'SELECT coalesce(sum("offset"), 0) >= %s FROM packhorse.watermark WHERE group_id = %s AND topic = %s'
            total = sum(producer_end(ground, p) for p in range(ground.partitions))
            while connection.execute(query, (total, app.group, ground.topic)).fetchone() != (True,):
                time.sleep(0.05)
        count = int(seconds * rate)
        due = time.perf_counter()
        for n in range(10**9, 10**9 + count):
            due += 1 / rate
            threading.Event().wait(max(0.0, due - time.perf_counter()))
            sent[n] = time.perf_counter()
            producer.produce(ground.topic, partition=n % ground.partitions, **_message(ground, n))
            producer.poll(0)
        producer.flush()
        deadline = time.perf_counter() + 20
        while len(found) < count and time.perf_counter() < deadline:
            time.sleep(0.05)
    milliseconds = sorted(value * 1000 for value in found)
    return {
        "messages": len(milliseconds),
        "p50_ms": round(milliseconds[len(milliseconds) // 2], 1),
        "p99_ms": round(milliseconds[len(milliseconds) * 99 // 100], 1),
    }


def producer_end(ground: Ground, partition: int) -> int:
    """Return the end of a partition."""
    from packhorse.processor.clients import admin_properties
    from packhorse.processor.kafka.admin import BrokerQuestions

    return BrokerQuestions(admin_properties(ground.settings())).log_ends("none", ground.topic, partition).high


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.processor", description=__doc__)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--latency-seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=200.0)
    return parser.parse_args()


def _endpoints() -> Endpoints:
    import os

    return Endpoints(
        database_url=os.environ["PACKHORSE_DATABASE_URL"],
        kafka_bootstrap=os.environ["PACKHORSE_KAFKA_BOOTSTRAP_SERVERS"],
        registry_url=os.environ["PACKHORSE_REGISTRY_URL"],
    )


if __name__ == "__main__":
    main()
