"""Links that sign in once: whoever reads the terminal or log of the console may come in as the console itself. No I/O, no clock."""

import threading
from hashlib import sha256

LASTS = 900.0
"""Seconds that a link can be used."""
APART = 10.0
"""Seconds between two links that are asked for from a page."""


class Links:
    """The links of one process that were not used yet; of any thread. Only their hashes are kept."""

    def __init__(self) -> None:
        self._until: dict[bytes, float] = {}
        self._last: float | None = None
        self._lock = threading.Lock()

    def keep(self, word: str, *, now: float) -> None:
        """Let *word* sign in once, for LASTS seconds from *now*; those of before are void."""
        with self._lock:
            self._until = {_hash(word): now + LASTS}
            self._last = now

    def may_make(self, *, now: float) -> bool:
        """Return whether another one may be made already."""
        with self._lock:
            return self._last is None or now - self._last >= APART

    def use(self, word: str, *, now: float) -> bool:
        """Return whether *word* signs in; from now on it does not. Of two who use it at once, one comes in."""
        with self._lock:
            until = self._until.pop(_hash(word), None)
        return until is not None and now < until


def _hash(word: str) -> bytes:
    return sha256(word.encode("utf-8", "surrogatepass")).digest()
