"""`packhorse quarantine`: list, show, redrive and discard messages that wait for a person."""

from typing import Annotated

import typer

from packhorse.console import options
from packhorse.console.quarantine import looking
from packhorse.console.quarantine.groups import cli as commands
from packhorse.console.quarantine.restoring import cli as restoring
from packhorse.console.redriving.edit_cli import edit
from packhorse.schemas import flags

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="List, show, redrive and discard messages that wait for a person.",
)


app.command("list")(looking.list_messages)
app.command("show")(looking.show)
app.command("groups")(commands.groups)
app.command("group")(commands.group)
app.command("note")(commands.note)
app.command("ack")(commands.ack)
app.command("unack")(commands.unack)
app.command("restore")(restoring.restore)
app.command("edit")(edit)


@app.command()
def redrive(
    message_id: options.MessageId,
    why: options.Why,
    group: options.Group = None,
    topic: options.Topic = None,
    yes: options.Yes = False,
    wait: Annotated[
        float, typer.Option("--wait", min=0, metavar="SECONDS", help="Wait so long for the outcome.")
    ] = 0,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Send one quarantined message back to its handler, on the record: preview, confirm, then exactly that, once.

    Three things are told apart: asked (the order stands in the database), sent (the broker has the copy), proved (there is an
    outcome). A running processor of the group sends; no broker is needed here. With --wait, exit code 1 says that it failed
    again, 7 that there was no outcome in time. --json needs --yes.

    [bold]Example[/]
      packhorse quarantine redrive 019b76da-a800-7000-8000-000000000000 --why "fixed in 1.4.2" --wait 30
    """
    from packhorse.console.quarantine.shell import Request, run_redrive

    request = Request(
        message_id=message_id,
        why=why,
        group=group,
        topic=topic,
        yes=yes,
        wait=wait,
        claimed=actor,
        as_json=as_json,
    )
    raise typer.Exit(run_redrive(request, options.settings_of(database_url, database_schema)))


@app.command()
def discard(
    message_ids: restoring.MessageIds,
    why: options.Why,
    group: options.Group = None,
    topic: options.Topic = None,
    yes: options.Yes = False,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Give up quarantined messages, on the record: preview, confirm, then exactly that, once.

    What waits behind one in its key goes on. A running processor of the group carries that out; no broker is needed here. Each
    message stands for itself. `packhorse quarantine restore` takes it back as long as its bytes are kept.

    [bold]Example[/]
      packhorse quarantine discard 019b76da-a800-7000-8000-000000000000 --why "a duplicate of order 17"
    """
    from packhorse.console.quarantine.shell import discard_one, service_for_act

    settings = options.settings_of(database_url, database_schema)
    with service_for_act(
        settings, why=why, yes=yes, claimed=actor, as_json=as_json, act="discard"
    ) as service:
        restoring.each_alone(
            message_ids,
            lambda message_id: discard_one(
                service, message_id, (group, topic), why=why, asks=not yes, told=not as_json
            ),
            as_json=as_json,
        )
