"""What is paused, for people and for programs."""

from collections.abc import Iterator, Mapping
from typing import Any

from packhorse.console.output import at
from packhorse.console.pausing.service import Paused, Resumed
from packhorse.processor.pausing.pauses import Pause, Scope


def named(scope: Scope, group: str) -> str:
    """
    Return *scope* of *group* for people.

    >>> named(Scope(), "figures"), named(Scope(topic="a.b", partition=3), "figures")
    ('group figures', 'a.b[3] of group figures')
    """
    return f"group {group}" if scope.topic is None else f"{scope.what} of group {group}"


def paused_json(group: str, found: Paused) -> dict[str, Any]:
    """Return *found* for programs."""
    return {
        "group": group,
        "pauses": [_pause(row) for row in found.pauses],
        "keys": [key._asdict() for key in found.keys],
    }


def paused_lines(group: str, found: Paused) -> Iterator[str]:
    """Yield *found* for people."""
    for row in found.pauses:
        yield f"{row.told}  since {at(row.at)}"
    for key in found.keys:
        yield f"{key.told}  since {at(key.at)}"
    if not found.pauses and not found.keys:
        yield f"nothing is paused in group {group}"


def everywhere_lines(found: Mapping[str, Paused]) -> Iterator[str]:
    """Yield what is paused in all groups, for people."""
    for group, paused in found.items():
        for line in paused_lines(group, paused):
            yield f"{group}: {line}"
    if not found:
        yield "nothing is paused in any group"


def resumed_json(group: str, scope: Scope, found: Resumed) -> dict[str, Any]:
    """Return *found* for programs."""
    return {
        "group": group,
        "scope": named(scope, group),
        "resumed": found.done,
        "held_by": [_pause(row) for row in found.left],
    }


def resumed_lines(group: str, scope: Scope, found: Resumed) -> Iterator[str]:
    """Yield *found* for people."""
    yield f"{'resumed' if found.done else 'was not paused, nothing was done'}: {named(scope, group)}"
    for row in found.left:
        yield f"still held: {row.told}"


def _pause(row: Pause) -> dict[str, Any]:
    return row._asdict()
