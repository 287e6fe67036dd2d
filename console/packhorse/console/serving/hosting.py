"""What a console does beside answering: it goes on with redrives and replays that run and that nobody works on."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from packhorse.core import logs
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import PackhorseError

EVERY = 1.0
"""Seconds between two looks for a run that nobody works on."""
_log = logs.logger("console")


class Looks(Protocol):
    """A runner in the background."""

    def look(self) -> bool:
        """Take one run without a live lease; return whether one was taken."""

    def stop(self, timeout: float = 10.0) -> None:
        """Finish the step in hand, leave the run to others, and take none any more."""


@contextmanager
def hosted(runners: Sequence[Looks], *, every: float = EVERY, patience: float = 10.0) -> Iterator[None]:
    """Have *runners* look for work in a thread meanwhile; at the end all leave their leases, within *patience* seconds together."""
    stop = threading.Event()
    thread = threading.Thread(
        target=_look_on, args=(runners, stop, every), name="packhorse-runners", daemon=True
    )
    if runners:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        until = SYSTEM_CLOCK.monotonic() + patience
        for runner in runners:
            runner.stop(max(0.0, until - SYSTEM_CLOCK.monotonic()))
        if runners:
            thread.join(max(0.0, until - SYSTEM_CLOCK.monotonic()))


def _look_on(runners: Sequence[Looks], stop: threading.Event, every: float) -> None:
    told: dict[int, str] = {}
    while not stop.wait(every):
        for at, runner in enumerate(runners):
            told[at] = _looked(runner, told.get(at, ""))


def _looked(runner: Looks, told: str) -> str:
    """Have *runner* look, and return what was told of it last: trouble once, not every second."""
    try:
        runner.look()
    except PackhorseError as error:
        if str(error) != told:
            _log.warning("can't look for runs", error=type(error).__name__, text=str(error))
        return str(error)
    except Exception as error:  # noqa: BLE001 the thread must go on, whatever one look met
        _log.error("a look for runs failed", error=type(error).__name__)
    return ""
