"""
Measure the relay against a hand-written loop and the client's own limit, interleaved, in one run.

    python -m bench.relay [--rows 300000] [--rounds 3] [--latency-seconds 20]

Needs PACKHORSE_DATABASE_URL (a user that may create databases) and PACKHORSE_KAFKA_BOOTSTRAP_SERVERS, for example from
`packhorse dev env`. Rates compare only within one run: judge by the ratios.

Contestants, all one process, 300-byte payloads, four headers, the same topic settings and client settings:

* packhorse: the relay from a backlog, until the horizon is saved past the last row;
* delete N: claim and delete N rows by an array of row addresses, send, flush, commit;
* produce: the same rows from memory, sent and flushed; nothing is read.
"""

import argparse
import gc
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from packhorse.core.telemetry import Attributes, Metric, NoTelemetry
from packhorse.relay.compose import Composed, kafka_properties
from packhorse.relay.daemon import GC_THRESHOLD
from packhorse.relay.settings import RelaySettings

PAYLOAD = 300
FILL = """
INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, payload, origin)
SELECT gen_random_uuid(), 'bench', 'key-' || n % 10000, 'bench.Happened', '1', decode(repeat('5a', {bytes}), 'hex'), 'bench'
  FROM generate_series(1, {rows}) AS n
"""
QUEUE = """
CREATE TABLE IF NOT EXISTS queue (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id uuid NOT NULL, key text NOT NULL, type text NOT NULL,
    schema_version text NOT NULL, payload bytea, origin text)
"""
FILL_QUEUE = """
INSERT INTO queue (id, key, type, schema_version, payload, origin)
SELECT gen_random_uuid(), 'key-' || n % 10000, 'bench.Happened', '1', decode(repeat('5a', {bytes}), 'hex'), 'bench'
  FROM generate_series(1, {rows}) AS n
"""
CLAIM = """
DELETE FROM queue WHERE ctid = ANY(ARRAY(SELECT ctid FROM queue ORDER BY seq LIMIT {batch} FOR UPDATE SKIP LOCKED))
RETURNING seq, id::text, key, type, schema_version, payload, origin
"""


class Counter(NoTelemetry):
    """Count published rows and call back when all are."""

    def __init__(self, rows: int) -> None:
        self.left = rows
        self.done = threading.Event()
        self.finished = 0.0

    def record(self, metric: Metric, value: float, attributes: Attributes | None = None) -> None:
        del attributes
        if metric is Metric.RELAY_PUBLISHED:
            self.left -= int(value)
            if self.left <= 0:
                self.finished = time.perf_counter()
                self.done.set()


class Started:
    """Take the time when the relay owns its shard."""

    at = 0.0

    def reached(self, point: str) -> None:
        if point == "owned" and not self.at:
            self.at = time.perf_counter()


def settings(url: str, servers: str, namespace: str) -> RelaySettings:
    return RelaySettings.load(
        {"database_url": url, "kafka_bootstrap_servers": servers, "namespace": namespace}, environ={}
    )


