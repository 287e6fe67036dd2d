"""An Avro schema as a tree of values, with its names known; parsing stands in `parse.py`, printing in `text.py`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
PERSONAL: Final = "packhorse.personal"
"""The field property that marks personal data."""

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class Absent:
    """Stand for a default that is not there; None is a default of its own."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()


@dataclass(frozen=True, slots=True, kw_only=True)
class Logical:
    """A logical type; precision and scale are a decimal's, in digits."""

    name: str
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Primitive:
    """One of the eight types without a name."""

    kind: str
    logical: Logical | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """A named type of *size* bytes."""

    name: str
    size: int
    aliases: tuple[str, ...] = ()
    logical: Logical | None = None
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enum:
    """A named list of symbols; a reader takes *default* for a symbol that it does not know."""

    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    items: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    values: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    branches: tuple["Node", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """The full name of a type that is defined elsewhere in the schema."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """
    A field of a record.

    Attributes:
        default: JSON value that a reader takes when the writer had no such field; ABSENT when it has none.
        personal: True when the value must not be shown to anybody without the right to see it.
        unmarked: True when the schema says itself that the field is not personal.
    """

    name: str
    type: "Node"
    default: "Json | Absent" = ABSENT
    aliases: tuple[str, ...] = ()
    doc: str = ""
    personal: bool = False
    unmarked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    name: str
    fields: tuple[Field, ...]
    aliases: tuple[str, ...] = ()
    doc: str = ""


Named: TypeAlias = Record | Enum | Fixed
Node: TypeAlias = Primitive | Fixed | Enum | Array | Map | Union | Record | Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A root and every named type that it reaches."""

    root: Node
    names: Mapping[str, Named]

    def resolved(self, node: Node) -> Primitive | Fixed | Enum | Array | Map | Union | Record:
        """Return what *node* stands for: itself, or the type that it names."""
        return self.names[node.name] if isinstance(node, Ref) else node

    @property
    def record(self) -> Record | None:
        """Return the root when it is a record."""
        root = self.resolved(self.root)
        return root if isinstance(root, Record) else None

    def is_recursive(self) -> bool:
        """Say whether a type holds itself, so that values can be nested without end."""
        return any(name in self._within(named) for name, named in self.names.items())

    def has_named_branches(self) -> bool:
        """Say whether a union has a record, enum or fixed among its branches."""
        waiting: list[Node] = [self.root, *self.names.values()]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Union) and any(
                isinstance(self.resolved(one), Named) for one in node.branches
            ):
                return True
            if not isinstance(node, Ref):
                waiting.extend(_parts(node))
        return False

    def _within(self, node: Node) -> set[str]:
        """Return the names of all types that are met inside *node*, at any depth."""
        found: set[str] = set()
        waiting = list(_parts(node))
        while waiting:
            part = waiting.pop()
            name = getattr(part, "name", None)
            if name is None:
                waiting.extend(_parts(part))
            elif name not in found:
                found.add(name)
                waiting.extend(_parts(self.names[name]))
        return found


def _parts(node: Node) -> tuple[Node, ...]:
    match node:
        case Array():
            return (node.items,)
        case Map():
            return (node.values,)
        case Union():
            return node.branches
        case Record():
            return tuple(field.type for field in node.fields)
        case _:
            return ()
