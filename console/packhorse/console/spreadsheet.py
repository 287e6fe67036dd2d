"""Answers as CSV for a spreadsheet, which takes no cell of them for a formula."""

import csv
import io
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import Enum

from packhorse.core.text import inert

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a cell begins with that a spreadsheet calculates."""


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    r"""
    Return *rows* under *columns* as CSV (RFC 4180, lines end with CR LF).

    >>> csv_text(["error", "n"], [["=1+1", -3], ["a,b", None]])
    'error,n\r\n\'=1+1,-3\r\n"a,b",\r\n'
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(list(columns))
    writer.writerows([cell(value) for value in row] for row in rows)
    return out.getvalue()


def tell_csv(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Print *rows* under *columns* as CSV."""
    sys.stdout.write(csv_text(columns, rows))


def cell(value: object) -> str:
    r"""
    Return *value* as a cell that is only shown: text that would be calculated begins with an apostrophe.

    >>> cell("@SUM(A1)"), cell("\t=1"), cell(-1), cell(None), cell("a\nb")
    ("'@SUM(A1)", "'\\x09=1", '-1', '', 'a\\x0ab')
    """
    match value:
        case None:
            return ""
        case bool() | int() | float():
            return str(value)
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case Enum():
            text = str(value.value)
        case bytes():
            text = value.decode("utf-8", "backslashreplace")
        case _:
            text = str(value)
    guard = "'" if text.lstrip(" ").startswith(_FORMULA) else ""
    return guard + inert(text)
