"""Find a field that its schema marks personal in decoded payloads. Pure: no I/O, no clock."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from packhorse.core.errors import SchemaError, UsageError
from packhorse.schemas.parse import parse_schema
from packhorse.schemas.redaction import personal_paths, printable

_STEP = re.compile(r"[^.\[\]{}]+|\[\]|\{\}")


def tagged_by(schemas: Mapping[int, str], path: str) -> tuple[int, ...]:
    """
    Return the ids of those of *schemas* (texts by id) whose field at *path* is marked personal, or lies in one that is.

    Raises:
        UsageError: None is; names the fields that are.
    """
    personal = {number: paths_of(text) for number, text in schemas.items()}
    found = tuple(
        sorted(number for number, paths in personal.items() if any(_covers(p, path) for p in paths))
    )
    if not found:
        known = sorted({one for paths in personal.values() for one in paths})
        raise UsageError(
            f"no registered schema marks a field {path} personal; "
            + (f"marked are {', '.join(known)}" if known else "none marks any field")
        )
    return found


def paths_of(text: str) -> tuple[str, ...]:
    """Return the paths that the schema *text* marks personal; none when it can't be read."""
    try:
        return personal_paths(parse_schema(text))
    except SchemaError:
        return ()


def has_value(value: Any, path: str, wanted: str) -> bool:
    """
    Return whether *value* has *wanted*, as text, at *path*, or anywhere in what lies there.

    >>> payload = {"passengers": [{"email": "ann@example.org"}, {"email": None}]}
    >>> has_value(payload, "passengers[].email", "ann@example.org"), has_value(payload, "passengers", "ann@example.org")
    (True, True)
    >>> has_value(payload, "passengers[].email", "None")
    False
    """
    return any(_text(leaf) == wanted for leaf in _at(value, _STEP.findall(path)))


def _covers(personal: str, path: str) -> bool:
    return path == personal or (path.startswith(personal) and path[len(personal)] in ".[{")


def _at(value: Any, steps: list[str]) -> Iterator[Any]:
    if not steps:
        yield from _leaves(value)
        return
    step, rest = steps[0], steps[1:]
    inner: Iterable[Any] = ()
    if step == "[]" and isinstance(value, (list, tuple)):
        inner = value
    elif step == "{}" and isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, Mapping) and step in value:
        inner = (value[step],)
    for one in inner:
        yield from _at(one, rest)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        yield value
        return
    for one in value:
        yield from _leaves(one)


def _text(leaf: Any) -> str | None:
    if leaf is None:
        return None
    return str(leaf).lower() if isinstance(leaf, bool) else str(printable(leaf))
