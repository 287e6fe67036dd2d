"""`packhorse console`: serve the operators' web page and API."""

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
    pages: Annotated[
        bool | None,
        typer.Option(
            "--pages/--no-pages", help="Serve the web page beside the API. [dim]PACKHORSE_CONSOLE_PAGES[/]"
        ),
    ] = None,
    links: Annotated[
        bool | None,
        typer.Option(
            "--links/--no-links",
            help="Write links that sign in once to standard error; by default where that is a terminal. "
            "[dim]PACKHORSE_CONSOLE_LINKS[/]",
        ),
    ] = None,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
    kafka_bootstrap_servers: flags.Broker = None,
    registry_url: flags.Registry = None,
    namespace: flags.Namespace = None,
) -> None:
    """
    Serve the operators' web page and API until SIGTERM or Ctrl-C; a second one leaves at once.

    In a terminal it prints a link that signs you in, once, with the rights of the database's role that it connects under. Nothing
    else is open out of the box: people come in by a token (`packhorse operators token`) or by a proxy that you name, programs by a
    token. The document of the API is at /api/v1/openapi.json. Before other machines connect, put a proxy with TLS before it.

    [bold]Example[/]
      packhorse console
      packhorse console --port 8400 --no-links
      curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8400/api/v1/quarantine
    """
    from packhorse.console.serving.daemon import run
    from packhorse.console.settings import ConsoleSettings

    given = {
        "host": host,
        "port": port,
        "runner": runner,
        "pages": pages,
        "links": links,
        "database_url": database_url,
        "database_schema": database_schema,
        "kafka_bootstrap_servers": kafka_bootstrap_servers,
        "registry_url": registry_url,
        "namespace": namespace,
    }
    run(ConsoleSettings.load(given))
