"""`packhorse audit`: what people did."""

from typing import Annotated
from uuid import UUID

import typer

from packhorse.console import options
from packhorse.schemas import flags

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Read what people did, to what, when and why.",
)


@app.callback()
def root() -> None:
    """Read what people did, to what, when and why. It can only be added to."""


@app.command("list")
def list_acts(
    actor: Annotated[
        str | None, typer.Option("--actor", metavar="TEXT", help="By whom: a part of how it is recorded.")
    ] = None,
    act: Annotated[
        str | None,
        typer.Option(
            "--act",
            metavar="NAME",
            help="What, as its name begins: replay, redrive-set, discard, operators …",
        ),
    ] = None,
    message_id: Annotated[
        UUID | None, typer.Option("--id", metavar="ID", help="On the message of this id.")
    ] = None,
    group: Annotated[str | None, typer.Option("--group", metavar="NAME", help="In this group.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="From then on: a time, or `2h` ago.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Before then: a time, or `2h` ago.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", help="At most N on a page, up to 10000.")
    ] = 50,
    after: options.After = None,
    as_json: flags.Json = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print comma-separated values; no cell is taken for a formula.")
    ] = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    List what people did, the newest first, in pages: who, when, what, on which messages, and why.

    [bold]Example[/]
      packhorse audit list --act discard --since 2026-01-02T00:00:00Z
      packhorse audit list --id 019b76da-a800-7000-8000-000000000000 --json
    """
    from packhorse.console.audit.pages import Filter, position_from
    from packhorse.console.audit.render import page_csv, page_json, page_table
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell, tell_json, terminal
    from packhorse.core.clock import SYSTEM_CLOCK
    from packhorse.core.errors import UsageError
    from packhorse.core.moments import span_from

    if as_json and as_csv:
        raise UsageError("--json and --csv are two forms: give one of them")
    begin, end = span_from(since, until, now=SYSTEM_CLOCK.now())
    wanted = Filter(
        actor=actor,
        act=act,
        message_id=message_id,
        group=group,
        since=begin,
        until=end,
    )
    position = None if after is None else position_from(after)
    with service_of(options.settings_of(database_url, database_schema)) as service:
        page = service.audit.page(wanted, after=position, limit=limit)
    if as_json:
        tell_json(page_json(page))
        return
    if as_csv:
        typer.echo(page_csv(page), nl=False)
    elif page.entries:
        terminal().print(page_table(page))
    else:
        tell("nothing on record" + (" fits" if wanted != Filter() or after else ""))
    if page.next is not None:
        typer.echo(f"more: add --after {page.next.token()}", err=as_csv)
