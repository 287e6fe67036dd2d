"""Whom to tell of what, and when."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from packhorse.core.errors import UsageError
from packhorse.processor.declaring import checked_contact
from packhorse.processor.noticing.deciding import Failing, is_due

NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)
NEW = Failing(
    print="0" * 32, topic="t", type=None, reason="crashed", site="", waiting=3, first_at=NOON, last_at=NOON
)
TOLD = replace(NEW, told_at=NOON, told_count=3)


@pytest.mark.parametrize(
    ("failing", "hours", "due"),
    [
        (NEW, 0, True),
        (replace(NEW, waiting=0), 0, False),
        (replace(NEW, acknowledged=True), 0, False),
        (TOLD, 0, False),
        (TOLD, 23.9, False),
        (TOLD, 24, True),
        (replace(TOLD, waiting=29), 1, False),
        (replace(TOLD, waiting=30), 1, True),
        (replace(TOLD, waiting=30, acknowledged=True), 48, False),
        (replace(TOLD, told_count=0, waiting=9), 1, False),
    ],
)
def test_somebody_is_told_of_what_is_new_has_grown_or_waits_for_a_day(
    failing: Failing, hours: float, due: bool
) -> None:
    assert is_due(failing, now=NOON + timedelta(hours=hours)) is due


@pytest.mark.parametrize("name", ["", "Oncall", "a b", "x" * 64, 7, "a\n"])
def test_a_contact_is_a_plain_name(name: object) -> None:
    with pytest.raises(UsageError, match="1 to 63"):
        checked_contact(name, what="handler x")
