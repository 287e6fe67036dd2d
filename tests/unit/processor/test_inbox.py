"""The inbox's retention without a database: its settings, which days it takes up, and what the doctor says of it."""

from datetime import UTC, date, datetime, timedelta

import pytest

from packhorse.console.doctor.findings import Verdict
from packhorse.console.doctor.judge_inbox import InboxState, judge_inbox
from packhorse.core.errors import SettingsError
from packhorse.processor.inbox.model import Facts, InboxRules, Part
from packhorse.processor.settings import InboxSettings

URL = {"PACKHORSE_DATABASE_URL": "postgresql://u@h/d"}
DAY = timedelta(days=1)
TODAY = date(2026, 8, 31)


def settings(**given: object) -> InboxSettings:
    return InboxSettings.load(given, environ=URL)


def test_rows_outlive_what_the_source_may_publish_again() -> None:
    with pytest.raises(
        SettingsError, match=r"inbox_days 14 is less than republish_days 15: .* would run twice"
    ):
        settings(inbox_days=14)
    assert settings(inbox_days=14, republish_days=8).inbox_rules.keep_days == 14
    assert settings(inbox_days=0).inbox_rules.keep_days is None
    assert settings(inbox_days=365).inbox_rules.discarded_days == 365  # never gone before the row itself


@pytest.mark.parametrize(
    "given", [{"keep_days": 1}, {"keep_days": 22, "step": 0}, {"keep_days": 22, "ahead": 401}]
)
def test_rules_refuse_what_makes_no_sense(given: dict[str, int]) -> None:
    with pytest.raises(SettingsError, match="is not allowed"):
        InboxRules(**given)


def test_a_day_is_old_once_all_of_it_is_before_what_some_group_keeps() -> None:
    days = [Part(name=f"inbox_{TODAY - n * DAY:%Y%m%d}", day=TODAY - n * DAY, size=1) for n in (1, 0, 2, -1)]
    net = Part(name="inbox_default", day=None, size=1)
    noon = datetime(2026, 8, 31, 12, tzinfo=UTC)
    facts = Facts(today=TODAY, parts=(*days, net), kept_from=noon - DAY)
    assert [part.day for part in facts.old()] == [TODAY - 2 * DAY]
    assert facts.net() == net
    assert facts.missing(3) == (TODAY + 2 * DAY, TODAY + 3 * DAY)
    assert Facts(today=TODAY, parts=(*days, net), kept_from=None).old() == ()


@pytest.mark.parametrize(
    ("given", "verdict", "said"),
    [
        ({"groups": 0}, None, ""),
        ({"age": None}, Verdict.OK, "not run yet"),
        ({}, Verdict.OK, "7 days are made ahead"),
        ({"stays": 2}, Verdict.OK, "2 old days stay"),
        ({"age": 3 * DAY}, Verdict.WARNING, "3 d ago"),
        ({"age": 3 * DAY, "processed": False}, Verdict.OK, "7 days"),
        ({"days_ahead": 0}, Verdict.WARNING, "no day after today"),
    ],
)
def test_what_the_doctor_says(given: dict[str, object], verdict: Verdict | None, said: str) -> None:
    values: dict[str, object] = {
        "age": timedelta(0),
        "groups": 1,
        "processed": True,
        "days_ahead": 7,
        "stays": 0,
    }
    found = list(judge_inbox(InboxState(**{**values, **given})))  # type: ignore[arg-type]
    assert [each.verdict for each in found] == ([] if verdict is None else [verdict])
    assert all(said in each.found for each in found)
