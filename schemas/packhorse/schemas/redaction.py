"""Which fields of a schema are personal, and values with those fields masked."""

import base64
import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import Enum as PythonEnum
from typing import Any, Final
from uuid import UUID

from packhorse.schemas.tree import Array, Field, Map, Node, Record, Schema, Union

MASK: Final = "***"


def personal_paths(schema: Schema) -> tuple[str, ...]:
    """
    Return the paths of all fields marked personal, in the schema's order.

    Items of a list stand as `[]`, values of a map as `{}`; a record that holds itself is followed once.
    """
    return tuple(_paths(schema, schema.root, "", frozenset()))


def _paths(schema: Schema, node: Node, path: str, inside: frozenset[str]) -> Iterator[str]:
    match schema.resolved(node):
        case Array(items=items):
            yield from _paths(schema, items, f"{path}[]", inside)
        case Map(values=values):
            yield from _paths(schema, values, f"{path}{{}}", inside)
        case Union(branches=branches):
            yield from dict.fromkeys(
                one for branch in branches for one in _paths(schema, branch, path, inside)
            )
        case Record(name=name, fields=fields) if name not in inside:
            for field in fields:
                here = f"{path}.{field.name}".removeprefix(".")
                if field.personal:
                    yield here
                else:
                    yield from _paths(schema, field.type, here, inside | {name})
        case _:
            return


def masked(value: Any, schema: Schema) -> Any:
    """
    Return *value*, as `Decoder.plain` gives it, made of what JSON knows and with personal fields masked.

    Where a union leaves open which record a value is, a field counts as personal when any of the records says so.
    What the schema does not know at all is masked too.
    """
    return _masked(value, schema, [schema.root])


def shown(value: Any) -> Any:
    """Return *value*, as `Decoder.plain` gives it, made of what JSON knows and with nothing masked: for who may see it."""
    match value:
        case Mapping():
            return {name: shown(item) for name, item in value.items()}
        case list() | tuple():
            return [shown(item) for item in value]
        case _:
            return printable(value)


def _masked(value: Any, schema: Schema, nodes: list[Node]) -> Any:
    flat = [branch for node in nodes for branch in _flat(schema, node)]
    match value:
        case Mapping() if records := [node for node in flat if isinstance(node, Record)]:
            return {name: _field(name, item, schema, records) for name, item in value.items()}
        case Mapping() if maps := [node.values for node in flat if isinstance(node, Map)]:
            return {key: _masked(item, schema, maps) for key, item in value.items()}
        case list() | tuple() if arrays := [node.items for node in flat if isinstance(node, Array)]:
            return [_masked(item, schema, arrays) for item in value]
        case Mapping() | list() | tuple():
            return MASK
        case _:
            return printable(value)


def _field(name: str, value: Any, schema: Schema, records: list[Record]) -> Any:
    fields: list[Field] = [field for record in records for field in record.fields if field.name == name]
    if not fields or any(field.personal for field in fields):
        return None if value is None else MASK
    return _masked(value, schema, [field.type for field in fields])


def _flat(schema: Schema, node: Node) -> Iterator[Node]:
    found = schema.resolved(node)
    if isinstance(found, Union):
        for branch in found.branches:
            yield from _flat(schema, branch)
    else:
        yield found


def printable(value: Any) -> Any:
    """Return a scalar as JSON can hold it without loss that a person would notice: times in ISO 8601, bytes in base64."""
    match value:
        case PythonEnum():
            return value.value
        case bytes():
            return base64.b64encode(value).decode()
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case _:
            return value
