"""Run a retention in a thread of its own, beside the loop and never in its way."""

import os
import socket
import threading
from typing import Any

from packhorse.core.clock import SYSTEM_CHANCE, Clock
from packhorse.processor.keeping.turns import Turns


def own_name() -> str:
    """Return a name that nobody else has: machine, process, and chance for several in one process."""
    return f"{socket.gethostname()}:{os.getpid()}:{SYSTEM_CHANCE.token().hex[:8]}"


class Keeper:
    """One thread, one connection while a turn lasts; the thread is named after *what* it keeps small."""

    def __init__(self, turns: Turns[Any, Any], clock: Clock, *, what: str) -> None:
        self._turns = turns
        self._clock = clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"packhorse-{what}", daemon=True)

    def start(self) -> None:
        """Begin; the first turn comes a minute later."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and cancel what runs; blocks for three seconds at most."""
        self._stop.set()
        self._turns.cancel()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def _work(self) -> None:
        pause = 0.0
        while not self._stop.wait(pause):
            pause = self._turns.step(self._clock.monotonic())
        self._turns.close()
