"""Let commits wake the relay, in a thread of its own; polling goes on beneath, so that a wake-up that is lost costs one pause."""

import threading
from collections.abc import Callable
from typing import Protocol

from packhorse.core import logs
from packhorse.core.errors import PackhorseError

_log = logs.logger("relay")
SLICE = 0.5
"""Seconds of one wait, so that an end is noticed."""
AGAIN = 1.0
"""Seconds until listening is tried again."""


class Wakes(Protocol):
    """Wake-ups from the database, through a connection of its own."""

    def wait(self, seconds: float) -> bool:
        """
        Wait up to *seconds* for a wake-up; without a connection, connect and listen, and return True: some may have been missed.

        Raises:
            DatabaseUnavailable: Nobody is listening any more.
        """

    def close(self) -> None:
        """Drop the connection."""


class WakeListener:
    """Call *wake* for each wake-up, from this thread; nothing that goes wrong here ends anything but the waking."""

    def __init__(self, wakes: Wakes, *, wake: Callable[[], None]) -> None:
        self._wakes = wakes
        self._wake = wake
        self._end = threading.Event()
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="packhorse-relay-wake", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def close(self) -> None:
        """End the thread; blocks for at most one wait."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join(timeout=4 * SLICE)

    def _run(self) -> None:
        try:
            while not self._end.is_set():
                self._once()
        except Exception as error:  # noqa: BLE001 the relay polls on without it
            _log.error("nobody listens for wake-ups any more; polling goes on", error=type(error).__name__)
        finally:
            self._wakes.close()

    def _once(self) -> None:
        try:
            woken = self._wakes.wait(SLICE)
        except PackhorseError as error:
            if not self._failing:
                _log.warning(
                    "wake-ups don't arrive; polling goes on, and listening is tried again", reason=str(error)
                )
            self._failing = True
            self._end.wait(AGAIN)
            return
        if self._failing:
            _log.info("wake-ups arrive again")
            self._failing = False
        if woken:
            self._wake()
