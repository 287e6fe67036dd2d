"""
How fast a range is read, decoded and counted in a dry run, and how fast it is replayed.

    python -m bench.replay --records 1000000

It starts a stack of its own (`packhorse dev`'s), fills a topic of one partition with small messages (a hundred bytes of Avro, seven headers, 100,000 keys), puts an
inbox row beside every second one, and takes the times of `packhorse replay plan --dry-run`, of `plan`, and of a
replay of 20,000 through one process of the group.
Prints one line of JSON.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.support.cli import packhorse
from tests.support.databases import fresh_database
from tests.support.processing import NOTED, noted, noting
from tests.support.stack import real_stack

from packhorse.console.replaying.foreground import work_here
from packhorse.console.settings import ConsoleSettings
from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.ids import uuid7_from
from packhorse.local.settings import Endpoints
from packhorse.processor.clients import admin_properties
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.processor.record import digest_of
from packhorse.schemas.codec import encode_message

GROUP = "bench-replay"
NAMESPACE = os.environ.get("BENCH_REPLAY_NAMESPACE") or f"bench_{SYSTEM_CHANCE.token().hex[:8]}"
TOPIC = f"{NAMESPACE}.notes"
KEYS = 100_000
REPLAYED = 20_000
STEP = 50_000
app = noting(NAMESPACE, GROUP)
"""The group that is replayed to: one row a message."""


def main() -> int:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.replay", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    given = parser.parse_args()
    with ground() as (endpoints, url):
        environ = endpoints.variables() | {"PACKHORSE_DATABASE_URL": url}
        fill(endpoints, url, given.records)
        print(json.dumps(measured(environ, url, given.records)))
    return 0


@contextmanager
def ground() -> Iterator[tuple[Endpoints, str]]:
    """Provide a stack, and a database with Packhorse's tables."""
    with real_stack() as endpoints, fresh_database(endpoints.database_url) as url:
        ran = packhorse("migrate", "up", PACKHORSE_DATABASE_URL=url)
        assert ran.code == 0, ran.err
        yield endpoints, url


def fill(endpoints: Endpoints, url: str, records: int) -> None:
    """Put *records* messages on the topic, and inbox rows of every second one into the database."""
    answer = httpx.post(
        f"{endpoints.registry_url}/subjects/{TOPIC}-tests.Noted/versions", json={"schema": NOTED}, timeout=20
    )
    schema_id = int(answer.json()["id"])
    admin = AdminClient({"bootstrap.servers": endpoints.kafka_bootstrap})
    config = {"message.timestamp.type": "LogAppendTime"}
    admin.create_topics([NewTopic(TOPIC, num_partitions=1, replication_factor=1, config=config)])[
        TOPIC
    ].result()
    producer = Producer(
        {
            "bootstrap.servers": endpoints.kafka_bootstrap,
            "linger.ms": 20,
            "queue.buffering.max.messages": 200_000,
        }
    )
    message = noted(NAMESPACE)
    with psycopg.connect(url, autocommit=True) as connection:
        for first in range(0, records, STEP):
            rows = []
            for n in range(first, min(first + STEP, records)):
                message_id = uuid7_from(SYSTEM_CLOCK.now(), SYSTEM_CHANCE.token().bytes[:10])
                payload = encode_message(message(n=n, what="x" * 80), schema_id)
                if n % 2:
                    rows.append((message_id, n, digest_of(payload)))
                producer.produce(
                    TOPIC, payload, b"key-%d" % (n % KEYS), headers=headers_of(message_id), partition=0
                )
                producer.poll(0)
            producer.flush(60)
            with (
                connection.cursor() as cursor,
                cursor.copy(
                    'COPY packhorse.inbox (group_id, topic, message_id, outcome, attempt, partition, "offset", type, digest) FROM STDIN'
                ) as copy,
            ):
                for message_id, offset, digest in rows:
                    copy.write_row((GROUP, TOPIC, message_id, "done", 1, 0, offset, "tests.Noted", digest))
        topic_id = BrokerQuestions(admin_properties(_kafka(endpoints))).topic_id(TOPIC)
        connection.execute(
            'INSERT INTO packhorse.watermark (group_id, topic_id, partition, topic, "offset", incarnation)'
            " VALUES (%s, %s, 0, %s, %s, 'bench')",
            (GROUP, topic_id, TOPIC, records),
        )
        connection.execute("VACUUM ANALYZE packhorse.inbox")


