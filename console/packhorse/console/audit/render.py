"""What people did, for people, for programs, and as a table that spreadsheets only show."""

import json
from typing import Any

from rich.console import RenderableType

from packhorse.console.audit.pages import Entry, Page
from packhorse.console.output import at, table
from packhorse.console.spreadsheet import csv_text

COLUMNS = ("at", "actor", "role", "act", "group", "topic", "message", "why", "detail")


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
    rows = (
        (
            at(one.at),
            one.actor,
            one.role,
            one.act,
            one.group,
            one.topic,
            one.message_id,
            one.why,
            json.dumps(dict(one.detail), sort_keys=True),
        )
        for one in page.entries
    )
    return csv_text(COLUMNS, rows)


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
