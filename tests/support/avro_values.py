"""Hypothesis strategies: Python values for any schema, and schemas with their successors."""

import datetime as dt
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from packhorse.schemas.binding import Classes
from packhorse.schemas.names import attribute
from packhorse.schemas.scalars import FLOAT_MAX, INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from packhorse.schemas.tree import Array, Enum, Fixed, Map, Node, Primitive, Record, Schema, Union

_DEEPEST = 3


def messages(schema: Schema, classes: Classes | None = None) -> st.SearchStrategy[Any]:
    """Return values of the schema's root: instances of its class, or dicts as `Decoder.plain` has them."""
    return values(schema, schema.root, classes, 0)


def values(schema: Schema, node: Node, classes: Classes | None, depth: int) -> st.SearchStrategy[Any]:
    """Return values for *node*."""
    found = schema.resolved(node)
    match found:
        case Primitive() | Fixed():
            return _scalars(found)
        case Enum():
            return st.sampled_from([s if classes is None else classes[found.name](s) for s in found.symbols])
        case Array():
            most = 3 if depth < _DEEPEST else 0
            items = (
                st.deferred(lambda: values(schema, found.items, classes, depth + 1)) if most else st.nothing()
            )
            return st.lists(items, max_size=most).map(tuple)
        case Map():
            most = 3 if depth < _DEEPEST else 0
            items = (
                st.deferred(lambda: values(schema, found.values, classes, depth + 1))
                if most
                else st.nothing()
            )
            return st.dictionaries(st.text(max_size=5), items, max_size=most)
        case Union():
            return st.one_of(
                [values(schema, branch, classes, depth + 1) for branch in _bounded(found, depth)]
            )
        case Record():
            return _records(schema, found, classes, depth)
    raise AssertionError(f"{found} is no node")


def _bounded(node: Union, depth: int) -> tuple[Node, ...]:
    return node.branches if depth < _DEEPEST else node.branches[:1]


def _records(schema: Schema, node: Record, classes: Classes | None, depth: int) -> st.SearchStrategy[Any]:
    fields = {
        field.name if classes is None else attribute(field.name): values(
            schema, field.type, classes, depth + 1
        )
        for field in node.fields
    }
    return st.fixed_dictionaries(fields) if classes is None else st.builds(classes[node.name], **fields)


def _scalars(node: Primitive | Fixed) -> st.SearchStrategy[Any]:
    if node.logical is None:
        if isinstance(node, Fixed):
            return st.binary(min_size=node.size, max_size=node.size)
        return _PLAIN[node.kind]
    if node.logical.name == "decimal":
        most = 10**node.logical.precision - 1
        scale = node.logical.scale
        return st.integers(-most, most).map(lambda unscaled: Decimal(f"{unscaled}E-{scale}"))
    return _LOGICAL[node.logical.name]


def _whole_milliseconds(moment: Any) -> Any:
    return moment.replace(microsecond=moment.microsecond // 1_000 * 1_000)


_AWARE = st.datetimes(timezones=st.just(dt.UTC))
_LOCAL = st.datetimes()
_PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(INT_MIN, INT_MAX),
    "long": st.integers(LONG_MIN, LONG_MAX),
    "float": st.floats(-FLOAT_MAX, FLOAT_MAX, width=32),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=20),
    "string": st.text(max_size=20),
}
_LOGICAL: dict[str, st.SearchStrategy[Any]] = {
    "uuid": st.uuids(),
    "date": st.dates(),
    "time-millis": st.times().map(_whole_milliseconds),
    "time-micros": st.times(),
    "timestamp-millis": _AWARE.map(_whole_milliseconds),
    "timestamp-micros": _AWARE,
    "local-timestamp-millis": _LOCAL.map(_whole_milliseconds),
    "local-timestamp-micros": _LOCAL,
}
