"""`packhorse quarantine groups | group | note | ack | unack`: what stops, how much of it, and what people know of it."""

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from packhorse.console import options
from packhorse.console.quarantine.choices import StateChoice, state_of
from packhorse.console.quarantine.groups.model import By
from packhorse.schemas import flags

if TYPE_CHECKING:
    from packhorse.console.quarantine.groups.model import GroupFilter

PRINT = Annotated[
    str, typer.Argument(metavar="PRINT", help="The group's name, or its first eight digits or more.")
]


def groups(
    *,
    by: Annotated[By, typer.Option("--by", help="What to group by.")] = By.FAILURE,
    group: options.Group = None,
    topic: options.Topic = None,
    message_type: options.Type = None,
    tenant: options.Tenant = None,
    reason: options.Reason = None,
    state: Annotated[StateChoice, typer.Option("--state", help="In this state.")] = StateChoice.QUARANTINED,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DAY", help="Quarantined on this day (UTC) or later.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="DAY", help="Quarantined on this day (UTC) or earlier.")
    ] = None,
    limit: options.Limit = 50,
    after: options.After = None,
    as_json: flags.Json = False,
    as_csv: options.Csv = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Say what stops: exact counts by what messages have in common, the largest group first.

    A failure is what has one group, topic, type, reason, and class and place of the error; it is named by a print, of which
    eight digits do. The share is the group's part of all that is counted in the state asked for. Counts are kept by whole
    days in UTC, and by tenant for all days together.

    [bold]Example[/]
      packhorse quarantine groups
      packhorse quarantine groups --by tenant --reason attempts-exhausted
      packhorse quarantine groups --by day --since 2026-08-01 --json
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import checked_form, tell, tell_json, terminal
    from packhorse.console.quarantine.groups.model import (
        GroupFilter,
        group_position_from,
        uncounted_line,
    )
    from packhorse.console.quarantine.groups.render import CSV_COLUMNS, groups_csv, groups_json, groups_table
    from packhorse.console.spreadsheet import tell_csv

    checked_form(as_json=as_json, as_csv=as_csv)
    named = GroupFilter(
        group=group, topic=topic, type=message_type, tenant=tenant, reason=reason, state=state_of(state)
    )
    wanted = _between(named, since, until)
    position = None if after is None else group_position_from(after)
    with service_of(options.settings_of(database_url, database_schema)) as service:
        page = service.groups.page(wanted, by=by, after=position, limit=limit)
    if as_json:
        tell_json(groups_json(page))
    elif as_csv:
        tell_csv(CSV_COLUMNS, groups_csv(page))
    elif page.groups:
        terminal().print(groups_table(page))
    else:
        tell("nothing in quarantine" + (" fits" if wanted != GroupFilter() or after else ""))
    if page.uncounted and not as_json:
        tell(uncounted_line(page.uncounted), err=as_csv)
    if page.next is not None and not as_json:
        tell(f"more: add --after {page.next.token()}", err=as_csv)


def group(
    name: PRINT,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Show one group of failures: counts by day and tenant, the share that failed for good, newest messages, notes.

    [bold]Example[/]
      packhorse quarantine group 3f9a1c02
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell_json, terminal
    from packhorse.console.quarantine.groups.render import group_sheet, group_shown_json

    with service_of(options.settings_of(database_url, database_schema)) as service:
        shown = service.groups.show(name)
    if as_json:
        tell_json(group_shown_json(shown))
    else:
        terminal().print(group_sheet(shown))


def note(
    name: Annotated[
        str,
        typer.Argument(
            metavar="PRINT|ID", help="A group of failures, or a quarantined message, whose group it is."
        ),
    ],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What others should know; no personal data.")],
    group: options.Group = None,
    topic: options.Topic = None,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Write a note about a group of failures, on the record.

    [bold]Example[/]
      packhorse quarantine note 3f9a1c02 "fixed in 1.4.2, roll-out on Monday"
    """
    from packhorse.console.compose import service_of

    with service_of(options.settings_of(database_url, database_schema), claimed=actor) as service:
        found, at = service.groups.note(_print_or_id(name), text, group=group, topic=topic)
    _tell_act("noted", found, at, as_json=as_json)


def ack(
    name: PRINT,
    why: options.Why,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Acknowledge a group of failures, on the record: its contact is told no more; `groups` shows how many have come since.

    [bold]Example[/]
      packhorse quarantine ack 3f9a1c02 --why "known, ticket 17"
    """
    from packhorse.console.compose import service_of

    with service_of(options.settings_of(database_url, database_schema), claimed=actor) as service:
        found, at = service.groups.acknowledge(name, why=why)
    _tell_act("acknowledged", found, at, as_json=as_json)


def unack(
    name: PRINT,
    why: Annotated[
        str | None, typer.Option("--why", metavar="TEXT", help="The reason, for the record.")
    ] = None,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Take the acknowledgement of a group of failures back, on the record; its contact is told again when it grows.

    [bold]Example[/]
      packhorse quarantine unack 3f9a1c02 --why "the fix did not hold"
    """
    from packhorse.console.compose import service_of

    with service_of(options.settings_of(database_url, database_schema), claimed=actor) as service:
        found, at = service.groups.unacknowledge(name, why=why)
    _tell_act("unacknowledged", found, at, as_json=as_json)


def _tell_act(done: str, found: str, at: object, *, as_json: bool) -> None:
    from packhorse.console.output import plain, tell, tell_json

    if as_json:
        tell_json({"failure": found, f"{done}_at": at})
    else:
        tell(f"{done}: group of failures {found[:8]}, at {plain(at)}")


def _print_or_id(text: str) -> str | UUID:
    """Return *text* as an id when it is written with dashes: without them an id looks like a print."""
    if "-" not in text:
        return text
    try:
        return UUID(text)
    except ValueError:
        return text


def _between(named: "GroupFilter", since: str | None, until: str | None) -> "GroupFilter":
    from dataclasses import replace

    from packhorse.console.quarantine.groups.model import day_from

    return replace(
        named,
        since=None if since is None else day_from(since, option="--since"),
        until=None if until is None else day_from(until, option="--until"),
    )
