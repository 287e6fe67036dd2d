"""
Looks at the whole that all who ask one console share, pages and API alike, and their past for the charts: so ten open pages cost the
database what one does, and nobody is told other rates than the rest.

Each look is made for somebody who may look; whoever gets it from here has the right too, which the caller checks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from packhorse.console.sharing import Shared
from packhorse.console.top.facts import Look
from packhorse.console.top.service import Top
from packhorse.console.top.view import View
from packhorse.core.clock import Clock

FRESH = 2.0
"""Seconds that a look is shown again to whoever asks next."""
APART = 10.0
"""Seconds between two points of the past."""
MOST_BEFORE = timedelta(seconds=30)
"""How old a look may be that rates are drawn from: over a longer time they say nothing of now."""
PAST = timedelta(minutes=30)
"""How far the charts go back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What was so at one time: rates a second, and what waited; None: not known then."""

    at: datetime
    written: float | None
    published: float | None
    done: float | None
    lag: int | None
    oldest: float | None
    done_of: dict[str, float]
    lag_of: dict[str, int]


def point_of(view: View) -> Point:
    """Return what *view* says of its moment."""
    done = {group.group: group.done for group in view.groups if group.done is not None}
    lags = {group.group: group.lag for group in view.groups if group.lag is not None}
    return Point(
        at=view.at,
        written=view.written,
        published=view.published,
        done=sum(done.values()) if done else None,
        lag=sum(lags.values()) if lags else None,
        oldest=0.0 if view.oldest is None else view.oldest.total_seconds(),
        done_of=done,
        lag_of=lags,
    )


def along(point: Point, now: datetime) -> float:
    """Return where *point* stands on a chart of the past, from 0 to 1, which is *now*."""
    return max(0.0, 1 - (now - point.at) / PAST)


class Flow:
    """The last look and its past; of any thread."""

    def __init__(self, clock: Clock) -> None:
        self._shared: Shared[View] = Shared(clock, fresh=FRESH)
        self._before: Look | None = None
        self._past: tuple[Point, ...] = ()

    def view(self, top: Top) -> View:
        """
        Return how everything flows, at most FRESH seconds old; of several who ask at once, one looks.

        Raises what `Top.look` does.
        """
        return self._shared.get(lambda: self._look(top))

    def past(self) -> tuple[Point, ...]:
        """Return what was, the oldest first; waits for no look."""
        return self._past

    def _look(self, top: Top) -> View:
        now = top.look()
        before = self._before
        view = top.view(now, before if before is not None and now.at - before.at <= MOST_BEFORE else None)
        self._before = now
        if view.written is None and view.published is None:
            return view
        past = self._past
        if not past or view.at - past[-1].at >= timedelta(seconds=APART / 2):
            past = (*past, point_of(view))
        self._past = tuple(point for point in past if view.at - point.at <= PAST)
        return view


class Watching:
    """Look every now and then, so that charts have a past when somebody opens the page; a runner of the console."""

    def __init__(self, flow: Flow, top: Callable[[], Top], clock: Clock) -> None:
        self._flow = flow
        self._top = top
        self._clock = clock
        self._next = 0.0

    def look(self) -> bool:
        """Look if it is time to; raises what `Top.look` does."""
        now = self._clock.monotonic()
        if now < self._next:
            return False
        self._next = now + APART
        self._flow.view(self._top())
        return True

    def stop(self, timeout: float = 10.0) -> None:
        """Have nothing to end."""
