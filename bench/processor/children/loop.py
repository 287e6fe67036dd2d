"""
Read and write by hand: `python -m bench.processor.children.loop WAY`.

* `message`: one INSERT and one commit a message, offsets once a second;
* `batch`: up to 1,000 messages a transaction by INSERT … unnest, then their offsets;
* `inbox`: the same with an inbox by INSERT … ON CONFLICT DO NOTHING RETURNING, in the same transaction.

Tuned: the first message is waited for and what else is there is taken with it, so that a batch is never waited for;
arrays go in binary; offsets are committed without waiting; the collector leaves what was imported alone.
"""

import gc
import sys
import time
from typing import Any

import psycopg
from bench.processor.children.values import (
    DATABASE,
    GROUP,
    INSERT_MANY,
    INSERT_ONE,
    SERVERS,
    TOPIC,
    id_of,
    number_reader,
)
from confluent_kafka import Consumer, TopicPartition

BATCH = 1_000
INBOX = "INSERT INTO seen SELECT * FROM unnest(%s::uuid[]) ON CONFLICT DO NOTHING RETURNING id::text"

read = number_reader()


def rows_of(messages: list[Any]) -> dict[str, int]:
    """Return id and number of each message."""
    return {id_of(message.headers()): read(message.value()) for message in messages}


def by_message(connection: psycopg.Connection, messages: list[Any]) -> None:
    """Write each message in a transaction of its own."""
    for message in messages:
        connection.execute(INSERT_ONE, (id_of(message.headers()), read(message.value())))
        connection.commit()


def by_batch(connection: psycopg.Connection, messages: list[Any]) -> None:
    """Write all messages in one transaction; a redelivery counts twice."""
    rows = rows_of(messages)
    connection.execute(INSERT_MANY, (list(rows), list(rows.values())))
    connection.commit()


def with_inbox(connection: psycopg.Connection, messages: list[Any]) -> None:
    """Write all messages that the inbox has not seen in one transaction."""
    rows = rows_of(messages)
    new = connection.execute(INBOX, (list(rows),)).fetchall()
    if len(new) < len(rows):
        rows = {row[0]: rows[row[0]] for row in new}
    connection.execute(INSERT_MANY, (list(rows), list(rows.values())))
    connection.commit()


WAYS = {"message": by_message, "batch": by_batch, "inbox": with_inbox}


def main(way: str) -> None:
    write = WAYS[way]
    consumer = Consumer(
        {
            "bootstrap.servers": SERVERS, "group.id": GROUP, "group.protocol": "consumer", "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )  # fmt: skip
    consumer.subscribe([TOPIC])
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    committed = time.monotonic()
    done: dict[int, int] = {}
    with psycopg.connect(DATABASE) as connection:
        while True:
            first = consumer.poll(0.5)
            if first is None:
                continue
            messages = [first, *consumer.consume(BATCH - 1, 0)]
            write(connection, messages)
            for message in messages:
                done[message.partition() or 0] = (message.offset() or 0) + 1
            if (now := time.monotonic()) - committed > (1 if way == "message" else 0):
                offsets = [TopicPartition(TOPIC, partition, offset) for partition, offset in done.items()]
                consumer.commit(offsets=offsets, asynchronous=True)
                committed = now
                done.clear()


if __name__ == "__main__":
    main(*sys.argv[1:])
