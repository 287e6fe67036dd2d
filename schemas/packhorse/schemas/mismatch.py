"""A value that does not fit, while its path is still being put together; and how it is told without leaking it."""

import datetime as dt
from decimal import Decimal
from enum import Enum
from typing import Final
from uuid import UUID

from packhorse.core.errors import ValueMismatch

_LONGEST = 60
_LONGEST_PATH = 200
_LONGEST_INT_BITS = 128
_SHOWN: Final = (bool, float, str, bytes, Decimal, UUID, dt.date, dt.time)


class Mismatch(Exception):
    """
    Carry *given* and *allowed* upwards; each level adds its step, the innermost first.

    It never leaves this part: `as_error` makes the error that callers see.
    """

    def __init__(self, given: object, allowed: str, *, why: str = "") -> None:
        super().__init__(allowed)
        self.given = given
        self.allowed = allowed
        self.why = why
        self.personal = False
        self.steps: list[str | int | _Key] = []

    def in_field(self, name: str, *, personal: bool) -> None:
        self.steps.append(name)
        self.personal = self.personal or personal

    def in_item(self, index: int) -> None:
        self.steps.append(index)

    def in_key(self, key: object) -> None:
        self.steps.append(_Key(key))

    def as_error(self, what: str) -> ValueMismatch:
        """Return the error; *what* names the message's type. A personal value is told by its type alone."""
        path = self._path()
        given = type(self.given).__name__ if self.personal else shown(self.given)
        why = f" ({self.why})" if self.why and not self.personal else ""
        where = path if len(path) <= _LONGEST_PATH else f"{path[: _LONGEST_PATH - 1]}…"
        return ValueMismatch(
            f"{what}, {where or 'the message'}: given {given}{why}; allowed: {self.allowed}",
            path=path,
            allowed=self.allowed,
        )

    def _path(self) -> str:
        text = ""
        for step in reversed(self.steps):
            match step:
                case str():
                    text += f".{step}" if text else step
                case int():
                    text += f"[{step}]"
                case _Key():
                    text += "[*]" if self.personal else f"[{_cut(repr(str(step.key)))}]"
        return text


class Unreadable(Exception):
    """Say why a value from the wire is none that the class can hold; never quotes it."""


class _Key:
    __slots__ = ("key",)

    def __init__(self, key: object) -> None:
        self.key = key


def shown(value: object) -> str:
    """
    Return *value* for an error text: type and value of a scalar, cut short; the type alone of anything larger.

    A record, list or map may hold a personal field somewhere inside, so none of it is shown.
    """
    if value is None:
        return "None"
    name = type(value).__name__
    if isinstance(value, Enum):
        return f"{name}.{value.name}"
    if isinstance(value, int) and not isinstance(value, bool):
        bits = value.bit_length()  # an int of many digits can't even be printed
        return f"{name} {value}" if bits <= _LONGEST_INT_BITS else f"{name} of {bits} bits"
    if isinstance(value, _SHOWN):
        head = value[: _LONGEST + 1] if isinstance(value, str | bytes) else value
        return f"{name} {_cut(str(head) if isinstance(value, Decimal | UUID | dt.date | dt.time) else repr(head))}"
    if isinstance(value, list | tuple | dict | set | frozenset):
        return f"{name} of {len(value)}"
    return name


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
