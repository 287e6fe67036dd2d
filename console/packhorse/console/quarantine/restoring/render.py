"""Lay a restoring out for people and programs."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from packhorse.console.output import plain, said, table
from packhorse.console.quarantine.restoring.deciding import RestorePreview


def restore_sheet(preview: RestorePreview) -> RenderableType:
    """Return what restoring would do for people."""
    message = preview.message
    parts: list[RenderableType] = [
        said(
            f"message {message.id} of group {message.group}, {message.topic}/{message.partition}/{message.offset}",
            "bold",
        ),
        *(Text(f"  {n}. {plain(step)}") for n, step in enumerate(preview.steps, 1)),
        said(f"later messages of its key: {preview.since.said}"),
    ]
    if preview.since.messages:
        rows = [
            (f"  {later.id}", later.offset, later.outcome or "not on record", later.changed_at)
            for later in preview.since.messages
        ]
        parts.append(table(("  id", "offset", "outcome", "since"), rows))
    if preview.out_of_order:
        parts.append(
            said("! it takes effect out of order: later messages of its key have run, or may have", "yellow")
        )
    return Group(*parts)


def restore_json(preview: RestorePreview) -> dict[str, Any]:
    """Return the same for programs."""
    return {
        "order": preview.order,
        "steps": preview.steps,
        "out_of_order": preview.out_of_order,
        "since": {
            "said": preview.since.said,
            "whole": preview.since.whole,
            "messages": preview.since.messages,
        },
    }
