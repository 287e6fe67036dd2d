"""A look that all who ask share for a moment, so that ten of them cost the database what one does."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from packhorse.core.clock import Clock
from packhorse.core.errors import DatabaseUnavailable, InfrastructureError

Found = TypeVar("Found")
PATIENCE = 10.0
"""Seconds that a page waits for the look of another: a server that is frozen answers nothing, and ends no connection either."""


class Shared(Generic[Found]):
    """
    The last of one kind of looks; of any thread.

    Each look is made for somebody who may look; whoever gets it from here has the right too, which the caller checks.

    Args:
        fresh: Seconds that a look is shown again to whoever asks next.
        patience: Seconds that one waits for the look of another.
    """

    def __init__(self, clock: Clock, *, fresh: float, patience: float = PATIENCE) -> None:
        self._clock = clock
        self._fresh = fresh
        self._patience = patience
        self._lock = threading.Lock()
        self._last: tuple[float, Found] | None = None
        self._failed: tuple[float, InfrastructureError] | None = None

    def get(self, look: Callable[[], Found]) -> Found:
        """
        Return what *look* found, at most `fresh` seconds ago; of several who ask at once, one looks.

        Raises what *look* does. That something is away is told to all who waited for the look that met it: if each of them tried
        for itself, one after the other, they would hold the threads of all other pages for as long as that takes.

        Raises:
            DatabaseUnavailable: The look of another has not come back.
        """
        came = self._clock.monotonic()
        if not self._lock.acquire(timeout=self._patience):
            raise DatabaseUnavailable(
                f"a look at the whole has not come back for more than {self._patience:g} s: the database or the broker does not "
                "answer; nothing was done"
            )
        try:
            return self._fresh_or_new(look, came)
        finally:
            self._lock.release()

    def _fresh_or_new(self, look: Callable[[], Found], came: float) -> Found:
        if self._last is not None and self._clock.monotonic() - self._last[0] < self._fresh:
            return self._last[1]
        if self._failed is not None and self._failed[0] > came:
            raise self._failed[1].with_traceback(None)
        self._last = None
        try:
            found = look()
        except InfrastructureError as error:
            self._failed = self._clock.monotonic(), error
            raise
        self._last = self._clock.monotonic(), found
        return found
