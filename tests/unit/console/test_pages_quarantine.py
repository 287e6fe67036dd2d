"""What pages of the quarantine decide: where they lead, what they count, and what of a form reaches the service."""

import json
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

import pytest
from tests.support.console_facts import ID, NOON

from packhorse.console.api.models.failures import FailuresAsked
from packhorse.console.api.models.quarantine import PageAsked, StateAsked
from packhorse.console.api.models.redrives import RedrivePreviewBody
from packhorse.console.pages.freezing import set_from
from packhorse.console.pages.resting import (
    MOST_DAYS,
    Totals,
    arrivals_of,
    days_asked,
    headline_of,
    kin_of,
    messages_of,
    set_of,
    timed,
)
from packhorse.console.quarantine.groups.model import By
from packhorse.core.errors import UsageError

TODAY = date(2026, 8, 30)


@pytest.mark.parametrize("by", list(By))
def test_where_a_group_leads_is_asked_in_words_that_the_list_knows(by: By) -> None:
    """Fails when a link of one page is refused by the page that it leads to: then a filter has two names."""
    name = {By.DAY: "2026-08-01", By.STATE: "redriven", By.FAILURE: "0a" * 16}.get(by, "x y&z=1")
    asked = FailuresAsked(by=by, group="figures", since=None if by is By.TENANT else date(2026, 7, 1))
    found = kin_of(by, name, asked)
    assert found is not None
    query = dict(parse_qsl(urlsplit(found).query))
    wanted = PageAsked.model_validate(query).filter()
    assert wanted.group == (name if by is By.GROUP else "figures")
    assert kin_of(by, "", asked) is None


def test_what_is_counted_by_whole_days_is_listed_to_the_end_of_the_last() -> None:
    """Fails when the last day of a count is cut off in the list behind it."""
    asked = FailuresAsked(since=date(2026, 8, 1), until=date(2026, 8, 1), state=StateAsked.ALL)
    wanted = PageAsked.model_validate(messages_of(asked)).filter()
    assert (wanted.since, wanted.until) == (
        datetime(2026, 8, 1, tzinfo=UTC),
        datetime(2026, 8, 2, tzinfo=UTC),
    )
    assert wanted.state is None
    assert "state" not in set_of(asked)
    RedrivePreviewBody.model_validate(set_from(set_of(asked), NOON))


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ({}, date(2026, 8, 1), TODAY),
        ({"since": date(2026, 8, 20)}, date(2026, 8, 20), TODAY),
        ({"until": date(2026, 6, 30)}, date(2026, 6, 1), date(2026, 6, 30)),
        ({"until": date(2027, 6, 30)}, date(2026, 8, 1), TODAY),
    ],
)
def test_the_chart_shows_the_days_that_are_asked_for(asked: dict[str, Any], first: date, last: date) -> None:
    assert days_asked(FailuresAsked(**asked), TODAY) == (first, last)


def test_the_chart_has_a_bound_and_none_where_days_are_not_counted() -> None:
    """Fails when an address makes a chart of a thousand years, or asks for what the service refuses."""
    span = days_asked(FailuresAsked(since=date(1, 1, 1)), TODAY)
    assert span is not None
    assert (span[1] - span[0]).days == MOST_DAYS - 1
    assert days_asked(FailuresAsked(since=date(2027, 1, 1)), TODAY) is None
    assert days_asked(FailuresAsked(tenant="acme"), TODAY) is None
    assert days_asked(FailuresAsked(by=By.TENANT), TODAY) is None


def test_days_on_which_nothing_came_have_their_place() -> None:
    made = arrivals_of(
        {date(2026, 8, 2): 4, date(2026, 8, 4): 4, date(2020, 1, 1): 9}, date(2026, 8, 1), date(2026, 8, 5)
    )
    assert [count for _, count in made.days] == [0, 4, 0, 4, 0]
    assert (made.total, made.most) == (8, (date(2026, 8, 4), 4))
    assert len(made.bars) == 5


def test_the_headline_is_calm_when_nothing_waits() -> None:
    assert headline_of(Totals(redriven=3), is_narrow=False) == ("Nothing is in quarantine", "")
    assert headline_of(Totals(quarantined=1), is_narrow=False) == ("1 message waits for a person", "warn")
    assert headline_of(Totals(), is_narrow=True)[0] == "Nothing that fits is in quarantine"


def test_while_messages_are_still_counted_nothing_is_no_verdict() -> None:
    """Fails when the page is calm because the counts lag behind."""
    said, kind = headline_of(Totals(), is_narrow=False, is_counting=True)
    assert ("Still counting" in said, kind) == (True, "warn")


def test_times_are_typed_as_people_do_and_what_is_none_is_refused() -> None:
    assert timed({"until": "2026-01-02"}, NOON)["until"] == "2026-01-02T00:00:00+00:00"
    with pytest.raises(UsageError, match="since"):
        timed({"since": "yesterday"}, NOON)


def test_a_form_says_what_the_api_is_asked() -> None:
    """Fails when a field of the form is dropped on its way: a set would be larger than was meant."""
    fields = {
        "group": "g",
        "topic": "t",
        "type": "y",
        "reason": "r",
        "failure": "0a" * 4,
        "tenant": "n",
        "key": "k",
        "text": "e",
        "since": "2h",
        "until": "1h",
        "ids": f"{ID}\r\n{ID}, {UUID(int=7)}",
        "everything": "yes",
        "limit": "10",
        "rate": "0.5",
        "stages": "1, 5,20",
        "most_failures": "3",
        "beyond_cap": "yes",
    }
    body = RedrivePreviewBody.model_validate(set_from(fields, NOON))
    wanted, how = body.wanted(), body.how()
    assert json.loads(json.dumps(wanted.public()))["ids"] == 2
    assert (wanted.group, wanted.key, wanted.text, wanted.ids) == ("g", "k", "e", (ID, UUID(int=7)))
    assert wanted.since is not None
    assert wanted.until is not None
    assert (wanted.until - wanted.since).total_seconds() == 3600
    assert (how.limit, how.rate, how.stages, how.most_failures, how.cap) == (10, 0.5, (1, 5, 20), 3, None)
    assert body.everything is True
    assert set_from({"everything": "no"}, NOON) == {"everything": False}
    with pytest.raises(UsageError, match="stages"):
        set_from({"stages": "many"}, NOON)
