"""Points in time as people write them on a command line. Pure: no clock."""

from datetime import UTC, datetime, timedelta

from packhorse.core.errors import SettingsError, UsageError
from packhorse.processor.durations import seconds_of


def moment(text: str, *, now: datetime, what: str) -> datetime:
    """
    Return the time that *text* means: ISO 8601, in UTC where no zone is given, or a duration before *now*.

    >>> noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    >>> [moment(text, now=noon, what="--since").isoformat() for text in ("2h", "2026-01-02T03:04")]
    ['2026-01-02T10:00:00+00:00', '2026-01-02T03:04:00+00:00']

    Raises:
        UsageError: It is neither; *what* is named.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        try:
            return now - timedelta(seconds=seconds_of(text, what=what))
        except SettingsError:
            raise UsageError(
                f"{what} {text[:80]!r} is no time: give one as 2026-01-02T03:04:05Z, or how long ago, as 2h, 30m, 1d"
            ) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
