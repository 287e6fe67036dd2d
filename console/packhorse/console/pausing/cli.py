"""`packhorse processor pause | resume | paused`."""

from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.console import options
from packhorse.schemas.flags import Broker, Json, Schema, Url

if TYPE_CHECKING:
    from packhorse.processor.pausing.pauses import Scope

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich")

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


@app.command()
def pause(
    group: Group,
    why: Why,
    topic: Topic = None,
    partition: Partition = None,
    key: Key = None,
    key_hex: options.KeyHex = None,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway", help="Also where nothing is known of it: pauses it ahead of its first start."
        ),
    ] = False,
    actor: As = None,
    as_json: Json = False,
    database_url: Url = None,
    database_schema: Schema = None,
    kafka_bootstrap_servers: Broker = None,
) -> None:
    """
    Pause a group, a topic, a partition or a key: what runs ends, nothing new begins, until somebody resumes it.

    It holds through restarts and rebalances, and members follow within about a second. Messages of a paused key wait behind it,
    other keys of its partition go on. A group, topic or partition that neither the tables nor the broker know is refused with exit
    code 6.

    [bold]Example[/]: packhorse processor pause --group figures --topic airline.aircraft --partition 3 --why "bad import"
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell, tell_json
    from packhorse.console.pausing.render import named

    scope = _scope(topic, partition, (key, key_hex), None)
    with service_of(
        options.settings_of(database_url, database_schema, broker=kafka_bootstrap_servers), claimed=actor
    ) as service:
        done = service.pausing.pause(group, scope, why=why, anyway=anyway)
    if as_json:
        tell_json({"group": group, "scope": named(scope, group), "paused": True, "was_paused": not done})
    else:
        tell(f"{'paused' if done else 'was paused already'}: {named(scope, group)}")


@app.command()
def resume(
    group: Group,
    why: Why,
    topic: Topic = None,
    partition: Partition = None,
    key: Key = None,
    key_hex: options.KeyHex = None,
    key_hash: KeyHash = None,
    actor: As = None,
    as_json: Json = False,
    database_url: Url = None,
    database_schema: Schema = None,
) -> None:
    """
    Let what was paused go on; name it as it was paused. Exit code 1 says that just that was not paused.

    [bold]Example[/]: packhorse processor resume --group figures --topic airline.aircraft --partition 3 --why "mended"
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell, tell_json
    from packhorse.console.pausing.render import resumed_json, resumed_lines

    scope = _scope(topic, partition, (key, key_hex), key_hash)
    with service_of(options.settings_of(database_url, database_schema), claimed=actor) as service:
        found = service.pausing.resume(group, scope, why=why)
    if as_json:
        tell_json(resumed_json(group, scope, found))
    else:
        for line in resumed_lines(group, scope, found):
            tell(line)
    raise typer.Exit(0 if found.done else 1)


@app.command()
def paused(
    group: Annotated[
        str | None, typer.Option("--group", help="Of this consumer group; without it of all.")
    ] = None,
    database_url: Url = None,
    database_schema: Schema = None,
    as_json: Json = False,
) -> None:
    """
    List what is paused, in one group or in all, by whom, since when and why.

    [bold]Example[/]: packhorse processor paused --group figures
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell, tell_json
    from packhorse.console.pausing.render import everywhere_lines, paused_json, paused_lines

    with service_of(options.settings_of(database_url, database_schema)) as service:
        if group is None:
            everywhere = service.pausing.everywhere()
            if as_json:
                tell_json({"groups": [paused_json(name, one) for name, one in everywhere.items()]})
                return
            for line in everywhere_lines(everywhere):
                tell(line)
            return
        found = service.pausing.paused(group)
    if as_json:
        tell_json(paused_json(group, found))
        return
    for line in paused_lines(group, found):
        tell(line)


def _scope(
    topic: str | None, partition: int | None, key: tuple[str | None, str | None], key_hash: str | None
) -> "Scope":
    from packhorse.processor.pausing.pauses import Scope

    return Scope(topic=topic, partition=partition, key=options.key_of(*key), key_hash=key_hash)
