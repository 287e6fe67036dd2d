"""Encode message classes in the Confluent wire format, and decode what the same class wrote."""

from hashlib import sha256
from io import BytesIO
from typing import Any, Generic, TypeVar, cast

import fastavro

from packhorse.core.errors import SchemaError
from packhorse.core.message import TypedMessage
from packhorse.schemas.binding import bound, message_type
from packhorse.schemas.framing import prefix
from packhorse.schemas.mismatch import Mismatch
from packhorse.schemas.text import wire_schema
from packhorse.schemas.writing import Writers

M = TypeVar("M", bound=TypedMessage)


class Codec(Generic[M]):
    """
    Encode instances of one message class; made once, safe to share between threads.

    Raises:
        SchemaError: The class does not fit the schema that it carries.
    """

    def __init__(self, cls: type[M]) -> None:
        self.schema, self.classes = bound(cls)
        self._take = Writers(self.schema, self.classes).take(self.schema.root)
        self._wire: Any = fastavro.parse_schema(wire_schema(self.schema))
        self._name = message_type(cls).type

    def encode(self, message: M, schema_id: int) -> bytes:
        """
        Return the payload of *message*, framed with *schema_id*.

        Raises:
            ValueMismatch: A value does not fit; names its path, what was given and what is allowed.
            InvalidMessage: The schema id is out of range.
        """
        return self._written(message, BytesIO(prefix(schema_id)), in_order=False)

    def digest(self, message: M) -> str:
        """
        Return the SHA-256, in hex, of what *message* is: type, version and values; the same for equal messages.

        The order in which a mapping was filled counts for nothing, and neither does a registry's id.

        Raises:
            ValueMismatch: As `encode`.
        """
        kind = message_type(type(message))
        named = BytesIO(f"{kind.type}\0{kind.version}\0".encode())
        return sha256(self._written(message, named, in_order=True)).hexdigest()

    def _written(self, message: M, buffer: BytesIO, *, in_order: bool) -> bytes:
        buffer.seek(0, 2)
        try:
            wire = self._take(message)
            fastavro.schemaless_writer(buffer, self._wire, _ordered(wire) if in_order else wire)
        except Mismatch as mismatch:
            raise mismatch.as_error(self._name) from None
        except RecursionError:
            raise Mismatch(message, "nesting that Python can follow", why="too deep").as_error(
                self._name
            ) from None
        return buffer.getvalue()


def _ordered(wire: Any) -> Any:
    """Return the values on the wire with all that is kept by name in the order of the names."""
    match wire:
        case dict():
            return {name: _ordered(wire[name]) for name in sorted(wire)}
        case list():
            return [_ordered(one) for one in wire]
        case tuple():
            return tuple(_ordered(one) for one in wire)
    return wire


_CODECS: dict[type, Codec[Any]] = {}


def codec_of(cls: type[M]) -> Codec[M]:
    """
    Return the codec of *cls*, made at the first call and kept.

    Raises:
        SchemaError: The class does not fit the schema that it carries.
    """
    found = _CODECS.get(cls)
    if found is None:
        found = _CODECS[cls] = Codec(cls)
    return cast("Codec[M]", found)


def classes_in_use() -> tuple[type, ...]:
    """Return the message classes that this process has encoded or decoded so far, in the order of their first use."""
    return tuple(_CODECS)


def digest_message(message: TypedMessage) -> str:
    """
    Return the SHA-256, in hex, of type, version and values of *message*; see `Codec.digest`.

    Raises:
        SchemaError, ValueMismatch: As `encode_message`.
    """
    return codec_of(type(message)).digest(message)


def encode_message(message: TypedMessage, schema_id: int) -> bytes:
    """
    Return the payload of *message*, framed with *schema_id*.

    Raises:
        SchemaError: The class of *message* is no message class, or does not fit its schema.
        ValueMismatch: A value does not fit; names its path, what was given and what is allowed.
    """
    if isinstance(message, type):
        raise SchemaError(f"the class {message.__name__} was given; an instance of it is needed")
    return codec_of(type(message)).encode(message, schema_id)
