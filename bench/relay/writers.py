"""
Commit one row at a time at a fixed rate: `python -m bench.relay.writers DATABASE INSERT RATE SECONDS`.

Prints a JSON list of (id, when the commit returned). The rate is kept over all writers; a late writer catches up.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from uuid import uuid4

import psycopg
from bench.relay.tables import PAYLOAD_BYTES

WRITERS = 16
_TAIL = b'{"customer": "customer-1", "placed_at": "2026-07-31T12:00:00", "currency": "EUR", "note": "please deliver"}'


def payload(id_: str) -> bytes:
    """Return a payload that begins with the row's id."""
    return (id_.encode() + _TAIL).ljust(PAYLOAD_BYTES, b".")


def write(database: str, insert: str, rate: float, seconds: float, number: int) -> list[tuple[str, float]]:
    """Write as one of the writers."""
    found: list[tuple[str, float]] = []
    with psycopg.connect(database) as connection:
        start = time.time() + number / WRITERS / rate
        while (now := time.time() - start) < seconds:
            if len(found) > now * rate:
                time.sleep(len(found) / rate - now)
                continue
            id_ = str(uuid4())
            values = {"id": id_, "key": f"key-{number}-{len(found) % 100}", "payload": payload(id_)}
            connection.execute(insert.encode(), values)
            connection.commit()
            found.append((id_, time.time()))
    return found


def main() -> None:
    database, insert, rate, seconds = sys.argv[1:5]
    one = partial(write, database, insert, float(rate) / WRITERS, float(seconds))
    with ThreadPoolExecutor(WRITERS) as pool:
        json.dump([pair for pairs in pool.map(one, range(WRITERS)) for pair in pairs], sys.stdout)


if __name__ == "__main__":
    main()
