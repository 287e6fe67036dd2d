"""Every command, wherever its part keeps it: it has an example, and its options are explained."""

import re
from pathlib import Path
from typing import Any

import pytest
from docs.reference.generate import example_of, stale
from tests.support.commands import commands

from packhorse.cli.mounts import MOUNTS
from packhorse.console.doctor.compose import settings_models
from packhorse.schemas.settings import SECTIONS

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


def test_the_reference_is_what_the_code_says() -> None:
    assert stale() == [], "run `make reference`"


def test_no_command_is_missing() -> None:
    assert {path.split()[0] for path in COMMANDS} == {mount.name for mount in MOUNTS}


def test_the_settings_file_knows_the_table_of_every_part() -> None:
    """Fails when a part has a table that the others would refuse as mistyped."""
    assert {model.section for model in settings_models()} == SECTIONS


PAGES = sorted(
    page
    for page in [*Path("docs").rglob("*.md"), Path("README.md"), Path("CONTRIBUTING.md")]
    if page.is_file() and "decisions" not in page.parts
)
CALL = re.compile(r"packhorse ((?:[a-z-]+ ?)+)((?:[^`\n|&;]*)?)")


def calls(page: Path) -> set[tuple[str, str]]:
    """Return the commands that a page shows in code, each with what follows its name."""
    text = page.read_text(encoding="utf-8")
    code = [
        *re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL),
        *re.findall(r"`(packhorse [^`]+)`", text),
    ]
    return {
        (match[1].strip(), match[2]) for block in code for match in CALL.finditer(block.replace("\\\n", " "))
    }


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_command_that_the_docs_show_exists(page: Path) -> None:
    tops = {path.split()[0] for path in COMMANDS}
    for words, rest in calls(page):
        first = words.split()[0]
        if first not in tops:
            continue
        paths = [
            path
            for path in COMMANDS
            if words == path or words.startswith(f"{path} ") or path.startswith(f"{words} ")
        ]
        assert paths, f"{page}: packhorse {words}"
        known = {
            flag
            for path in paths
            for param in COMMANDS[path].params
            for flag in (*param.opts, *param.secondary_opts)
        }
        used = set(re.findall(r"(?<=\s)--[a-z][a-z-]*", f" {rest}"))
        assert used <= known | {"--help"}, f"{page}: packhorse {words} {rest}"
        needed = {
            param.opts[0]
            for path in paths
            if path == words
            for param in COMMANDS[path].params
            if _is_needed(param)
        }
        if rest.strip() and "--help" not in rest:
            assert needed <= used, f"{page}: packhorse {words} {rest}"


def _is_needed(param: Any) -> bool:
    return bool(param.required and param.param_type_name == "option")
