"""When each result was durable, as the database's own stream of commits tells it: a row is streamed only once its commit is flushed."""

import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from bench.processor.ground import Place

from packhorse.relay.postgres.connection import Reach
from packhorse.relay.postgres.replication import Replication

_BODY = 25
_NUMBER = struct.Struct(">q")


def number_of(insert: memoryview) -> int:
    """Return column `n` of a streamed row of `result`: behind the relation and the id, in binary."""
    length = struct.unpack_from(">I", insert, 9)[0]
    return int(_NUMBER.unpack_from(insert, 13 + length + 5)[0])


@contextmanager
def watched_results(place: Place) -> Iterator[dict[int, float]]:
    """Give, while the block runs, each result's number and when it was first heard of, seconds since the epoch."""
    slot = place.database.rpartition("/")[2]
    with psycopg.connect(place.database, autocommit=True) as connection:
        connection.execute("CREATE PUBLICATION bench FOR TABLE result")
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [slot])
    seen: dict[int, float] = {}
    ended = threading.Event()
    # Nothing is confirmed on this stream: the server must not take its reader for gone.
    stream = Replication(place.database, Reach(), silence=3_600)
    stream.start(slot=slot, publication="bench", at=0)
    thread = threading.Thread(target=_read, args=(stream, seen, ended), daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join(10)
        stream.close()


def _read(stream: Replication, seen: dict[int, float], ended: threading.Event) -> None:
    numbers: list[int] = []
    while not ended.is_set():
        length, data = stream.read(1)
        if length == 0:
            stream.wait(0.2)
            stream.pull()
        elif length < 0:
            return
        elif bytes(data[:1]) == b"w":
            kind = bytes(data[_BODY : _BODY + 1])
            if kind == b"I":
                numbers.append(number_of(memoryview(data)[_BODY:]))
            elif kind == b"C":
                now = time.time()
                for n in numbers:
                    seen.setdefault(n, now)
                numbers.clear()
