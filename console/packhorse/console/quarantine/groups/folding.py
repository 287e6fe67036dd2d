"""What keeps the counts of the quarantine short, so that no look has to: a runner of the console, beside those of processors."""

import threading
from typing import Protocol

from packhorse.core.clock import Clock

BUSY = 1.0
"""Seconds that one look for work may take; the other runners have their turn then."""


class Folds(Protocol):
    """Add changes to the counts of one database; each call is one short transaction. Raises what `Database.working` does."""

    def waits(self) -> bool:
        """Return whether so many changes wait that it is worth adding them, and we may."""

    def fold(self) -> bool:
        """Add a portion; return whether more may wait."""


class Folding:
    """Fold where many changes wait. A crash in between leaves what was folded, and the rest to whoever folds next."""

    def __init__(self, tables: Folds, clock: Clock) -> None:
        self._tables = tables
        self._clock = clock
        self._stop = threading.Event()

    def look(self) -> bool:
        """Fold for BUSY seconds at most, if many changes wait; return whether any was."""
        until = self._clock.monotonic() + BUSY
        if not self._tables.waits():
            return False
        while self._tables.fold() and self._clock.monotonic() < until and not self._stop.is_set():
            pass
        return True

    def stop(self, timeout: float = 10.0) -> None:
        """Begin no further portion; the one in hand ends by its own time-out."""
        del timeout
        self._stop.set()
