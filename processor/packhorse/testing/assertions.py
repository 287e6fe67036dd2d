"""Assert what was emitted in the current transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from packhorse.core.message import TypedMessage
from packhorse.testing.emitted import Emitted, aemitted, emitted

if TYPE_CHECKING:
    from packhorse.producer.connections import Async, Sync

M = TypeVar("M", bound=TypedMessage)


class _Any(Enum):
    KEY = "any key"


ANY_KEY: Final = _Any.KEY


def assert_emitted(
    connection: Sync,
    of: type[M],
    /,
    *,
    key: str | _Any | None = ANY_KEY,
    times: int = 1,
    tombstone: bool = False,
    database_schema: str = "packhorse",
    **fields: Any,
) -> Emitted[M]:
    """
    Assert that the open transaction has emitted exactly *times* messages of the class *of* like this; return the first.

    Args:
        connection: As for `emit`.
        of: The class.
        key: The key that it has; any, if left out.
        times: How many there are.
        tombstone: It is a deletion and has no values.
        database_schema: Database schema of the tables.
        fields: Values that the message has; fields not named may be anything.

    Raises:
        AssertionError: Says what was emitted instead.
    """
    return _one_of(
        emitted(connection, of, database_schema=database_schema), of, key, times, tombstone, fields
    )


async def aassert_emitted(
    connection: Async,
    of: type[M],
    /,
    *,
    key: str | _Any | None = ANY_KEY,
    times: int = 1,
    tombstone: bool = False,
    database_schema: str = "packhorse",
    **fields: Any,
) -> Emitted[M]:
    """Assert on an async *connection*; promises and raises what `assert_emitted` does."""
    found = await aemitted(connection, of, database_schema=database_schema)
    return _one_of(found, of, key, times, tombstone, fields)


def _one_of(
    found: Sequence[Emitted[M]],
    of: type[M],
    key: str | _Any | None,
    times: int,
    tombstone: bool,
    fields: Mapping[str, Any],
) -> Emitted[M]:
    if times < 1:
        raise ValueError(f"times={times} is not allowed: 1 or more; for none write `assert emitted(…) == []`")
    like = [one for one in found if _is_like(one, key, tombstone, fields)]
    if len(like) != times:
        what = "tombstone" if tombstone else "message"
        wanted = ", ".join([f"key={key!r}" if key is not ANY_KEY else "any key", *_named(fields)])
        seen = "\n  ".join(_told(one) for one in found) or "none"
        raise AssertionError(
            f"{len(like)} of {times} {what}s {of.__name__} ({wanted}) emitted; of this class there are:\n  {seen}"
        )
    return like[0]


def _is_like(one: Emitted[M], key: str | _Any | None, tombstone: bool, fields: Mapping[str, Any]) -> bool:
    if key is not ANY_KEY and one.key != key:
        return False
    if one.message is None or tombstone:
        return tombstone and one.message is None and not fields
    for name in fields:
        if not hasattr(one.message, name):
            raise ValueError(f"{one.of.__name__} has no field {name}")
    return all(getattr(one.message, name) == value for name, value in fields.items())


def _named(fields: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in fields.items()]


def _told(one: Emitted[M]) -> str:
    return f"key={one.key!r}: {'a tombstone' if one.message is None else repr(one.message)}"
