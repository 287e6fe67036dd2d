"""
Values without parts, checked strictly on the way to the wire and made on the way back.

fastavro sees only what stands on the wire (an int, a text, bytes), so that nothing is turned into something else in
silence: it would take True for an int, cut microseconds, or read a naive time as local.
"""

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any, Final, TypeAlias
from uuid import UUID

from packhorse.schemas.mismatch import Mismatch, Unreadable
from packhorse.schemas.times import MAKE_TIMES, TAKE_TIMES
from packhorse.schemas.tree import Fixed, Logical, Primitive

Convert: TypeAlias = Callable[[Any], Any]

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
FLOAT_MAX: Final = (2 - 2**-23) * 2.0**127
_EXACT_FLOAT = 2**53
_EXACT_SINGLE = 2**24
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def take_null(value: Any) -> None:
    if value is not None:
        raise Mismatch(value, "None")


def take_bool(value: Any) -> bool:
    if value is True or value is False:
        return value
    raise Mismatch(value, "True or False")


def take_int(value: Any) -> int:
    if type(value) is int and INT_MIN <= value <= INT_MAX:
        return value
    return _odd_int(value, INT_MIN, INT_MAX)


def take_long(value: Any) -> int:
    if type(value) is int and LONG_MIN <= value <= LONG_MAX:
        return value
    return _odd_int(value, LONG_MIN, LONG_MAX)


def _odd_int(value: Any, least: int, most: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return int(value)
    raise Mismatch(value, f"int from {least} to {most}")


def take_double(value: Any) -> float:
    if isinstance(value, float):
        return value
    if type(value) is int and -_EXACT_FLOAT <= value <= _EXACT_FLOAT:
        return float(value)  # Python's typing takes an int for a float; these are exact
    raise Mismatch(value, f"float, or int from {-_EXACT_FLOAT} to {_EXACT_FLOAT}")


def take_float(value: Any) -> float:
    if isinstance(value, float) and (-FLOAT_MAX <= value <= FLOAT_MAX or not math.isfinite(value)):
        return value
    if type(value) is int and -_EXACT_SINGLE <= value <= _EXACT_SINGLE:
        return float(value)
    raise Mismatch(value, f"float from {-FLOAT_MAX:.9g} to {FLOAT_MAX:.9g}, or int of at most 24 bits")


def take_text(value: Any) -> str:
    if isinstance(value, str) and (value.isascii() or _is_utf8(value)):
        return value
    if isinstance(value, str):  # said under what is allowed, which is told of personal fields too
        raise Mismatch(value, "text (str) without half a surrogate pair, which has no UTF-8")
    raise Mismatch(value, "text (str)")


def _is_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def take_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    raise Mismatch(value, "bytes")


class TakeFixed:
    """Take bytes of one length."""

    def __init__(self, size: int) -> None:
        self._size = size

    def take(self, value: Any) -> bytes:
        if isinstance(value, bytes) and len(value) == self._size:
            return value
        why = f"{len(value)} bytes" if isinstance(value, bytes) else ""
        raise Mismatch(value, f"exactly {self._size} bytes", why=why)


def take_uuid(value: Any) -> str:
    if isinstance(value, UUID):
        return str(value)
    raise Mismatch(value, "uuid.UUID")


def take_uuid_bytes(value: Any) -> bytes:
    if isinstance(value, UUID):
        return value.bytes
    raise Mismatch(value, "uuid.UUID")


class Decimals:
    """Take and make decimals of one precision and scale, as bytes of the least length or of *size*."""

    def __init__(self, logical: Logical, size: int | None) -> None:
        self._precision, self._scale, self._size = logical.precision, logical.scale, size
        self._limit = 10**logical.precision
        whole = logical.precision - logical.scale
        self._allowed = f"Decimal of at most {logical.precision} digits, {whole} before the point and {logical.scale} after it"

    def take(self, value: Any) -> bytes:
        if not isinstance(value, Decimal) or not value.is_finite():
            raise Mismatch(value, self._allowed)
        # Looked at before int(): 1E+999999 has a million digits.
        if value and value.adjusted() + self._scale >= self._precision:
            raise Mismatch(value, self._allowed, why="too large")
        scaled = value.scaleb(self._scale, _EXACT) if value else value
        unscaled = int(scaled)
        if unscaled != scaled:
            raise Mismatch(value, self._allowed, why="too many digits after the point; round it before")
        return unscaled.to_bytes(self._size or (unscaled.bit_length() + 8) // 8, signed=True)

    def make(self, wire: bytes) -> Decimal:
        unscaled = int.from_bytes(wire, signed=True)
        # Looked at before Decimal(): of a million bytes it would take minutes.
        if not -self._limit < unscaled < self._limit:
            raise Unreadable(f"a decimal of more than {self._precision} digits")
        return Decimal(unscaled).scaleb(-self._scale, _EXACT)


def make_uuid(wire: str) -> UUID:
    try:
        return UUID(wire)
    except ValueError:
        raise Unreadable("a text that is no UUID") from None


def make_uuid_bytes(wire: bytes) -> UUID:
    return UUID(bytes=wire)


_TAKE_PLAIN: Final[dict[str, Convert]] = {
    "null": take_null,
    "boolean": take_bool,
    "int": take_int,
    "long": take_long,
    "float": take_float,
    "double": take_double,
    "bytes": take_bytes,
    "string": take_text,
}


def taker(node: Primitive | Fixed) -> Convert:
    """Return the function that checks a Python value for *node* and returns what stands on the wire."""
    size = node.size if isinstance(node, Fixed) else None
    match node.logical:
        case None:
            return _TAKE_PLAIN[node.kind] if isinstance(node, Primitive) else TakeFixed(node.size).take
        case Logical(name="decimal") as logical:
            return Decimals(logical, size).take
        case Logical(name="uuid"):
            return take_uuid if size is None else take_uuid_bytes
        case Logical(name=name):
            return TAKE_TIMES[name]


def maker(node: Primitive | Fixed) -> Convert | None:
    """Return the function that makes the Python value from the wire's; None when they are the same."""
    size = node.size if isinstance(node, Fixed) else None
    match node.logical:
        case None:
            return None
        case Logical(name="decimal") as logical:
            return Decimals(logical, size).make
        case Logical(name="uuid"):
            return make_uuid if size is None else make_uuid_bytes
        case Logical(name=name):
            return MAKE_TIMES[name]
