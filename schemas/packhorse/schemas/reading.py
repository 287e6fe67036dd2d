"""From the values that fastavro read to those of a message class: small makers that `resolution.py` puts together."""

from collections.abc import Callable, Mapping
from typing import Any

from packhorse.schemas.building import Build
from packhorse.schemas.mismatch import Unreadable
from packhorse.schemas.scalars import Convert


class RecordReader:
    """
    Make a record of the reader's from the dict that fastavro read, which it changes in place.

    Its fields are set after it is made, since a record may hold itself.
    """

    def __init__(self, build: Build) -> None:
        self._build = build
        self._is_as_written = True
        self._dropped: list[str] = []
        self._read: list[tuple[str, Convert]] = []
        self._renamed: list[tuple[str, str]] = []
        self._defaults: list[tuple[str, Callable[[], Any]]] = []

    def set_fields(
        self,
        *,
        dropped: list[str],
        read: list[tuple[str, Convert]],
        renamed: list[tuple[str, str]],
        defaults: list[tuple[str, Callable[[], Any]]],
    ) -> None:
        self._dropped, self._read, self._renamed, self._defaults = dropped, read, renamed, defaults
        self._is_as_written = not (dropped or read or renamed or defaults)

    def make(self, wire: dict[str, Any]) -> Any:
        if self._is_as_written:
            return self._build(wire)
        for name in self._dropped:
            del wire[name]
        for name, make in self._read:
            try:
                wire[name] = make(wire[name])
            except Unreadable as error:
                raise Unreadable(_inside(name, str(error))) from None
        if self._renamed:
            moved = {new: wire.pop(old) for old, new in self._renamed}
            wire.update(moved)
        for name, default in self._defaults:
            wire[name] = default()
        return self._build(wire)


def _inside(step: str, text: str) -> str:
    """Put *step* before the path at the beginning of *text*, which a colon ends."""
    path, colon, rest = text.partition(": ")
    if not colon:
        return f"{step}: {text}"
    return f"{step}{'' if path.startswith('[') else '.'}{path}: {rest}"


class EnumReader:
    def __init__(self, symbols: Mapping[str, Any], name: str) -> None:
        self._symbols, self._name = symbols, name

    def make(self, wire: str) -> Any:
        try:
            return self._symbols[wire]
        except KeyError:
            raise Unreadable(f"a symbol that {self._name} does not know and has no default for") from None


class ArrayReader:
    def __init__(self, item: Convert | None) -> None:
        self._item = item

    def make(self, wire: list[Any]) -> tuple[Any, ...]:
        return tuple(wire) if self._item is None else tuple(map(self._item, wire))


class MapReader:
    def __init__(self, value: Convert) -> None:
        self._value = value

    def make(self, wire: dict[str, Any]) -> dict[str, Any]:
        return {key: self._value(value) for key, value in wire.items()}


class NamedBranches:
    """Make a value of a union with named types: fastavro gives those as a pair of name and value."""

    def __init__(self, named: Mapping[str, Convert | None], other: Convert | None) -> None:
        self._named, self._other = named, other

    def make(self, wire: Any) -> Any:
        if type(wire) is tuple:
            make, value = self._named[wire[0]], wire[1]
        else:
            make, value = self._other, wire
        return value if make is None else make(value)


class PlainBranches:
    """Make a value of a union without named types: the Python type on the wire says which branch it is."""

    def __init__(self, makes: Mapping[type, Convert | None]) -> None:
        self._makes = makes

    def make(self, wire: Any) -> Any:
        make = self._makes[type(wire)]
        return wire if make is None else make(wire)


class Refuse:
    """Stand where the two schemas do not resolve; every value that comes here is unreadable."""

    def __init__(self, text: str) -> None:
        self._text = text

    def make(self, wire: Any) -> Any:
        del wire
        raise Unreadable(self._text)


def make_utf8(wire: bytes) -> str:
    try:
        return wire.decode()
    except UnicodeDecodeError:
        raise Unreadable("bytes that are no UTF-8 text") from None
