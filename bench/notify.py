"""
Measure what waking by NOTIFY costs those who commit: hundreds of writers at once, with the trigger on and off, in turn.

    python -m bench.notify [--writers 200] [--seconds 5] [--rounds 4]

Starts a Postgres of its own. Each writer has a connection and inserts one outbox row a transaction, as fast as it is
answered; one session listens, as a relay does. Rates compare only within one run: judge by the ratios.
"""

import argparse
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from packhorse.local.places import cache_folder
from packhorse.local.settings import StackSettings, database_url
from packhorse.local.stack import held_stack
from packhorse.relay.postgres.waking import PostgresWakes, switch

INSERT = """
INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, payload)
VALUES (%s, 'orders', %s, 'bench.OrderPlaced', '1', %s)"""
PAYLOAD = b"x" * 300
PROCESSES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What the writers of one round saw; times in milliseconds."""

    rate: float
    p50: float
    p99: float
    wakes: int


def write(url: str, writers: int, seconds: float, ready: Any, times: Any) -> None:
    """Commit from *writers* threads; one process of several."""
    found: list[float] = []

    def run() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            for _ in range(6):
                connection.execute(
                    INSERT.encode(), (uuid4(), "k", PAYLOAD)
                )  # from the sixth on it is prepared
            gate.wait()
            end = time.perf_counter() + seconds
            while (start := time.perf_counter()) < end:
                connection.execute(INSERT.encode(), (uuid4(), "k", PAYLOAD))
                found.append((time.perf_counter() - start) * 1000)

    gate = threading.Barrier(writers + 1)
    threads = [threading.Thread(target=run) for _ in range(writers)]
    for thread in threads:
        thread.start()
    gate.wait()
    ready.wait()
    for thread in threads:
        thread.join()
    times.put(found)


def measured(url: str, writers: int, seconds: float) -> Round:
    """Let all write for *seconds*."""
    context = multiprocessing.get_context("spawn")
    ready, times = context.Barrier(PROCESSES), context.Queue()
    share = writers // PROCESSES
    wakes, listener, end = [0], PostgresWakes(url, "packhorse"), threading.Event()
    listener.check()

    def listen() -> None:
        while not end.is_set():
            wakes[0] += listener.wait(0.2)

    thread = threading.Thread(target=listen)
    thread.start()
    started = [
        context.Process(target=write, args=(url, share, seconds, ready, times)) for _ in range(PROCESSES)
    ]
    for process in started:
        process.start()
    found = sorted(time for _ in started for time in times.get())
    for process in started:
        process.join()
    end.set()
    thread.join()
    listener.close()
    return Round(
        rate=len(found) / seconds,
        p50=found[len(found) // 2],
        p99=found[len(found) * 99 // 100],
        wakes=wakes[0],
    )


@contextmanager
def server(writers: int) -> Iterator[str]:
    """Run a Postgres with the tables."""
    folder = Path(tempfile.mkdtemp(prefix="packhorse-bench-"))
    folder.chmod(0o755)
    settings = StackSettings(
        folder=folder, cache=cache_folder(os.environ, Path.home()), services=("postgres",),
        postgres={"max_connections": str(writers + 20)},
    )  # fmt: skip
    try:
        with held_stack(settings) as stack:
            url = database_url(stack.ports)
            subprocess.run(
                [sys.executable, "-m", "packhorse.cli.main", "migrate", "up"],
                env={**os.environ, "PACKHORSE_DATABASE_URL": url}, check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
            yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def report(off: list[Round], on: list[Round]) -> None:
    """Print both, and the ratios of the rounds that stood side by side."""
    print(f"{'waking':8} {'commits/s':>10} {'p50 ms':>8} {'p99 ms':>8}")
    for name, rounds in (("off", off), ("on", on)):
        rate, p50, p99 = (
            statistics.median(getattr(one, key) for one in rounds) for key in ("rate", "p50", "p99")
        )
        print(f"{name:8} {rate:10,.0f} {p50:8.1f} {p99:8.1f}")
    for what, key in (("commits/s", "rate"), ("p99", "p99")):
        ratios = [getattr(a, key) / getattr(b, key) for a, b in zip(on, off, strict=True)]
        print(f"{what}: on is {statistics.median(ratios):.2f} × off  ({min(ratios):.2f}-{max(ratios):.2f})")
    print(f"wake-ups heard in a round with waking on: {statistics.median(one.wakes for one in on):,.0f}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--writers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=4)
    arguments = parser.parse_args()
    found: dict[bool, list[Round]] = {False: [], True: []}
    with server(arguments.writers) as url:
        for number in range(arguments.rounds):
            for on in (False, True) if number % 2 == 0 else (True, False):
                switch(url, "packhorse", on=on)
                found[on].append(measured(url, arguments.writers, arguments.seconds))
    report(found[False], found[True])


if __name__ == "__main__":
    main()
