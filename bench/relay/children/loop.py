"""
Claim and delete by hand, at its best: `python -m bench.relay.children.loop BATCH ROWS`; ROWS 0: until SIGTERM.

A batch is deleted by an array of row addresses, sent, flushed, committed. The client, its settings, the way of calling it,
the collector and the memory are tuned as the relay's are, so that what is compared is the way of working. Keys keep their order as long as nobody runs
two of it, and as writers commit in the order of seq.
"""

import gc
import sys
import time

import psycopg
from confluent_kafka import KafkaError, Message, Producer

from packhorse.relay.allocator import keep_freed_memory
from packhorse.relay.compose import kafka_properties
from packhorse.relay.daemon import GC_THRESHOLD
from packhorse.relay.settings import RelaySettings

CLAIM = """
DELETE FROM queue WHERE ctid = ANY(ARRAY(SELECT ctid FROM queue ORDER BY seq LIMIT {batch} FOR UPDATE SKIP LOCKED))
RETURNING seq, id::text, key, type, schema_version, payload, origin
"""
POLL = 0.005


def main() -> None:
    batch, rows = (int(value) for value in sys.argv[1:3])
    keep_freed_memory()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    settings = RelaySettings.load({})
    producer = Producer(kafka_properties(settings))
    produce, failed = producer.produce, []
    topic, claim = f"{settings.namespace}.bench", CLAIM.format(batch=batch)

    def report(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    with psycopg.connect(settings.database_url.get_secret_value()) as connection:
        cursor, done = connection.cursor(binary=True), 0
        while not rows or done < rows:
            taken = cursor.execute(claim.encode()).fetchall()
            taken.sort()
            for _, id_, key, type_, version, payload, origin in taken:
                headers = [("id", id_), ("type", type_), ("schema-version", version), ("origin", origin)]
                produce(topic, payload, key, -1, report, report, 0, headers)
            if taken:
                assert producer.flush(60) == 0
                assert not failed
            connection.commit()
            done += len(taken)
            if len(taken) < batch:
                time.sleep(POLL)


if __name__ == "__main__":
    main()
