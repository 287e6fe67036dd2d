"""Message classes from JSON that somebody has sent: the same rules as for values that a program gives, and the same errors."""

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, cast

from packhorse.core.message import TypedMessage
from packhorse.schemas.binding import message_type
from packhorse.schemas.codec import codec_of
from packhorse.schemas.decode import BodyReader
from packhorse.schemas.framing import split
from packhorse.schemas.plain import encode_plain, given_or_default
from packhorse.schemas.resolution import Resolver

M = TypeVar("M", bound=TypedMessage)


def message_from_json(cls: type[M], values: Mapping[str, Any]) -> M:
    """
    Return the message of class *cls* that *values* tell, as JSON was parsed; fields that are left out take the schema's defaults.

    Texts stand for what JSON has not: times in ISO 8601, bytes in base64, decimals and UUIDs as they are printed.

    Raises:
        ValueMismatch: A value does not fit, is missing or is not known; `path` and `allowed` say where and what may stand there.
        SchemaError: *cls* is no message class, or does not fit its schema.
    """
    codec = codec_of(cls)
    payload = encode_plain(values, codec.schema, 1, what=message_type(cls).type, given=given_or_default)
    return cast("M", _reader(cls).read(split(payload)[1]))


@cache
def _reader(cls: type[TypedMessage]) -> BodyReader:
    codec = codec_of(cls)
    return BodyReader(codec.schema, Resolver(codec.schema, codec.schema, codec.classes).root())
