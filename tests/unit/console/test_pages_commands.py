"""Commands that pages show to be copied into a shell."""

import re
from pathlib import Path

from packhorse.console.pages import jinja
from packhorse.console.pages.jinja import environment

TEMPLATES = Path(jinja.__file__).parent / "templates"
_NAMES = re.compile(r"--(?:group|topic) (?:\{\{|\" ~ )(?P<value>[^}~]*)")


def test_what_an_address_names_is_one_word_of_a_command() -> None:
    """Fails when a link that somebody sends makes a page show a command that does something else."""
    found = [
        (path.name, each["value"])
        for path in TEMPLATES.glob("*.html")
        for each in _NAMES.finditer(path.read_text())
    ]
    assert len(found) >= 7
    assert [each for each in found if "| word" not in each[1]] == []
    text = environment().from_string("--group {{ group | word }}").render(group="$(id)")
    assert text == "--group &#39;$(id)&#39;"
