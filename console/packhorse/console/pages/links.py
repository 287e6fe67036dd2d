"""Links that sign in once: whoever reads the terminal or log of the console may come in as the console itself. No I/O, no clock."""

import threading
from hashlib import sha256

LASTS = 900.0
"""Seconds that a link can be used."""
APART = 10.0
"""Seconds between two links, whoever asks for them: so no more than LASTS / APART are good at a time."""


class Links:
    """
    The links of one process that were not used yet; of any thread. Only their hashes are kept.

    Anybody who reaches the port may ask for a link, so a new one takes nothing from those before it: else whoever asks again and
    again keeps out the person who reads the terminal. Whatever strangers do, the terminal has a link of the last APART seconds, or
    gets one at once.
    """

    def __init__(self) -> None:
        self._until: dict[bytes, float] = {}
        self._last: float | None = None
        self._lock = threading.Lock()

    def keep(self, word: str, *, now: float) -> bool:
        """Let *word* sign in once, for LASTS seconds from *now*; False, and it does not: the last one is less than APART old."""
        with self._lock:
            if self._last is not None and now - self._last < APART:
                return False
            self._until = {kept: until for kept, until in self._until.items() if now < until}
            self._until[_hash(word)] = now + LASTS
            self._last = now
            return True

    def use(self, word: str, *, now: float) -> bool:
        """Return whether *word* signs in; from now on it does not. Of two who use it at once, one comes in."""
        with self._lock:
            until = self._until.pop(_hash(word), None)
        return until is not None and now < until


def _hash(word: str) -> bytes:
    return sha256(word.encode("utf-8", "surrogatepass")).digest()
