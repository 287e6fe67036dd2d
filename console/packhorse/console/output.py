"""How answers leave: inert text for people, JSON for programs; nothing that came from elsewhere is taken for markup."""

import json
import sys
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any
from uuid import UUID

from rich.console import Console
from rich.table import Table
from rich.text import Text

from packhorse.core.errors import UsageError
from packhorse.core.text import inert

_WIDE = 240
"""Columns when nobody looks at a terminal, so that a pipe gets whole ids."""
_LONGEST = 2_000
"""Characters of one value on a screen; --json has them all."""


def terminal(*, err: bool = False) -> Console:
    """Return the screen, or with *err* standard error: colours for a terminal alone, no markup, no highlighting."""
    width = None if (sys.stderr if err else sys.stdout).isatty() else _WIDE
    return Console(width=width, markup=False, highlight=False, emoji=False, stderr=err)


def tell(text: object, *, err: bool = False) -> None:
    """Print *text* as one inert line; with *err* on standard error, beside an answer for programs."""
    terminal(err=err).print(said(text), soft_wrap=True)


def checked_form(*, as_json: bool, as_csv: bool) -> None:
    """
    Check that an answer is asked for in one form.

    Raises:
        UsageError: It is asked for in two.
    """
    if as_json and as_csv:
        raise UsageError("--json and --csv are two forms of one answer; leave one out")


def tell_json(value: object) -> None:
    """Print *value* as one line of JSON."""
    sys.stdout.write(json_text(value) + "\n")


def said(value: object, style: str = "") -> Text:
    """Return *value* as text that is only printed, whatever it holds."""
    return Text(plain(value), style=style)


def plain(value: object) -> str:
    """Return *value* as inert text: times in UTC, nothing for None."""
    match value:
        case None:
            return "-"
        case datetime():
            return at(value)
        case bytes():
            return inert(value.decode("utf-8", "backslashreplace"), limit=_LONGEST)
        case Enum():
            return inert(str(value.value))
        case _:
            return inert(str(value), limit=_LONGEST)


def at(moment: datetime) -> str:
    """
    Return *moment* for people, in UTC, to the millisecond.

    >>> at(datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC))
    '2026-01-02 03:04:05.678Z'
    """
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds") + "Z"


def sheet(pairs: Iterable[tuple[str, object]], *, indent: int = 0) -> Table:
    """Return *pairs* as two columns, a label and what is so."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in pairs:
        grid.add_row(
            Text(" " * indent + label, style="dim"), value if isinstance(value, Text) else said(value)
        )
    return grid


def table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    """Return *rows* under *columns*; ids and times are not broken."""
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(column, overflow="fold", no_wrap=column in {"id", "quarantined", "state", "attempts"})
    for row in rows:
        made.add_row(*(value if isinstance(value, Text) else said(value) for value in row))
    return made


def json_text(value: object) -> str:
    r"""
    Return *value* as one line of JSON in ASCII, so that a terminal only prints it.

    >>> json_text({"error": "\x1b[2J\x7f"})
    '{"error": "\\u001b[2J\\u007f"}'
    """
    return json.dumps(value, default=_jsonable, ensure_ascii=True).replace("\x7f", "\\u007f")


def _jsonable(value: Any) -> Any:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case Enum():
            return value.value
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case UUID():
            return str(value)
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return list(value)
