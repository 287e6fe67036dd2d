"""`packhorse offsets`: where a group stands, and a reset on the record."""

from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.console import options
from packhorse.core.text import counted
from packhorse.schemas.asking import check_answerable, confirmed
from packhorse.schemas.flags import Broker, Json, Schema, Url

if TYPE_CHECKING:
    from packhorse.processor.offsets.resetting import Move

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Show a group's offsets and watermarks, and reset them on the record.",
)

Group = Annotated[str, typer.Option("--group", metavar="NAME", help="The consumer group.")]
Topic = Annotated[str, typer.Option("--topic", metavar="NAME", help="The topic.")]
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

    [bold]Example[/]
      packhorse offsets show --group figures --topic airline.aircraft
    """
    from packhorse.console.compose import service_of
    from packhorse.console.offsets.render import standing_json
    from packhorse.console.output import tell_json

    with service_of(
        options.settings_of(database_url, database_schema, broker=kafka_bootstrap_servers)
    ) as service:
        partitions = [standing_json(one) for one in service.offsets.show(group, topic)]
    if as_json:
        tell_json({"group": group, "topic": topic, "partitions": partitions})
        return
    for cells in (COLUMNS, *(tuple(row.values()) for row in partitions)):
        typer.echo("  ".join(f"{'-' if cell is None else cell:>10}" for cell in cells))


@app.command()
def reset(
    group: Group,
    topic: Topic,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="WHERE",
            help="committed, earliest, latest, a time, or an offset of one partition.",
        ),
    ],
    why: options.Why,
    partition: Annotated[
        int | None, typer.Option("--partition", metavar="N", min=0, help="One partition; else all.")
    ] = None,
    yes: options.Yes = False,
    actor: options.ClaimedActor = None,
    as_json: Json = False,
    database_url: Url = None,
    database_schema: Schema = None,
    kafka_bootstrap_servers: Broker = None,
) -> None:
    """
    Set watermark and committed offset of a stopped group, on the record; only an admin may.

    Below the new watermark everything counts as done; from it on everything is delivered, and what the inbox knows ends as a
    duplicate. What a reset forwards passes over undone is named; `packhorse replay` can bring it later. Exit code 5: the group runs,
    or somebody was first; 8: the right is missing.

    [bold]Example[/]
      packhorse offsets reset --group figures --topic airline.aircraft --to committed --why "moved here"
      packhorse offsets reset --group figures --topic airline.aircraft --to 2026-11-30T10:00Z --why "again from ten"
    """
    from packhorse.console.compose import service_of
    from packhorse.console.offsets.render import move_json
    from packhorse.console.output import tell, tell_json
    from packhorse.processor.offsets.resetting import Reset

    wanted = Reset(to=to, partition=partition)
    check_answerable(as_json=as_json, yes=yes, act="reset")
    settings = options.settings_of(database_url, database_schema, broker=kafka_bootstrap_servers)
    with service_of(settings, claimed=actor) as service:
        preview = service.offsets.preview(group, topic, wanted)
        if not as_json:
            for move in preview.moves:
                tell(_told(move))
        if not yes:
            confirmed(f"Set {counted(len(preview.moves), 'partition')} of {topic} for group {group}?")
        by = service.offsets.reset(preview, why=why)
    if as_json:
        tell_json(
            {
                "group": group,
                "topic": topic,
                "by": by,
                "partitions": [move_json(move) for move in preview.moves],
            }
        )
    else:
        tell(
            f"set {counted(len(preview.moves), 'partition')} of {topic} for group {group}, on the record as {by}"
        )


def _told(move: "Move") -> str:
    one = move.standing
    text = (
        f"{one.topic}[{one.partition}]: watermark {'none' if one.watermark is None else one.watermark}, "
        f"committed {'none' if one.committed is None else one.committed} → {move.to}"
    )
    if move.skips:
        text += f"; {counted(move.skips, 'offset that is not done is', 'offsets that are not done are')} passed over"
    if move.repeats:
        text += f"; {counted(move.repeats, 'offset is', 'offsets are')} delivered again"
    return text
