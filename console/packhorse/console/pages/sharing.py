"""A look that all open pages share for a moment, so that ten of them cost the database what one does."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from packhorse.core.clock import Clock
from packhorse.core.errors import InfrastructureError

Found = TypeVar("Found")


class Shared(Generic[Found]):
    """
    The last of one kind of looks; of any thread.

    Each look is made for somebody who may look; whoever gets it from here has the right too, which the caller checks.

    Args:
        fresh: Seconds that a look is shown again to whoever asks next.
    """

    def __init__(self, clock: Clock, *, fresh: float) -> None:
        self._clock = clock
        self._fresh = fresh
        self._lock = threading.Lock()
        self._last: tuple[float, Found] | None = None
        self._failed: tuple[float, InfrastructureError] | None = None

    def get(self, look: Callable[[], Found]) -> Found:
        """
        Return what *look* found, at most `fresh` seconds ago; of several who ask at once, one looks.

        Raises what *look* does. That something is away is told to all who waited for the look that met it: if each of them tried
        for itself, one after the other, they would hold the threads of all other pages for as long as that takes.
        """
        came = self._clock.monotonic()
        with self._lock:
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
