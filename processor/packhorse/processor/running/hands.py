"""
Jobs that were claimed together, and that none of them shall wait for long: what is still with the lane that did.

    hands.open(runs)            they are the lane's
    hands.take(offset)          the lane works on this one from here on
        … it takes longer than PATIENCE: all others are handed on, those whose body has ended to be recorded beside the lanes,
          the others given back …
    hands.take(offset)          nothing, of what was handed on

The order in `_hand_on` counts: a run that was not begun is idle before anybody is told of it, so that neither this lane nor a
heartbeat goes on with it; ends are told of before anything else is asked of the database; a job is given back before the loop
sends its message to another lane.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from packhorse.processor.jobs.runs import JobRun, Phase
from packhorse.processor.running.deadlines import Deadlines

J = TypeVar("J")
PATIENCE = 0.025
"""Seconds after which jobs wait no longer for one that was claimed with them."""


class Hands(Protocol):
    """What of a chunk of jobs is with its lane."""

    def open(self, runs: Mapping[int, JobRun]) -> None:
        """Have *runs*, by offset; others may be told of them once one was taken."""

    def take(self, offsets: Collection[int]) -> list[int]:
        """Work on *offsets*, and on nothing else any more; return those that are still the lane's."""

    def drop(self, offsets: Iterable[int]) -> None:
        """Have *offsets* no more: they are on record."""

    def has(self, offset: int) -> bool:
        """Return whether nobody else was told of *offset*."""


class FullHands:
    """Those of a lane that hands nothing on."""

    def open(self, runs: Mapping[int, JobRun]) -> None:
        """Do nothing."""

    def take(self, offsets: Collection[int]) -> list[int]:
        """Return *offsets*."""
        return list(offsets)

    def drop(self, offsets: Iterable[int]) -> None:
        """Do nothing."""

    def has(self, offset: int) -> bool:  # noqa: ARG002 its name says what it is
        """Return True."""
        return True


FULL_HANDS = FullHands()


class LaneHands(Generic[J]):
    """
    Those of one lane, chunk after chunk; all but `mine` is for the lane's thread or task.

    Args:
        deadlines: Watches the time.
        give_back: Gives runs back that were not begun, in the database; raises nothing.
        tell: Is told of a chunk, as it was given to `begin`, and the offsets of jobs in it that have ended, or that were given back.
        patience: Seconds that jobs wait for one that was claimed with them.
    """

    def __init__(
        self,
        deadlines: Deadlines,
        give_back: Callable[[list[JobRun]], None],
        tell: Callable[[J, frozenset[int], frozenset[int]], None],
        *,
        patience: float = PATIENCE,
    ) -> None:
        self._deadlines = deadlines
        self._deadline = deadlines.slot(self._hand_on, lambda: None, again=None)
        self._give_back = give_back
        self._tell = tell
        self._patience = patience
        self._lock = threading.Lock()
        self._chunk: J | None = None
        self._open: dict[int, JobRun] = {}
        self._work: frozenset[int] = frozenset()
        self._is_timed = False
        self._handed: frozenset[int] = frozenset()
        self._gone: frozenset[JobRun] = frozenset()

    def begin(self, chunk: J) -> None:
        """Begin with *chunk*."""
        with self._lock:
            self._chunk = chunk
            self._handed, self._gone = frozenset(), frozenset()

    def open(self, runs: Mapping[int, JobRun]) -> None:
        """Have *runs*, by offset; of one alone nothing is ever handed on."""
        with self._lock:
            self._open = dict(runs) if len(runs) > 1 else {}
            self._work = frozenset()

    def take(self, offsets: Collection[int]) -> list[int]:
        """Work on *offsets*, and on nothing else any more; return those that are still the lane's. The clock runs from the first time on."""
        with self._lock:
            left = [at for at in offsets if at not in self._handed]
            self._work = frozenset(left)
            starts = bool(self._open) and not self._is_timed
            self._is_timed = self._is_timed or starts
        if starts:
            self._deadline.start(self._patience)
        return left

    def has(self, offset: int) -> bool:
        """Return whether nobody else was told of *offset*."""
        return offset not in self._handed

    def drop(self, offsets: Iterable[int]) -> None:
        """Have *offsets* no more: they are on record."""
        with self._lock:
            for at in offsets:
                self._open.pop(at, None)

    def mine(self, runs: Iterable[JobRun]) -> list[JobRun]:
        """Return those of *runs* that were not handed on; from any thread."""
        return [run for run in runs if run not in self._gone]

    def end(self) -> None:
        """Hand on nothing more of the chunk."""
        self._deadline.stop_soon()
        with self._lock:
            self._chunk, self._open, self._work, self._is_timed = None, {}, frozenset(), False

    def forget(self) -> None:
        """Watch nothing any more: the lane is gone."""
        self._deadlines.forget(self._deadline)

    def _hand_on(self) -> None:
        """Hand on all but what the lane works on."""
        with self._lock:
            chunk = self._chunk
            others = {at: run for at, run in self._open.items() if at not in self._work}
            if chunk is None or not others:
                self._is_timed = False  # all are worked on: what comes after that may keep the others waiting, and has its own time
                return
            self._open = {}
            ended = frozenset(at for at, run in others.items() if run.phase is Phase.ENDED)
            left = [run for at, run in others.items() if at not in ended]
            for run in left:
                run.phase = Phase.IDLE
            self._handed = frozenset(others)
            self._gone = frozenset(others.values())
        if ended:
            self._tell(chunk, ended, frozenset())
        if left:
            self._give_back(left)
            self._tell(chunk, frozenset(), frozenset(others) - ended)
