"""The command tree, as tests walk it."""

from collections.abc import Iterator
from typing import Any

from packhorse.cli.lazy import load
from packhorse.cli.mounts import MOUNTS

ID = "019b76da-a800-7000-8000-000000000000"
NEEDED: dict[str, tuple[str, ...]] = {
    "status": (ID,),
    "explain": (ID,),
    "job show": (ID,),
    "job cancel": (ID, "--why", "not needed", "--yes"),
    "job redrive": (ID, "--why", "fixed", "--yes"),
    "job resolve": (ID, "--happened", "--why", "seen there", "--yes"),
    "quarantine show": (ID,),
    "quarantine group": ("01234567",),
    "quarantine note": ("01234567", "known"),
    "quarantine ack": ("01234567", "--why", "known"),
    "quarantine unack": ("01234567",),
    "quarantine restore": (ID, "--why", "needed", "--yes"),
    "quarantine redrive": (ID, "--why", "fixed", "--yes"),
    "processor run": ("examples.flights.figures:app",),
    "processor status": ("--group", "figures"),
    "processor pause": ("--group", "figures", "--why", "test"),
    "processor resume": ("--group", "figures", "--why", "test"),
    "processor paused": ("--group", "figures"),
    "topics plan": ("examples.flights.figures:app",),
    "topics apply": ("examples.flights.figures:app",),
    "offsets show": ("--group", "figures", "--topic", "airline.aircraft"),
    "offsets reset": (
        *("--group", "figures", "--topic", "airline.aircraft", "--to", "earliest"),
        *("--why", "test", "--yes"),
    ),
}
"""What a command needs besides its settings."""


def commands() -> Iterator[tuple[str, Any]]:
    """Yield what a person types for each command that does something, without `packhorse`, and the command."""
    for mount in MOUNTS:
        yield from _below(load(mount), mount.name)


def _below(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name in inner:
        yield from _below(inner[name], f"{path} {name}")
