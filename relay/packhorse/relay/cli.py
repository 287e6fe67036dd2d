"""`packhorse relay`: run the relay, say how it stands."""

from typing import Annotated

import typer

from packhorse.relay.cdc.cli import cdc_setup
from packhorse.relay.debezium import cli as debezium_cli
from packhorse.relay.identity.cli import adopt
from packhorse.relay.orders import hold_cli
from packhorse.relay.orders.republish_cli import republish
from packhorse.relay.resharding.cli import shards
from packhorse.relay.verify.cli import verify
from packhorse.relay.waking.cli import notify
from packhorse.schemas.flags import Broker, Namespace, Schema, Url

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Carry outbox rows to their topics.",
)


@app.command()
def run(
    database_url: Url = None,
    database_schema: Schema = None,
    kafka_bootstrap_servers: Broker = None,
    namespace: Namespace = None,
) -> None:
    """
    Carry rows until SIGTERM or Ctrl-C; a second one leaves at once.

    Run two or more: one owns the shard, the others wait and take over when its lease ends.

    [bold]Example[/]: packhorse relay run --namespace airline
    """
    from packhorse.producer.otel_sdk import telemetry_from
    from packhorse.relay.daemon import run as run_daemon
    from packhorse.relay.settings import RelaySettings

    settings = RelaySettings.load(
        {
            "database_url": database_url,
            "database_schema": database_schema,
            "kafka_bootstrap_servers": kafka_bootstrap_servers,
            "namespace": namespace,
        }
    )
    with telemetry_from(service="packhorse-relay") as telemetry:
        run_daemon(settings, telemetry=telemetry)


@app.command()
def status(
    database_url: Url = None,
    database_schema: Schema = None,
    sample: Annotated[
        float, typer.Option(min=0, max=60, help="Seconds between two looks, for the rate; 0: one look.")
    ] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """
    Say who owns each shard, how far the outbox is published, what waits, what is held, and what is wrong; exit 1 when something is,
    or a hold waits for a person.

    [bold]Example[/]: packhorse relay status --json
    """
    import json
    import threading

    from packhorse.core.text import inert
    from packhorse.relay.postgres.status import read_all
    from packhorse.relay.settings import StatusSettings

    settings = StatusSettings.load({"database_url": database_url, "database_schema": database_schema})
    found = read_all(
        settings.database_url.get_secret_value(),
        settings.database_schema,
        pause=threading.Event().wait if sample else None,
        sample=sample,
    )
    healthy = all(shard.healthy for shard in found)
    if as_json:
        typer.echo(json.dumps({"healthy": healthy, "shards": [shard.as_dict() for shard in found]}))
    else:
        for shard in found:
            several = [("shard", str(shard.shard))] if len(found) > 1 else []
            for name, text in [*several, *shard.lines()]:
                typer.echo(f"{name:<10} {inert(text)}")
    if not healthy:
        raise typer.Exit(1)


app.command()(hold_cli.holds)
app.add_typer(hold_cli.app, name="hold")
app.command()(shards)
app.command()(republish)
app.command()(adopt)
app.command()(verify)
app.command("cdc-setup")(cdc_setup)
app.command()(notify)
app.command("debezium-config")(debezium_cli.config)
app.command("debezium-ready")(debezium_cli.ready)
app.command("debezium-horizon")(debezium_cli.horizon)
