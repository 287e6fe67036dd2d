"""
Measure writing to the outbox against an INSERT written by hand, interleaved, in one run.

    python -m bench.outbox [--rows 3000] [--rounds 7]

Needs PACKHORSE_DATABASE_URL (a user that may create databases), for example from `packhorse dev env`. Rates compare only
within one run: judge by the ratios.

All contestants encode the same value of about 300 bytes with fastavro, fill the same table, and are measured inside one
transaction, which is rolled back. By hand means: schemaless_writer, uuid7, and the plainest statement of the driver.
"""

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from io import BytesIO
from typing import Any, ClassVar
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID, uuid4

import fastavro
import psycopg
import sqlalchemy as sa
from sqlalchemy.orm import Session

from packhorse.core.ids import uuid7_from
from packhorse.core.message import MessageType
from packhorse.producer import Outbox
from packhorse.testing import register_for_tests, schema_id_for_tests

SCHEMA = """{"type": "record", "name": "OrderPlaced", "namespace": "bench", "fields": [
    {"name": "order", "type": "string"}, {"name": "customer", "type": "string"}, {"name": "amount", "type": "long"},
    {"name": "placed_at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "note", "type": ["null", "string"], "default": null}]}"""
BATCH = 1000
BY_HAND = """
INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, payload, origin)
VALUES (%s, %s, %s, %s, %s, %s, %s)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPlaced:
    """What is written, as `packhorse schemas generate` would make it."""

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="bench.OrderPlaced", version=1, namespace="bench", aggregatetype="order", schema=SCHEMA
    )
    order: str
    customer: str
    amount: int
    placed_at: datetime
    note: str | None = None


PARSED: Any = fastavro.parse_schema(json.loads(SCHEMA))
PREFIX = b"\0" + schema_id_for_tests(OrderPlaced.__packhorse__).to_bytes(4)
OUTBOX = Outbox(origin="bench")


def value(n: int) -> OrderPlaced:
    """Return the n-th value; its payload has about 300 bytes."""
    now = datetime(2026, 7, 31, 12, tzinfo=UTC)
    return OrderPlaced(
        order=f"order-{n}", customer=f"customer-{n % 97}", amount=n, placed_at=now, note="x" * 260
    )


def row_by_hand(message: OrderPlaced) -> tuple[Any, ...]:
    """Return what a hand-written outbox would insert."""
    buffer = BytesIO()
    fastavro.schemaless_writer(buffer, PARSED, asdict(message))
    payload = PREFIX + buffer.getvalue()
    return (new_id(), "order", message.order, "bench.OrderPlaced", "1", payload, "bench")


def new_id() -> UUID:
    return uuid7_from(datetime.now(UTC), os.urandom(10))


def emit(connection: psycopg.Connection[Any], messages: list[OrderPlaced]) -> None:
    for message in messages:
        OUTBOX.emit(connection, message, key=message.order)


def emit_locked(connection: psycopg.Connection[Any], messages: list[OrderPlaced]) -> None:
    for message in messages:
        OUTBOX.emit(connection, message, key=message.order, lock_key=True)


def insert(connection: psycopg.Connection[Any], messages: list[OrderPlaced]) -> None:
    for message in messages:
        connection.execute(BY_HAND.encode(), row_by_hand(message))


def emit_many(connection: psycopg.Connection[Any], messages: list[OrderPlaced]) -> None:
    for at in range(0, len(messages), BATCH):
        OUTBOX.emit_many(connection, [(message, message.order) for message in messages[at : at + BATCH]])


def emit_many_locked(connection: psycopg.Connection[Any], messages: list[OrderPlaced]) -> None:
    for at in range(0, len(messages), BATCH):
        pairs = [(message, message.order) for message in messages[at : at + BATCH]]
        OUTBOX.emit_many(connection, pairs, lock_key=True)


def insert_many(connection: psycopg.Connection[Any], messages: list[OrderPlaced]) -> None:
    for at in range(0, len(messages), BATCH):
        rows = [row_by_hand(message) for message in messages[at : at + BATCH]]
        connection.cursor().executemany(BY_HAND.encode(), rows)


def emit_session(session: Session, messages: list[OrderPlaced]) -> None:
    for message in messages:
        OUTBOX.emit(session, message, key=message.order)


TABLE = sa.table(
    "outbox",
    *map(sa.column, ["id", "aggregatetype", "aggregateid", "type", "schema_version", "payload", "origin"]),
    schema="packhorse",
)


def insert_session(session: Session, messages: list[OrderPlaced]) -> None:
    names = [column.name for column in TABLE.columns]
    for message in messages:
        session.execute(sa.insert(TABLE).values(dict(zip(names, row_by_hand(message), strict=True))))


async def aemit(connection: psycopg.AsyncConnection[Any], messages: list[OrderPlaced]) -> None:
    for message in messages:
        await OUTBOX.aemit(connection, message, key=message.order)


async def ainsert(connection: psycopg.AsyncConnection[Any], messages: list[OrderPlaced]) -> None:
    for message in messages:
        await connection.execute(BY_HAND.encode(), row_by_hand(message))


def measured(
    work: Callable[[list[OrderPlaced]], None], messages: list[OrderPlaced], undo: Callable[[], None]
) -> float:
    """Return the rows a second of one run."""
    gc.collect()
    start = time.perf_counter()
    work(messages)
    rate = len(messages) / (time.perf_counter() - start)
    undo()
    return rate


def rounds(url: str, rows: int, count: int) -> dict[str, list[float]]:
    """Run all contestants *count* times in turn."""
    found: dict[str, list[float]] = {}
    messages = [value(n) for n in range(rows)]
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    with psycopg.connect(url) as connection, Session(engine) as session, asyncio.Runner() as runner:
        aconnection = runner.run(psycopg.AsyncConnection.connect(url))

        def on_async(work: Callable[..., Awaitable[None]]) -> Callable[[list[OrderPlaced]], None]:
            async def run(messages: list[OrderPlaced]) -> None:
                await work(aconnection, messages)

            return lambda messages: runner.run(run(messages))

        contestants: list[tuple[Callable[..., Any], Callable[[list[OrderPlaced]], None], Callable[[], None]]] = [
            *((work, (lambda m, w=work: w(connection, m)), connection.rollback)
              for work in (insert, emit, emit_locked, insert_many, emit_many, emit_many_locked)),
            *((work, (lambda m, w=work: w(session, m)), session.rollback) for work in (insert_session, emit_session)),
            *((work, on_async(work), lambda: runner.run(aconnection.rollback())) for work in (ainsert, aemit)),
        ]  # fmt: skip
        for number in range(count + 1):
            for work, run, undo in contestants:
                rate = measured(run, messages, undo)
                if number:  # the first round warms caches and prepared statements
                    found.setdefault(work.__name__, []).append(rate)
        runner.run(aconnection.close())
    engine.dispose()
    return found


def report(found: dict[str, list[float]]) -> None:
    """Print a line for each contestant, against its opponent."""
    opponents = {
        "emit": "insert", "emit_locked": "insert", "emit_many": "insert_many", "emit_many_locked": "insert_many",
        "emit_session": "insert_session", "aemit": "ainsert",
    }  # fmt: skip
    print(f"{'contestant':18} {'rows/s':>9}   against by hand")
    for name, rates in found.items():
        line = f"{name:18} {statistics.median(rates):9,.0f}"
        if name in opponents:
            ratios = [mine / theirs for mine, theirs in zip(rates, found[opponents[name]], strict=True)]
            line += f"   {statistics.median(ratios):.2f} × {opponents[name]}  ({min(ratios):.2f}–{max(ratios):.2f})"
        print(line)


@contextmanager
def fresh_database(server_url: str) -> Iterator[str]:
    """Create a database with the tables and drop it afterwards."""
    name = f"bench_outbox_{uuid4().hex[:12]}"
    url = urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            environment = {**os.environ, "PACKHORSE_DATABASE_URL": url}
            up = [sys.executable, "-m", "packhorse.cli.main", "migrate", "up"]
            subprocess.run(up, env=environment, check=True, stdout=subprocess.DEVNULL)
            with psycopg.connect(url) as inside:
                register_for_tests(inside, OrderPlaced)
            yield url
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    with fresh_database(os.environ["PACKHORSE_DATABASE_URL"]) as url:
        report(rounds(url, arguments.rows, arguments.rounds))


if __name__ == "__main__":
    main()
