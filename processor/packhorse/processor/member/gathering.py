"""Many partitions that stand still for one cause are one line in the log, with their number; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from packhorse.core.backoff import Backoff, delay_after
from packhorse.processor.member.jobs import Place

_LINES = Backoff(first=1.0, factor=10.0, longest=600.0, spread=0.0)
"""Seconds between two lines of one cause: the second says how many the first did not know of yet, then ever more seldom."""
FORGOTTEN = 900.0
"""Seconds without a word of it after which a cause counts as over; the longest wait of a partition is far below."""


class Cause(NamedTuple):
    """Why partitions stand still: what it is about, and the text."""

    what: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """
    One line of the log.

    Attributes:
        places: The partitions that the cause has stopped since the last line; at least one.
        wait: Seconds until the first of them tries again.
    """

    cause: Cause
    places: tuple[Place, ...]
    wait: float


@dataclass(slots=True)
class _Standing:
    lines: int = 0
    next: float = 0.0
    last: float = 0.0
    waits: dict[Place, float] = field(default_factory=dict)


class Gathering:
    """What is known of causes that last; for one thread. All times are monotonic seconds."""

    def __init__(self) -> None:
        self._of: dict[Cause, _Standing] = {}

    def note(self, place: Place, cause: Cause, *, wait: float, now: float) -> Line | None:
        """Note that *cause* stops *place*, which tries again in *wait* seconds; return the line if it is the first of its cause."""
        known = self._of.get(cause)
        standing = self._of.setdefault(cause, known or _Standing())
        standing.last = now
        standing.waits[place] = wait
        return self._line(cause, standing, now) if known is None else None

    def due(self, now: float) -> list[Line]:
        """Return the lines that are due, one a cause; forget causes of which nothing was heard for long."""
        lines = [
            self._line(cause, standing, now)
            for cause, standing in self._of.items()
            if standing.waits and now >= standing.next
        ]
        for cause in [cause for cause, standing in self._of.items() if now - standing.last > FORGOTTEN]:
            del self._of[cause]
        return lines

    @staticmethod
    def _line(cause: Cause, standing: _Standing, now: float) -> Line:
        waits: Mapping[Place, float] = standing.waits
        standing.waits = {}
        standing.lines += 1
        standing.next = now + delay_after(standing.lines, _LINES, jitter=0.0)
        return Line(cause=cause, places=tuple(sorted(waits)), wait=min(waits.values()))
