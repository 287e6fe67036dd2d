"""
Produce at a fixed rate: `python -m bench.processor.children.writer SCHEMA_ID FIRST RATE SECONDS [--until-told]`, which ends it when
its standard input is closed.

Prints a JSON list of (number, when it was given to the client, seconds since the epoch). Nothing lingers. A first record, which is
not listed, waits until the client is connected and has its producer's id, which now and then takes half a second.
"""

import json
import os
import sys
import threading
import time

from bench.processor.messages import record
from confluent_kafka import Producer

KEYS = 10_000
READY = 900_000
"""What is added to the first number for the record that is not listed."""


def _told(flags: tuple[str, ...]) -> threading.Event:
    told = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        told.set()

    if flags:
        threading.Thread(target=wait, daemon=True).start()
    return told


def main(schema_id: str, first: str, rate: str, seconds: str, *flags: str) -> None:
    told = _told(flags)
    form, namespace, topic = (os.environ[f"BENCH_{name}"] for name in ("FORM", "NAMESPACE", "TOPIC"))
    producer = Producer(
        {
            "bootstrap.servers": os.environ["PACKHORSE_KAFKA_BOOTSTRAP_SERVERS"], "linger.ms": 0, "acks": "all",
            "enable.idempotence": True, "partitioner": "murmur2_random",
        }
    )  # fmt: skip
    producer.produce(topic, **record(form, namespace, int(schema_id), int(first) + READY, KEYS))
    assert producer.flush(30) == 0
    sent: list[tuple[int, float]] = []
    begun = time.monotonic()
    for number in range(int(float(rate) * float(seconds))):
        if told.is_set():
            break
        made = record(form, namespace, int(schema_id), int(first) + number, KEYS)
        while (left := begun + number / float(rate) - time.monotonic()) > 0:
            producer.poll(min(left, 0.05))
        sent.append((int(first) + number, time.time()))
        producer.produce(topic, **made)
    assert producer.flush(30) == 0
    json.dump(sent, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
