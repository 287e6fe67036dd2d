"""Connections of their own for what bodies of jobs keep while they run; each statement is a transaction of its own."""

import threading
from typing import TypeVar

from packhorse.processor.storing import postgres
from packhorse.processor.storing.steps import Steps

T = TypeVar("T")
MOST_IDLE = 4
"""Connections that are kept open while nobody uses them."""


class Ledger:
    """Run steps on a connection that nothing else is on, committed when it returns; for any thread. It connects when it is first asked."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._lock = threading.Lock()
        self._idle: list[postgres.GuardedConnection] = []
        self._is_closed = False

    def run(self, steps: Steps[T]) -> T:
        """
        Run *steps* and return their result; each statement is committed by itself, in the round trip that it takes anyway.

        Raises:
            DatabaseUnavailable: It can't be done now; whether it was is not known when the connection ended in the statement.
            Contention: It lost to another transaction; nothing was done.
        """
        connection = self._taken()
        try:
            return postgres.run(connection, steps)
        finally:
            self._back(connection)

    def close(self) -> None:
        """Close what is idle, and what comes back from now on."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.end()

    def _taken(self) -> postgres.GuardedConnection:
        """Return an idle connection that still stands, or a new one."""
        while True:
            with self._lock:
                found = self._idle.pop() if self._idle else None
            if found is None:
                return postgres.connect(self._conninfo)
            if not found.closed:
                return found

    def _back(self, connection: postgres.GuardedConnection) -> None:
        with self._lock:
            if (
                not self._is_closed
                and postgres.standing(connection) == "none"
                and len(self._idle) < MOST_IDLE
            ):
                self._idle.append(connection)
                return
        connection.end()
