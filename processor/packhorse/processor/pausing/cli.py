"""`packhorse processor pause | resume | paused`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.schemas.flags import Broker, Json, Schema, Url

if TYPE_CHECKING:
    from packhorse.processor.pausing.acting import Pausing
    from packhorse.processor.pausing.pauses import Scope

Group = Annotated[str, typer.Option("--group", help="The consumer group.")]
Topic = Annotated[
    str | None,
    typer.Option(
        "--topic", help="A source topic, with its tiers; or one tier. Without it: all of the group."
    ),
]
Partition = Annotated[
    int | None, typer.Option("--partition", min=0, help="One partition of the topic, and of its tiers.")
]
Key = Annotated[str | None, typer.Option("--key", help="One key of the topic, as text.")]
KeyHash = Annotated[
    str | None, typer.Option("--key-hash", help="One paused key, as `packhorse processor paused` names it.")
]
Why = Annotated[str, typer.Option("--why", help="Why; kept in the audit. No personal data.")]
As = Annotated[str | None, typer.Option("--actor", help="Who asked for it, if it was not you.")]


def pause(
    group: Group,
    why: Why,
    topic: Topic = None,
    partition: Partition = None,
    key: Key = None,
    actor: As = None,
    database_url: Url = None,
    database_schema: Schema = None,
    kafka_bootstrap_servers: Broker = None,
) -> None:
    """
    Pause a group, a topic, a partition or a key: what runs ends, nothing new begins, until somebody resumes it.

    It holds through restarts and rebalances, and members follow within about a second. Messages of a paused key wait behind it,
    other keys of its partition go on.

    [bold]Example[/]: packhorse processor pause --group figures --topic airline.aircraft --partition 3 --why "bad import"
    """
    from packhorse.processor.clients import admin_properties
    from packhorse.processor.kafka.admin import BrokerQuestions
    from packhorse.processor.settings import StatusSettings

    scope = _scope(topic, partition, key, None)
    systems = {"database_url": database_url, "kafka_bootstrap_servers": kafka_bootstrap_servers}
    broker = BrokerQuestions(admin_properties(StatusSettings.load(systems))) if scope.is_key else None
    with _pausing(group, database_url, database_schema) as pausing:
        done = pausing.pause(scope, why=why, broker=broker, claimed=actor)
    typer.echo(f"{'paused' if done else 'was paused already'}: {_named(scope, group)}")


def resume(
    group: Group,
    why: Why,
    topic: Topic = None,
    partition: Partition = None,
    key: Key = None,
    key_hash: KeyHash = None,
    actor: As = None,
    database_url: Url = None,
    database_schema: Schema = None,
) -> None:
    """
    Let what was paused go on; name it as it was paused.

    [bold]Example[/]: packhorse processor resume --group figures --topic airline.aircraft --partition 3 --why "mended"
    """
    scope = _scope(topic, partition, key, key_hash)
    with _pausing(group, database_url, database_schema) as pausing:
        done = pausing.resume(scope, why=why, claimed=actor)
        left = [row for row in pausing.paused()[0].rows if not scope.is_key and scope.within(row)]
    typer.echo(f"{'resumed' if done else 'was not paused'}: {_named(scope, group)}")
    for row in left:
        typer.echo(f"still held: {row.told}")


def paused(
    group: Group,
    database_url: Url = None,
    database_schema: Schema = None,
    as_json: Json = False,
) -> None:
    """
    List what is paused in a group, by whom, since when and why.

    [bold]Example[/]: packhorse processor paused --group figures
    """
    import json

    with _pausing(group, database_url, database_schema) as pausing:
        pauses, keys = pausing.paused()
    if as_json:
        told = {
            "group": group,
            "pauses": [{**row._asdict(), "at": row.at.isoformat()} for row in pauses.rows],
            "keys": [{**row._asdict(), "at": row.at.isoformat()} for row in keys],
        }
        typer.echo(json.dumps(told))
        return
    for row in pauses.rows:
        typer.echo(f"{row.told}  since {row.at:%Y-%m-%d %H:%M:%S %Z}")
    for one in keys:
        typer.echo(
            f"key {one.key_hash} of {one.topic}[{one.partition}], {one.followers} messages behind it  "
            f"since {one.at:%Y-%m-%d %H:%M:%S %Z}"
        )
    if not pauses.rows and not keys:
        typer.echo(f"nothing is paused in group {group}")


def register(app: typer.Typer) -> None:
    """Add the commands to *app*."""
    for command in (pause, resume, paused):
        app.command()(command)


def _scope(topic: str | None, partition: int | None, key: str | None, key_hash: str | None) -> "Scope":
    from packhorse.processor.pausing.pauses import Scope

    return Scope(
        topic=topic, partition=partition, key=None if key is None else key.encode(), key_hash=key_hash
    )


def _named(scope: "Scope", group: str) -> str:
    return f"group {group}" if scope.topic is None else f"{scope.what} of group {group}"


@contextmanager
def _pausing(group: str, url: str | None, schema: str | None) -> "Iterator[Pausing]":
    from packhorse.processor.pausing.acting import Pausing
    from packhorse.processor.pausing.table import PauseTable
    from packhorse.processor.settings import PauseSettings
    from packhorse.processor.storing import postgres
    from packhorse.processor.storing.sql import queries_for
    from packhorse.processor.storing.store import Store

    settings = PauseSettings.load({"database_url": url, "database_schema": schema})
    conninfo = postgres.settings_of(settings.database_url.get_secret_value(), idle_ms=60_000, lock_ms=10_000)
    connection = postgres.connect(conninfo)
    try:
        schema = settings.database_schema
        store = Store(queries=queries_for(schema), group=group, schema=schema)
        yield Pausing(connection, PauseTable(store=store))
    finally:
        connection.end()
