"""What comes from elsewhere is printed, and never obeyed."""

import io
import json
from datetime import UTC, datetime
from enum import Enum
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType
from tests.support.console_facts import ID, act, facts, inbox_row, outbox_row, quarantined

from packhorse.console.facts import FailedAttempt, Outcome
from packhorse.console.output import json_text, plain, sheet, table
from packhorse.console.quarantine.page_render import page_json, page_table
from packhorse.console.quarantine.pages import Page, Position, page_of
from packhorse.console.quarantine.redrive import previewed
from packhorse.console.quarantine.service import Shown
from packhorse.console.render import (
    preview_sheet,
    shown_json,
    shown_sheet,
    status_json,
    status_sheet,
)
from packhorse.console.truth.status import NOT_NEEDED, status_of
from packhorse.core.text import inert

EVIL = "\x1b[2J\x1b]0;owned\x07[red]x[/red]\u202e\r\n\x9b31m"


def printed(content: RenderableType) -> str:
    screen = Console(file=io.StringIO(), width=200, force_terminal=False, markup=False)
    screen.print(content)
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


@given(st.text())
def test_inert_text_prints_whatever_it_was(text: str) -> None:
    assert inert(text).isprintable()


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_json_reads_back_and_is_ascii(text: str) -> None:
    told = json_text({"error": text})
    assert json.loads(told) == {"error": text}
    assert told.isascii()
    assert told.isprintable()


def test_json_knows_the_types_of_facts() -> None:
    class Colour(Enum):
        RED = "red"

    told = json_text([datetime(2026, 8, 1, 12, tzinfo=UTC), UUID(int=1), b"\xff", Colour.RED, (1, None)])
    assert json.loads(told) == ["2026-08-01T12:00:00Z", str(UUID(int=1)), "\\xff", "red", [1, None]]


@pytest.mark.parametrize("content", [sheet([("a", EVIL)]), table(["a"], [[EVIL]])])
def test_terminal_codes_and_markup_are_inert(content: RenderableType) -> None:
    text = printed(content)
    assert "\x1b" not in text
    assert "[red]x[/red]" in text
    assert text.replace("\n", "").isprintable()


def _everywhere() -> list[RenderableType]:
    held = quarantined(
        type=EVIL, error=EVIL, reason=EVIL, tenant=EVIL, key=EVIL.encode(), group="g", topic="t"
    )
    row = inbox_row(reason=EVIL, error=EVIL, type=EVIL, outcome=Outcome.QUARANTINE, group="g", topic="t")
    tried = FailedAttempt(
        group="g", topic="t", attempt=1, failed_at=row.changed_at, reason=EVIL, error=EVIL, due_at=None
    )
    audit = act(actor=EVIL, why=EVIL, group="g", topic="t")
    recorded = outbox_row(type=EVIL, key=EVIL, origin=EVIL, correlation_id=EVIL, traceparent=EVIL)
    known = facts(recorded=recorded, inbox=(row,), quarantined=(held,), attempts=(tried,), acts=(audit,))
    shown = Shown(
        message=held,
        inbox=row,
        attempts=(tried,),
        acts=(audit,),
        headers=((EVIL, EVIL.encode()), ("null", None)),
        payload={EVIL: [EVIL, {"a": EVIL}]},
        payload_said=None,
    )
    return [
        status_sheet(status_of(known, NOT_NEEDED), show_key=True),
        page_table(Page(messages=(held,), next=None)),
        shown_sheet(shown, show_key=True),
        preview_sheet(previewed(held, row, None), show_key=True),
    ]


@pytest.mark.case("X-07")
@pytest.mark.parametrize("content", _everywhere())
def test_no_answer_obeys_what_a_message_carries(content: RenderableType) -> None:
    """Fails when one value reaches a screen without `said`."""
    text = printed(content).replace("\n", "")
    assert text.isprintable()
    assert "[red]x" in text


def test_the_key_is_hidden_unless_it_is_asked_for() -> None:
    status = status_of(facts(recorded=outbox_row(), quarantined=(quarantined(),)), NOT_NEEDED)
    for show_key in (False, True):
        told = json_text(status_json(status, show_key=show_key)) + printed(
            status_sheet(status, show_key=show_key)
        )
        assert ("N14228" in told) is show_key
    page = page_of([quarantined()], limit=5)
    assert "N14228" not in json_text(page_json(page, show_key=False))
    assert "N14228" in json_text(page_json(page, show_key=True))
    shown = Shown(
        message=quarantined(), inbox=None, attempts=(), acts=(), headers=(), payload=None, payload_said="no"
    )
    assert "N14228" not in json_text(shown_json(shown, show_key=False))


def test_a_position_survives_the_command_line() -> None:
    from packhorse.console.quarantine.pages import position_from

    position = Position(at=datetime(2026, 8, 1, tzinfo=UTC), id=ID, group="a b", topic="ü")
    assert position_from(position.token()) == position


@pytest.mark.parametrize("token", ["", "x", "!!", "W10", "e30", "WzEsMiwzLDRd", "bnVsbA", "W1tb" * 500])
def test_a_broken_position_is_a_usage_error(token: str) -> None:
    from packhorse.console.quarantine.pages import position_from
    from packhorse.core.errors import UsageError

    with pytest.raises(UsageError, match="--after"):
        position_from(token)


def test_a_long_value_is_cut_on_a_screen() -> None:
    assert len(plain("x" * 10_000)) == 2_000
