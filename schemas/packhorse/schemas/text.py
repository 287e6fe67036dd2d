"""Print a schema's tree as JSON: with all that it says, or only what stands on the wire; and its fingerprint."""

import hashlib
import json
from typing import Any

from packhorse.schemas.parse import parse_schema
from packhorse.schemas.tree import (
    PERSONAL,
    Absent,
    Array,
    Enum,
    Field,
    Fixed,
    Logical,
    Map,
    Node,
    Primitive,
    Record,
    Ref,
    Schema,
    Union,
)


def resolved_text(schema: Schema) -> str:
    """Return *schema* as one line of JSON that needs no other: every type is defined where it is first named."""
    return json.dumps(_Printer(schema, wire=False).node(schema.root), separators=(",", ":"))


def wire_schema(schema: Schema) -> Any:
    """Return only what decides the bytes, as JSON values: no logical types, defaults, aliases or docs."""
    return _Printer(schema, wire=True).node(schema.root)


def wire_text(schema: Schema) -> str:
    """Return the wire schema as text; equal texts write equal bytes."""
    return json.dumps(wire_schema(schema), separators=(",", ":"))


def fingerprint(text: str) -> str:
    """
    Return the SHA-256, in hex, of what the schema in *text* means: docs, order of properties and spaces do not count.

    *text* must define all that it names.

    Raises:
        SchemaError: It is no Avro schema.
    """
    return hashlib.sha256(resolved_text(parse_schema(text)).encode()).hexdigest()


class _Printer:
    def __init__(self, schema: Schema, *, wire: bool) -> None:
        self._schema = schema
        self._wire = wire
        self._printed: set[str] = set()

    def node(self, node: Node) -> Any:
        match node:
            case Primitive():
                logical = self._logical(node.logical)
                return {"type": node.kind, **logical} if logical else node.kind
            case Array():
                return {"type": "array", "items": self.node(node.items)}
            case Map():
                return {"type": "map", "values": self.node(node.values)}
            case Union():
                return [self.node(branch) for branch in node.branches]
            case Ref() | Record() | Enum() | Fixed():
                return self._named(node)

    def _named(self, node: Ref | Record | Enum | Fixed) -> Any:
        if node.name in self._printed:
            return node.name
        self._printed.add(node.name)
        definition = self._schema.names[node.name]
        head: dict[str, Any] = {"type": type(definition).__name__.lower(), "name": definition.name}
        if "." not in definition.name:
            head["namespace"] = ""  # or it would take the namespace of the record around it
        if definition.aliases and not self._wire:
            head["aliases"] = list(definition.aliases)
        match definition:
            case Record():
                return {**head, "fields": [self._field(field) for field in definition.fields]}
            case Enum():
                default = {} if self._wire or definition.default is None else {"default": definition.default}
                return {**head, "symbols": list(definition.symbols), **default}
            case Fixed():
                return {**head, "size": definition.size, **self._logical(definition.logical)}

    def _field(self, field: Field) -> dict[str, Any]:
        made: dict[str, Any] = {"name": field.name, "type": self.node(field.type)}
        if self._wire:
            return made
        if not isinstance(field.default, Absent):
            made["default"] = field.default
        if field.aliases:
            made["aliases"] = list(field.aliases)
        if field.personal:
            made[PERSONAL] = True
        return made

    def _logical(self, logical: Logical | None) -> dict[str, Any]:
        if logical is None or self._wire:
            return {}
        digits = {"precision": logical.precision, "scale": logical.scale} if logical.precision else {}
        return {"logicalType": logical.name, **digits}
