# mypy: ignore-errors
"""
FastStream 0.7.8 on its Confluent broker; runs in an environment of its own, until SIGTERM: `faststream_app.py message|batch`.

Late acknowledgement is `AckPolicy.NACK_ON_ERROR`: the offset is committed after each call that succeeds, and one that fails is read again. Tuned as its documentation
says: for batches `batch=True` with `max_records` raised from 10; uvloop; no logs of each message; an asynchronous driver;
the handler takes the raw message, so that no model is validated; a decoder of its own for Avro.
"""

import logging
import sys

import psycopg
import uvloop
from faststream import AckPolicy, FastStream
from faststream.confluent import KafkaBroker, KafkaMessage
from values import DATABASE, GROUP, INSERT_MANY, INSERT_ONE, SERVERS, TOPIC, id_of, number_reader

BATCH, SECONDS = 1_000, 0.1

read = number_reader()
database = {}


async def decode_one(message):
    return read(message.body)


async def decode_many(message):
    return [read(body) for body in message.body]


async def write_one(message: KafkaMessage) -> None:
    connection = database["connection"]
    await connection.execute(INSERT_ONE, (message.headers["id"], await message.decode()))
    await connection.commit()


async def write_many(message: KafkaMessage) -> None:
    rows = dict(
        zip((id_of(raw.headers()) for raw in message.raw_message), await message.decode(), strict=True)
    )
    connection = database["connection"]
    await connection.execute(INSERT_MANY, (list(rows), list(rows.values())))
    await connection.commit()


async def main(way):
    database["connection"] = await psycopg.AsyncConnection.connect(DATABASE)
    broker = KafkaBroker(SERVERS, log_level=logging.DEBUG)
    given = {"group_id": GROUP, "auto_offset_reset": "earliest", "ack_policy": AckPolicy.NACK_ON_ERROR}
    if way == "batch":
        given |= {"batch": True, "max_records": BATCH, "polling_interval": SECONDS, "decoder": decode_many}
        broker.subscriber(TOPIC, **given)(write_many)
    else:
        broker.subscriber(TOPIC, decoder=decode_one, **given)(write_one)
    await FastStream(broker, logger=None).run()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
