"""Read an Avro schema from JSON into its tree; every error names the place in the schema."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from packhorse.core.errors import SchemaError
from packhorse.schemas.tree import (
    ABSENT,
    PERSONAL,
    PRIMITIVES,
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
    Ref,
    Schema,
    Union,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOGICAL_BASES: Final[Mapping[str, frozenset[str]]] = {
    "uuid": frozenset({"string", "fixed"}),
    "decimal": frozenset({"bytes", "fixed"}),
    "date": frozenset({"int"}),
    "time-millis": frozenset({"int"}),
    "time-micros": frozenset({"long"}),
    "timestamp-millis": frozenset({"long"}),
    "timestamp-micros": frozenset({"long"}),
    "local-timestamp-millis": frozenset({"long"}),
    "local-timestamp-micros": frozenset({"long"}),
}
_UUID_BYTES = 16
MAX_PRECISION: Final = 1_000
"""Digits of a decimal; no database keeps more, and the time to read one grows with their square."""

Find: TypeAlias = Callable[[str], Schema | None]
"""Return the schema that defines a full name, or None."""


def _nowhere(name: str) -> None:
    del name


def parse_schema(text: str, *, find: Find | None = None, strict: bool = False) -> Schema:
    """
    Return the tree of the schema in the JSON *text*; *find* is asked for types that it names without defining them.

    *strict* is for our own folder: a logical type that does not fit its base is refused instead of ignored, as the
    Avro specification has it for readers, and every name needs a namespace.

    Raises:
        SchemaError: The text is no JSON or no Avro schema; names the place, what stands there and what is allowed.
    """
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"schema is no JSON: {error}") from None
    parser = _Parser(find=find or _nowhere, strict=strict)
    try:
        root = parser.node(raw, namespace="", path="")
    except RecursionError:
        raise SchemaError("schema nests types deeper than can be read") from None
    return Schema(root=root, names=parser.names)


def is_name(text: object) -> bool:
    """Say whether *text* is a name that Avro allows, without a namespace."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


