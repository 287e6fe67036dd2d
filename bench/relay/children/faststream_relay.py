# mypy: ignore-errors
"""
faststream-outbox 0.19.0 in front of FastStream's Confluent broker; runs in an environment of its own, until SIGTERM.

Tuned as its page on performance says: batched terminal deletes, larger fetches, more workers, LISTEN through asyncpg,
autovacuum settings on the table. With more than one worker it does not keep the order of a key.
"""

import asyncio
import logging
import signal
import sys

import uvloop
from faststream.confluent import KafkaBroker
from faststream_outbox import OutboxBroker, make_outbox_table
from sqlalchemy import MetaData
from sqlalchemy.ext.asyncio import create_async_engine

WORKERS = 64


async def main(database: str, servers: str, topic: str) -> None:
    engine = create_async_engine(
        database.replace("postgresql://", "postgresql+asyncpg://", 1), pool_size=WORKERS + 4
    )
    outbox = OutboxBroker(
        engine, outbox_table=make_outbox_table(MetaData(), table_name="outbox"), log_level=logging.DEBUG
    )
    kafka = KafkaBroker(
        servers,
        acks="all",
        enable_idempotence=True,
        linger_ms=0,
        compression_type="lz4",
        log_level=logging.DEBUG,
    )
    publisher = kafka.publisher(topic)

    @publisher
    @outbox.subscriber(
        "bench", max_workers=WORKERS, fetch_batch_size=1_000, min_fetch_interval=0.005, max_fetch_interval=0.05,
        terminal_flush_batch_size=100, propagate_inbound_headers=True,
    )  # fmt: skip
    async def relay(body: bytes) -> bytes:
        return body

    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await kafka.connect()
    await outbox.start()
    await ended.wait()
    await outbox.stop()
    await kafka.stop()


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:4]))
