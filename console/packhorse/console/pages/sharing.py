"""A look that all open pages share for a moment, so that ten of them cost the database what one does."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from packhorse.core.clock import Clock

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

    def get(self, look: Callable[[], Found]) -> Found:
        """Return what *look* found, at most `fresh` seconds ago; of several who ask at once, one looks. Raises what *look* does."""
        with self._lock:
            if self._last is None or self._clock.monotonic() - self._last[0] >= self._fresh:
                self._last = None
                self._last = self._clock.monotonic(), look()
            return self._last[1]
