"""`packhorse top`: what flows, and what does not."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.console import options
from packhorse.schemas import flags

if TYPE_CHECKING:
    from packhorse.console.top.service import Top
    from packhorse.console.top.view import View

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich")

APART = 1.0
"""Seconds between the two looks that rates rest on, where one snapshot is asked for."""


@app.command()
def top(
    once: Annotated[bool, typer.Option("--once", help="Print one snapshot and leave.")] = False,
    every: Annotated[
        float, typer.Option("--every", min=0.5, max=3600, metavar="SECONDS", help="Look so often.")
    ] = 2.0,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
    kafka_bootstrap_servers: flags.Broker = None,
) -> None:
    """
    Show what flows, live: rates, lag, ages, retries, parked keys, quarantine, pauses, processes and runs; what is wrong first.

    Leave with q or Ctrl-C. Without a terminal, with --once or --json, it prints one snapshot, which takes a second since rates need
    two looks. Each look is a few bounded questions to the database; lag needs the broker, and says so where it is not set.

    [bold]Example[/]
      packhorse top
      packhorse top --once
      packhorse top --json | jq -r '.wrong[]'
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell_json, terminal
    from packhorse.console.top.render import as_json as values
    from packhorse.console.top.render import screen

    settings = options.settings_of(database_url, database_schema, broker=kafka_bootstrap_servers)
    if not (once or as_json) and sys.stdout.isatty():
        from packhorse.console.top.live import run

        run(settings, terminal(), every=every)
        return
    with service_of(settings) as service:
        view = _snapshot(service.top)
    if as_json:
        tell_json(values(view))
    else:
        terminal().print(screen(view))


def _snapshot(top: "Top") -> "View":
    import threading

    before = top.look()
    threading.Event().wait(APART)
    return top.view(top.look(), before)
