"""Live in a terminal: a look every few seconds, until q or Ctrl-C; a database that is away is said and asked again."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.live import Live

from packhorse.console.output import said
from packhorse.console.settings import ConsoleSettings
from packhorse.console.top.facts import Look
from packhorse.console.top.keyboard import Keyboard, keyboard
from packhorse.console.top.render import screen
from packhorse.console.top.service import Top
from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.core.errors import InfrastructureError

SLICE = 0.2
"""Seconds between two looks at the keyboard and at the size of the terminal."""


def run(settings: ConsoleSettings, terminal: Console, *, every: float, clock: Clock = SYSTEM_CLOCK) -> None:
    """
    Show what flows, renewed every so many seconds, until q, Ctrl-C or SIGTERM; the terminal is restored then.

    Raises:
        SettingsError, NotReady, Forbidden, NotSignedIn: What waiting does not mend.
    """
    with (
        keyboard() as keys,
        _ended_by_signal(),
        Live(console=terminal, screen=True, auto_refresh=False, transient=True) as live,
    ):
        try:
            while _session(settings, _Shown(live, terminal), keys, every=every, clock=clock):
                pass
        except KeyboardInterrupt:
            return


class _Shown:
    """What the terminal shows: drawn anew when it changes, and when the terminal's size does."""

    def __init__(self, live: Live, terminal: Console) -> None:
        self._live = live
        self._terminal = terminal
        self._size = terminal.size

    def show(self, content: RenderableType) -> None:
        """Show *content* from now on."""
        self._live.update(content, refresh=True)

    def resized(self) -> None:
        """Draw again if the terminal has another size now."""
        if self._terminal.size != self._size:
            self._size = self._terminal.size
            self._live.refresh()


def _session(settings: ConsoleSettings, shown: _Shown, keys: Keyboard, *, every: float, clock: Clock) -> bool:
    """Show looks over one connection; return False when a person leaves, True when the connection is to be made anew."""
    from packhorse.console.compose import service_of

    try:
        with service_of(settings) as service:
            return _looks(service.top, shown, keys, every=every, clock=clock)
    except InfrastructureError as error:
        shown.show(said(f"packhorse top: {error}; it is asked again every {every:g} s, q leaves", "red"))
        return _wait(shown, keys, until=clock.monotonic() + every, clock=clock)


def _looks(top: Top, shown: _Shown, keys: Keyboard, *, every: float, clock: Clock) -> bool:
    before: Look | None = None
    while True:
        began = clock.monotonic()
        now = top.look()
        shown.show(screen(top.view(now, before), every=every))
        before = now
        if not _wait(shown, keys, until=began + every, clock=clock):
            return False


def _wait(shown: _Shown, keys: Keyboard, *, until: float, clock: Clock) -> bool:
    """Wait; return False as soon as a person wants to leave. A look that took longer than it may is followed by a short wait."""
    while True:
        if keys.pressed(SLICE) in {"q", "Q", "\x03"}:
            return False
        shown.resized()
        if clock.monotonic() >= until:
            return True


@contextmanager
def _ended_by_signal() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that the terminal is restored."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
