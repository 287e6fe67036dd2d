"""Work in pieces: where the next run of a job goes on, kept as its checkpoint; pure."""

from collections.abc import Iterator
from typing import Any, Final

from packhorse.core.errors import UsageError

PLACE: Final = "packhorse.chunks"
"""Under which a checkpoint says how many items are done."""


def place_in(state: object) -> int:
    """
    Return how many items are done, by the checkpoint *state*.

    >>> place_in(None), place_in(checkpoint_at(40))
    (0, 40)

    Raises:
        UsageError: The body keeps checkpoints of its own.
    """
    if state is None:
        return 0
    found = state.get(PLACE) if isinstance(state, dict) else None
    if isinstance(found, int) and len(state) == 1:  # type: ignore[arg-type]  # it is a dict
        return found
    raise UsageError(
        "ctx.chunks keeps its place as the job's checkpoint, and there is another one: use chunks or checkpoint"
    )


def checkpoint_at(done: int) -> dict[str, Any]:
    """Return the checkpoint that says that *done* items are done."""
    return {PLACE: done}


def pieces(total: int, size: int, done: int) -> Iterator[range]:
    """
    Yield what is left of *total* items in pieces of *size*, as positions from 0.

    >>> list(pieces(5, 2, 2))
    [range(2, 4), range(4, 5)]

    Raises:
        UsageError: A number is not allowed.
    """
    for name, value, least in (("total", total, 0), ("size", size, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UsageError(f"chunks({name}={value!r}) is not allowed: a whole number from {least}")
    for start in range(done, total, size):
        yield range(start, min(start + size, total))
