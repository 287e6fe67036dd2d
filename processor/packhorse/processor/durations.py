"""Durations as people write them."""

import re
from datetime import timedelta

from packhorse.core.errors import SettingsError

Duration = str | int | float | timedelta
"""Seconds as a number, a timedelta, or text such as "500ms", "5s", "1m", "2h", "1d"."""

_TEXT = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LONGEST = 366 * 86400.0
"""No duration is longer, in seconds: what is longer is a slip of the pen, and the database's clock must be able to add it."""


def seconds_of(duration: Duration, *, what: str) -> float:
    """
    Return *duration* in seconds; *what* is named in the error.

    >>> [seconds_of(d, what="delay") for d in ("250ms", "5s", "1m", 2, timedelta(hours=1))]
    [0.25, 5.0, 60.0, 2.0, 3600.0]

    Raises:
        SettingsError: It is no duration, below zero, or longer than 366 days.
    """
    if isinstance(duration, timedelta):
        seconds = duration.total_seconds()
    elif isinstance(duration, str):
        parts = _TEXT.fullmatch(duration.strip())
        seconds = float(parts[1]) * _UNITS[parts[2]] if parts else -1.0
    elif isinstance(duration, int | float) and not isinstance(duration, bool):
        seconds = float(min(duration, LONGEST + 1))  # an int can be too large for a float
    else:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST:
        raise SettingsError(
            f'{what} {duration!r} is no duration; pass seconds, a timedelta, or text such as "500ms", "5s", "1m", of at '
            "most 366 days"
        )
    return seconds
