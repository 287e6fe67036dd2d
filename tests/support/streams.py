"""Streams of one database, ready to read; their slots are gone afterwards, for no database goes while it has one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.relay.cdc.stream import Slot, StreamBatch, StreamUnavailable
from packhorse.relay.model import Row
from packhorse.relay.postgres.cdc_setup import CdcSetup
from packhorse.relay.postgres.stream import PostgresStream

DROP = """
SELECT pg_terminate_backend(s.active_pid, 5000) FROM pg_replication_slots AS s
 WHERE s.database = current_database() AND s.active_pid IS NOT NULL
"""
DROP_ALL = "SELECT pg_drop_replication_slot(s.slot_name) FROM pg_replication_slots AS s WHERE s.database = current_database()"


@dataclass
class Streams:
    """
    Streams of one database.

    Attributes:
        url: For the streams.
        direct: For the test itself; leads around a proxy.
    """

    url: str
    direct: str
    made: list[PostgresStream] = field(default_factory=list)

    def new(self, **given: Any) -> PostgresStream:
        """Return another stream, not started."""
        stream = PostgresStream(self.url, "packhorse", clock=SYSTEM_CLOCK, **given)
        self.made.append(stream)
        return stream

    def started(self, **given: Any) -> PostgresStream:
        """Return a stream that runs and leaves out what is there already."""
        stream = self.new(**given)
        start(stream, self.direct)
        return stream


def start(stream: PostgresStream, url: str) -> None:
    """Make the slot if need be, and stream what no current snapshot sees; a slot waits for whoever writes to the server."""
    slot = eventually(lambda: prepared(stream), what="the slot stands", timeout=30)
    assert slot is not None
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
    assert row is not None
    stream.start(row[0], slot.at)


def prepared(stream: PostgresStream) -> Slot | None:
    """Return the slot; None when it could not be made in time."""
    try:
        return stream.prepare()
    except StreamUnavailable as error:
        if "could not be made" not in str(error):
            raise
        return None


@contextmanager
def streams(url: str, *, direct: str | None = None) -> Iterator[Streams]:
    """Provide streams of the database *url*, with the publication made."""
    setup = CdcSetup(direct or url, "packhorse")
    eventually(
        lambda: not setup.run(act=True, unbounded=True).refused,
        what="publication and slot are made; the slot waits for whoever writes to the server",
        timeout=30,
    )
    found = Streams(url=url, direct=direct or url)
    try:
        yield found
    finally:
        for stream in found.made:
            stream.close()
        with psycopg.connect(found.direct, autocommit=True) as connection:
            connection.execute(DROP)
            connection.execute(DROP_ALL)


def read_until(
    stream: PostgresStream,
    fact: Callable[[list[Row], int], bool],
    *,
    what: str,
    limit: int = 5_000,
    timeout: float = 20,
) -> tuple[list[Row], int]:
    """Read, asking for word and confirming what came, until *fact* of all rows and the position; return both."""
    rows: list[Row] = []
    confirmed = 0

    def read() -> bool:
        nonlocal confirmed
        batch: StreamBatch = stream.read(0.05, limit=limit, confirmed=confirmed, ask=True)
        assert batch.received >= confirmed, "the position never goes back"
        rows.extend(batch.rows)
        confirmed = batch.received
        return fact(rows, confirmed)

    eventually(read, what=what, timeout=timeout)
    return rows, confirmed


def read_to_mark(stream: PostgresStream, *, limit: int = 5_000, timeout: float = 20) -> tuple[list[Row], int]:
    """Return all rows committed so far and not yet read, and the position behind them."""
    _, until = stream.mark()
    return read_until(
        stream, lambda _, received: received >= until, what="all is received", limit=limit, timeout=timeout
    )


def read_all(stream: PostgresStream, *, limit: int = 5_000) -> list[Row]:
    """Return all rows committed so far and not yet read."""
    return read_to_mark(stream, limit=limit)[0]
