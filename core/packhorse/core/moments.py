"""Points in time as people type them: one rule for every option that takes one. Pure: no clock."""

import re
from datetime import UTC, datetime, timedelta

from packhorse.core.errors import UsageError

_AGO = re.compile(r"(\d{1,6})(s|m|h|d)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment_from(text: str, *, option: str, now: datetime) -> datetime:
    """
    Return the time that *text* means, in UTC: ISO 8601, UTC where no zone is given, or how long before *now*.

    >>> noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    >>> [moment_from(text, option="--since", now=noon).isoformat()[:19] for text in ("2h", "2026-01-02T03:04+01:00", "2026-01-01")]
    ['2026-01-02T10:00:00', '2026-01-02T02:04:00', '2026-01-01T00:00:00']

    Raises:
        UsageError: It is neither, or lies outside the calendar; *option* is named.
    """
    try:
        if (ago := _AGO.fullmatch(text)) is not None:
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{option} {text[:80]!r} is no time: write it as 2026-01-02T03:04:05Z (UTC where no zone is given), or how long "
            "ago, as 30m, 2h or 1d"
        ) from None


def span_from(
    since: str | None, until: str | None, *, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """Return the times that --since and --until mean, as `moment_from`; None where one is not given."""
    return (
        None if since is None else moment_from(since, option="--since", now=now),
        None if until is None else moment_from(until, option="--until", now=now),
    )


def zulu(moment: datetime) -> str:
    """
    Return *moment* for people, in UTC, to the second.

    >>> from datetime import timedelta, timezone
    >>> zulu(datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=1))))
    '2026-01-02T02:04:05Z'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
