"""Erase a person's data from an application's own tables, when an operator purges it: what the application declares."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from packhorse.core.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """
    Whose data goes: by the key of their messages, or by the value of a field that its schema marks personal.

    No representation shows who it is.

    Attributes:
        key: The messages' key; None: it goes by a field, or the key is no text.
        path: Path of the field, such as "passenger.email"; None: it goes by the key.
        value: The field's value, as text.
        raw: The bytes of a key that is no text in UTF-8; None: it is text, or it goes by a field.

    Raises:
        UsageError: It is none of these, or two of them, or a text that no table can hold.
    """

    key: str | None = field(default=None, repr=False)
    path: str | None = None
    value: str | None = field(default=None, repr=False)
    raw: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        ways = [way for way in (self.key, self.path, self.raw) if way is not None]
        if len(ways) != 1 or (self.path is None) != (self.value is None):
            raise UsageError("a subject is given by its key, or by a field and its value")
        if not (self.key or self.value or self.raw):
            raise UsageError("the subject is empty; messages without a key are nobody's")
        if any("\0" in text for text in (self.key, self.path, self.value) if text is not None):
            raise UsageError("the subject holds a character U+0000, which no table can hold")

    @classmethod
    def of_key(cls, key: bytes) -> "Subject":
        r"""
        Return the subject whose messages have *key*.

        >>> Subject.of_key(b"ann").key, Subject.of_key(b"\xff").raw
        ('ann', b'\xff')
        """
        try:
            return cls(key=key.decode())
        except UnicodeDecodeError:
            return cls(raw=key)

    @property
    def key_bytes(self) -> bytes | None:
        """Return the key as it stands on topics; None: it goes by a field."""
        return self.raw if self.key is None else self.key.encode()


Eraser = Callable[[Any, Subject], int | None]
"""Erases what it finds of a subject over a connection of psycopg, in its open transaction, and returns how many rows that were."""


def checked_eraser(function: Any) -> Eraser:
    """
    Return *function* when it can be called as an Eraser.

    Raises:
        UsageError: It takes something else, or is async.
    """
    name = getattr(function, "__qualname__", repr(function))
    if inspect.iscoroutinefunction(function):
        raise UsageError(f"eraser {name} is async; a plain def is needed")
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):
        raise UsageError(f"eraser {name} must take (connection, subject)") from None
    found: Eraser = function
    return found
