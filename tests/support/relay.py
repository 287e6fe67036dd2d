"""Relay processes to start, freeze, stop and kill, and writers that record what must arrive."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.message import HEADER_COLUMNS
from packhorse.relay.model import Row

LEASE = 1.0
"""Seconds; the least that the settings allow, so that a killed relay's successor is soon at work."""


class RelayProcess:
    """One relay in a process of its own; `log` is what it wrote, one JSON object a line."""

    def __init__(self, environment: dict[str, str], log: Path, *arguments: str) -> None:
        self._log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.relay_main", *arguments],
                env={**os.environ, "PACKHORSE_LOG_FORMAT": "json", **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def events(self) -> list[dict[str, Any]]:
        """Return the records of its log."""
        lines = self._log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def said(self, event: str) -> bool:
        """Tell whether it wrote *event*, or a text with it."""
        return any(event in str(record) for record in self.events())

    def wait_for(self, event: str, *, timeout: float = 20) -> None:
        """Wait until it wrote *event*."""
        eventually(
            lambda: self.said(event) or self._alive(), what=f"the relay says {event!r}", timeout=timeout
        )

    def _alive(self) -> bool:
        assert self.process.poll() is None, (
            f"it ended with {self.process.returncode}: {self._log.read_text()}"
        )
        return False

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def ended(self, *, timeout: float = 20) -> int:
        """Wait for its end; return its exit code."""
        return self.process.wait(timeout)

    def stop(self, *, timeout: float = 20) -> int:
        """Ask for a clean stop and wait for it."""
        self.send(signal.SIGTERM)
        return self.ended(timeout=timeout)

    def close(self) -> None:
        """Kill it if it still runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait(10)


@dataclass
class Relays:
    """Start relays with the same settings; all end with the test."""

    environment: dict[str, str]
    folder: Path
    _running: ExitStack
    _count: int = 0

    def start(self, *arguments: str, **settings: object) -> RelayProcess:
        """Start one; *settings* are fields of RelaySettings beside what all have."""
        self._count += 1
        extra = {f"PACKHORSE_RELAY_{name.upper()}": str(value) for name, value in settings.items()}
        process = RelayProcess(
            {**self.environment, **extra}, self.folder / f"relay-{self._count}.log", *arguments
        )
        self._running.callback(process.close)
        return process


@contextmanager
def relays(folder: Path, *, database: str, bootstrap: str, namespace: str) -> Iterator[Relays]:
    """Provide relays of *database*."""
    environment = {
        "PACKHORSE_DATABASE_URL": database,
        "PACKHORSE_KAFKA_BOOTSTRAP_SERVERS": bootstrap,
        "PACKHORSE_NAMESPACE": namespace,
        "PACKHORSE_RELAY_LEASE": str(LEASE),
        "PACKHORSE_RELAY_SILENCE": "1",
    }
    with ExitStack() as running:
        yield Relays(environment, folder, running)


def row(
    seq: int, key: str | None = "k", payload: bytes | None = b"x", *, kind: str = "orders", **headers: Any
) -> Row:
    """Return a row as the outbox gives it; *headers* are values of columns such as `tenant`."""
    columns = {"id": str(SYSTEM_CHANCE.token()), "type": "t.T", "schema_version": "1", **headers}
    values = [columns.get(column) for _, column in HEADER_COLUMNS]
    return (seq, kind, key, payload, 1_700_000_000_000 + seq, *values, None)


def insert(
    connection: psycopg.Connection[Any],
    key: str | None,
    *,
    payload: bytes | None = b"x",
    kind: str = "orders",
    **columns: object,
) -> str:
    """Insert one outbox row in the caller's transaction; return its id."""
    names = ["id", "aggregatetype", "aggregateid", "type", "schema_version", "payload", *columns]
    id_ = str(SYSTEM_CHANCE.token())
    values = [id_, kind, key, "t.Happened", "1", payload, *columns.values()]
    connection.execute(
        f"INSERT INTO packhorse.outbox ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})", values
    )
    return id_


PACE = 0.003
"""Seconds between two transactions of one writer: some hundred a second, so that the tests need not read millions."""


@dataclass
class Writer:
    """
    Applications that change accounts and write outbox rows, each in one transaction, the account's row locked first.

    `committed` holds, for each key, the ids in the order in which their transactions committed: the order in which they
    held the key's row lock.
    """

    url: str
    keys: int = 5
    synchronous_commit: str = "on"
    committed: dict[bytes, list[str]] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    errors: list[BaseException] = field(default_factory=list)

    def prepare(self) -> None:
        """Make the accounts."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE account (key text PRIMARY KEY, changes int NOT NULL DEFAULT 0)")
            connection.execute(
                "INSERT INTO account (key) SELECT 'k' || n FROM generate_series(1, %s) AS n", (self.keys,)
            )

    def write(self, number: int, transactions: int | None = None) -> None:
        """Commit *transactions*, or until the stop; runs in a thread of its own."""
        try:
            with psycopg.connect(self.url) as connection:
                connection.execute(f"SET synchronous_commit = {self.synchronous_commit}")
                connection.commit()
                done = 0
                while not self._stop.is_set() and (transactions is None or done < transactions):
                    self._transaction(connection, f"k{(number + done) % self.keys + 1}")
                    done += 1
                    self._stop.wait(PACE)
        except psycopg.OperationalError as error:
            self.errors.append(error)

    def _transaction(self, connection: psycopg.Connection[Any], key: str) -> None:
        connection.execute("UPDATE account SET changes = changes + 1 WHERE key = %s", (key,))
        ids = [insert(connection, key), insert(connection, key)]
        self.committed.setdefault(key.encode(), []).extend(
            ids
        )  # the row lock is held: nobody else of this key is here
        connection.commit()

    @contextmanager
    def running(self, threads: int = 2) -> Iterator[None]:
        """Write meanwhile, from *threads* at once."""
        started = [threading.Thread(target=self.write, args=(n,)) for n in range(threads)]
        for thread in started:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in started:
                thread.join(30)

    @property
    def count(self) -> int:
        """Return how many rows were committed."""
        return sum(len(ids) for ids in self.committed.values())
