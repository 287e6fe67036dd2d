"""
From JSON values, as `redaction.shown` makes them for eyes, to the bytes of a known schema: for what a person has edited or sent.

The same rules as for message classes decide what fits, and the errors name the field alike. Texts stand for what JSON has not: times in
ISO 8601, bytes in base64, decimals and UUIDs as they are printed.
"""

import base64
import binascii
import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from io import BytesIO
from typing import Any, Final
from uuid import UUID

import fastavro

from packhorse.schemas.defaults import default_of
from packhorse.schemas.framing import prefix
from packhorse.schemas.mismatch import Mismatch
from packhorse.schemas.redaction import MASK, shown
from packhorse.schemas.scalars import Convert, taker
from packhorse.schemas.text import wire_schema
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
    Ref,
    Schema,
    Union,
)
from packhorse.schemas.writing import MAX_NESTING, ArrayWriter, MapWriter, by_strictness, tag_of

_ODD_FLOATS: Final = {"nan", "inf", "-inf"}


def encode_plain(
    value: Any, schema: Schema, schema_id: int, *, what: str, given: "Given | None" = None
) -> bytes:
    """
    Return *value*, JSON-able values, as the payload that *schema* makes of it, framed with *schema_id*; *what* names the type.

    *given* says what a field of a record is given; as it is left out, a field that is missing or masked is refused.

    Raises:
        ValueMismatch: A value does not fit, is missing, is not known, or is masked; names its path and what is allowed.
    """
    buffer = BytesIO(prefix(schema_id))
    buffer.seek(0, 2)
    try:
        wire = _Takers(schema, given or given_unmasked).take(schema.root)(value)
        fastavro.schemaless_writer(buffer, fastavro.parse_schema(wire_schema(schema)), wire)
    except Mismatch as mismatch:
        raise mismatch.as_error(what) from None
    except RecursionError:
        raise Mismatch(value, f"at most {MAX_NESTING} records inside each other").as_error(what) from None
    return buffer.getvalue()


class _Takers:
    """Make the functions that take the JSON values of one schema."""

    def __init__(self, schema: Schema, given: "Given") -> None:
        self._schema = schema
        self._given = given

    def take(self, node: Node) -> Convert:
        match node:
            case Primitive() | Fixed():
                parse, check = _parser(node), taker(node)
                return lambda value: check(parse(value))
            case Enum():
                return lambda value: _symbol(value, node)
            case Array():
                return ArrayWriter(self.take(node.items)).take
            case Map():
                return MapWriter(taker(Primitive(kind="string")), self.take(node.values)).take
            case Ref():
                # A type may hold itself: what it takes is asked for when a value is there.
                return lambda value: self._named(value, node)
            case Record():
                return lambda value: self._record(value, node)
            case Union():
                return lambda value: self._union(value, node)

    def _named(self, value: Any, node: Ref) -> Any:
        return self.take(self._schema.names[node.name])(value)

    def _record(self, value: Any, node: Record) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise Mismatch(value, f"an object with the fields of {node.name}")
        names = {field.name: field for field in node.fields}
        if unknown := sorted(set(value) - names.keys()):
            mismatch = Mismatch(value[unknown[0]], f"no such field: {', '.join(names)}")
            mismatch.in_field(str(unknown[0]), personal=True)
            raise mismatch
        return {name: self._field(value, field) for name, field in names.items()}

    def _field(self, value: Mapping[str, Any], field: Field) -> Any:
        try:
            return self.take(field.type)(self._given(value, field, self._schema))
        except Mismatch as mismatch:
            mismatch.in_field(field.name, personal=field.personal)
            raise

    def _union(self, value: Any, node: Union) -> tuple[str, Any]:
        allowed = []
        inside: Mismatch | None = None
        for branch in by_strictness(node, self._schema):
            try:
                return tag_of(branch), self.take(branch)(value)
            except Mismatch as mismatch:
                inside = inside or (mismatch if mismatch.steps else None)
                allowed.append(mismatch.allowed)
        raise inside or Mismatch(value, ", or ".join(allowed))


Given = Callable[[Mapping[str, Any], Field, Schema], Any]
"""Return what a record's JSON gives a field, as JSON; raise Mismatch where it gives nothing that may stand."""


def given_unmasked(value: Mapping[str, Any], field: Field, schema: Schema) -> Any:
    """Return what an edited record gives *field*: it must say all, and no mask in the place of a value."""
    del schema
    if field.name not in value:
        raise missing()
    if field.personal and value[field.name] == MASK:
        raise Mismatch(
            MASK,
            "the value itself, not its mask: `packhorse quarantine show ID --unmask --why TEXT` shows it",
        )
    return value[field.name]


def given_or_default(value: Mapping[str, Any], field: Field, schema: Schema) -> Any:
    """Return what a new record gives *field*, or the schema's default for it."""
    if field.name in value:
        return value[field.name]
    if isinstance(field.default, Absent):
        raise missing()
    return shown(default_of(field, schema, None)())


def missing() -> Mismatch:
    """Return the mismatch of a field that has no default and was left out."""
    return Mismatch(None, "a value: the field is missing")


def _symbol(value: Any, node: Enum) -> str:
    if isinstance(value, str) and value in node.symbols:
        return value
    raise Mismatch(value, f"one of {', '.join(node.symbols[:12])}{'…' if len(node.symbols) > 12 else ''}")


def _parser(node: Primitive | Fixed) -> Convert:
    """Return what makes of a JSON value the Python value that the schema's checks take."""
    if node.logical is not None:
        parse, allowed = _LOGICAL[node.logical.name]
        return lambda value: _parsed(value, parse, allowed)
    if isinstance(node, Fixed) or node.kind == "bytes":
        return lambda value: _parsed(value, _base64, "bytes in base64")
    if node.kind in {"float", "double"}:
        return lambda value: float(value) if value in _ODD_FLOATS else value
    return lambda value: value


def _parsed(value: Any, parse: Callable[[str], Any], allowed: str) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and parse is Decimal:
        return Decimal(value)
    if not isinstance(value, str):
        raise Mismatch(value, allowed)
    try:
        return parse(value)
    except (ValueError, InvalidOperation, binascii.Error):
        raise Mismatch(value, allowed) from None


def _base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_TIME = (dt.time.fromisoformat, "a time in ISO 8601")
_MOMENT = (dt.datetime.fromisoformat, "a time and date in ISO 8601")
_LOGICAL: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    "decimal": (Decimal, "a decimal number as text"),
    "uuid": (UUID, "a UUID"),
    "date": (dt.date.fromisoformat, "a date in ISO 8601"),
    "time-millis": _TIME,
    "time-micros": _TIME,
    "timestamp-millis": _MOMENT,
    "timestamp-micros": _MOMENT,
    "local-timestamp-millis": _MOMENT,
    "local-timestamp-micros": _MOMENT,
}


def changed_fields(before: Any, after: Any, path: str = "") -> list[str]:
    """
    Return the paths at which two JSON-able values differ, without the values; lists count as a whole.

    >>> changed_fields({"a": 1, "b": {"c": 2}, "d": 4}, {"a": 1, "b": {"c": 3}, "d": 4})
    ['b.c']
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        names = [*before, *(name for name in after if name not in before)]
        return [
            one
            for name in names
            for one in changed_fields(
                before.get(name, ...), after.get(name, ...), f"{path}.{name}".removeprefix(".")
            )
        ]
    return [] if before == after else [path or "(the whole)"]