@dataclass(slots=True, kw_only=True)
class _Parser:
    find: Find
    strict: bool
    names: dict[str, Named] = field(default_factory=dict)
    own: set[str] = field(
        default_factory=set
    )  # names that this text defines, or that were asked for and found
    open: set[str] = field(
        default_factory=set
    )  # records whose fields are being read: they may name themselves

    def node(self, raw: Any, *, namespace: str, path: str) -> Node:
        match raw:
            case str():
                return self._name_or_primitive(raw, namespace, path)
            case list():
                return self._union(raw, namespace, path)
            case {"type": str() as kind}:
                return self._typed(kind, raw, namespace, path)
            case {"type": dict() | list() as inner}:
                return self.node(inner, namespace=namespace, path=path)
            case _:
                raise _error(
                    path, f"{_shown(raw)} is no type; a name, a union or an object with a type is needed"
                )

    def _name_or_primitive(self, name: str, namespace: str, path: str) -> Node:
        if name in PRIMITIVES:
            return Primitive(kind=name)
        candidates = [name] if "." in name or not namespace else [f"{namespace}.{name}", name]
        for candidate in candidates:
            if candidate in self.own or candidate in self.open or self._found(candidate, path):
                return Ref(name=candidate)
        raise _error(
            path, f"type {name!r} is not known; define it before, or put it in a subject of its own name"
        )

    def _found(self, name: str, path: str) -> bool:
        if (found := self.find(name)) is None:
            return name in self.names
        for other, named in found.names.items():
            if other in self.open or self.names.get(other, named) != named:
                raise _error(
                    path, f"{other} comes in with two meanings; let all references pin one version of it"
                )
            self.names[other] = named
        self.own.add(name)
        return name in found.names

    def _union(self, raw: list[Any], namespace: str, path: str) -> Union:
        branches = tuple(
            self.node(item, namespace=namespace, path=f"{path}<{index}>") for index, item in enumerate(raw)
        )
        seen: set[str] = set()
        for branch in branches:
            if isinstance(branch, Union):
                raise _error(path, "a union stands directly in a union; make it one")
            key = _union_key(branch)
            if key in seen:
                raise _error(path, f"the union has {key} twice; a reader could not tell them apart")
            seen.add(key)
        if not branches:
            raise _error(path, "the union is empty; it needs one branch at least")
        return Union(branches=branches)

    def _typed(self, kind: str, raw: dict[str, Any], namespace: str, path: str) -> Node:
        if kind in PRIMITIVES:
            return Primitive(kind=kind, logical=self._logical(raw, kind, path))
        match kind:
            case "array":
                return Array(items=self.node(raw.get("items"), namespace=namespace, path=f"{path}[]"))
            case "map":
                return Map(values=self.node(raw.get("values"), namespace=namespace, path=f"{path}{{}}"))
            case "enum" | "fixed" | "record" | "error":
                return self._named(kind, raw, namespace, path)
            case _:
                return self._name_or_primitive(kind, namespace, path)

    def _named(self, kind: str, raw: dict[str, Any], namespace: str, path: str) -> Named:
        name = self._full_name(raw, namespace, path)
        inner = name.rpartition(".")[0]
        if name in self.names or name in self.open:
            raise _error(path, f"{name} is defined twice; name it the second time, without a definition")
        self.open.add(name)
        aliases = tuple(
            _qualified(alias, inner) for alias in _texts(raw.get("aliases", []), f"{path}.aliases")
        )
        made: Named
        if kind == "enum":
            made = self._enum(name, raw, aliases, path)
        elif kind == "fixed":
            made = self._fixed(name, raw, aliases, path)
        else:
            made = Record(name=name, fields=self._fields(raw, inner, path), aliases=aliases, doc=_doc(raw))
        self.open.discard(name)
        self.names[name] = made
        self.own.add(name)
        return made

    def _full_name(self, raw: dict[str, Any], namespace: str, path: str) -> str:
        name, own = raw.get("name"), raw.get("namespace", namespace)
        if not isinstance(name, str) or not isinstance(own, str):
            raise _error(path, f"name {_shown(name)} in namespace {_shown(own)}; both must be text")
        full = _qualified(name, own)
        if not all(is_name(part) for part in full.split(".")):
            raise _error(
                path, f"name {full!r} is not allowed: parts of A-Z a-z 0-9 _, not beginning with a digit"
            )
        if self.strict and "." not in full:
            raise _error(
                path, f"{full} has no namespace; give it one, so that no other team's {full} is meant"
            )
        return full

    def _enum(self, name: str, raw: dict[str, Any], aliases: tuple[str, ...], path: str) -> Enum:
        symbols = _texts(raw.get("symbols"), f"{path}.symbols")
        bad = [symbol for symbol in symbols if not is_name(symbol)]
        default = raw.get("default")
        if not symbols or bad or len(set(symbols)) != len(symbols):
            raise _error(
                path, f"symbols {_shown(bad or list(symbols))} of {name}; they must be names, each once"
            )
        if default is not None and default not in symbols:
            raise _error(path, f"default {_shown(default)} of {name} is none of its symbols")
        return Enum(name=name, symbols=symbols, default=default, aliases=aliases, doc=_doc(raw))

    def _fixed(self, name: str, raw: dict[str, Any], aliases: tuple[str, ...], path: str) -> Fixed:
        size = raw.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise _error(path, f"size {_shown(size)} of {name}; a number of bytes is needed")
        logical = self._logical(raw, "fixed", path, size=size)
        return Fixed(name=name, size=size, aliases=aliases, logical=logical, doc=_doc(raw))

    def _fields(self, raw: dict[str, Any], namespace: str, path: str) -> tuple[Field, ...]:
        items = raw.get("fields")
        if not isinstance(items, list):
            raise _error(path, f"fields {_shown(items)}; a list is needed")
        made: dict[str, Field] = {}
        for item in items:
            if not isinstance(item, dict) or not is_name(item.get("name")):
                raise _error(path, f"field {_shown(item)}; an object with a name of A-Z a-z 0-9 _ is needed")
            one = self._field(item, namespace, f"{path}.{item['name']}".removeprefix("."))
            if one.name in made:
                raise _error(path, f"field {one.name} stands twice")
            made[one.name] = one
        return tuple(made.values())

    def _field(self, raw: dict[str, Any], namespace: str, path: str) -> Field:
        personal = raw.get(PERSONAL, False)
        if not isinstance(personal, bool):
            raise _error(path, f"{PERSONAL} {_shown(personal)}; true or false is needed")
        return Field(
            name=raw["name"],
            type=self.node(raw.get("type"), namespace=namespace, path=path),
            default=raw.get("default", ABSENT),
            aliases=_texts(raw.get("aliases", []), f"{path}.aliases"),
            doc=_doc(raw),
            personal=personal,
            unmarked=PERSONAL in raw and not personal,
        )

    def _logical(
        self, raw: dict[str, Any], base: str, path: str, *, size: int | None = None
    ) -> Logical | None:
        name = raw.get("logicalType")
        if not isinstance(name, str) or name not in _LOGICAL_BASES:
            return None
        fault = (
            None
            if base in _LOGICAL_BASES[name]
            else f"it stands on {' or '.join(sorted(_LOGICAL_BASES[name]))}"
        )
        if name == "uuid" and size not in {None, _UUID_BYTES}:
            fault = f"a fixed one has {_UUID_BYTES} bytes"
        if name == "decimal":
            fault = fault or _decimal_fault(raw.get("precision"), raw.get("scale", 0), size)
        if fault is None:
            extra = {"precision": raw["precision"], "scale": raw.get("scale", 0)} if name == "decimal" else {}
            return Logical(name=name, **extra)
        if self.strict:
            raise _error(path, f"logical type {name} on {base}: {fault}")
        return None


def _decimal_fault(precision: Any, scale: Any, size: int | None) -> str | None:
    if not isinstance(precision, int) or isinstance(precision, bool) or not 1 <= precision <= MAX_PRECISION:
        return f"precision {_shown(precision)}; 1 to {MAX_PRECISION} digits are allowed"
    if not isinstance(scale, int) or isinstance(scale, bool) or not 0 <= scale <= precision:
        return f"scale {_shown(scale)}; 0 to the precision of {precision} is allowed"
    if size is not None and 10**precision > 2 ** (8 * size - 1):
        return f"precision {precision} does not fit {size} bytes"
    return None


def _union_key(node: Node) -> str:
    match node:
        case Primitive():
            return node.kind
        case Array():
            return "array"
        case Map():
            return "map"
        case Union():
            return "union"
        case _:
            return node.name


def _qualified(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _texts(raw: Any, path: str) -> tuple[str, ...]:
    if not isinstance(raw, list) or not all(isinstance(item, str) for item in raw):
        raise _error(path, f"{_shown(raw)}; a list of texts is needed")
    return tuple(raw)


def _doc(raw: dict[str, Any]) -> str:
    doc = raw.get("doc", "")
    return doc if isinstance(doc, str) else ""


def _shown(raw: Any) -> str:
    text = json.dumps(raw, default=str)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _error(path: str, text: str) -> SchemaError:
    return SchemaError(f"{path or 'schema'}: {text}")
