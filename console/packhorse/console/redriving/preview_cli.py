"""`packhorse redrive preview`: freeze a set, and show what speaks for or against redriving it."""

from typing import Annotated
from uuid import UUID

import typer

from packhorse.console import options
from packhorse.schemas import flags


def preview(
    *,
    ids: Annotated[
        list[UUID] | None, typer.Option("--id", metavar="ID", help="This message; may be given often.")
    ] = None,
    group: options.Group = None,
    topic: options.Topic = None,
    message_type: options.Type = None,
    reason: options.Reason = None,
    failure: Annotated[
        str | None, typer.Option("--failure", metavar="PRINT", help="Of this group of failures.")
    ] = None,
    tenant: options.Tenant = None,
    key: Annotated[str | None, typer.Option("--key", metavar="TEXT", help="With exactly this key.")] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="Whose recorded error has this in it.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="WHEN", help="Quarantined from then on: a time, or `2h` ago."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="WHEN", help="Quarantined before then.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Without a filter: yes, all of them.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", help="Refuse a set that has more members; up to 1000000.")
    ] = 100_000,
    rate: Annotated[
        float, typer.Option("--rate", metavar="N", help="Ask for so many a second at most.")
    ] = 500,
    stages: Annotated[
        str,
        typer.Option(
            "--stages", metavar="N,N,…", help="So many at first, each stage proved before the next."
        ),
    ] = "1,5,20,100",
    most_failures: Annotated[
        int | None,
        typer.Option(
            "--most-failures",
            metavar="N",
            help="Halt when more of one stage fail again; else none in stages of fewer than 20, then a tenth of the full stage.",
        ),
    ] = None,
    beyond_cap: Annotated[
        bool, typer.Option("--beyond-cap", help="Take in also what was redriven ten times or more.")
    ] = False,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Freeze the set that the filters mean now, and show what speaks for or against redriving it. Nothing is redriven.

    The ids and attempts are kept in the database, so what is confirmed later is exactly what was previewed: what comes to
    quarantine meanwhile is not in it, and what somebody else has acted on is named and left alone. It holds for an hour.

    [bold]Example[/]
      packhorse redrive preview --group figures --reason attempts-exhausted --since 2h
      packhorse redrive preview --failure 3f2a9c01 --rate 2000 --json
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell_json, terminal
    from packhorse.console.redriving.render import frozen_json, frozen_sheet
    from packhorse.console.redriving.wanted import DEFAULT_CAP, How, Wanted, stages_from
    from packhorse.core.clock import SYSTEM_CLOCK
    from packhorse.core.moments import span_from

    begin, end = span_from(since, until, now=SYSTEM_CLOCK.now())
    wanted = Wanted(
        group=group,
        topic=topic,
        type=message_type,
        reason=reason,
        failure=failure,
        tenant=tenant,
        key=key,
        text=text,
        since=begin,
        until=end,
        ids=tuple(dict.fromkeys(ids or ())),
    )
    how = How(
        limit=limit,
        rate=rate,
        stages=stages_from(stages),
        most_failures=most_failures,
        cap=None if beyond_cap else DEFAULT_CAP,
    )
    with service_of(options.settings_of(database_url, database_schema), claimed=actor) as service:
        frozen = service.redrives.preview(wanted, how, everything=everything)
    if as_json:
        tell_json(frozen_json(frozen))
    else:
        terminal().print(frozen_sheet(frozen))
