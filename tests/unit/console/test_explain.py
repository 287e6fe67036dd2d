"""Explanations, sentence by sentence: each standing's text lies in explained.txt, read by a person."""

import re
import shlex
from pathlib import Path

import pytest
from tests.support.commands import commands
from tests.support.console_facts import ID
from tests.support.explained import KEYS, MESSAGES, explained, text_of
from tests.unit.console.test_output import EVIL, printed

from packhorse.console.output import json_text
from packhorse.console.truth.commands import command
from packhorse.console.truth.explanation import Action, Explanation, Part
from packhorse.console.truth.render import explanation_json, explanation_sheet

GOLDEN = Path(__file__).with_name("explained.txt")
TEXTS = {
    part.partition("\n")[0]: part.partition("\n")[2].strip()
    for part in GOLDEN.read_text(encoding="utf-8").split("== ")[1:]
}


@pytest.mark.case("X-01")
@pytest.mark.case("X-02")
@pytest.mark.parametrize("name", [*MESSAGES, *KEYS])
def test_a_standing_is_explained_as_it_was_read_by_a_person(name: str) -> None:
    """Fails when a sentence changes: read the new one, then `python -m tests.support.explained > tests/unit/console/explained.txt`."""
    assert text_of(explained(name)) == TEXTS[name]


def test_there_are_no_texts_without_a_standing() -> None:
    assert list(TEXTS) == [*MESSAGES, *KEYS]


def test_only_what_nobody_knows_is_not_known() -> None:
    unknown = {name for name in [*MESSAGES, *KEYS] if not explained(name).known}
    assert unknown == {name for name in MESSAGES if name.startswith("unknown")} | {
        "key: of a topic that the group has never read"
    }


@pytest.mark.parametrize("name", [*MESSAGES, *KEYS])
def test_each_part_says_where_it_stands_and_what_comes_next(name: str) -> None:
    """Fails when a part that is open leaves a person without an answer to "what now?"."""
    for part in explained(name).parts:
        assert part.stands
        assert part.can or part.nothing
        if part.waits:
            assert part.next, part


def test_each_command_that_is_proposed_exists_and_takes_its_options() -> None:
    """Fails when a command is renamed, or an option of it, and the explanation goes on proposing the old one."""
    known = dict(commands())
    proposed = {
        action.command
        for name in [*MESSAGES, *KEYS]
        for part in explained(name).parts
        for action in part.can
        if action.command is not None
    }
    for line in proposed:
        words = shlex.split(line)[1:]
        name = next((" ".join(words[:n]) for n in (3, 2, 1) if " ".join(words[:n]) in known), None)
        assert name is not None, line
        options = {
            option
            for parameter in known[name].params
            for option in [*parameter.opts, *parameter.secondary_opts]
        }
        assert {word for word in words if word.startswith("--")} <= options, line


def test_a_command_is_quoted_for_a_shell_and_shows_nothing_that_obeys() -> None:
    line = command("quarantine", "show", ID, group="a; rm -rf /", topic="b\x1b[2J")
    assert "\x1b" not in line
    assert shlex.split(line)[4:6] == ["--group", "a; rm -rf /"]


def test_what_comes_from_elsewhere_is_printed_and_never_obeyed() -> None:
    part = Part(
        about=EVIL, stands=(EVIL,), waits=(EVIL,), next=(EVIL,), can=(Action(what=EVIL, command=EVIL),)
    )
    explanation = Explanation(known=True, standing=EVIL, parts=(part,))
    for text in (printed(explanation_sheet(explanation)), json_text(explanation_json(explanation))):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\x9b\u202e]", text)
