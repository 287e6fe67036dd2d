"""Make Python values from the JSON of Avro defaults."""

from collections.abc import Callable
from typing import Any, TypeAlias

from packhorse.core.errors import SchemaError
from packhorse.schemas.binding import Classes
from packhorse.schemas.mismatch import Mismatch, Unreadable
from packhorse.schemas.names import attribute
from packhorse.schemas.scalars import maker, taker
from packhorse.schemas.tree import (
    Absent,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Node,
    Primitive,
    Record,
    Schema,
    Union,
)

Make: TypeAlias = Callable[[], Any]


class DefaultFault(Exception):
    """Say at which place a default does not fit its type."""


def default_of(field: Field, schema: Schema, classes: Classes | None) -> Make:
    """
    Return a function that makes the default of *field* anew, so that no two messages share a dict.

    Raises:
        SchemaError: The default does not fit the field's type.
    """
    if isinstance(field.default, Absent):
        raise SchemaError(f"field {field.name} has no default")
    values = Defaults(schema, classes)
    try:
        values.make(field.type, field.default)
    except DefaultFault as fault:
        raise SchemaError(f"field {field.name}: default {field.default!r} is not allowed: {fault}") from None
    return lambda: values.make(field.type, field.default)


class Defaults:
    """Make values of one schema from JSON; *classes* as in `Resolver`."""

    def __init__(self, schema: Schema, classes: Classes | None) -> None:
        self._schema, self._classes = schema, classes

    def make(self, node: Node, raw: Any) -> Any:
        """
        Return the Python value for *raw*.

        Raises:
            DefaultFault: It does not fit *node*.
        """
        found = self._schema.resolved(node)
        match found:
            case Primitive() | Fixed():
                return scalar_default(found, raw)
            case Enum():
                if raw not in found.symbols:
                    raise DefaultFault(f"one of {', '.join(found.symbols)} is needed")
                return raw if self._classes is None else self._classes[found.name](raw)
            case Array():
                return tuple(self.make(found.items, item) for item in _of(list, raw, "a JSON array"))
            case Map():
                items = _of(dict, raw, "a JSON object").items()
                return {key: self.make(found.values, value) for key, value in items}
            case Union():
                return self._union(found, raw)
            case Record():
                return self._record(found, raw)
        raise AssertionError(f"{found} is no node")

    def _union(self, node: Union, raw: Any) -> Any:
        faults = []
        for branch in node.branches:
            try:
                return self.make(branch, raw)
            except DefaultFault as fault:
                faults.append(str(fault))
        raise DefaultFault(", or ".join(faults))

    def _record(self, node: Record, raw: Any) -> Any:
        given = _of(dict, raw, "a JSON object")
        values: dict[str, Any] = {}
        for field in node.fields:
            value = given.get(field.name, field.default)
            if isinstance(value, Absent):
                raise DefaultFault(f"field {field.name} of {node.name} is missing")
            name = field.name if self._classes is None else attribute(field.name)
            values[name] = self.make(field.type, value)
        if unknown := sorted(set(given) - {field.name for field in node.fields}):
            raise DefaultFault(f"{node.name} has no field {unknown[0]}")
        return values if self._classes is None else self._classes[node.name](**values)


def scalar_default(node: Primitive | Fixed, raw: Any) -> Any:
    """
    Return the Python value of a scalar default; bytes stand in JSON as text of code points 0 to 255.

    Raises:
        DefaultFault: It does not fit *node*.
    """
    kind = node.kind if isinstance(node, Primitive) else "fixed"
    wire = raw
    if kind in {"bytes", "fixed"}:
        wire = _latin(raw)
    elif kind in {"float", "double"} and isinstance(raw, int) and not isinstance(raw, bool):
        wire = float(raw)
    plain = Primitive(kind=kind) if isinstance(node, Primitive) else Fixed(name=node.name, size=node.size)
    make = maker(node)
    try:
        taker(plain)(wire)
        value = wire if make is None else make(wire)
        taker(node)(value)
    except Mismatch as mismatch:
        raise DefaultFault(f"{mismatch.allowed} is needed") from None
    except Unreadable as error:
        raise DefaultFault(f"it is {error}") from None
    return value


def _latin(raw: Any) -> bytes:
    try:
        return str(_of(str, raw, "a JSON text of code points 0 to 255")).encode("latin-1")
    except UnicodeEncodeError:
        raise DefaultFault("a JSON text of code points 0 to 255 is needed") from None


def _of(kind: type, raw: Any, allowed: str) -> Any:
    if isinstance(raw, kind):
        return raw
    raise DefaultFault(f"{allowed} is needed")
