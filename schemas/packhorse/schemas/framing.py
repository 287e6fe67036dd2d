"""The Confluent wire format: one zero byte, the schema id as four bytes big-endian, then Avro without a header."""

from struct import Struct
from typing import Final

from packhorse.core.errors import InvalidMessage, Undecodable

MAGIC: Final = 0
PREFIX_BYTES: Final = 5
_prefix: Final = Struct(">BI").unpack_from
MAX_SCHEMA_ID: Final = 2**31 - 1
"""Registries count in signed 32 bits."""


def prefix(schema_id: int) -> bytes:
    r"""
    Return the five bytes that stand before the Avro body.

    >>> prefix(7)
    b'\x00\x00\x00\x00\x07'

    Raises:
        InvalidMessage: The id is not what a registry hands out.
    """
    if not 0 <= schema_id <= MAX_SCHEMA_ID:
        raise InvalidMessage(f"schema id {schema_id} is not allowed: 0 to {MAX_SCHEMA_ID}")
    return MAGIC.to_bytes(1) + schema_id.to_bytes(4)


def split(payload: bytes) -> tuple[int, bytes]:
    """
    Return the schema id and the Avro body of *payload*.

    Raises:
        Undecodable: It is too short, does not begin with the zero byte, or holds a negative id; names which.
    """
    if len(payload) < PREFIX_BYTES:
        raise Undecodable(
            f"payload of {len(payload)} bytes; at least {PREFIX_BYTES} are needed for the schema id"
        )
    magic, schema_id = _prefix(payload)
    if magic != MAGIC:
        raise Undecodable(
            f"payload begins with byte 0x{magic:02x}; the Confluent wire format begins with 0x00"
        )
    if schema_id > MAX_SCHEMA_ID:
        raise Undecodable(f"payload names schema id {schema_id}; ids go up to {MAX_SCHEMA_ID}")
    return schema_id, payload[PREFIX_BYTES:]
