"""A group of commands whose parts are imported only when one of their commands is used."""

import importlib
import inspect
import re
from typing import Any

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from packhorse.cli.mounts import MOUNTS, Mount

_COMPLETION = frozenset({"install_completion", "show_completion"})
"""Typer adds these to each app; they belong to the root alone."""

_LINE_END = re.compile(r"\n(?=\S)")


class LazyGroup(TyperGroup):
    """Show every mount by its line alone; import its module when it is resolved."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for mount in MOUNTS:
            self.commands[mount.name] = TyperGroup(
                name=mount.name,
                help=mount.line,
                rich_help_panel=mount.panel.value,
                rich_markup_mode=self.rich_markup_mode,
            )

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Return name, command and remaining arguments; the part's module is imported here."""
        name, found, rest = super().resolve_command(ctx, args)
        mount = next((mount for mount in MOUNTS if mount.name == name), None)
        return name, found if mount is None else load(mount), rest


def load(mount: Mount) -> TyperCommand | TyperGroup:
    """Import the part of *mount*, and those that join it, and return its command."""
    command = _command(mount.target)
    for target in mount.joined:
        command.commands.update(_command(target).commands)
    command.name = mount.name
    command.params = [param for param in command.params if param.name not in _COMPLETION]
    _reflow(command)
    return command  # type: ignore[no-any-return]


def _command(target: str) -> Any:
    module_name, _, attribute = target.partition(":")
    return get_command(getattr(importlib.import_module(module_name), attribute))


def _reflow(command: Any) -> None:
    """Join the lines of each paragraph of help, so that the terminal breaks them; indented lines stay as they are."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(_LINE_END.sub(" ", paragraph) for paragraph in paragraphs)
    for inner in getattr(command, "commands", {}).values():
        _reflow(inner)
