"""What a long start tells those who wait for it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Progress(Protocol):
    """Hear of steps and downloads; called from several threads."""

    def say(self, text: str) -> None:
        """Hear one line about what happens now."""

    def download(self, name: str, size: int) -> AbstractContextManager[Callable[[int], None]]:
        """Hear that *size* bytes of *name* arrive; the function given back hears of each piece's bytes."""


class Silence:
    """Hear everything and say nothing."""

    def say(self, text: str) -> None:
        """Drop the line."""

    @contextmanager
    def download(self, name: str, size: int) -> Iterator[Callable[[int], None]]:  # noqa: ARG002 - the protocol's
        """Drop the bytes' count."""
        yield lambda _count: None
