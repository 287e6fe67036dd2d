"""Debezium's outbox connector on Kafka Connect 4.3.0, as another carrier of the same table, tuned for its task."""

import os
from collections.abc import Sequence
from functools import cache

import psycopg
from bench.relay.ground import Place
from tests.support.connect import fetch_connect

from packhorse.core.errors import PackhorseError
from packhorse.local.java import find_java
from packhorse.local.kafka import LOGGING, render
from packhorse.relay.debezium.config import Connector, as_properties, configuration
from packhorse.relay.postgres.connector import source_of

MEMORY = ("-Xms256m", "-Xmx1g")
SLOT, PUBLICATION = "debezium_bench", "debezium_bench"


@cache
def missing() -> str | None:
    """Say why it can't run here; fetches the jars when they are not there."""
    try:
        find_java(os.environ)
        fetch_connect()
    except PackhorseError as error:
        return str(error)
    return None


def prepare(place: Place) -> None:
    """Make publication and slot, so that nothing of the backlog is missed."""
    with psycopg.connect(place.database, autocommit=True) as connection:
        connection.execute(
            f"CREATE PUBLICATION {PUBLICATION} FOR TABLE packhorse.outbox "
            "WITH (publish = 'insert', publish_via_partition_root = true)"
        )
        name = f"{SLOT}_{place.namespace}"[:63]
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [name])


def _worker(place: Place) -> dict[str, str]:
    return {
        "bootstrap.servers": place.servers,
        "listeners": "http://127.0.0.1:0",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "offset.storage.file.filename": str(place.folder / "offsets.dat"),
        "offset.flush.interval.ms": "5000",
        "plugin.discovery": "service_load",
        "connector.client.config.override.policy": "All",
    }


def _connector(place: Place) -> dict[str, str]:
    """Return our own printed configuration; for latency with the shortest poll and no lingering, for a backlog with larger batches."""
    connector = Connector(
        name="bench", schema="packhorse", namespace=place.namespace, slot=f"{SLOT}_{place.namespace}"[:63],
        publication=PUBLICATION, password="${env:NONE}", heartbeat=0,
    )  # fmt: skip
    config = configuration(connector, source_of(place.database))
    del config["database.password"]
    tuned = (
        {"max.batch.size": "8192", "max.queue.size": "32768", "producer.override.linger.ms": "5"}
        if place.rows
        else {"poll.interval.ms": "1", "producer.override.linger.ms": "0"}
    )
    # Connect's producer is idempotent with acks=all by itself; lz4 as everybody's here.
    return {**config, **tuned, "producer.override.compression.type": "lz4"}


def command(place: Place) -> Sequence[str]:
    """Write the worker's and the connector's files, and return the command of a standalone worker."""
    folder = place.folder
    (folder / "worker.properties").write_text(render(_worker(place)))
    (folder / "connector.properties").write_text(as_properties("bench", _connector(place)))
    (folder / "log4j2.properties").write_text(LOGGING)
    classes = ":".join(str(jar) for jar in fetch_connect())
    return [
        str(find_java(os.environ)), *MEMORY, "-Djava.net.preferIPv4Stack=true",
        f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}", "-cp", classes,
        "org.apache.kafka.connect.cli.ConnectStandalone", str(folder / "worker.properties"),
        str(folder / "connector.properties"),
    ]  # fmt: skip
