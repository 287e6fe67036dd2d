"""
Send rows from memory and read none: `python -m bench.relay.children.produce ROWS`.

A hundred thousand rows are read beforehand and sent again and again by a bare loop.
"""

import gc
import sys

import psycopg
from confluent_kafka import Producer

from packhorse.relay.allocator import keep_freed_memory
from packhorse.relay.compose import kafka_properties
from packhorse.relay.daemon import GC_THRESHOLD
from packhorse.relay.settings import RelaySettings

READ = "SELECT aggregateid, payload, id::text, type, schema_version, origin FROM packhorse.outbox ORDER BY seq LIMIT 100000"


def main() -> None:
    rows = int(sys.argv[1])
    settings = RelaySettings.load({})
    with psycopg.connect(settings.database_url.get_secret_value()) as connection:
        found = connection.cursor(binary=True).execute(READ).fetchall()
    keep_freed_memory()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    producer = Producer(kafka_properties(settings))
    produce = producer.produce
    topic, left = f"{settings.namespace}.bench", rows
    while left:
        for key, payload, id_, type_, version, origin in found[:left]:
            headers = [("id", id_), ("type", type_), ("schema-version", version), ("origin", origin)]
            while True:
                try:
                    produce(topic, payload, key, -1, None, None, 0, headers)
                    break
                except BufferError:
                    producer.poll(0.05)
        left -= min(left, len(found))
    assert producer.flush(60) == 0


if __name__ == "__main__":
    main()
