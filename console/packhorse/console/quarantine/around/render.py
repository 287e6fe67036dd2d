"""Lay out what stands around one quarantined message."""

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from packhorse.console.output import at, plain, said, table
from packhorse.console.quarantine.around.model import Around
from packhorse.core.text import counted


def around_parts(around: Around) -> list[RenderableType]:
    """Return the parts of a sheet for people."""
    parts: list[RenderableType] = [
        Text(f"\nbehind it: {counted(around.behind, 'message waits', 'messages wait')}", style="bold"),
        *(said(f"  {one}") for one in around.followers),
    ]
    if around.behind > len(around.followers):
        parts.append(said(f"  and {around.behind - len(around.followers)} more"))
    parts += [Text("\nwhat it has caused", style="bold"), said(f"  {around.caused_said}")]
    if around.caused:
        rows = [(f"  {one.id}", one.type, one.aggregatetype, one.created_at) for one in around.caused]
        parts.append(table(("  id", "type", "aggregate type", "recorded"), rows))
    if around.redrives:
        sets = [(f"  {one.redrive}", one.state, one.stage, one.asked_at, one.said) for one in around.redrives]
        parts += [
            Text("\nredrives of sets", style="bold"),
            table(("  redrive", "member", "stage", "asked", "said"), sets),
        ]
    return [*parts, Text("\nfailure", style="bold"), said(f"  {failure_line(around)}")]


def failure_line(around: Around) -> str:
    """Return the group of failures, and what people know of it, in one line."""
    known, found = around.known, [around.failure]
    if known.acknowledged_at is not None:
        found.append(
            f"acknowledged by {plain(known.acknowledged_by)} {at(known.acknowledged_at)}: {plain(known.acknowledged_why)}"
        )
    if known.notes:
        found.append(f"{counted(known.notes, 'note')}: packhorse quarantine group {around.failure[:8]}")
    if known.contact is not None:
        found.append(f"contact {plain(known.contact)}")
    return "; ".join(found)


def around_json(around: Around) -> dict[str, Any]:
    """Return the same for programs."""
    return {
        "behind": around.behind,
        "followers": around.followers,
        "caused": around.caused,
        "caused_said": around.caused_said,
        "in_redrives": around.redrives,
        "failure": around.failure,
        "known": around.known,
    }
