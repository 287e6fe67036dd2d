"""Ask a person before something is done: one way for every command."""

import sys

import typer

from packhorse.core.errors import UsageError

NOT_CONFIRMED = "not confirmed: add --yes, or run it in a terminal; nothing was done"


def check_answerable(*, as_json: bool, yes: bool, act: str, otherwise: str = "") -> None:
    """
    Refuse to print JSON for an *act* that would be asked about; *otherwise*: what else can be given instead of --yes.

    Raises:
        UsageError: --json without --yes.
    """
    if as_json and not yes:
        raise UsageError(f"--json asks nothing back; add --yes to {act} without a confirmation{otherwise}")


def confirmed(question: str, *, err: bool = False) -> None:
    """
    Ask *question*, with *err* on standard error; return where the answer is yes.

    Raises:
        typer.Exit: Exit code 1: the answer is no, or nobody is there to answer, which is said.
    """
    try:
        said_yes = typer.confirm(question, err=err)
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        typer.echo(f"\n{NOT_CONFIRMED}", err=True)
        raise typer.Exit(1) from None
    if not said_yes:
        typer.echo("not confirmed; nothing was done", err=True)
        raise typer.Exit(1)


def typed(words: str, question: str) -> bool:
    """
    Ask *question*, and return whether the answer is *words*.

    Raises:
        typer.Exit: Exit code 1: nobody is there to answer, which is said.
    """
    try:
        answer: str = typer.prompt(question, default="", show_default=False)
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        typer.echo(f"\n{NOT_CONFIRMED}", err=True)
        raise typer.Exit(1) from None
    return answer == words
