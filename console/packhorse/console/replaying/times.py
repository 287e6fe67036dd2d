"""Times on a command line."""

from datetime import datetime

from packhorse.core.errors import UsageError


def moment(name: str, text: str) -> datetime:
    """
    Return the time that *text*, given with the option *name*, says; with its zone.

    >>> moment("--since", "2026-11-30T10:00Z").isoformat()
    '2026-11-30T10:00:00+00:00'

    Raises:
        UsageError: It is no time, or has no zone.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{name} {text[:40]!r} is no time; write e.g. 2026-11-30T10:00Z") from None
    if found.tzinfo is None:
        raise UsageError(f"{name} {text[:40]} has no zone; write e.g. 2026-11-30T10:00Z, or +01:00")
    return found
