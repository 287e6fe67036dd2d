"""Which ids a turn of the retention of jobs looks at."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.core.errors import SettingsError
from packhorse.core.ids import time_of, uuid7_from
from packhorse.processor.jobs.keeping.model import (
    DAY,
    GREATEST,
    LATE,
    LEAST,
    Facts,
    JobRules,
    Step,
    Turn,
    is_whole,
    windows,
)

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def facts(*terms: float, since: timedelta | None = HOUR, whole: timedelta | None = HOUR) -> Facts:
    return Facts(
        now=NOW,
        since=None if since is None else NOW - since,
        whole=None if whole is None else NOW - whole,
        terms=terms,
    )


def covered(found: Facts, age: timedelta) -> bool:
    at = uuid7_from(NOW - age, b"\x80" * 10)
    return any(window.after < at <= window.until for window in windows(found))


def test_the_first_turn_and_one_a_day_go_over_all_that_may_be_due() -> None:
    for found in (
        facts(DAY, 30 * DAY, since=None),
        facts(DAY, whole=None),
        facts(DAY, whole=timedelta(days=1)),
    ):
        first, second = windows(found)
        assert (first.after, second.until) == (LEAST, GREATEST)
        assert is_whole((first, second))
        assert covered(found, timedelta(days=1000))
        assert not covered(found, timedelta(hours=23))
        assert covered(found, -timedelta(days=400))
    assert is_whole(windows(facts(DAY), whole=True))


@pytest.mark.case("B-11")
def test_other_turns_look_at_what_has_come_of_age_alone() -> None:
    """Fails when each turn reads all rows that stay, or leaves out a term."""
    found = facts(30 * DAY, 90 * DAY)
    made = windows(found)
    assert not is_whole(made)
    assert [(time_of(w.after), time_of(w.until)) for w in made] == [
        (NOW - timedelta(days=days) - HOUR - LATE, NOW - timedelta(days=days)) for days in (90, 30)
    ]
    assert covered(found, timedelta(days=30, minutes=30))
    assert covered(found, timedelta(days=90, hours=1, minutes=59))
    assert not covered(found, timedelta(days=60))


@given(
    st.lists(st.floats(min_value=1, max_value=4_000 * DAY), min_size=1, max_size=6, unique=True),
    st.timedeltas(min_value=timedelta(0), max_value=timedelta(hours=23)),
)
def test_windows_are_in_order_apart_and_cover_whatever_came_of_age(
    terms: list[float], since: timedelta
) -> None:
    found = facts(*terms, since=since, whole=since)
    made = windows(found)
    assert all(window.after <= window.until for window in made)
    assert all(one.until <= two.after for one, two in pairwise(made))
    for term in terms:
        assert covered(found, timedelta(seconds=term) + since / 2 + timedelta(milliseconds=5))


def test_for_ever_looks_at_nothing_and_what_a_turn_did_adds_up() -> None:
    assert windows(facts(since=None)) == ()
    assert JobRules(keep=None, keep_result=None).seconds == {
        "keep": float("inf"),
        "keep_result": float("inf"),
    }
    turn = Turn()
    turn.add(Step(ours=True, seen=3, after=None, gone={"a": (2, 0), "b": (0, 1)}))
    turn.add(Step(ours=True, seen=2, after=None, gone={"a": (1, 1)}))
    assert turn.as_dict() == {"whole": False, "seen": 5, "jobs": {"a": 3}, "results": {"b": 1, "a": 1}}


@pytest.mark.parametrize("wrong", [{"keep": 0.0}, {"keep_result": -1.0}, {"keep": float("inf")}, {"step": 0}])
def test_rules_that_can_not_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match="is not allowed"):
        JobRules(**wrong)  # type: ignore[arg-type]