@contextmanager
def bench_database(url: str) -> Iterator[str]:
    name = f"bench_{uuid4().hex[:10]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        there = urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
        try:
            done = subprocess.run(
                [sys.executable, "-m", "packhorse.cli.main", "migrate", "up"],
                env={**os.environ, "PACKHORSE_DATABASE_URL": there}, check=True, capture_output=True,
            )  # fmt: skip
            assert done.returncode == 0
            yield there
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def make_topic(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics([NewTopic(topic, 6, 1)]).values():
        future.result(30)


def drop_topic(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.delete_topics([topic]).values():
        future.result(30)


def packhorse(url: str, servers: str, namespace: str, rows: int) -> tuple[float, float]:
    """Return rows a second and CPU seconds per million rows of the relay's own thread and its client's."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(FILL.format(bytes=PAYLOAD, rows=rows))
    counter, started = Counter(rows), Started()
    composed = Composed(settings(url, servers, namespace), telemetry=counter, probe=started)

    def stop_when_done() -> None:
        counter.done.wait(600)
        composed.relay.stop()

    threading.Thread(target=stop_when_done, daemon=True).start()
    cpu = time.process_time()
    composed.relay.run()
    used = time.process_time() - cpu
    composed.close()
    return rows / (counter.finished - started.at), used / rows * 1e6


def hand_written(url: str, servers: str, namespace: str, rows: int, batch: int) -> tuple[float, float]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(QUEUE)
        connection.execute(FILL_QUEUE.format(bytes=PAYLOAD, rows=rows))
        connection.execute("VACUUM ANALYZE queue")
    producer = Producer(kafka_properties(settings(url, servers, namespace)))
    topic, claim, failed = f"{namespace}.bench", CLAIM.format(batch=batch), []
    with psycopg.connect(url) as connection:
        cursor = connection.cursor(binary=True)
        cpu, start = time.process_time(), time.perf_counter()
        while True:
            taken = cursor.execute(claim).fetchall()
            if not taken:
                break
            taken.sort()
            for _, id_, key, type_, version, payload, origin in taken:
                producer.produce(
                    topic, payload, key, on_delivery=lambda error, _: failed.append(error),
                    headers=[("id", id_), ("type", type_), ("schema-version", version), ("origin", origin)],
                )  # fmt: skip
            assert producer.flush(60) == 0
            assert not failed
            connection.commit()
        return rows / (time.perf_counter() - start), (time.process_time() - cpu) / rows * 1e6


def produce_alone(url: str, servers: str, namespace: str, rows: int) -> tuple[float, float]:
    producer = Producer(kafka_properties(settings(url, servers, namespace)))
    topic, payload = f"{namespace}.bench", b"\x5a" * PAYLOAD
    ids = [str(uuid4()) for _ in range(10_000)]
    cpu, start = time.process_time(), time.perf_counter()
    for n in range(rows):
        while True:
            try:
                producer.produce(
                    topic, payload, f"key-{n % 10000}",
                    headers=[("id", ids[n % 10_000]), ("type", "bench.Happened"), ("schema-version", "1"), ("origin", "bench")],
                )  # fmt: skip
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0
    return rows / (time.perf_counter() - start), (time.process_time() - cpu) / rows * 1e6


def throughput(url: str, servers: str, rows: int, rounds: int) -> None:
    contestants: dict[str, Callable[[str, str, str, int], tuple[float, float]]] = {
        "packhorse": packhorse,
        "delete 1000": partial(hand_written, batch=1_000),
        "delete 5000": partial(hand_written, batch=5_000),
        "produce": produce_alone,
    }
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for round_number in range(rounds):
        for name, run in contestants.items():
            namespace = f"bench{uuid4().hex[:8]}"
            make_topic(servers, f"{namespace}.bench")
            with bench_database(url) as database:
                rates[name].append(run(database, servers, namespace, rows))
            drop_topic(servers, f"{namespace}.bench")
            print(f"  round {round_number + 1}: {name:<12} {rates[name][-1][0]:>9,.0f} rows/s", flush=True)
    base = [rate for rate, _ in rates["packhorse"]]
    print(
        f"\n{'':<12} {'rows/s min':>11} {'median':>9} {'max':>9} {'CPU s/M':>8}   packhorse ÷ this (min median max)"
    )
    for name, found in rates.items():
        each = [rate for rate, _ in found]
        cpu = statistics.median(used for _, used in found)
        ratios = sorted(ours / theirs for ours, theirs in zip(base, each, strict=True))
        print(
            f"{name:<12} {min(each):>11,.0f} {statistics.median(each):>9,.0f} {max(each):>9,.0f} {cpu:>8.1f}   "
            f"{ratios[0]:.2f} {statistics.median(ratios):.2f} {ratios[-1]:.2f}"
        )


WRITERS = 16


def write_at_rate(url: str, rate: int, seconds: float) -> None:
    """Commit one row at a time, *rate* a second over all writers, and print id and the time when the commit returned."""
    with ThreadPoolExecutor(WRITERS) as pool:
        for found in pool.map(lambda number: _write(url, rate / WRITERS, seconds, number), range(WRITERS)):
            print("\n".join(f"{id_} {at}" for id_, at in found))


def _write(url: str, rate: float, seconds: float, number: int) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    with psycopg.connect(url) as connection:
        start = time.time() + number / WRITERS / rate
        while (now := time.time() - start) < seconds:
            if len(found) > now * rate:
                time.sleep(len(found) / rate - now)
                continue
            id_ = str(uuid4())
            connection.execute(
                "INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, payload, origin)"
                " VALUES (%s, 'bench', %s, 'bench.Happened', '1', %s, 'bench')",
                (id_, f"key-{number}-{len(found) % 100}", b"\x5a" * PAYLOAD),
            )
            connection.commit()
            found.append((id_, time.time()))
    return found


def latency(url: str, servers: str, rate: int, seconds: float) -> None:
    namespace = f"bench{uuid4().hex[:8]}"
    topic = f"{namespace}.bench"
    make_topic(servers, topic)
    with bench_database(url) as database:
        here = {
            "PACKHORSE_DATABASE_URL": database,
            "PACKHORSE_KAFKA_BOOTSTRAP_SERVERS": servers,
            "PACKHORSE_NAMESPACE": namespace,
        }
        relay = subprocess.Popen([sys.executable, "-m", "packhorse.relay", "run"], env={**os.environ, **here})
        consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": namespace,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
            }
        )
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(0.1)
        writer = subprocess.Popen(
            [sys.executable, "-m", "bench.relay", "--write", database, "--rate", str(rate), "--latency-seconds", str(seconds)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        seen: dict[str, float] = {}
        quiet = time.time() + seconds + 5
        while time.time() < quiet and (writer.poll() is None or time.time() < quiet - 3):
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                headers = message.headers() or []
                seen[dict(headers)["id"].decode()] = time.time()  # type: ignore[union-attr]
        out, _ = writer.communicate()
        relay.terminate()
        _, _, usage = os.wait4(relay.pid, 0)
        consumer.close()
    drop_topic(servers, topic)
    committed = dict(line.split() for line in out.splitlines() if line)
    took = sorted((seen[id_] - float(at)) * 1000 for id_, at in committed.items() if id_ in seen)
    lost = len(committed) - len(took)
    points = {f"p{p:g}": took[min(int(len(took) * p / 100), len(took) - 1)] for p in (50, 90, 99, 99.9)}
    print(
        f"\nlatency at {len(committed) / seconds:,.0f} commits/s, commit returned -> record in the consumer's hands, ms:"
    )
    share = (usage.ru_utime + usage.ru_stime) / seconds
    shown = "  ".join(f"{name} {value:.1f}" for name, value in points.items())
    print(f"  {shown}  unseen {lost}; the relay took {share:.2f} of a core, its start included")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--latency-seconds", type=float, default=20)
    parser.add_argument("--write", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write:
        write_at_rate(given.write, given.rate, given.latency_seconds)
        return
    url, servers = os.environ["PACKHORSE_DATABASE_URL"], os.environ["PACKHORSE_KAFKA_BOOTSTRAP_SERVERS"]
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)  # for all contestants alike
    if given.rounds:
        throughput(url, servers, given.rows, given.rounds)
    if given.latency_seconds:
        latency(url, servers, given.rate, given.latency_seconds)


if __name__ == "__main__":
    main()
