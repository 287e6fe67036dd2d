# mypy: ignore-errors
"""
txoutbox 0.2.2 with aiokafka, as its own documentation says; runs in an environment of its own, until SIGTERM.

Tuned: batches and concurrency raised together (its lease rule), delivered rows deleted, NOTIFY wakes it. Order per key is
kept (its default), for that is what is compared; the client is idempotent with acks=all, as everybody's here.
"""

import sys
from datetime import timedelta

import asyncpg
import uvloop
from aiokafka import AIOKafkaProducer
from txoutbox import OutboxMessage, Relay, RelayConfig
from txoutbox.adapters.postgres import PostgresStorage

BATCH = 2_000


async def main(database: str, servers: str) -> None:
    pool = await asyncpg.create_pool(database, min_size=3, max_size=5)
    storage = PostgresStorage(pool, delete_on_ack=True, notify_channel="outbox")
    producer = AIOKafkaProducer(
        bootstrap_servers=servers, enable_idempotence=True, acks="all", linger_ms=1, max_batch_size=256 * 1024
    )
    await producer.start()

    async def publish(message: OutboxMessage) -> None:
        headers = [(name, value.encode()) for name, value in message.headers.items()]
        key = message.key.encode() if message.key else None
        await producer.send_and_wait(message.topic, message.payload, key=key, headers=headers)

    config = RelayConfig(
        batch_size=BATCH, concurrency=BATCH, lease=timedelta(seconds=60), poll_min=0.005, poll_max=0.05
    )
    relay = Relay(storage, publish, config=config)
    await storage.listen(relay.wake)
    await relay.run(handle_signals=True)
    await producer.stop()


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:3]))
