# mypy: ignore-errors
"""
sentry-arroyo 2.48.0; runs in an environment of its own, until SIGTERM: `arroyo_loop.py message|batch`.

Tuned as its documentation says: offsets once a second (ONCE_PER_SECOND); for batches BatchStep before the task that writes;
`queued_min_messages` raised from its default of 10,000, which is there to save memory and starves a quick consumer.
"""

import logging
import signal
import sys

import psycopg
from arroyo import Topic
from arroyo.backends.kafka import KafkaConsumer
from arroyo.backends.kafka.configuration import build_kafka_consumer_configuration
from arroyo.commit import ONCE_PER_SECOND
from arroyo.processing import StreamProcessor
from arroyo.processing.strategies import CommitOffsets, ProcessingStrategyFactory, RunTask
from arroyo.processing.strategies.batching import BatchStep
from values import DATABASE, GROUP, INSERT_MANY, INSERT_ONE, SERVERS, TOPIC, id_of, number_reader

BATCH, BATCH_SECONDS = 1_000, 0.1

read = number_reader()
connection = psycopg.connect(DATABASE)


def write_one(message):
    payload = message.payload
    connection.execute(INSERT_ONE, (id_of(payload.headers), read(payload.value)))
    connection.commit()


def write_many(message):
    rows = {id_of(each.payload.headers): read(each.payload.value) for each in message.payload}
    connection.execute(INSERT_MANY, (list(rows), list(rows.values())))
    connection.commit()


class Factory(ProcessingStrategyFactory):
    def __init__(self, way):
        self.way = way

    def create_with_partitions(self, commit, _partitions):
        if self.way == "message":
            return RunTask(write_one, CommitOffsets(commit))
        return BatchStep(BATCH, BATCH_SECONDS, RunTask(write_many, CommitOffsets(commit)))


def main(way):
    logging.basicConfig(level=logging.WARNING)
    consumer = KafkaConsumer(
        build_kafka_consumer_configuration(
            {},
            bootstrap_servers=[SERVERS],
            group_id=GROUP,
            auto_offset_reset="earliest",
            queued_min_messages=100_000,
        )
    )
    processor = StreamProcessor(consumer, Topic(TOPIC), Factory(way), ONCE_PER_SECOND)
    signal.signal(signal.SIGTERM, lambda *_: processor.signal_shutdown())
    processor.run()


if __name__ == "__main__":
    main(sys.argv[1])
