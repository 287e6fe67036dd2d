"""From a message class to the values that stand on the wire: checked strictly, made once a class, run often."""

import threading
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

from packhorse.schemas.binding import Classes
from packhorse.schemas.mismatch import Mismatch
from packhorse.schemas.names import attribute
from packhorse.schemas.scalars import Convert, taker
from packhorse.schemas.tree import Array, Enum, Field, Fixed, Map, Node, Primitive, Record, Ref, Schema, Union

_SYMBOLS_SHOWN = 12
_NULL: Final = ("null", None)
MAX_NESTING: Final = 64
"""Reading takes up to eight frames of Python's 1,000 for each record inside another; a handler needs some, too."""


class RecordWriter:
    """Take an instance of one class; its fields are set after it is made, since a record may hold itself."""

    def __init__(self, cls: type) -> None:
        self._class = cls
        self._fields: tuple[tuple[str, Callable[[Any], Any], Convert, bool], ...] = ()

    def set_fields(self, fields: list[tuple[Field, Convert]]) -> None:
        self._fields = tuple(
            (field.name, attrgetter(attribute(field.name)), take, field.personal) for field, take in fields
        )

    def take(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, self._class):
            raise Mismatch(value, f"a {self._class.__name__}")
        wire: dict[str, Any] = {}
        name, personal = "", False
        try:
            for name, get, take, personal in self._fields:  # noqa: B007 - read when a field does not fit
                wire[name] = take(get(value))
        except Mismatch as mismatch:
            mismatch.in_field(name, personal=personal)
            raise
        return wire


class _Depth(threading.local):
    """How many records the current thread is inside of."""

    now = 0


class NestedRecordWriter(RecordWriter):
    """Take a record of a schema whose types hold themselves, up to a depth that every reader of ours can follow."""

    def __init__(self, cls: type, depth: _Depth) -> None:
        super().__init__(cls)
        self._depth = depth

    def take(self, value: Any) -> dict[str, Any]:
        self._depth.now += 1
        try:
            if self._depth.now > MAX_NESTING:
                raise Mismatch(value, f"at most {MAX_NESTING} records inside each other")
            return super().take(value)
        finally:
            self._depth.now -= 1


class EnumWriter:
    def __init__(self, node: Enum, cls: type) -> None:
        self._class = cls
        more = "…" if len(node.symbols) > _SYMBOLS_SHOWN else ""
        self._allowed = f"{cls.__name__}: {', '.join(node.symbols[:_SYMBOLS_SHOWN])}{more}"

    def take(self, value: Any) -> str:
        if isinstance(value, self._class):
            return value.value  # type: ignore[attr-defined,no-any-return]  # the class is a StrEnum
        raise Mismatch(value, self._allowed)


class ArrayWriter:
    def __init__(self, item: Convert) -> None:
        self._item = item

    def take(self, value: Any) -> list[Any]:
        if not isinstance(value, tuple | list):
            raise Mismatch(value, "a tuple or list")
        wire: list[Any] = []
        try:
            for item in value:
                wire.append(self._item(item))  # noqa: PERF401 - its length is the index of the item that does not fit
        except Mismatch as mismatch:
            mismatch.in_item(len(wire))
            raise
        return wire


class MapWriter:
    def __init__(self, key: Convert, value: Convert) -> None:
        self._key, self._value = key, value

    def take(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise Mismatch(value, "a mapping from text")
        wire: dict[str, Any] = {}
        key: Any = None
        try:
            for key, item in value.items():
                wire[self._key(key)] = self._value(item)
        except Mismatch as mismatch:
            mismatch.in_key(key)
            raise
        return wire


class OptionalWriter:
    """Take None or one type: the union that most optional fields are."""

    def __init__(self, tag: str, take: Convert) -> None:
        self._tag, self._take = tag, take

    def take(self, value: Any) -> tuple[str, Any]:
        if value is None:
            return _NULL
        try:
            return self._tag, self._take(value)
        except Mismatch as mismatch:
            if not mismatch.steps:
                mismatch.allowed = f"None, or {mismatch.allowed}"
            raise


class UnionWriter:
    """Take what one branch takes; the branch is chosen by the Python type, never by what happens to fit first."""

    def __init__(self, branches: list[tuple[str, Convert]]) -> None:
        self._branches = branches
        self._likely: dict[type, tuple[str, Convert]] = {}  # the branch that took the last value of a type

    def take(self, value: Any) -> tuple[str, Any]:
        if (likely := self._likely.get(type(value))) is not None:
            try:
                return likely[0], likely[1](value)
            except Mismatch as mismatch:
                if mismatch.steps:
                    raise
        return self._search(value)

    def _search(self, value: Any) -> tuple[str, Any]:
        allowed = []
        for tag, take in self._branches:
            try:
                wire = take(value)
            except Mismatch as mismatch:
                if mismatch.steps:  # the right branch, and something inside does not fit
                    raise
                allowed.append(mismatch.allowed)
                continue
            self._likely[type(value)] = (tag, take)
            return tag, wire
        raise Mismatch(value, ", or ".join(allowed))


class Writers:
    """Make the functions that take the values of one schema and its classes."""

    def __init__(self, schema: Schema, classes: Classes) -> None:
        self._schema = schema
        self._classes = classes
        self._records: dict[str, RecordWriter] = {}
        self._depth = _Depth() if schema.is_recursive() else None

    def take(self, node: Node) -> Convert:
        """Return the function that checks a Python value for *node* and returns the wire's; it raises Mismatch."""
        match node:
            case Primitive() | Fixed():
                return taker(node)
            case Enum():
                return EnumWriter(node, self._classes[node.name]).take
            case Array():
                return ArrayWriter(self.take(node.items)).take
            case Map():
                return MapWriter(taker(Primitive(kind="string")), self.take(node.values)).take
            case Union():
                return self._union(node)
            case Ref():
                return self.take(self._schema.names[node.name])
            case Record():
                return self._record(node)

    def _record(self, node: Record) -> Convert:
        if node.name not in self._records:
            cls = self._classes[node.name]
            writer = RecordWriter(cls) if self._depth is None else NestedRecordWriter(cls, self._depth)
            self._records[node.name] = writer
            writer.set_fields([(field, self.take(field.type)) for field in node.fields])
        return self._records[node.name].take

    def _union(self, node: Union) -> Convert:
        branches = [(tag_of(branch), self.take(branch)) for branch in by_strictness(node, self._schema)]
        if len(branches) == 2 and branches[0][0] == "null":
            return OptionalWriter(*branches[1]).take
        return UnionWriter(branches).take


def by_strictness(node: Union, schema: Schema) -> list[Node]:
    """Return the branches so that the first that takes a value is the one it means: an enum is also a text, say."""

    def rank(branch: Node) -> int:
        match schema.resolved(branch):
            case Primitive(kind="null"):
                return 0
            case Enum():
                return 1
            case Primitive(kind="float" | "double" | "string"):
                return 3
            case _:
                return 2

    return sorted(node.branches, key=rank)


def tag_of(branch: Node) -> str:
    """Return the word by which fastavro knows a branch of a union."""
    match branch:
        case Primitive():
            return branch.kind
        case Array():
            return "array"
        case Map():
            return "map"
        case Union():
            return "union"
        case _:
            return branch.name
