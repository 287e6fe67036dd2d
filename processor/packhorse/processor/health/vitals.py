"""The signs of life of one process; written by its threads, read by whoever asks how it is."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from packhorse.processor.health.judging import Facts, Health, health_of


class Vitals:
    """
    Keep the signs of life; from any thread, and none of it blocks.

    A thread that was put here must live until `leave`: one that has died never reports itself well.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._started = monotonic()
        self._beats: dict[str, float] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._dead: dict[str, str] = {}
        self._stalled: tuple[str, ...] = ()
        self._assigned = False
        self._answered: float | None = None
        self._leaving = False

    def beat(self, name: str) -> None:
        """Note that the loop *name* turns."""
        self._beats[name] = self._monotonic()

    def expect(self, thread: threading.Thread) -> None:
        """Note that *thread*, which runs, must live until `leave`."""
        self._threads[thread.name] = thread

    def forget(self, thread: threading.Thread) -> None:
        """Note that *thread* may end: another has taken its place."""
        self._threads.pop(thread.name, None)

    @contextmanager
    def living(self, name: str) -> Iterator[None]:
        """Run the block as the loop *name*, which must not end before `leave` was called; an error of it is noted."""
        self.beat(name)
        try:
            yield
        except BaseException as error:
            self._dead[name] = type(error).__name__
            raise
        if not self._leaving:
            self._dead[name] = ""

    def stalled(self, texts: Sequence[str]) -> None:
        """Note what does not move and does not explain itself."""
        self._stalled = tuple(texts)

    def assigned(self) -> None:
        """Note that the group has dealt partitions to this member, maybe none."""
        self._assigned = True

    def answered(self) -> None:
        """Note that the database has answered."""
        self._answered = self._monotonic()

    def leave(self) -> None:
        """Note that the process was asked to stop: threads may end now."""
        self._leaving = True

    def dead(self) -> dict[str, str]:
        """Return what has ended though nobody asked it to, and the class of its error where one is known."""
        ended = (
            {}
            if self._leaving
            else {name: "" for name, thread in list(self._threads.items()) if not thread.is_alive()}
        )
        return {**ended, **self._dead}

    def health(self) -> Health:
        """Judge what is known now."""
        facts = Facts(
            started=self._started,
            beats=dict(self._beats),
            dead=self.dead(),
            stalled=self._stalled,
            assigned=self._assigned,
            answered=self._answered,
            leaving=self._leaving,
        )
        return health_of(facts, now=self._monotonic())
