"""
Avro's schema resolution: what a reader's schema makes of the values that another schema wrote.

Made once for a pair of schemas, as functions from fastavro's values, read with the writer's schema, to the reader's.
All that does not resolve is listed as an `Incompatibility`; the functions raise `Unreadable` where a value meets it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum as PythonEnum
from typing import Any, Final

from packhorse.schemas.binding import Classes
from packhorse.schemas.building import builder_of
from packhorse.schemas.defaults import default_of
from packhorse.schemas.names import attribute
from packhorse.schemas.reading import (
    ArrayReader,
    EnumReader,
    MapReader,
    NamedBranches,
    PlainBranches,
    RecordReader,
    Refuse,
    make_utf8,
)
from packhorse.schemas.scalars import Convert, maker
from packhorse.schemas.tree import (
    Absent,
    Array,
    Enum,
    Field,
    Fixed,
    Logical,
    Map,
    Named,
    Node,
    Primitive,
    Record,
    Schema,
    Union,
)
from packhorse.schemas.writing import tag_of


class Rule(PythonEnum):
    """The rules of Avro's resolution that a pair of schemas can break; the value is the word in errors."""

    TYPE = "type"
    NAME = "name"
    SIZE = "size"
    MISSING_DEFAULT = "missing-default"
    MISSING_SYMBOL = "missing-symbol"
    MISSING_BRANCH = "missing-branch"
    LOGICAL_TYPE = "logical-type"
    DECIMAL = "decimal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incompatibility:
    """
    One place where a reader can't take what a writer may have written.

    Attributes:
        path: The field, dotted from the record; `[]` for the items of a list, `{}` for the values of a map.
        always: True when no value can be read there, False when some can.
    """

    path: str
    rule: Rule
    text: str
    always: bool = True


_PROMOTIONS: Final[Mapping[tuple[str, str], Callable[[Any], Any] | None]] = {
    ("int", "long"): None,
    ("int", "float"): float,
    ("int", "double"): float,
    ("long", "float"): float,
    ("long", "double"): float,
    ("float", "double"): None,
    ("string", "bytes"): str.encode,
    ("bytes", "string"): make_utf8,
}
_SAME_PYTHON_TYPE: Final = (
    frozenset({"timestamp-millis", "timestamp-micros"}),
    frozenset({"local-timestamp-millis", "local-timestamp-micros"}),
    frozenset({"time-millis", "time-micros"}),
)


_WIRE_TYPES: Final[Mapping[str, type]] = {
    "null": type(None),
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "bytes": bytes,
    "string": str,
    "array": list,
    "map": dict,
}


