"""`packhorse dev`: a real Postgres, Kafka and schema registry on this machine, without Docker."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from packhorse.local.asking import ServiceStatus
    from packhorse.local.show import TerminalProgress
    from packhorse.local.stack import Stack

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_NOT_RUNNING = 0, 1, 2, 3

app = typer.Typer(
    name="dev",
    help="""
    Run a real Postgres, Kafka and schema registry on this machine, without Docker.

    The three are local processes on free ports of the loopback address; data, logs and ports stay in one folder
    (.packhorse, or --dir). What they need is fetched once, into the user's cache folder (or PACKHORSE_CACHE_DIR).

    [bold]Example[/bold]
      packhorse dev up && eval "$(packhorse dev env)"
      packhorse dev status
      packhorse dev down

    [bold]Exit codes[/bold]: 0 done · 1 failed · 2 wrong usage · 3 not running
    """,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

Dir = Annotated[
    Path,
    typer.Option("--dir", metavar="DIR", envvar="PACKHORSE_DEV_DIR", help="Folder of the stack."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_HERE = Path(".packhorse")


@app.command()
def up(
    directory: Dir = _HERE,
    postgres_bin: Annotated[
        Path | None,
        typer.Option(
            "--postgres-bin",
            metavar="DIR",
            envvar="PACKHORSE_DEV_POSTGRES_BIN",
            help="Programs of another Postgres (15 or newer).",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """
    Start what does not run yet, and return when all three answer.

    Safe to run twice. If a service does not come up, or you press Ctrl-C, what was started is stopped again.

    [bold]Example[/bold]
      packhorse dev up
      packhorse dev up --dir /tmp/second
    """
    from packhorse.local import show

    with _progress() as progress:
        stack = _stack(directory, progress, postgres_bin)
        started = stack.up()
        statuses = stack.status()
    if as_json:
        typer.echo(show.status_json(statuses))
        return
    if not started:
        typer.echo(f"All of it is up already in {stack.folder}.")
    _print_table(statuses)
    here = "" if directory == _HERE else f" --dir {directory}"
    typer.echo(f'\nIts settings for this shell:  eval "$(packhorse dev env{here})"')
    typer.echo(f"Its logs:                     packhorse dev logs{here}")


@app.command()
def down(directory: Dir = _HERE) -> None:
    """
    Stop what runs; data and ports stay for the next `up`.

    [bold]Example[/bold]
      packhorse dev down
    """
    with _progress() as progress:
        stack = _stack(directory, progress)
        stopped = stack.down()
    typer.echo(f"Stopped {', '.join(stopped)}." if stopped else f"Nothing runs in {stack.folder}.")


@app.command()
def status(directory: Dir = _HERE, as_json: Json = False) -> None:
    """
    Ask each service how it stands: running, silent (it lives and does not answer), dead or stopped.

    Exit code 0 when all run, 3 when none does, 1 in between.

    [bold]Example[/bold]
      packhorse dev status --json
    """
    from packhorse.local import show
    from packhorse.local.asking import Standing

    stack = _stack(directory)
    statuses = stack.status()
    if as_json:
        typer.echo(show.status_json(statuses))
    else:
        _print_table(statuses)
    running = [each for each in statuses if each.standing is Standing.RUNNING]
    if len(running) < len(statuses):
        quiet = all(each.standing is Standing.STOPPED for each in statuses)
        raise typer.Exit(EXIT_NOT_RUNNING if quiet else EXIT_FAILED)


@app.command()
def logs(
    services: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SERVICE]…", help="postgres, kafka, registry; all by default."),
    ] = None,
    directory: Dir = _HERE,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="Lines from the end of each log.")] = 30,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is written, until Ctrl-C.")
    ] = False,
) -> None:
    """
    Print the end of the services' logs; exit code 3 when there are none.

    [bold]Example[/bold]
      packhorse dev logs kafka -n 100
      packhorse dev logs -f
    """
    from packhorse.local.logs import print_logs
    from packhorse.local.settings import SERVICES

    chosen = services or list(SERVICES)
    if unknown := [name for name in chosen if name not in SERVICES]:
        raise UsageError(f"service {unknown[0]!r}: the stack has {', '.join(SERVICES)}")
    folder = directory.absolute()
    if not print_logs(folder, chosen, typer.echo, lines=lines, follow=follow):
        _say(f"no log in {folder}; start the stack with `packhorse dev up`")
        raise typer.Exit(EXIT_NOT_RUNNING)


@app.command()
def env(directory: Dir = _HERE, as_json: Json = False) -> None:
    """
    Print the settings of the running stack for a shell; exit code 3 when it does not run.

    [bold]Example[/bold]
      eval "$(packhorse dev env)"
    """
    import json

    from packhorse.local import show
    from packhorse.local.asking import Standing

    stack = _stack(directory)
    if away := [each.name for each in stack.status() if each.standing is not Standing.RUNNING]:
        _say(f"{', '.join(away)} not running in {stack.folder}; start with `packhorse dev up`")
        raise typer.Exit(EXIT_NOT_RUNNING)
    variables = stack.endpoints.variables()
    typer.echo(json.dumps(variables, indent=2) if as_json else show.export_lines(variables), nl=as_json)


@app.command()
def reset(
    directory: Dir = _HERE,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """
    Stop what runs and delete its data, logs and ports; downloads stay.

    [bold]Example[/bold]
      packhorse dev reset --yes && packhorse dev up
    """
    import sys

    with _progress() as progress:
        stack = _stack(directory, progress)
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError(
                    f"this deletes the databases and topics in {stack.folder}; say --yes to do so"
                )
            typer.confirm(f"Delete the databases and topics in {stack.folder}?", abort=True)
        stack.reset()
    typer.echo(f"Deleted all that the stack in {stack.folder} had kept.")


def _progress() -> "TerminalProgress":
    from rich.console import Console

    from packhorse.local.show import TerminalProgress

    return TerminalProgress(Console(stderr=True))


def _stack(
    directory: Path, progress: "TerminalProgress | None" = None, postgres_bin: Path | None = None
) -> "Stack":
    import os

    from packhorse.local.places import cache_folder
    from packhorse.local.settings import StackSettings
    from packhorse.local.stack import Stack

    settings = StackSettings(
        folder=directory.absolute(),
        cache=cache_folder(os.environ, Path.home()),
        postgres_binaries=postgres_bin.absolute() if postgres_bin else None,
    )
    return Stack(settings, progress=progress)


def _print_table(statuses: "Sequence[ServiceStatus]") -> None:
    from rich.console import Console

    from packhorse.local.show import status_table

    Console().print(status_table(statuses))


def _say(text: str) -> None:
    typer.echo(f"packhorse: {text}", err=True)
