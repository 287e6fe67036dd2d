"""Run the inbox's retention in a thread of its own, beside the loop and never in its way."""

import os
import socket
import threading

from packhorse.core.clock import SYSTEM_CHANCE, Clock
from packhorse.processor.inbox.postgres import InboxTables
from packhorse.processor.inbox.retention import InboxRetention


def own_name() -> str:
    """Return a name that nobody else has: machine, process, and chance for several in one process."""
    return f"{socket.gethostname()}:{os.getpid()}:{SYSTEM_CHANCE.token().hex[:8]}"


class InboxKeeper:
    """One thread, one connection while a turn lasts."""

    def __init__(self, retention: InboxRetention, tables: InboxTables, clock: Clock) -> None:
        self._retention = retention
        self._tables = tables
        self._clock = clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="packhorse-inbox", daemon=True)

    def start(self) -> None:
        """Begin; the first turn comes a minute later."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and cancel what runs; blocks for three seconds at most."""
        self._stop.set()
        self._tables.cancel()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def _work(self) -> None:
        pause = 0.0
        while not self._stop.wait(pause):
            pause = self._retention.step(self._clock.monotonic())
        self._retention.close()
