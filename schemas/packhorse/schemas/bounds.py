"""
What a schema must not say, so that few bytes never become many values: any topic's bytes are read in bounded time.

Avro's lists count their items before them. Where an item takes no bytes, a body of ten bytes can ask for as many as it
likes; a record made of such values, doubled some thirty times, needs no byte at all.
"""

from dataclasses import dataclass, field
from typing import Final

from packhorse.core.errors import SchemaError
from packhorse.schemas.tree import Array, Fixed, Map, Node, Primitive, Record, Ref, Schema, Union

MAX_FREE: Final = 64
"""Values without bytes in one record, those of the records in it included: each byte on the wire may bring so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weight:
    """*free*: values that come without bytes of their own; *some*: whether the whole takes a byte at least."""

    free: int
    some: bool


_BYTES: Final = _Weight(free=0, some=True)
_NO_BYTES: Final = _Weight(free=1, some=False)


def check_bounded(schema: Schema) -> None:
    """
    Look for lists of items without bytes, and for records of too many such values.

    Raises:
        SchemaError: There is one, or types nest too deep to look; names the place and the rule.
    """
    try:
        _Weights(schema=schema).of(schema.root, "")
    except RecursionError:
        raise SchemaError("the schema nests types deeper than can be read") from None


@dataclass(slots=True, kw_only=True)
class _Weights:
    schema: Schema
    known: dict[str, _Weight] = field(default_factory=dict)

    def of(self, node: Node, path: str) -> _Weight:
        match node:
            case Primitive(kind="null") | Fixed(size=0):
                return _NO_BYTES
            case Array():
                if not self.of(node.items, f"{path}[]").some:
                    raise SchemaError(
                        f"{path or 'the schema'}: items without bytes (null, a record without fields, fixed of 0 bytes): "
                        "a few bytes could ask for billions; give the item a field, or store the number of them"
                    )
                return _BYTES
            case Map():
                self.of(node.values, f"{path}{{}}")
                return _BYTES
            case Union():
                for branch in node.branches:
                    self.of(branch, path)
                return _BYTES
            case Ref():
                return self.of(self.schema.names[node.name], path)
            case Record():
                return self._record(node, path)
            case _:
                return _BYTES

    def _record(self, node: Record, path: str) -> _Weight:
        if node.name not in self.known:
            self.known[node.name] = _BYTES  # a record that holds itself: looked at once
            parts = [self.of(one.type, f"{path}.{one.name}".removeprefix(".")) for one in node.fields]
            free, some = sum(part.free for part in parts), any(part.some for part in parts)
            if free > MAX_FREE:
                raise SchemaError(
                    f"{path or node.name}: {free} values without bytes (null, a record without fields, fixed of 0 bytes) "
                    f"in one record; at most {MAX_FREE} are allowed"
                )
            self.known[node.name] = _Weight(free=free + (not some), some=some)
        return self.known[node.name]
