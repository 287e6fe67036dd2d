"""Read Avro bytes with fastavro, and refuse what it lets through: the one place that knows fastavro's insides."""

from collections.abc import Callable
from io import BytesIO
from typing import Any, Final

import fastavro
from fastavro import _read_py
from fastavro.io.binary_decoder import BinaryDecoder

from packhorse.schemas.text import wire_schema
from packhorse.schemas.tree import Schema

UNREADABLE: Final = (
    EOFError,
    IndexError,
    KeyError,
    ValueError,
    OverflowError,
    MemoryError,
    RecursionError,
)
"""What a read raises for bytes that are no Avro of the schema."""
_MOST_VARINT_BYTES = 10
_reader: Final = fastavro.schemaless_reader
_read_data: Final[Callable[..., Any]] = _read_py.read_data


class WireReader:
    """
    Read the values of one writer's schema as they stand on the wire.

    Some bytes that no writer makes are read as something, as fastavro does: a boolean's byte above 1 is True, an int may
    have 64 bits, a union's negative index counts from its end. Such a value is of the right kind, and cheap to read.
    """

    def __init__(self, schema: Schema) -> None:
        self._named: dict[str, Any] = {}
        self._wire: Any = fastavro.parse_schema(wire_schema(schema), self._named)
        if schema.record is not None:  # fastavro looks at any other root again each time, and wants lists
            _number_symbols(self._wire)
            _number_symbols(self._named)
        self._pairs = schema.has_named_branches()
        self._recursive = schema.is_recursive()

    def read(self, buffer: BytesIO) -> Any:
        """Return the value that *buffer* begins with; raise one of UNREADABLE when there is none."""
        if self._recursive:
            # The compiled reader follows any nesting until the process dies of its stack; this one stops in time.
            named = {"writer": self._named, "reader": {}}
            options = {"return_named_type": self._pairs}
            return _read_data(_Decoder(buffer), self._wire, named, None, options)
        if self._pairs:
            return _reader(buffer, self._wire, None, return_named_type=True)
        return _reader(buffer, self._wire, None)


class _Decoder(BinaryDecoder):
    """Stop at the eleventh byte of a number: the time to read one grows with the square of its length."""

    def __init__(self, buffer: BytesIO) -> None:
        super().__init__(buffer)  # type: ignore[no-untyped-call]  # fastavro's Python side has no types
        self._take = buffer.read

    def read_long(self) -> int:
        number = 0
        for index in range(_MOST_VARINT_BYTES):
            byte = self._take(1)
            if not byte:
                raise EOFError
            number |= (byte[0] & 0x7F) << 7 * index
            if byte[0] < 0x80 and number < 1 << 64:
                return (number >> 1) ^ -(number & 1)
        raise ValueError("a number of more than 64 bits")

    read_int = read_long


def _number_symbols(part: Any) -> None:
    """Let symbols be looked up by number, so that a negative one is an error: in a list it counts from the end."""
    if isinstance(part, list):
        for item in part:
            _number_symbols(item)
    if isinstance(part, dict):
        for name, item in part.items():
            if name == "symbols" and isinstance(item, list):
                part[name] = dict(enumerate(item))
            else:
                _number_symbols(item)
