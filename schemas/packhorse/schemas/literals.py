"""Write Python values as source text, in the form that ruff's formatter leaves alone."""

import datetime as dt
import math
from decimal import Decimal
from typing import Any
from uuid import UUID


def literal(value: Any) -> str:
    r"""
    Return the source text of a scalar; *dt*, Decimal and UUID are names that the module has imported.

    >>> literal("it's"), literal(1.0), literal(Decimal("1.50"))
    ('"it\'s"', '1.0', 'Decimal("1.50")')
    """
    match value:
        case str():
            return text_literal(value)
        case bytes():
            return "b" + _quoted("".join(map(chr, value)), repr(value)[2:-1].replace("\\'", "'"))
        case float():
            return repr(value).replace("e+", "e") if math.isfinite(value) else f'float("{value}")'
        case Decimal() | UUID():
            return f'{type(value).__name__}("{value}")'
        case dt.datetime() | dt.date() | dt.time():
            return _moment(value)
        case _:
            return repr(value)


def _moment(value: dt.date | dt.time) -> str:
    match value:
        case dt.datetime():
            return _call(
                "dt.datetime", value.timetuple()[:6], value.microsecond, aware=value.tzinfo is not None
            )
        case dt.date():
            return _call("dt.date", value.timetuple()[:3], 0, aware=False)
        case dt.time():
            return _call("dt.time", (value.hour, value.minute, value.second), value.microsecond, aware=False)


def text_literal(value: str) -> str:
    """Return *value* as a literal: double quotes, unless single ones need fewer escapes; one line, printable."""
    body = repr(value + "'\"")[1:-1]  # with both quotes inside, repr escapes the single ones alone
    return _quoted(value, body[: -len("\\'\"")].replace("\\'", "'"))


def _quoted(value: str, body: str) -> str:
    quote = "'" if value.count('"') > value.count("'") else '"'
    return quote + body.replace(quote, f"\\{quote}") + quote


def _call(name: str, parts: tuple[int, ...], micros: int, *, aware: bool) -> str:
    arguments = [*map(str, parts), *([str(micros)] if micros else []), *(["tzinfo=dt.UTC"] if aware else [])]
    return f"{name}({', '.join(arguments)})"
