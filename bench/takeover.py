"""
Measure how long rows wait when the owner of the shard is gone: `python -m bench.takeover [--rounds 5] [--lease 5]`.

Two relays, 100 commits a second. The owner is killed (SIGKILL) or stopped (SIGTERM); what is told is the longest wait of a row from
its commit to a consumer around that moment, over several rounds: lease, look of the stand-by, and work together.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from uuid import uuid4

import psycopg
from bench.relay.ground import Place, private_ground
from confluent_kafka import Consumer

RATE = 100
SETTLED = 3.0
INSERT = """
INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, payload)
VALUES (%s, 'bench', 'k', 'bench.Happened', '1', 'x')
"""


class Traffic:
    """One writer and one consumer; knows when each row was committed and when it arrived."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.committed: dict[str, float] = {}
        self.arrived: dict[str, float] = {}
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._write), threading.Thread(target=self._consume)]
        for thread in self.threads:
            thread.start()

    def _write(self) -> None:
        with psycopg.connect(self.place.database, autocommit=True) as connection:
            while not self.over.wait(1 / RATE):
                id_ = str(uuid4())
                connection.execute(INSERT, (id_,))
                self.committed[id_] = time.monotonic()

    def _consume(self) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self.place.servers, "group.id": "takeover", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([self.place.topic])
        while not (self.over.is_set() and self.committed.keys() <= self.arrived.keys()):
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                id_ = dict(message.headers() or [])["id"].decode()  # type: ignore[union-attr]
                self.arrived.setdefault(id_, time.monotonic())
        consumer.close()

    def longest_wait(self, begin: float, end: float) -> float:
        """Return the longest wait of the rows that were committed between two moments."""
        rows = [(id_, at) for id_, at in list(self.committed.items()) if begin <= at <= end]
        while not all(id_ in self.arrived for id_, _ in rows):
            time.sleep(0.05)
        return max(self.arrived[id_] - at for id_, at in rows)


def relay(place: Place, lease: float) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **place.environment(), "PACKHORSE_RELAY_LEASE": str(lease)}
    return subprocess.Popen(
        [sys.executable, "-m", "packhorse.relay", "run"], env=environment, stderr=subprocess.DEVNULL
    )


def owner(place: Place) -> int:
    """Wait until somebody owns the shard; return its process id."""
    with psycopg.connect(place.database, autocommit=True) as connection:
        while True:
            row = connection.execute(
                "SELECT owner FROM packhorse.relay WHERE token IS NOT NULL AND lease_until > clock_timestamp()"
            ).fetchone()
            if row is not None:
                return int(row[0].rpartition(":")[2])
            time.sleep(0.01)


def measure(place: Place, lease: float, number: signal.Signals, rounds: int) -> list[float]:
    """Return the longest wait around each of *rounds* ends of the owner."""
    relays = [relay(place, lease), relay(place, lease)]
    traffic, waits = Traffic(place), []
    try:
        for _ in range(rounds):
            time.sleep(SETTLED + lease)
            pid, begin = owner(place), time.monotonic()
            gone = next(process for process in relays if process.pid == pid)
            gone.send_signal(number)
            gone.wait()
            relays.remove(gone)
            relays.append(relay(place, lease))
            time.sleep(SETTLED + lease)
            waits.append(traffic.longest_wait(begin - 0.5, begin + lease + 1))
    finally:
        traffic.over.set()
        for thread in traffic.threads:
            thread.join()
        for process in relays:
            process.terminate()
            process.wait()
    return waits


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lease", type=float, default=5.0)
    given = parser.parse_args()
    with private_ground() as ground:
        for number in (signal.SIGKILL, signal.SIGTERM):
            with ground.place() as place:
                waits = measure(place, given.lease, number, given.rounds)
            print(
                f"{number.name}, lease {given.lease:g} s: longest wait of a row "
                f"{min(waits):.2f} .. {statistics.median(waits):.2f} .. {max(waits):.2f} s"
            )


if __name__ == "__main__":
    main()
