"""
Let people ask for reports in a browser: `python -m examples.reports`, then open the address that it prints.

It runs what an operator runs: the migrations, the registration of schemas, the topics, a relay, a processor; and the application.
Exit codes: 0 it was stopped, 1 something failed, 2 wrong options.
"""

import signal
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import psycopg
import typer
import uvicorn
from rich.console import Console

from examples.common.children import Children
from examples.common.surroundings import Surroundings, refuse_topics_in_use, surroundings
from examples.reports import tables
from examples.reports.messages import ReportRequest
from examples.reports.web import application
from examples.reports.work import LETTERS_VARIABLE
from packhorse.core.errors import PackhorseError, UsageError
from packhorse.local.show import TerminalProgress

FOLDER = Path(".packhorse") / "reports"
WORK = "examples.reports.work:app"
_AVRO = Path(__file__).parent / "avro"
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def reports(
    port: Annotated[int, typer.Option(help="Where the application listens, on 127.0.0.1.")] = 8017,
    late_after: Annotated[float, typer.Option(help="Seconds after which a report is called late.")] = 10.0,
    folder: Annotated[Path, typer.Option(help="Where the stack, the logs and the letters lie.")] = FOLDER,
) -> None:
    """
    Run the application on a stack of its own, until Ctrl-C.

    Example: python -m examples.reports --late-after 3
    """
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with ExitStack() as undo:
            _serve(undo, folder.absolute(), port, late_after)
    except (PackhorseError, psycopg.Error) as error:
        sys.stderr.write(f"reports: {error}\n")
        raise typer.Exit(2 if isinstance(error, UsageError) else 1) from None
    except KeyboardInterrupt:
        sys.stderr.write("reports: stopped, with everything that was started\n")


def _serve(undo: ExitStack, folder: Path, port: int, late_after: float) -> None:
    namespace = ReportRequest.__packhorse__.namespace
    with TerminalProgress(Console(stderr=True)) as progress:
        around = undo.enter_context(
            surroundings(folder, progress, name="reports", namespace=namespace, keep=False)
        )
        environment = {
            **around.variables,
            LETTERS_VARIABLE: str(folder / "letters"),
            "PACKHORSE_SCHEMAS_AVRO_DIR": str(_AVRO),
        }
        children = undo.enter_context(Children(folder, environment, app=WORK))
        progress.say("making tables, schemas and topics")
        prepare(around, children)
    children.start_relay()
    children.start_processor()
    web = application(around.database_url, late_after=late_after)
    said = f"reports: open http://127.0.0.1:{port}/  (Ctrl-C ends it; logs are in {folder})\n"
    _Server(
        uvicorn.Config(web, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=2),
        said,
    ).run()


class _Server(uvicorn.Server):
    """Says *said* once it answers."""

    def __init__(self, config: uvicorn.Config, said: str) -> None:
        super().__init__(config)
        self._said = said

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        sys.stderr.write(self._said)


def prepare(around: Surroundings, children: Children) -> None:
    """Make the tables of Packhorse and of the application, register the schemas, make the topics."""
    refuse_topics_in_use(around, children, WORK, ReportRequest.__packhorse__.topic)
    children.run("migrate", "up")
    children.run("schemas", "register")
    children.run("topics", "apply", WORK)
    with psycopg.connect(around.database_url, autocommit=True) as connection:
        connection.execute(tables.SALES)
        connection.execute(tables.REPORTS)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    raise KeyboardInterrupt


if __name__ == "__main__":
    app()
