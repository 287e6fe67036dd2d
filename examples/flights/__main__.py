"""
Carry real flights from their transactions to figures that add up: `python -m examples.flights`.

Exit codes: 0 everything adds up, 1 something differs or could not be run, 2 wrong options, 130 interrupted.
"""

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import psycopg
import typer

from examples.flights import dataset
from examples.flights.run import Options, run
from examples.flights.show import Screen
from packhorse.core.errors import PackhorseError, UsageError

FOLDER = Path(".packhorse") / "demo"


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")


@app.command()
def demo(
    flights: Annotated[int, typer.Option(metavar="N", help="Take the first N flights of the file.")] = 20_000,
    every: Annotated[bool, typer.Option("--all", help="Take the whole year: 336,776 flights.")] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the stack running at the end, to look around.")
    ] = False,
    serve: Annotated[
        bool,
        typer.Option(
            "--serve", help="Go on afterwards, with traffic, failures, jobs and the console, until Ctrl-C."
        ),
    ] = False,
    folder: Annotated[Path, typer.Option(help="Where the stack and the logs lie.")] = FOLDER,
) -> None:
    """
    Run the main job on real data: every flight that left New York City in 2013.

    Example: python -m examples.flights --flights 2000 --keep
    """
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        options = Options(
            flights=dataset.ROWS if every else flights, folder=folder.absolute(), keep=keep, serve=serve
        )
        with Screen() as screen:
            good = run(options, screen)
    except (PackhorseError, psycopg.Error) as error:
        sys.stderr.write(f"demo: {error}\n")
        raise typer.Exit(2 if isinstance(error, UsageError) else 1) from None
    except KeyboardInterrupt:
        sys.stderr.write("demo: interrupted; everything it had started is stopped\n")
        raise typer.Exit(130) from None
    raise typer.Exit(0 if good else 1)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    raise KeyboardInterrupt


if __name__ == "__main__":
    app()
