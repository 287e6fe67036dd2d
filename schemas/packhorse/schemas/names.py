"""How names of Avro become names of Python: the one rule that the generator and the codec share."""

import enum
import keyword
from typing import Final

from packhorse.core.errors import SchemaError

TYPE_NAMES: Final = frozenset(
    {"bool", "bytes", "dict", "dt", "field", "float", "int", "str", "tuple"}
    | {"ClassVar", "Decimal", "Mapping", "MessageType", "StrEnum", "UUID", "dataclass"}
)
"""Names that a generated module uses for itself: a field of that name would hide the type in its own class."""
_MEMBERS_TAKEN: Final = frozenset(dir(str)) | frozenset(dir(enum.StrEnum)) | {"mro", "name", "value"}


def attribute(field: str) -> str:
    """
    Return the attribute for the Avro field named *field*.

    >>> attribute("origin"), attribute("class"), attribute("bytes")
    ('origin', 'class_', 'bytes_')

    Raises:
        SchemaError: No attribute can have that name.
    """
    if field.startswith("__"):
        raise SchemaError(
            f"field {field}: a name that begins with two underscores is Python's own; rename it"
        )
    return f"{field}_" if keyword.iskeyword(field) or field in TYPE_NAMES else field


def member(symbol: str) -> str:
    """
    Return the member of a StrEnum for *symbol*; its value is the symbol itself.

    >>> member("LATE"), member("None"), member("title")
    ('LATE', 'None_', 'title_')

    Raises:
        SchemaError: No member can have that name.
    """
    if symbol.startswith("_"):
        raise SchemaError(
            f"symbol {symbol}: a name that begins with an underscore is Python's own; rename it"
        )
    return f"{symbol}_" if keyword.iskeyword(symbol) or symbol in _MEMBERS_TAKEN else symbol


def class_name(full_name: str) -> str:
    """
    Return the class for the Avro type *full_name*: its last part.

    >>> class_name("airline.FlightDeparted")
    'FlightDeparted'

    Raises:
        SchemaError: A class of that name would hide something that the generated module needs.
    """
    name = full_name.rpartition(".")[2]
    if keyword.iskeyword(name) or name in TYPE_NAMES or name.startswith("__"):
        raise SchemaError(f"{full_name}: a generated module can't have a class named {name}; rename the type")
    return name
