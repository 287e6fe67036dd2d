"""`packhorse migrate`: make the tables, say how they stand, print the SQL."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.schemas.flags import Json, Schema, Url

if TYPE_CHECKING:
    from packhorse.producer.migrate import MigrationStatus

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Make and inspect Packhorse's tables.",
)


@app.command()
def up(database_url: Url = None, database_schema: Schema = None, as_json: Json = False) -> None:
    """
    Make what is missing: tables, and day partitions for two weeks. Safe to run at any time and by several at once.

    [bold]Example[/]: packhorse migrate up
    """
    from packhorse.producer import migrate
    from packhorse.producer.settings import MigrateSettings

    settings = MigrateSettings.load({"database_url": database_url, "database_schema": database_schema})
    _print(migrate.upgrade(settings.database_url.get_secret_value(), settings.database_schema), as_json)


@app.command()
def status(database_url: Url = None, database_schema: Schema = None, as_json: Json = False) -> None:
    """
    Say which migrations ran and which are pending; exit 3 while some are.

    [bold]Example[/]: packhorse migrate status --json
    """
    from packhorse.producer import migrate
    from packhorse.producer.settings import MigrateSettings

    settings = MigrateSettings.load({"database_url": database_url, "database_schema": database_schema})
    found = migrate.status(settings.database_url.get_secret_value(), settings.database_schema)
    _print(found, as_json)
    if not found.ready:
        raise typer.Exit(3)


@app.command()
def sql(
    database_schema: Schema = None,
    grants: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PURPOSE=ROLE",
            help="Grant least rights: writer, relay, processor, operator or registrar. Repeatable.",
        ),
    ] = None,
) -> None:
    """
    Print the SQL that `up` would run on an empty database schema, for somebody else to run.

    [bold]Example[/]: packhorse migrate sql --grants writer=shop --grants relay=packhorse_relay | psql -v ON_ERROR_STOP=1 shop
    """
    from packhorse.core.clock import SYSTEM_CLOCK
    from packhorse.producer import migrate
    from packhorse.producer.settings import SqlSettings

    settings = SqlSettings.load({"database_schema": database_schema})
    pairs = [item.partition("=") for item in grants or []]
    roles = [(purpose, role) for purpose, _, role in pairs]
    typer.echo(migrate.sql(settings.database_schema, today=SYSTEM_CLOCK.now().date(), roles=roles), nl=False)


def _print(found: "MigrationStatus", as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(found.as_json()))
        return
    until = found.partitions_until.isoformat() if found.partitions_until else None
    typer.echo(f"database schema  {found.schema}")
    of = f"newer than this version, which knows {found.head}" if found.newer else f"of {found.head}"
    typer.echo(f"migrations       {found.current or 'none'} {of}")
    typer.echo(f"pending          {', '.join(found.pending) or 'none'}")
    typer.echo(f"partitions       made until {until or '-'}")
    if found.default_rows:
        typer.echo("                 rows lie in the default partition: run `packhorse migrate up` each day")
    if not found.ready:
        typer.echo("next             packhorse migrate up")
