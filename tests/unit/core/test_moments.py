"""Times as people type them."""

from datetime import UTC, datetime

import pytest

from packhorse.core.errors import UsageError
from packhorse.core.moments import moment_from, span_from

NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("90s", "2026-08-01T11:58:30+00:00"),
        ("30m", "2026-08-01T11:30:00+00:00"),
        ("1d", "2026-07-31T12:00:00+00:00"),
        ("2026-07-31", "2026-07-31T00:00:00+00:00"),
        ("2026-07-31T10:00", "2026-07-31T10:00:00+00:00"),
        ("2026-07-31T10:00Z", "2026-07-31T10:00:00+00:00"),
        ("2026-07-31T10:00:00.5-07:00", "2026-07-31T17:00:00.500000+00:00"),
    ],
)
def test_a_time_is_utc_where_no_zone_is_given_or_so_long_ago(text: str, meant: str) -> None:
    assert moment_from(text, option="--since", now=NOW).isoformat() == meant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "-2h",
        "2 h",
        "999999d",
        "9999-12-31T23:59:59-23:00",
        "0001-01-01T00:00+10:00",
        "2026-13-01",
    ],
)
def test_what_is_no_time_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"--until .* is no time: write it as"):
        moment_from(text, option="--until", now=NOW)


def test_a_span_has_what_was_given() -> None:
    assert span_from(None, None, now=NOW) == (None, None)
    assert span_from("1h", None, now=NOW) == (datetime(2026, 8, 1, 11, tzinfo=UTC), None)
