"""Times as people type them, and how far a long reading is."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime

from packhorse.core.errors import SettingsError

_EVERY = 5.0


def time_from(text: str, *, flag: str) -> datetime:
    """
    Return the time that *text* says, aware; UTC when it names no zone.

    >>> time_from("2026-05-04T10:00", flag="--since").isoformat()
    '2026-05-04T10:00:00+00:00'

    Raises:
        SettingsError: It is no ISO 8601 time; names *flag*.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError(f"{flag} {text!r} is no time; it looks like 2026-05-04T10:00:00Z") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


class Told:
    """Write on standard error, each five seconds, how many records were read."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._due = monotonic() + _EVERY

    def __call__(self, read: int, total: int) -> None:
        """Hear that *read* of *total* records were read."""
        if self._monotonic() >= self._due:
            self._due = self._monotonic() + _EVERY
            sys.stderr.write(f"read {read:,} of {total:,} records\n")
            sys.stderr.flush()
