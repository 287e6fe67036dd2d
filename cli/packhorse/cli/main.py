"""The command `packhorse`: a table of contents, the options that hold for every command, and the one error handler."""

import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, NoReturn, TextIO

import typer
from typer.main import get_command

from packhorse.cli.exits import ExitCode, code_of, secrets_around, told
from packhorse.cli.lazy import LazyGroup
from packhorse.core.errors import PackhorseError, UsageError

_SETTINGS = (
    "[bold]Settings[/bold] come from flags, the environment ([cyan]PACKHORSE_…[/cyan], or "
    "[cyan]PACKHORSE_…_FILE[/cyan] for a file that holds the value) and packhorse.toml, in that order. "
    "Secrets are never flags."
)
_EXAMPLE = (
    "[bold]Example[/bold]\n"
    '  packhorse dev up && eval "$(packhorse dev env)"\n'
    "  packhorse migrate up\n"
    "  packhorse doctor"
)


def _epilog() -> str:
    codes = "\n".join(f"  {code.value:>3}  {code.meaning}" for code in ExitCode)
    return f"{_EXAMPLE}\n\n{_SETTINGS}\n\n[bold]Exit codes[/bold]\n{codes}"


class LogFormat(StrEnum):
    """How the daemons log."""

    PEOPLE = "people"
    JSON = "json"


app = typer.Typer(
    cls=LazyGroup,
    name="packhorse",
    help="Carry events from a Postgres transaction, over Kafka, to a result: nothing lost, nothing done twice.",
    epilog=_epilog(),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"packhorse {version('packhorse')}")
        raise typer.Exit


@app.callback()
def root(
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Settings file instead of packhorse.toml."),
    ] = None,
    log_format: Annotated[
        LogFormat | None,
        typer.Option("--log-format", help="How daemons log: for people, or one JSON object a line."),
    ] = None,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and leave."),
    ] = False,
) -> None:
    """Pass on what holds for every command; parts and the processes they start read it from the environment."""
    if config is not None:
        os.environ["PACKHORSE_CONFIG"] = str(config)
    if log_format is not None:
        os.environ["PACKHORSE_LOG_FORMAT"] = log_format.value


def run() -> None:
    """Run the command line and leave with its exit code; nothing but a bug shows a traceback."""
    _make_printable()
    try:
        _check_arguments(sys.argv[1:])
        get_command(app).main(prog_name="packhorse")
    except KeyboardInterrupt:
        _leave(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        _leave(ExitCode.FAILED)
    except SystemExit as leaving:
        _leave(leaving.code if isinstance(leaving.code, int) else ExitCode.OK)
    except Exception as error:  # noqa: BLE001 the last resort: tell it without a secret
        sys.stderr.write(told(error, secrets_around()) + "\n")
        _leave(code_of(error) if isinstance(error, PackhorseError) else ExitCode.FAILED)


def _check_arguments(arguments: Sequence[str]) -> None:
    """Refuse bytes that are no text in this locale: Python passes them on as what no database, broker or file takes."""
    for number, argument in enumerate(arguments, start=1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UsageError(f"argument {number}, {argument!r}, is no UTF-8 text") from None


def _make_printable() -> None:
    """Let every text be printed: as escapes where the locale has no letters for it, nowhere where a stream is closed."""
    sys.stdout = _printable(sys.stdout)
    sys.stderr = _printable(sys.stderr)


def _printable(stream: TextIO | None) -> TextIO:
    if stream is None:  # closed by whoever started us
        return Path(os.devnull).open("w", encoding="utf-8")
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def _leave(code: int) -> NoReturn:
    """Leave with *code*; what is still in a buffer that nobody takes is dropped."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
        code = ExitCode.FAILED
    raise SystemExit(int(code)) from None


if __name__ == "__main__":
    run()