class Resolver:
    """
    Resolve *writer* against *reader*; `incompatibilities` lists, in order, what does not resolve.

    *classes* has a class for each record and enum of the reader; without it, records become dicts and enums texts.
    """

    def __init__(self, writer: Schema, reader: Schema, classes: Classes | None) -> None:
        self._writer, self._reader, self._classes = writer, reader, classes
        self._records: dict[tuple[str, str], RecordReader] = {}
        self.incompatibilities: list[Incompatibility] = []

    def root(self) -> Convert | None:
        """Return the function for the whole schema; None when a value is the same on both sides."""
        return self.resolve(self._writer.root, self._reader.root, "")

    def resolve(self, writer: Node, reader: Node, path: str) -> Convert | None:
        written, wanted = self._writer.resolved(writer), self._reader.resolved(reader)
        if isinstance(written, Union):
            return self._from_union(written, wanted, path)
        if isinstance(wanted, Union):
            return self._to_union(written, wanted, path)
        match written, wanted:
            case Primitive(), Primitive():
                return self._primitive(written, wanted, path)
            case Array(), Array():
                return ArrayReader(self.resolve(written.items, wanted.items, f"{path}[]")).make
            case Map(), Map():
                make = self.resolve(written.values, wanted.values, f"{path}{{}}")
                return None if make is None else MapReader(make).make
            case Record() | Enum() | Fixed(), Record() | Enum() | Fixed() if type(written) is type(wanted):
                return self._named(written, wanted, path)
            case _:
                return self._refuse(path, Rule.TYPE, f"{_kind(written)} was written, {_kind(wanted)} is read")

    def _warn(self, path: str, rule: Rule, text: str) -> None:
        self.incompatibilities.append(Incompatibility(path=path, rule=rule, text=text, always=False))

    def _refuse(self, path: str, rule: Rule, text: str) -> Convert:
        self.incompatibilities.append(Incompatibility(path=path, rule=rule, text=text))
        return Refuse(f"{text} (rule {rule.value})").make

    def _primitive(self, written: Primitive, wanted: Primitive, path: str) -> Convert | None:
        pair = (written.kind, wanted.kind)
        if written.kind == wanted.kind:
            return self._logical(written, wanted, path)
        if pair not in _PROMOTIONS:
            return self._refuse(path, Rule.TYPE, f"{written.kind} was written, {wanted.kind} is read")
        if pair == ("bytes", "string"):
            self._warn(path, Rule.TYPE, "bytes were written, text is read, and not all bytes are text")
        if written.logical and wanted.logical:
            return self._refuse(path, Rule.LOGICAL_TYPE, _logicals(written, wanted))
        if written.logical or wanted.logical:
            self._warn(path, Rule.LOGICAL_TYPE, _logicals(written, wanted))
        return _one_after_the_other(_PROMOTIONS[pair], maker(wanted))

    def _logical(self, written: Primitive | Fixed, wanted: Primitive | Fixed, path: str) -> Convert | None:
        old, new = written.logical, wanted.logical
        if old == new:
            return maker(wanted)
        if old is None or new is None:
            self._warn(path, Rule.LOGICAL_TYPE, _logicals(written, wanted))
            return maker(wanted)  # the same bytes, told as the reader's schema has it
        if old.name == new.name == "decimal":
            if old.scale != new.scale or old.precision > new.precision:
                self._warn(path, Rule.DECIMAL, _decimals(old, new))
            return maker(written)  # by its own scale, so the amount is right whatever the reader expects
        if any({old.name, new.name} <= names for names in _SAME_PYTHON_TYPE):
            self._warn(path, Rule.LOGICAL_TYPE, _logicals(written, wanted))
            return maker(written)
        return self._refuse(path, Rule.LOGICAL_TYPE, _logicals(written, wanted))

    def _named(self, written: Named, wanted: Named, path: str) -> Convert | None:
        if not _same_name(written, wanted):
            return self._refuse(path, Rule.NAME, f"{written.name} was written, {wanted.name} is read")
        match written, wanted:
            case Record(), Record():
                return self._record(written, wanted, path)
            case Enum(), Enum():
                return self._enum(written, wanted, path)
            case Fixed(), Fixed() if written.size == wanted.size:
                return self._logical(written, wanted, path)
            case Fixed(), Fixed():
                text = f"{written.size} bytes were written, {wanted.size} are read"
                return self._refuse(path, Rule.SIZE, text)
        raise AssertionError(f"{written} and {wanted} are of different kinds")

    def _enum(self, written: Enum, wanted: Enum, path: str) -> Convert | None:
        cls = self._classes[wanted.name] if self._classes is not None else str
        symbols = {symbol: cls(symbol) for symbol in wanted.symbols}
        missing = [symbol for symbol in written.symbols if symbol not in symbols]
        if wanted.default is not None:
            symbols |= {symbol: cls(wanted.default) for symbol in missing}
        elif missing:
            text = f"symbol {', '.join(missing)} may have been written; {wanted.name} has neither it nor a default"
            self._warn(path, Rule.MISSING_SYMBOL, text)
        return EnumReader(symbols, wanted.name).make

    def _record(self, written: Record, wanted: Record, path: str) -> Convert:
        pair = (written.name, wanted.name)
        if pair not in self._records:
            build = builder_of(self._classes[wanted.name]) if self._classes is not None else dict
            self._records[pair] = RecordReader(build)
            self._set_fields(self._records[pair], written, wanted, path)
        return self._records[pair].make

    def _set_fields(self, made: RecordReader, written: Record, wanted: Record, path: str) -> None:
        left = {field.name: field for field in written.fields}
        read: list[tuple[str, Convert]] = []
        renamed: list[tuple[str, str]] = []
        defaults: list[tuple[str, Callable[[], Any]]] = []
        for field in wanted.fields:
            inner = f"{path}.{field.name}".removeprefix(".")
            new = attribute(field.name) if self._classes is not None else field.name
            source = next((name for name in (field.name, *field.aliases) if name in left), None)
            if source is None:
                defaults.append((new, self._default(field, inner)))
                continue
            make = self.resolve(left.pop(source).type, field.type, inner)
            if make is not None:
                read.append((source, make))
            if new != source:
                renamed.append((source, new))
        made.set_fields(dropped=list(left), read=read, renamed=renamed, defaults=defaults)

    def _default(self, field: Field, path: str) -> Callable[[], Any]:
        if isinstance(field.default, Absent):
            text = f"field {field.name} was not written and has no default"
            refusal = self._refuse(path, Rule.MISSING_DEFAULT, text)
            return lambda: refusal(None)
        return default_of(field, self._reader, self._classes)

    def _from_union(self, written: Union, wanted: Node, path: str) -> Convert | None:
        named: dict[str, Convert | None] = {}
        plain: dict[type, Convert | None] = {}
        for branch in written.branches:
            make = self.resolve(branch, wanted, path)
            if isinstance(self._writer.resolved(branch), Record | Enum | Fixed):
                named[tag_of(branch)] = make
            else:
                plain[_WIRE_TYPES[tag_of(branch)]] = make
        if not named and all(make is None for make in plain.values()):
            return None
        other = PlainBranches(plain).make if plain else None
        return other if not named else NamedBranches(named, other).make

    def _to_union(self, written: Node, wanted: Union, path: str) -> Convert | None:
        for branch in sorted(wanted.branches, key=lambda one: not self._same_kind(written, one)):
            trial = Resolver(self._writer, self._reader, self._classes)
            trial._records = self._records  # a record that holds itself is resolved once
            make = trial.resolve(written, branch, path)
            always = any(one.always for one in trial.incompatibilities)
            if not always or self._same_kind(written, branch):
                self.incompatibilities.extend(trial.incompatibilities)
                return make
        options = " or ".join(_kind(self._reader.resolved(branch)) for branch in wanted.branches)
        return self._refuse(path, Rule.MISSING_BRANCH, f"{_kind(written)} was written, {options} is read")

    def _same_kind(self, written: Node, branch: Node) -> bool:
        wanted = self._reader.resolved(branch)
        match written, wanted:
            case Primitive(), Primitive():
                return written.kind == wanted.kind
            case Record() | Enum() | Fixed(), Record() | Enum() | Fixed():
                return type(written) is type(wanted) and _same_name(written, wanted)
            case _:
                return type(written) is type(wanted)


def _one_after_the_other(first: Convert | None, second: Convert | None) -> Convert | None:
    if first is None or second is None:
        return first or second
    return lambda wire: second(first(wire))


def _logicals(written: Primitive | Fixed, wanted: Primitive | Fixed) -> str:
    old, new = (node.logical.name if node.logical else "no logical type" for node in (written, wanted))
    return f"{old} on {_kind(written)} was written, {new} on {_kind(wanted)} is read"


def _decimals(old: Logical, new: Logical) -> str:
    return (
        f"decimal({old.precision}, {old.scale}) was written, decimal({new.precision}, {new.scale}) is read; "
        "the scale must stay, the precision may only grow"
    )


def _same_name(written: Named, wanted: Named) -> bool:
    short = written.name.rpartition(".")[2]
    return (
        short == wanted.name.rpartition(".")[2] or written.name in wanted.aliases or short in wanted.aliases
    )


def _kind(node: Node) -> str:
    match node:
        case Primitive():
            return node.kind
        case Record() | Enum() | Fixed():
            return f"{type(node).__name__.lower()} {node.name}"
        case _:
            return type(node).__name__.lower()
