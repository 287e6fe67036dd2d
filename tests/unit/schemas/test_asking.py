"""The one way in which commands ask before they act."""

import pytest
import typer
from typer.testing import CliRunner

from packhorse.schemas.asking import NOT_CONFIRMED, confirmed, typed

app = typer.Typer()


@app.command()
def act(words: bool = False) -> None:
    if words:
        typer.echo(f"typed {typed('out of order', 'type it')}")
    else:
        confirmed("do it?")
    typer.echo("done")


@pytest.mark.parametrize("arguments", [[], ["--words"]])
def test_where_nobody_answers_nothing_is_done_and_it_says_what_to_add(arguments: list[str]) -> None:
    """Fails when a command without a terminal ends without a word of --yes."""
    ran = CliRunner().invoke(app, arguments, input="")
    assert ran.exit_code == 1
    assert NOT_CONFIRMED in ran.output
    assert "done\n" not in ran.output.replace(NOT_CONFIRMED + "\n", "")


def test_a_yes_goes_on_and_a_no_does_not() -> None:
    """Fails when a no acts, or is said to be anything else."""
    assert CliRunner().invoke(app, [], input="y\n").output.endswith("done\n")
    no = CliRunner().invoke(app, [], input="n\n")
    assert (no.exit_code, "not confirmed; nothing was done" in no.output) == (1, True)
    assert "typed True" in CliRunner().invoke(app, ["--words"], input="out of order\n").output
