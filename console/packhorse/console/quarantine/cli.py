"""`packhorse quarantine`: list, show, redrive and discard messages that wait for a person."""

from typing import Annotated

import typer

from packhorse.console import options
from packhorse.console.quarantine.choices import (
    Group,
    MessageId,
    StateChoice,
    Topic,
    settings_of,
    state_of,
)
from packhorse.console.quarantine.groups import cli as commands
from packhorse.schemas import flags

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="List, show, redrive and discard messages that wait for a person.",
)


app.command("groups")(commands.groups)
app.command("group")(commands.group)
app.command("note")(commands.note)
app.command("ack")(commands.ack)
app.command("unack")(commands.unack)


@app.command("list")
def list_messages(
    group: Group = None,
    topic: Topic = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="CODE", help="With this reason code.")
    ] = None,
    message_type: Annotated[
        str | None, typer.Option("--type", metavar="NAME", help="Of this message type.")
    ] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", metavar="NAME", help="Of this tenant.")] = None,
    state: Annotated[StateChoice, typer.Option("--state", help="In this state.")] = StateChoice.QUARANTINED,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="At most N on a page, up to 1000.")] = 50,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="POSITION", help="Behind this: a page says what the next is."),
    ] = None,
    show_key: options.ShowKey = False,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    List what is in quarantine, the newest first, in pages.

    [bold]Example[/]
      packhorse quarantine list --group figures --reason attempts-exhausted
      packhorse quarantine list --state all --json
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell, tell_json, terminal
    from packhorse.console.quarantine.pages import Filter, position_from
    from packhorse.console.render import page_json, page_table

    wanted = Filter(
        group=group,
        topic=topic,
        reason=reason,
        type=message_type,
        tenant=tenant,
        state=state_of(state),
    )
    position = None if after is None else position_from(after)
    with service_of(settings_of(database_url, database_schema)) as service:
        page = service.quarantine.page(wanted, after=position, limit=limit)
    if as_json:
        tell_json(page_json(page, show_key=show_key))
        return
    if page.messages:
        terminal().print(page_table(page))
    else:
        tell("nothing in quarantine" + (" fits" if wanted != Filter() or after else ""))
    if page.next is not None:
        tell(f"more: add --after {page.next.token()}")


@app.command()
def show(
    message_id: MessageId,
    group: Group = None,
    topic: Topic = None,
    payload: Annotated[
        bool,
        typer.Option(
            "--payload", help="Decode the payload through the registry; personal fields are masked."
        ),
    ] = False,
    show_key: options.ShowKey = False,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
    registry_url: flags.Registry = None,
) -> None:
    """
    Show one message in quarantine: where it came from, headers, attempts, reason, and who acted.

    [bold]Example[/]
      packhorse quarantine show 019b76da-a800-7000-8000-000000000000 --payload
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell_json, terminal
    from packhorse.console.render import shown_json, shown_sheet

    with service_of(settings_of(database_url, database_schema, registry_url)) as service:
        found = service.quarantine.show(message_id, group=group, topic=topic, payload=payload)
    if as_json:
        tell_json(shown_json(found, show_key=show_key))
    else:
        terminal().print(shown_sheet(found, show_key=show_key))


@app.command()
def redrive(
    message_id: MessageId,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, for the record.")],
    group: Group = None,
    topic: Topic = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for a confirmation.")] = False,
    wait: Annotated[
        float, typer.Option("--wait", min=0, metavar="SECONDS", help="Wait so long for the outcome.")
    ] = 0,
    actor: Annotated[
        str | None, typer.Option("--actor", metavar="NAME", help="On whose behalf; recorded as claimed.")
    ] = None,
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
    raise typer.Exit(run_redrive(request, settings_of(database_url, database_schema)))


@app.command()
def discard(
    message_id: MessageId,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, for the record.")],
    group: Group = None,
    topic: Topic = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for a confirmation.")] = False,
    actor: Annotated[
        str | None, typer.Option("--actor", metavar="NAME", help="On whose behalf; recorded as claimed.")
    ] = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Give up one quarantined message, on the record: preview, confirm, then exactly that, once.

    What waits behind it in its key goes on. A running processor of the group carries that out; no broker is needed here.

    [bold]Example[/]
      packhorse quarantine discard 019b76da-a800-7000-8000-000000000000 --why "a duplicate of order 17"
    """
    from packhorse.console.quarantine.shell import Request, run_discard

    request = Request(
        message_id=message_id,
        why=why,
        group=group,
        topic=topic,
        yes=yes,
        wait=0,
        claimed=actor,
        as_json=as_json,
    )
    raise typer.Exit(run_discard(request, settings_of(database_url, database_schema)))
