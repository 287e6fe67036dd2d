"""
What every retention in a processor has in common: turns, one process at a time, made of bounded steps.

Every step is a transaction of its own and safe by itself: after a crash between two of them the next turn goes on.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from packhorse.core import logs
from packhorse.core.errors import PackhorseError

FIRST = 60.0
"""Seconds before the first turn: a process that is only just up has better things to do."""
PAUSE = 0.05
"""Seconds between two steps."""
RENEW = 20.0
"""Seconds between two signs of life."""

T = TypeVar("T")
Tables = TypeVar("Tables", bound="Turned")


class Turned(Protocol):
    """The tables of one kind of retention, as far as its turns go."""

    def claim(self, by: str, every: float) -> bool:
        """Take the turn; False: another process has it, or had one less than *every* seconds ago."""

    def renew(self, by: str) -> bool:
        """Give a sign of life; False: another process has taken the turn."""

    def cancel(self) -> None:
        """Cancel what runs, from another thread."""

    def close(self) -> None:
        """Let the connection go; the next step makes another."""


class Turns(ABC, Generic[Tables, T]):
    """
    Do at each call of `step` what is due.

    For one thread. *by* must be this process's and this object's own: who has the turn is told by it. *what* is named where a turn fails.
    """

    def __init__(self, tables: Tables, *, every: float, by: str, first: float, what: str) -> None:
        self._tables = tables
        self._every = every
        self._by = by
        self._first = first
        self._log = logs.logger(what)
        self._what = what
        self._next: float | None = None
        self._steps: Iterator[None] | None = None
        self._now = 0.0
        self._renewed = 0.0
        self._failing: str | None = None
        self.turn: T | None = None
        """What the last turn that was over did; None before."""

    @abstractmethod
    def _begin(self) -> T:
        """Return a turn that has done nothing yet."""

    @abstractmethod
    def _work(self, turn: T, every: float) -> Iterator[None]:
        """Do a turn, yielding between steps, unless another process has it or had it less than *every* seconds ago."""

    @abstractmethod
    def _look(self, turn: T) -> Iterator[None]:
        """Say what a turn would do, yielding between steps; changes nothing."""

    def _forget(self) -> None:
        """Forget what would keep a turn that is asked for now from going over everything."""

    def step(self, now: float) -> float:
        """
        Do one bounded step if one is due at *now* (monotonic seconds); return how many seconds to wait before the next call.

        Never raises: whatever goes wrong is a warning, and is tried again at the next turn.
        """
        self._now = now
        if self._next is None:
            self._next = now + self._first
        if self._steps is None:
            if now < self._next:
                return self._next - now
            self._steps = self._work(self._begin(), self._every * 0.9)
        try:
            next(self._steps)
        except StopIteration:
            self._failing = None
            return self._rest(now)
        except PackhorseError as error:
            self._failed(type(error).__name__, str(error))
            return self._rest(now)
        except Exception as error:  # noqa: BLE001 retention must not end, and nobody waits for this thread's error
            self._failed(type(error).__name__, "an error that nobody foresaw; please report it")
            return self._rest(now)
        return PAUSE

    def run(self, wait: Callable[[float], object], now: Callable[[], float], *, act: bool = True) -> T | None:
        """
        Do a whole turn now, waiting between steps; None: another process works on it just now.

        Without *act* nothing is changed; the turn says what would be done.

        Raises:
            NotReady, DatabaseUnavailable: The database lacks something, or does not answer.
        """
        turn = self._begin()
        self.turn = None
        self._forget()
        self._now = now()
        try:
            for _ in self._work(turn, 0.0) if act else self._look(turn):
                wait(PAUSE)
                self._now = now()
        finally:
            self._tables.close()
        return self.turn

    def cancel(self) -> None:
        """Cancel what runs, from another thread."""
        self._tables.cancel()

    def close(self) -> None:
        """Let the connection go."""
        self._steps = None
        self._tables.close()

    def _claimed(self, every: float) -> bool:
        """Take the turn."""
        self._renewed = self._now
        return self._tables.claim(self._by, every)

    def _has_turn(self) -> bool:
        """Return whether the turn is still ours, with a sign of life where the last one is a while ago."""
        if self._now - self._renewed <= RENEW:
            return True
        self._renewed = self._now
        return self._tables.renew(self._by)

    def _rest(self, now: float) -> float:
        self._steps = None
        self._tables.close()
        self._next = now + self._every
        return self._every

    def _failed(self, kind: str, reason: str) -> None:
        if self._failing != kind:
            self._log.warning(
                f"retention of the {self._what} did not run; it is tried again", error=kind, reason=reason
            )
        self._failing = kind
