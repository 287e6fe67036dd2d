"""Keys as they are pressed, without Enter; the terminal is left as it was found, however the block ends."""

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager


class Keyboard:
    """Keys of one terminal."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def pressed(self, within: float) -> str | None:
        """Return a key that is pressed within so many seconds; None: none was. Without a terminal it only waits."""
        watched = [] if self._descriptor is None else [self._descriptor]
        ready, _, _ = select.select(watched, [], [], within)
        if not ready or self._descriptor is None:
            return None
        key = os.read(self._descriptor, 1)
        if not key:  # the terminal is gone
            self._descriptor = None
            return "q"
        return key.decode("ascii", "replace")


@contextmanager
def keyboard() -> Iterator[Keyboard]:
    """Hand out the keys of standard input, if it is a terminal, and restore its settings at the end."""
    if not sys.stdin.isatty():
        yield Keyboard(None)
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield Keyboard(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
