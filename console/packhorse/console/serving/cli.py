"""`packhorse console`: serve the operators' API."""

from typing import Annotated

import typer

from packhorse.schemas import flags

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich")


@app.command()
def console(
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="Listen here. [dim]PACKHORSE_CONSOLE_HOST[/]"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", help="Listen on this port. [dim]PACKHORSE_CONSOLE_PORT[/]"),
    ] = None,
    runner: Annotated[
        bool | None,
        typer.Option(
            "--runner/--no-runner",
            help="Go on with running redrives and replays. [dim]PACKHORSE_CONSOLE_RUNNER[/]",
        ),
    ] = None,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
    kafka_bootstrap_servers: flags.Broker = None,
    registry_url: flags.Registry = None,
    namespace: flags.Namespace = None,
) -> None:
    """
    Serve the operators' API until SIGTERM or Ctrl-C; a second one leaves at once.

    Every request needs a token, and nobody has one out of the box: `packhorse operators token` makes them. The document of
    the API is at /api/v1/openapi.json. Before other machines connect, put a proxy with TLS before it.

    [bold]Example[/]
      packhorse console --port 8400
      curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8400/api/v1/quarantine
    """
    from packhorse.console.serving.daemon import run
    from packhorse.console.settings import ConsoleSettings

    given = {
        "host": host,
        "port": port,
        "runner": runner,
        "database_url": database_url,
        "database_schema": database_schema,
        "kafka_bootstrap_servers": kafka_bootstrap_servers,
        "registry_url": registry_url,
        "namespace": namespace,
    }
    run(ConsoleSettings.load(given))
