"""What people did, for people, for programs, and as a table that spreadsheets only show."""

import csv
import io
import json
from typing import Any

from rich.console import RenderableType

from packhorse.console.audit.pages import Entry, Page
from packhorse.console.output import at, table
from packhorse.core.text import inert

COLUMNS = ("at", "actor", "role", "act", "group", "topic", "message", "why", "detail")
_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def page_json(page: Page) -> dict[str, Any]:
    """Return *page* for programs."""
    return {
        "acts": [_json(entry) for entry in page.entries],
        "next": None if page.next is None else page.next.token(),
    }


def page_table(page: Page) -> RenderableType:
    """Return *page* for people; the detail is in the other forms."""
    rows = [
        (one.at, one.actor, one.role, one.act, one.group, one.topic, one.message_id, one.why)
        for one in page.entries
    ]
    return table(("at", "actor", "role", "act", "group", "topic", "id", "why"), rows)


def page_csv(page: Page) -> str:
    """Return *page* as CSV with a line of names; no cell is taken for a formula."""
    out = io.StringIO()
    lines = csv.writer(out)
    lines.writerow(COLUMNS)
    for one in page.entries:
        detail = json.dumps(dict(one.detail), sort_keys=True)
        cells = (
            at(one.at),
            one.actor,
            one.role,
            one.act,
            one.group,
            one.topic,
            one.message_id,
            one.why,
            detail,
        )
        lines.writerow(["" if cell is None else cell_of(str(cell)) for cell in cells])
    return out.getvalue()


def cell_of(text: str) -> str:
    r"""
    Return *text* for a cell that a spreadsheet shows and does not calculate, and a terminal only prints.

    >>> cell_of("=HYPERLINK(1)"), cell_of("\t=1"), cell_of("a\x1b[2J"), cell_of("ann")
    ("'=HYPERLINK(1)", "'\\x09=1", 'a\\x1b[2J', 'ann')
    """
    return inert(f"'{text}" if text.startswith(_STARTS_A_FORMULA) else text)


def _json(entry: Entry) -> dict[str, Any]:
    return {
        "at": entry.at,
        "actor": entry.actor,
        "role": entry.role,
        "act": entry.act,
        "group": entry.group,
        "topic": entry.topic,
        "id": entry.message_id,
        "why": entry.why,
        "detail": dict(entry.detail),
    }
