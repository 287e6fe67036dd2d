"""Which Python class stands for which named type of a message's schema, and whether they fit."""

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from packhorse.core.errors import SchemaError
from packhorse.core.message import MessageType
from packhorse.schemas.names import attribute
from packhorse.schemas.parse import parse_schema
from packhorse.schemas.tree import Enum, Record, Schema

Classes = Mapping[str, type]


def message_type(cls: type) -> MessageType:
    """
    Return what the message class *cls* is on the wire.

    Raises:
        SchemaError: It is no message class.
    """
    found = getattr(cls, "__packhorse__", None)
    if not isinstance(found, MessageType):
        raise SchemaError(
            f"{cls.__name__} is no message class: it has no __packhorse__; make it with `packhorse schemas generate`"
        )
    return found


def bound(cls: type) -> tuple[Schema, Classes]:
    """
    Return the schema of the message class *cls*, and the class of each record and enum in it by full name.

    Raises:
        SchemaError: A class is missing, or its fields or symbols are not those of the schema; names subject, version
            and field.
    """
    about = message_type(cls)
    where = f"{about.subject} v{about.version}"
    try:
        schema = parse_schema(about.schema)
        classes = dict(_reachable(cls))
        for name, named in schema.names.items():
            if isinstance(named, Record | Enum):
                _check(named, classes.get(name))
    except (SchemaError, NameError, TypeError) as error:
        raise SchemaError(
            f"{where}: class {cls.__name__} does not fit its schema: {error}; run `packhorse schemas generate`"
        ) from error
    return schema, classes


def _reachable(cls: type) -> Iterator[tuple[str, type]]:
    waiting, seen = [cls], set[type]()
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        if (name := _avro_name(current)) is not None:
            yield name, current
        if dataclasses.is_dataclass(current):
            for hint in typing.get_type_hints(current).values():
                waiting.extend(_classes_in(hint))


def _classes_in(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and not typing.get_args(hint):
        yield hint
    for argument in typing.get_args(hint):
        yield from _classes_in(argument)


def _avro_name(cls: type) -> str | None:
    about = cls.__dict__.get("__packhorse__")
    if isinstance(about, MessageType):
        return about.type
    name = cls.__dict__.get("__avro__")
    return name if isinstance(name, str) else None


def _check(named: Record | Enum, cls: type | None) -> None:
    if cls is None:
        raise SchemaError(f"no field has a class for {named.name}")
    if isinstance(named, Enum):
        given = {str(item) for item in cls} if issubclass(cls, StrEnum) else set()
        needed = set(named.symbols)
    else:
        given = {item.name for item in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
        needed = {attribute(field.name) for field in named.fields}
    if missing := sorted(needed - given):
        raise SchemaError(f"{cls.__name__} has no {missing[0]}, which {named.name} needs")
    if extra := sorted(given - needed):
        raise SchemaError(f"{cls.__name__} has {extra[0]}, which {named.name} has not")