def headers_of(message_id: object) -> list[tuple[str, str | bytes | None]]:
    """Return the headers that the relay writes."""
    return [
        ("id", str(message_id).encode()),
        ("type", b"tests.Noted"),
        ("schema-version", b"1"),
        ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("correlation-id", str(message_id).encode()),
        ("origin", b"bench"),
        ("tenant", b"acme"),
    ]


def measured(environ: dict[str, str], url: str, records: int) -> dict[str, Any]:
    """Return rates, in records a second."""
    told = ("--group", GROUP, "--topic", TOPIC, "--partition", 0, "--from-offset", 0, "--json")
    dry, dry_seconds, dry_used = timed("replay", "plan", *told, "--dry-run", **environ)
    _, plan_seconds, plan_used = timed("replay", "plan", *told, "--rate", 20_000, **environ)
    replays, _, _ = timed(
        "replay", "plan", *told[:-1], "--to-offset", 2 * REPLAYED, "--json", "--rate", 20_000, **environ
    )
    return {
        "records": records,
        "dry_run_per_second": round(records / dry_seconds),
        "dry_run_microseconds_of_processor": round(dry_used / records * 1e6, 1),
        "plan_per_second": round(records / plan_seconds),
        "plan_microseconds_of_processor": round(plan_used / records * 1e6, 1),
        **handing(environ, url, replays["replay"], REPLAYED),
        "standings": dry["counts"]["standings"],
    }


def timed(*arguments: object, **environ: str) -> tuple[dict[str, Any], float, float]:
    """Run a command and return its answer, and the seconds and the processor seconds that it took, start of the process aside."""
    begun, used = SYSTEM_CLOCK.monotonic(), time.process_time()
    ran = packhorse(*arguments, **environ)
    assert ran.code == 0, ran.err
    return ran.json(), SYSTEM_CLOCK.monotonic() - begun, time.process_time() - used


def handing(environ: dict[str, str], url: str, replay: int, records: int) -> dict[str, Any]:
    """Replay through one process of the group with four lanes, and say how fast that was proved, and what it cost the runner."""
    settings, stop = ConsoleSettings.load({}, environ=environ), threading.Event()
    with psycopg.connect(url, autocommit=True) as connection, group_of(environ):
        connection.execute(
            "CREATE TABLE result (at bigint GENERATED ALWAYS AS IDENTITY, id uuid, n bigint, attempt int)"
        )
        connection.execute("UPDATE packhorse.replay SET state = 'running' WHERE id = %s", (replay,))
        while not connection.execute(
            "SELECT 1 FROM packhorse.processor_member WHERE status -> 'ready' = 'true'"
        ).fetchone():
            stop.wait(0.2)
        begun, used = SYSTEM_CLOCK.monotonic(), time.process_time()
        worked = work_here(replay, settings, tell=_unheard, stop=stop)
        seconds, used = SYSTEM_CLOCK.monotonic() - begun, time.process_time() - used
        done = connection.execute("SELECT count(*), count(DISTINCT n) FROM result").fetchone()
    assert done == (records, records), (done, worked.run.state, worked.run.said)
    return {
        "replayed": records,
        "replayed_per_second": round(records / seconds),
        "runner_microseconds_of_processor": round(used / records * 1e6, 1),
    }


@contextmanager
def group_of(environ: dict[str, str]) -> Iterator[None]:
    """Run one process of the group meanwhile."""
    command = [sys.executable, "-m", "packhorse.cli.main"]
    more = {**os.environ, **environ, "BENCH_REPLAY_NAMESPACE": NAMESPACE, "PACKHORSE_TEST_GROUP": GROUP}
    told = subprocess.DEVNULL
    subprocess.run([*command, "topics", "apply", "bench.replay:app"], env=more, check=True, stdout=told)
    process = subprocess.Popen(
        [*command, "processor", "run", "bench.replay:app"], env=more, stdout=told, stderr=told
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def _unheard(text: str) -> None:
    del text


def _kafka(endpoints: Endpoints) -> Any:
    from packhorse.schemas.systems import KafkaSettings

    return KafkaSettings(kafka_bootstrap_servers=endpoints.kafka_bootstrap)


if __name__ == "__main__":
    sys.exit(main())
