"""`packhorse relay debezium-…`: print a connector's configuration, and move between our relay and Debezium."""

from enum import StrEnum
from typing import Annotated

import typer

from packhorse.relay.debezium.config import HEARTBEAT, PASSWORD
from packhorse.relay.orders import options
from packhorse.schemas.flags import Namespace, Schema, Url


class Format(StrEnum):
    """How the configuration is printed."""

    JSON = "json"
    PROPERTIES = "properties"
    SQL = "sql"


Slot = Annotated[
    str | None,
    typer.Option(
        "--slot", metavar="NAME", help="The connector's replication slot. Default: debezium_<schema>."
    ),
]


def config(
    database_url: Url = None,
    database_schema: Schema = None,
    namespace: Namespace = None,
    name: Annotated[str, typer.Option("--name", help="The connector's name.")] = "packhorse-outbox",
    slot: Slot = None,
    publication: Annotated[
        str | None,
        typer.Option(
            "--publication", metavar="NAME", help="What the slot reads. Default: packhorse_<schema>."
        ),
    ] = None,
    password_from: Annotated[
        str,
        typer.Option(
            "--password-from",
            metavar="REFERENCE",
            help="Where Connect finds the password: a reference to one of its config providers.",
        ),
    ] = PASSWORD,
    heartbeat: Annotated[
        float,
        typer.Option("--heartbeat", min=0, help="Seconds between heartbeats of the connector; 0: none."),
    ] = HEARTBEAT,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            help="json for POST /connectors, properties for a standalone worker, sql: what to run first.",
        ),
    ] = Format.JSON,
) -> None:
    """
    Print what Debezium's Postgres connector needs to put the same bytes on the same topics as our relay.

    Host, database and user are those of the database's URL; its password is never printed: Connect resolves the reference
    on its own machine (for `${env:…}` the worker needs config.providers=env and the class EnvVarConfigProvider). Run
    `--format sql` first: publication, slot and the fence behind it. What stays different and how to move without a gap:
    docs/how-to/debezium.md.

    [bold]Example[/]: packhorse relay debezium-config --namespace airline --format sql
    """
    from packhorse.relay.cdc.stream import publication_name
    from packhorse.relay.debezium import config as debezium
    from packhorse.relay.debezium.sql import PREPARATION
    from packhorse.relay.postgres.connector import source_of
    from packhorse.relay.settings import DebeziumSettings

    settings = DebeziumSettings.load(
        {"database_url": database_url, "database_schema": database_schema, "namespace": namespace}
    )
    schema = settings.database_schema
    connector = debezium.Connector(
        name=name,
        schema=schema,
        namespace=settings.namespace,
        slot=slot or debezium.slot_of(schema),
        publication=publication or publication_name(schema),
        password=password_from,
        heartbeat=heartbeat,
    )
    source = source_of(settings.database_url.get_secret_value())
    if form is Format.SQL:
        role = source.user.replace('"', '""')
        typer.echo(
            PREPARATION.format(
                schema=schema, slot=connector.slot, publication=connector.publication, role=role
            ),
            nl=False,
        )
        return
    write = debezium.as_json if form is Format.JSON else debezium.as_properties
    typer.echo(write(name, debezium.configuration(connector, source)), nl=False)
    if (topic := connector.heartbeat_topic) is not None:
        typer.echo(
            f"make topic {topic} first: without it the connector stands still and says RUNNING", err=True
        )


def ready(database_url: Url = None, database_schema: Schema = None, slot: Slot = None) -> None:
    """
    Say whether the connector may start: our relay has published all that is older than its slot; exit 1 if not.

    Before that it would send newer messages of a key first. Afterwards both may run at once: messages are sent twice, their
    order per key holds.

    [bold]Example[/]: packhorse relay debezium-ready
    """
    from packhorse.relay.debezium.config import checked_slot, slot_of
    from packhorse.relay.postgres.connector import ConnectorSlot
    from packhorse.relay.settings import StatusSettings

    settings = StatusSettings.load({"database_url": database_url, "database_schema": database_schema})
    chosen = checked_slot(slot or slot_of(settings.database_schema))
    with ConnectorSlot(
        settings.database_url.get_secret_value(), settings.database_schema, chosen
    ) as looked_at:
        standing = looked_at.standing()
    for line in standing.obstacles():
        typer.echo(line)
    if standing.obstacles():
        raise typer.Exit(1)
    reader = "a connector reads it" if standing.active else "nobody reads it yet"
    typer.echo(
        f"ready: what is older than slot {chosen} is published; {reader}; {standing.behind} bytes behind"
    )


def horizon(
    database_url: Url = None,
    database_schema: Schema = None,
    slot: Slot = None,
    wait: Annotated[
        float,
        typer.Option("--wait", min=1, max=3600, help="Seconds to wait for the connector's confirmation."),
    ] = 60.0,
) -> None:
    """
    Move the relay's horizon to where the connector has published all, with an audit row.

    So the relay begins there when you move back, instead of sending again all that the connector sent; and retention sees
    what is published: run it every hour while Debezium carries. The connector must be running, and no relay.

    [bold]Example[/]: packhorse relay debezium-horizon --wait 120
    """
    import threading

    from packhorse.relay.debezium.config import checked_slot, slot_of
    from packhorse.relay.postgres.connector import ConnectorSlot
    from packhorse.relay.settings import StatusSettings

    settings = StatusSettings.load({"database_url": database_url, "database_schema": database_schema})
    chosen = checked_slot(slot or slot_of(settings.database_schema))
    with ConnectorSlot(
        settings.database_url.get_secret_value(), settings.database_schema, chosen
    ) as followed:
        shards = followed.follow(wait=wait, pause=threading.Event().wait, person=options.person_of(None))
    typer.echo(
        f"the horizon of {shards} shard{'s' if shards != 1 else ''} stands where slot {chosen} has published all"
    )
