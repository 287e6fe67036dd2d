"""`packhorse offsets`: where a group stands, and a reset on the record."""

from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.schemas.flags import Broker, Json, Schema, Url

if TYPE_CHECKING:
    from packhorse.processor.kafka.admin import BrokerQuestions
    from packhorse.processor.offsets.carrying import Move, Standing
    from packhorse.processor.storing import postgres
    from packhorse.processor.storing.store import Store

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Show a group's offsets and watermarks, and reset them on the record.",
)

Group = Annotated[str, typer.Option("--group", help="The consumer group.")]
Topic = Annotated[str, typer.Option("--topic", help="The topic.")]
COLUMNS = ("partition", "watermark", "committed", "first", "next", "lag")


@app.command()
def show(
    group: Group,
    topic: Topic,
    database_url: Url = None,
    database_schema: Schema = None,
    kafka_bootstrap_servers: Broker = None,
    as_json: Json = False,
) -> None:
    """
    Show, for each partition, the watermark in the database, what the coordinator holds, and what the topic holds.

    [bold]Example[/]: packhorse offsets show --group figures --topic airline.aircraft
    """
    import json

    from packhorse.processor.offsets.carrying import standings

    connection, store, broker = _set_up(group, database_url, database_schema, kafka_bootstrap_servers)
    try:
        found = standings(connection, store, broker, topic)
    finally:
        connection.end()
    rows = [_row(one) for one in found]
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "group": group,
                    "topic": topic,
                    "partitions": [dict(zip(COLUMNS, row, strict=True)) for row in rows],
                }
            )
        )
        return
    for cells in (COLUMNS, *rows):
        typer.echo("  ".join(f"{'-' if cell is None else cell:>10}" for cell in cells))


@app.command()
def reset(
    group: Group,
    topic: Topic,
    to: Annotated[
        str, typer.Option("--to", help="committed, earliest, latest, or an offset of one partition.")
    ],
    why: Annotated[str, typer.Option("--why", help="Why; kept in the audit. No personal data.")],
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, help="One partition; else all.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
    database_url: Url = None,
    database_schema: Schema = None,
    kafka_bootstrap_servers: Broker = None,
) -> None:
    """
    Set watermark and committed offset of a stopped group, with an audit row.

    Below the new watermark everything counts as done; from it on everything is delivered, and what the inbox knows ends
    as a duplicate.

    [bold]Example[/]: packhorse offsets reset --group figures --topic airline.aircraft --to committed --why "moved here"
    """
    from packhorse.core.users import system_user
    from packhorse.processor.offsets.carrying import Reset, carry_out, check_stopped, moves, standings

    wanted = Reset(to=to, partition=partition)
    connection, store, broker = _set_up(group, database_url, database_schema, kafka_bootstrap_servers)
    try:
        check_stopped(broker, group)
        planned = moves(standings(connection, store, broker, topic), wanted)
        for move in planned:
            typer.echo(_told(move))
        if planned and not yes:
            typer.confirm(f"Set {len(planned)} partitions of {topic} for group {group}?", abort=True)
        carry_out(connection, store, broker, planned, actor=system_user(), why=why)
    finally:
        connection.end()
    typer.echo(f"set {len(planned)} partitions of {topic} for group {group}")


def _set_up(
    group: str, url: str | None, schema: str | None, servers: str | None
) -> "tuple[postgres.GuardedConnection, Store, BrokerQuestions]":
    from packhorse.processor.clients import admin_properties
    from packhorse.processor.kafka.admin import BrokerQuestions
    from packhorse.processor.settings import OffsetsSettings
    from packhorse.processor.storing import postgres
    from packhorse.processor.storing.sql import queries_for
    from packhorse.processor.storing.store import Store

    settings = OffsetsSettings.load(
        {"database_url": url, "database_schema": schema, "kafka_bootstrap_servers": servers}
    )
    conninfo = postgres.settings_of(settings.database_url.get_secret_value(), idle_ms=60_000, lock_ms=10_000)
    store = Store(queries=queries_for(settings.database_schema), group=group, schema=settings.database_schema)
    return postgres.connect(conninfo), store, BrokerQuestions(admin_properties(settings))


def _row(one: "Standing") -> tuple[int | None, ...]:
    lag = None if one.watermark is None else max(0, one.high - max(one.watermark, one.low))
    return one.partition, one.watermark, one.committed, one.low, one.high, lag


def _told(move: "Move") -> str:
    one = move.standing
    return (
        f"{one.topic}[{one.partition}]: watermark {'none' if one.watermark is None else one.watermark}, "
        f"committed {'none' if one.committed is None else one.committed} → {move.to}"
    )
