"""Every command, wherever its part keeps it: it has an example, and its options are explained."""

from typing import Any

import pytest
from docs.reference.generate import example_of
from tests.support.commands import commands

COMMANDS = dict(commands())


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_an_example_that_begins_with_it(path: str) -> None:
    example = example_of(COMMANDS[path])
    assert example is not None
    assert f"packhorse {path}" in example


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_is_explained(path: str) -> None:
    command: Any = COMMANDS[path]
    assert command.help
    bare = [param.name for param in command.params if not getattr(param, "help", None)]
    assert bare == []
