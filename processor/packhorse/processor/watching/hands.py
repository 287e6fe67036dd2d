"""What lanes run just now: written by them, read by whoever watches."""

import threading
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple


class Hand(NamedTuple):
    """
    One message that a handler runs for.

    Attributes:
        number: Of this run, in this process.
        since: Monotonic time at which it began.
        thread: Ident of the thread that it runs in.
        task: The asyncio task of an `async def`; None of a `def`.
    """

    number: int
    topic: str
    partition: int
    offset: int
    type: str | None
    since: float
    thread: int
    task: Any = None


class Hands:
    """
    Keep what runs; from any thread.

    Each call is one operation of a dict, which the interpreter does not part, so no lock stands in the way of a message.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._held: dict[int, Hand] = {}
        self._numbers = count(1)

    def take(self, topic: str, partition: int, offset: int, type_: str | None, task: Any = None) -> int:
        """Note that a handler begins, in this thread, and return the number to `drop` at its end."""
        number = next(self._numbers)
        ident = threading.get_ident()
        self._held[number] = Hand(number, topic, partition, offset, type_, self._monotonic(), ident, task)
        return number

    def drop(self, number: int) -> None:
        """Note that it has ended."""
        self._held.pop(number, None)

    def held(self) -> list[Hand]:
        """Return what runs."""
        return list(self._held.values())
