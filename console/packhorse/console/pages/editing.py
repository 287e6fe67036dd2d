"""An edited payload as a text that a person changes in a form: what goes out comes back the same. Pure: no I/O."""

import json
from typing import Any, NoReturn

from packhorse.console.pages.showing import LONGEST
from packhorse.core.errors import UsageError

MOST = LONGEST
"""Characters that can be edited on a page: what is longer would be cut when it is shown."""


def editable(value: object) -> str:
    r"""
    Return *value* as JSON in which nothing is invisible: what a page would write as an escape of its own is one of JSON's already.

    >>> editable({"name": "Köln \u202e"})
    '{\n  "name": "Köln \\u202e"\n}'
    """
    return visible(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def visible(text: str) -> str:
    r"""
    Return the JSON *text* with invisible characters as escapes; line ends and tabs as a person typed them become plain ones.

    >>> visible('{\r\n\t"n": "\x85"}')
    '{\n  "n": "\\u0085"}'
    """
    plain = text.replace("\r\n", "\n").replace("\t", "  ")
    return "".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in plain)


def edited_from(text: str) -> dict[str, Any]:
    """
    Return the payload that *text* holds.

    >>> edited_from('{"n": 2}')
    {'n': 2}

    Raises:
        UsageError: It is no JSON object, or names a field twice; what it holds is not repeated.
    """
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"the payload is no JSON: {error.msg}, in line {error.lineno}, at character {error.colno}; nothing was done"
        ) from None
    except (RecursionError, ValueError) as error:
        said = error.args[0] if isinstance(error, _Wrong) else "it can't be read"
        raise UsageError(f"the payload is no JSON: {said}; nothing was done") from None
    if not isinstance(found, dict):
        raise UsageError('the payload is to be a JSON object, as {"field": "value"}; nothing was done')
    return found


class _Wrong(ValueError):
    """What JSON allows and no payload does."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Wrong("it has a field twice")
    return found


def _no_number(name: str) -> NoReturn:
    raise _Wrong(f"{name} is no number there")
