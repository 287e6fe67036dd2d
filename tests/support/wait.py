"""
Wait for named facts; the only place in the tests that lets time pass.

    eventually(lambda: horizon(connection) > 5, what="the horizon moves past 5")
    row = eventually(lambda: fetch_one(connection, ...), what="the job's row is there", timeout=5)
    await eventually_async(fact, what="…")
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from packhorse.core.clock import SYSTEM_CLOCK

T = TypeVar("T")

_PAUSE = 0.02


class _Watch:
    """The deadline, and what was seen last, for the message of a failure."""

    def __init__(self, what: str, timeout: float) -> None:
        self.what = what
        self.timeout = timeout
        self.deadline = SYSTEM_CLOCK.monotonic() + timeout
        self.last: object = "nothing was asked yet"

    def check(self) -> None:
        if SYSTEM_CLOCK.monotonic() >= self.deadline:
            raise AssertionError(f"not within {self.timeout:g} s: {self.what}; seen last: {self.last!r}")


def eventually(fact: Callable[[], T], *, what: str, timeout: float = 10.0) -> T:
    """
    Ask *fact* until it gives something true, and return that.

    An AssertionError inside *fact* counts as "not yet", so that it may hold asserts of its own; any other error ends
    the wait at once.

    Raises:
        AssertionError: Not within *timeout* seconds; the text says *what* and what was seen last.
    """
    watch, pause = _Watch(what, timeout), threading.Event()
    while True:
        try:
            if found := fact():
                return found
            watch.last = found
        except AssertionError as error:
            watch.last = error
        watch.check()
        pause.wait(_PAUSE)


async def eventually_async(fact: Callable[[], Awaitable[T]], *, what: str, timeout: float = 10.0) -> T:
    """Do what `eventually` does, for a coroutine function."""
    watch = _Watch(what, timeout)
    while True:
        try:
            if found := await fact():
                return found
            watch.last = found
        except AssertionError as error:
            watch.last = error
        watch.check()
        await asyncio.sleep(_PAUSE)
