"""Decode payloads into message classes, whatever version of the schema they were written with."""

from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Protocol, TypeVar, cast

from packhorse.core.errors import SchemaError, Undecodable
from packhorse.core.message import TypedMessage
from packhorse.schemas.binding import Classes
from packhorse.schemas.bounds import check_bounded
from packhorse.schemas.codec import codec_of
from packhorse.schemas.framing import split
from packhorse.schemas.mismatch import Unreadable
from packhorse.schemas.parse import parse_schema
from packhorse.schemas.resolution import Resolver
from packhorse.schemas.scalars import Convert
from packhorse.schemas.tree import Schema
from packhorse.schemas.wire import UNREADABLE, WireReader

M = TypeVar("M", bound=TypedMessage)


class SchemaSource(Protocol):
    """Where writers' schemas come from; safe to share between threads."""

    def schema_of(self, schema_id: int) -> str:
        """
        Return the schema with the id, as JSON text that defines all it names; may block on the network, bounded.

        Raises:
            UnknownSchema: There is clearly no such id.
            Undecodable: There is one, and it is no Avro schema.
            RegistryUnavailable: Anything else; the same call may succeed later.
        """


class BodyReader:
    """Read Avro bodies of one writer's schema as the reader's values."""

    def __init__(self, writer: Schema, make: Convert | None) -> None:
        self._wire = WireReader(writer).read
        self._make = make

    def read(self, body: bytes) -> Any:
        """
        Return the value of *body*.

        Raises:
            Undecodable: The bytes are no Avro of the schema, or what they say has no place in the reader's.
        """
        buffer = BytesIO(body)
        try:
            wire = self._wire(buffer)
        except UNREADABLE as error:
            raise Undecodable(
                f"body of {len(body)} bytes is no Avro of its schema: {type(error).__name__} at byte {buffer.tell()}"
            ) from error
        if (end := buffer.tell()) != len(body):
            raise Undecodable(f"body of {len(body)} bytes is no Avro of its schema, which ends at byte {end}")
        try:
            return wire if self._make is None else self._make(wire)
        except Unreadable as error:
            raise Undecodable(
                f"body of {len(body)} bytes has no place in the reader's schema: {error}"
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A payload without a message class: records are dicts, enums texts; `redaction.masked` makes it fit to be shown."""

    schema_id: int
    schema: Schema
    value: Any = field(repr=False)


class Decoder:
    """
    Decode payloads; keeps what it learned of a schema id for ever, since ids never change their schema.

    Safe to share between threads: two that meet a new id at once both ask for it, and one answer is kept.
    """

    def __init__(self, source: SchemaSource) -> None:
        self._source = source
        self._readers: dict[tuple[int, type], BodyReader] = {}
        self._plain: dict[int, tuple[Schema, BodyReader]] = {}

    def decode(self, payload: bytes, cls: type[M]) -> M:
        """
        Return *payload* as an instance of *cls*, with the writer's schema resolved to the one that *cls* carries.

        Raises:
            Undecodable: The bytes are no Avro in the Confluent wire format, or can't become a *cls*.
            UnknownSchema: There is clearly no schema with the id in the payload.
            RegistryUnavailable: The schema can't be had now.
            SchemaError: *cls* is no message class, or does not fit its own schema.
        """
        schema_id, body = split(payload)
        reader = self._readers.get((schema_id, cls))
        if reader is None:
            reader = self._readers[schema_id, cls] = self._reader(schema_id, cls)
        return cast("M", reader.read(body))

    def plain(self, payload: bytes) -> Plain:
        """
        Return *payload* as its writer's schema tells it, for eyes and not for handlers; no message class is needed.

        Raises:
            Undecodable, UnknownSchema, RegistryUnavailable: As `decode` says.
        """
        schema_id, body = split(payload)
        if schema_id not in self._plain:
            writer = _parsed(self._source.schema_of(schema_id), schema_id)
            self._plain[schema_id] = (writer, _body_reader(writer, writer, None, schema_id))
        writer, reader = self._plain[schema_id]
        return Plain(schema_id=schema_id, schema=writer, value=reader.read(body))

    def _reader(self, schema_id: int, cls: type[M]) -> BodyReader:
        codec = codec_of(cls)
        writer = _parsed(self._source.schema_of(schema_id), schema_id)
        return _body_reader(writer, codec.schema, codec.classes, schema_id)


def _parsed(text: str, schema_id: int) -> Schema:
    try:
        schema = parse_schema(text)
    except SchemaError as error:
        raise Undecodable(f"schema {schema_id} is no Avro schema: {error}") from error
    try:
        check_bounded(schema)
    except SchemaError as error:
        raise Undecodable(f"schema {schema_id} is not read: {error}") from error
    return schema


def _body_reader(writer: Schema, reader: Schema, classes: Classes | None, schema_id: int) -> BodyReader:
    try:
        return BodyReader(writer, Resolver(writer, reader, classes).root())
    except RecursionError as error:
        raise Undecodable(f"schema {schema_id} nests types deeper than can be read") from error
