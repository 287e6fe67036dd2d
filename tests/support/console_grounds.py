"""What a world of operations stands on beside the tables: a topic that a group has read, and a payload that a registry can decode."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg
from confluent_kafka import Producer
from tests.support.console_api import Console, console_on, token_for
from tests.support.console_rows import new_id
from tests.support.console_world import GROUP, World
from tests.support.topics import make_topic
from tests.support.wait import eventually

from packhorse.local.settings import Endpoints
from packhorse.processor.kafka.admin import BrokerQuestions


@contextmanager
def world_on(
    database: str, stack: Endpoints, connection: psycopg.Connection[Any], namespace: str, **settings: Any
) -> Iterator[tuple[Console, World]]:
    """Serve the console on *database* with broker and registry meanwhile, and provide what it can be asked about."""
    topic = f"{namespace}.flights"
    topic_read_by_group(connection, stack.kafka_bootstrap, topic)
    payload = registered_payload(stack.registry_url, f"{topic}-value")
    with (
        console_on(
            database,
            kafka_bootstrap_servers=stack.kafka_bootstrap,
            registry_url=stack.registry_url,
            namespace=namespace,
            **settings,
        ) as console,
        console.asked_by(token_for(connection, "viewer", name="reader")) as reader,
    ):
        eventually(
            lambda: reader.get("/offsets", params={"group": GROUP, "topic": topic}).status_code == 200,
            what="the broker's coordinator is ready",
            timeout=30,
        )
        yield console, World(connection=connection, reader=reader, topic=topic, payload=payload)


def topic_read_by_group(connection: psycopg.Connection[Any], bootstrap: str, topic: str) -> None:
    """Make *topic* with three records, all of which GROUP has dealt with."""
    make_topic(bootstrap, topic, partitions=1)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(3):
        producer.produce(
            topic, key=f"k{number}".encode(), value=b"x", headers=[("id", str(new_id()).encode())]
        )
    assert producer.flush(30) == 0
    topic_id = BrokerQuestions({"bootstrap.servers": bootstrap}).topic_id(topic)
    connection.execute(
        'INSERT INTO packhorse.watermark (group_id, topic_id, partition, topic, "offset", incarnation)'
        " VALUES (%s, %s, 0, %s, 3, '1/1')",
        (GROUP, topic_id, topic),
    )


def registered_payload(registry_url: str, subject: str) -> bytes:
    """Register a schema and return a payload of it, framed."""
    schema = '{"type": "record", "name": "Counted", "fields": [{"name": "n", "type": "int"}]}'
    answer = httpx.post(
        f"{registry_url}/subjects/{subject}/versions", json={"schema": schema}, timeout=30, trust_env=False
    )
    return b"\x00" + int(answer.json()["id"]).to_bytes(4, "big") + b"\x02"
