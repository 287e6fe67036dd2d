"""What jobs keep of the application's values: JSON, checked before it is sent, with a limit."""

import json
import re
from typing import Any, Final

from packhorse.core.errors import UsageError

MOST_RESULT: Final = 64 * 1024
"""Largest result, step or answer, in bytes of JSON: a row or a reference; what is larger belongs elsewhere."""
MOST_CHECKPOINT: Final = 256 * 1024
"""Largest checkpoint, in bytes of JSON."""
MOST_PROGRESS: Final = 200
"""Longest text of a progress, in characters."""


_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""A NUL as JSON has it: behind an even number of backslashes; behind an odd one it is the text of an escape."""


class BadValue(UsageError):
    """A value is no JSON, or too large to be kept; names what it was for, never the value."""


def json_of(value: object, *, what: str, most: int) -> str | None:
    """
    Return *value* as JSON text; None for None.

    >>> json_of({"rows": 3}, what="result", most=100)
    '{"rows": 3}'

    Raises:
        BadValue: It is no JSON, or more than *most* bytes of it.
    """
    if value is None:
        return None
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise BadValue(
            f"{what} is no JSON: {_why(error)}; give dicts, lists, text and finite numbers"
        ) from None
    if _NUL.search(text):
        raise BadValue(f"{what} holds a NUL, which the database does not take")
    if size > most:
        raise BadValue(
            f"{what} of {size} bytes as JSON, the limit is {most}; keep it elsewhere and give a reference to it"
        )
    return text


def _why(error: Exception) -> str:
    """Say what is wrong with a value, by its kind alone."""
    match error:
        case UnicodeEncodeError():
            return "it holds half a surrogate pair, which no UTF-8 can carry"
        case RecursionError():
            return "it is nested too deep"
        case ValueError():
            return "it holds a number that is not finite, or itself"
        case _:
            return "it holds an object or a key of a type that JSON has not"


def loaded(text: str | None) -> Any:
    """Return the value that `json_of` gave as *text*; None for None."""
    return None if text is None else json.loads(text)
