"""`packhorse status`: where one message stands."""

from typing import Annotated

import typer

from packhorse.console import options
from packhorse.schemas import flags

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich")

UNKNOWN = 6
"""Exit code: the id is not known here."""


@app.command()
def status(
    message_id: options.MessageId,
    search: Annotated[
        bool,
        typer.Option(
            "--search", help="Where no delivery is known, look into the key's partition, within bounds."
        ),
    ] = False,
    search_records: Annotated[
        int | None, typer.Option("--search-records", metavar="N", help="Read at most N records.")
    ] = None,
    search_seconds: Annotated[
        float | None, typer.Option("--search-seconds", metavar="SECONDS", help="Search at most so long.")
    ] = None,
    show_key: options.ShowKey = False,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
    kafka_bootstrap_servers: flags.Broker = None,
    namespace: flags.Namespace = None,
) -> None:
    """
    Say where one message stands: recorded, published, delivered, with what result, why it stopped and who acted.

    Exit code 0 when the id is known in this database, 6 when it is not. "Unknown" means it was never committed here; it is
    not the same as "recorded, not yet published". "Older than the inbox keeps" means that its rows, if there were any, are gone.

    [bold]Example[/]
      packhorse status 019b76da-a800-7000-8000-000000000000
      packhorse status 019b76da-a800-7000-8000-000000000000 --search --json
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell_json, terminal
    from packhorse.console.render import status_json, status_sheet
    from packhorse.console.settings import ConsoleSettings

    settings = ConsoleSettings.load(
        {
            "database_url": database_url,
            "database_schema": database_schema,
            "kafka_bootstrap_servers": kafka_bootstrap_servers,
            "namespace": namespace,
            "search_records": search_records,
            "search_seconds": search_seconds,
        }
    )
    asked = search or search_records is not None or search_seconds is not None
    with service_of(settings) as service:
        found = service.truth.status(message_id, search=asked)
    if as_json:
        tell_json(status_json(found, show_key=show_key))
    else:
        terminal().print(status_sheet(found, show_key=show_key))
    if not found.known:
        raise typer.Exit(UNKNOWN)
