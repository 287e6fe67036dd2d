"""Lay pages of the quarantine out for people, programs and spreadsheets."""

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType

from packhorse.console.output import table
from packhorse.console.quarantine.pages import Page
from packhorse.console.render import quarantined_json

CSV_COLUMNS = (
    *(
        "id",
        "group",
        "topic",
        "partition",
        "offset",
        "key",
        "payload_bytes",
        "type",
        "tenant",
        "reason",
        "error",
    ),
    *("attempts", "first_failed_at", "quarantined_at", "state", "redrives"),
)


def page_table(page: Page) -> RenderableType:
    """Return one page of the quarantine for people."""
    columns = ("id", "quarantined", "group", "topic", "type", "reason", "error", "attempts", "state")
    rows = [
        (
            message.id,
            message.quarantined_at,
            message.group,
            message.topic,
            message.type,
            message.reason,
            message.error,
            message.attempts,
            message.state,
        )
        for message in page.messages
    ]
    return table(columns, rows)


def page_csv(page: Page, *, show_key: bool) -> Iterator[tuple[object, ...]]:
    """Yield the rows of one page under CSV_COLUMNS; the key only if *show_key*."""
    for message in page.messages:
        yield tuple(
            (message.key if show_key else None) if name == "key" else getattr(message, name)
            for name in CSV_COLUMNS
        )


def page_json(page: Page, *, show_key: bool) -> dict[str, Any]:
    """
    Return one page for programs; `next` is the token for --after, null on the last page; `looked_to` says that the page is not
    full because enough was looked at.
    """
    return {
        "messages": [quarantined_json(message, show_key=show_key) for message in page.messages],
        "next": None if page.next is None else page.next.token(),
        "looked_to": page.looked_to,
    }
