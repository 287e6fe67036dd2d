"""Pages of what people did, and their forms."""

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.console.audit.pages import (
    MAX_LIMIT,
    Entry,
    Filter,
    Page,
    Position,
    page_of,
    position_from,
)
from packhorse.console.audit.render import page_csv
from packhorse.console.paging import checked_limit
from packhorse.console.spreadsheet import cell
from packhorse.core.errors import UsageError

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def entry(number: int, *, actor: str = "ann (role ops)", why: str | None = None) -> Entry:
    return Entry(
        id=number, at=NOW, actor=actor, role="ops", act="discard", group="figures", topic=None, message_id=None,
        detail={"attempt": 5}, why=why,
    )  # fmt: skip


def test_a_page_names_what_the_next_one_starts_behind() -> None:
    page = page_of([entry(3), entry(2), entry(1)], limit=2)
    assert [one.id for one in page.entries] == [3, 2]
    assert page.next == position_from(page.next.token() if page.next else "") == Position(at=NOW, id=2)
    assert page_of([entry(1)], limit=2).next is None


@pytest.mark.parametrize(
    "token", ["", "x", "WzEsMl0", "bnVsbA", "WyIyMDI2LTAxLTAyIiwgMV0", "é", "e30", "W1tb" * 500]
)
def test_what_is_no_position_is_refused(token: str) -> None:
    with pytest.raises(UsageError, match="is no position"):
        position_from(token)


def test_a_span_that_holds_nothing_and_a_page_too_long_are_refused() -> None:
    with pytest.raises(UsageError, match="nothing lies between"):
        Filter(since=NOW, until=NOW)
    assert Filter(since=NOW, until=NOW + timedelta(seconds=1))
    for limit in (0, 10_001):
        with pytest.raises(UsageError, match="1 to 10000"):
            checked_limit(limit, most=MAX_LIMIT)


@pytest.mark.case("X-07")
@given(st.text(max_size=20))
def test_no_cell_is_taken_for_a_formula_or_a_command_to_a_terminal(text: str) -> None:
    """Fails when a cell may begin with what a spreadsheet calculates, or hold what a terminal obeys."""
    shown = cell(text)
    assert shown.isprintable()
    assert not shown.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_a_blank_does_not_hide_a_formula() -> None:
    """Fails when blanks before a formula, which a spreadsheet drops, let it through."""
    page = Page(entries=(entry(1, actor=" @ann"),), next=None)
    _, line = csv.reader(io.StringIO(page_csv(page)))
    assert line[1] == "' @ann"


def test_csv_is_read_back_as_it_was_meant() -> None:
    page = Page(entries=(entry(1, actor="@ann", why='=1+1, "so"'),), next=None)
    names, line = csv.reader(io.StringIO(page_csv(page)))
    assert dict(zip(names, line, strict=True)) == {
        "at": "2026-01-02 03:04:05.678Z",
        "actor": "'@ann",
        "role": "ops",
        "act": "discard",
        "group": "figures",
        "topic": "",
        "message": "",
        "why": '\'=1+1, "so"',
        "detail": '{"attempt": 5}',
    }
