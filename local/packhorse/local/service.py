"""What each of the three services tells the stack about itself."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from packhorse.local.launcher import Command

Run = Callable[[Command], None]
"""Start a command, wait for it, and raise StackFailed with the tail of its log when its exit status is not 0."""


class Service(Protocol):
    """A process of the stack: how it is prepared, started, asked and stopped."""

    @property
    def name(self) -> str:
        """Its name in commands, logs and the state file."""

    @property
    def port_names(self) -> tuple[str, ...]:
        """The names of the ports it listens on; the first is the one clients use."""

    @property
    def stop_signal(self) -> signal.Signals:
        """The signal that asks it to stop cleanly."""

    @property
    def log(self) -> Path:
        """Where it writes."""

    def prepare(self, run: Run) -> None:
        """Make its files for the first start, whole or not at all, and render its settings."""

    def command(self) -> Command:
        """Return how to start it."""

    def answers(self) -> bool:
        """Ask it, within about two seconds, whether it can do its work."""
