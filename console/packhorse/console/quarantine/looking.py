"""`packhorse quarantine list | show`: find messages, and look at one."""

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from packhorse.console import options
from packhorse.console.paging import MOST_LOOKED, gathered
from packhorse.console.quarantine.choices import StateChoice, state_of
from packhorse.schemas import flags

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packhorse.console.quarantine.pages import Page


def list_messages(
    *,
    message_id: Annotated[UUID | None, typer.Option("--id", metavar="ID", help="Of this id.")] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="TEXT", help="With this key, as text in UTF-8.")
    ] = None,
    key_hex: options.KeyHex = None,
    failure: Annotated[
        str | None,
        typer.Option("--failure", metavar="PRINT", help="Of this group of failures; eight digits do."),
    ] = None,
    group: options.Group = None,
    topic: options.Topic = None,
    reason: options.Reason = None,
    message_type: options.Type = None,
    tenant: options.Tenant = None,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="TEXT", help="Whose error holds this, in capitals or not."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Quarantined then or later: a time, UTC, or `2h` ago."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Quarantined before then: a time, UTC, or `2h` ago."),
    ] = None,
    state: Annotated[StateChoice, typer.Option("--state", help="In this state.")] = StateChoice.QUARANTINED,
    limit: options.Limit = 50,
    after: options.After = None,
    most_looked: Annotated[
        int,
        typer.Option("--most-looked", min=1, metavar="N", help="Look at no more than N messages for a page."),
    ] = MOST_LOOKED,
    show_key: options.ShowKey = False,
    as_json: flags.Json = False,
    as_csv: options.Csv = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    List what is in quarantine, the newest first, in pages.

    An id, a key and a group of failures are found by an index. For all else the newest messages are looked through, 20,000 at
    a time, until the page is full, --most-looked were, or Ctrl-C; how far that is stands on standard error. The text is looked
    for in recorded errors, never in payloads.

    [bold]Example[/]
      packhorse quarantine list --group figures --reason attempts-exhausted
      packhorse quarantine list --failure 3f9a1c02 --since 2026-08-01 --json
      packhorse quarantine list --text "customer 17" --state all
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import checked_form
    from packhorse.console.quarantine.groups.model import checked_print
    from packhorse.console.quarantine.pages import Filter, position_from
    from packhorse.core.clock import SYSTEM_CLOCK
    from packhorse.core.moments import span_from

    checked_form(as_json=as_json, as_csv=as_csv)
    begin, end = span_from(since, until, now=SYSTEM_CLOCK.now())
    wanted = Filter(
        id=message_id,
        key=options.key_of(key, key_hex),
        failure=None if failure is None else checked_print(failure),
        group=group,
        topic=topic,
        reason=reason,
        type=message_type,
        tenant=tenant,
        text=text,
        since=begin,
        until=end,
        state=state_of(state),
    )
    position = None if after is None else position_from(after)
    with service_of(options.settings_of(database_url, database_schema)) as service:
        page = _found(service.quarantine.search(wanted, after=position, limit=limit, most_looked=most_looked))
    _tell_page(
        page, narrow=wanted != Filter() or after is not None, form=(as_json, as_csv), show_key=show_key
    )


def _found(parts: "Iterator[Page]") -> "Page":
    """Return the page that *parts* make up, telling how far they looked; Ctrl-C ends the look and keeps what was found."""
    from packhorse.console.output import plain, tell
    from packhorse.console.quarantine.pages import joined

    def ended(page: "Page") -> None:
        tell(f"{len(page.messages)} found, looked back to {plain(page.looked_to)}", err=True)

    return gathered(parts, joined, ended)


def _tell_page(page: "Page", *, narrow: bool, form: tuple[bool, bool], show_key: bool) -> None:
    from packhorse.console.output import at, tell, tell_json, terminal
    from packhorse.console.quarantine.page_render import CSV_COLUMNS, page_csv, page_json, page_table
    from packhorse.console.spreadsheet import tell_csv

    as_json, as_csv = form
    if as_json:
        tell_json(page_json(page, show_key=show_key))
        return
    if as_csv:
        tell_csv(CSV_COLUMNS, page_csv(page, show_key=show_key))
    elif page.messages:
        terminal().print(page_table(page))
    elif page.looked_to is None:
        tell("nothing in quarantine" + (" fits" if narrow else ""))
    if page.looked_to is not None:
        tell(f"looked back to {at(page.looked_to)} and no further; there may be more", err=as_csv)
    if page.next is not None:
        tell(f"more: add --after {page.next.token()}", err=as_csv)


def show(
    message_id: options.MessageId,
    *,
    group: options.Group = None,
    topic: options.Topic = None,
    payload: Annotated[
        bool,
        typer.Option(
            "--payload", help="Decode the payload through the registry; personal fields are masked."
        ),
    ] = False,
    unmask: Annotated[
        bool,
        typer.Option(
            "--unmask", help="Show payload, headers and key with nothing masked, on the record; needs --why."
        ),
    ] = False,
    why: Annotated[
        str | None, typer.Option("--why", metavar="TEXT", help="Why it must be seen, for the record.")
    ] = None,
    actor: options.ClaimedActor = None,
    show_key: options.ShowKey = False,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
    registry_url: flags.Registry = None,
) -> None:
    """
    Show one message in quarantine: where it came from, headers, attempts, reason, who acted, what waits behind it.

    Values of the header `actor`, of the long tail and of headers that are not ours are masked, and so are payload fields that
    their schema marks personal. --unmask shows all of it to who has the right to, once that is on record.

    [bold]Example[/]
      packhorse quarantine show 019b76da-a800-7000-8000-000000000000 --payload
      packhorse quarantine show 019b76da-a800-7000-8000-000000000000 --unmask --why "the customer asks, ticket 17"
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell_json, terminal
    from packhorse.console.render import shown_json, shown_sheet
    from packhorse.core.errors import UsageError

    if unmask != (why is not None):
        raise UsageError("--unmask and --why TEXT go together: what is shown, and why, is on the record")
    with service_of(
        options.settings_of(database_url, database_schema, registry=registry_url), claimed=actor
    ) as service:
        if why is not None:
            found = service.quarantine.unmask(message_id, group=group, topic=topic, why=why)
        else:
            found = service.quarantine.show(message_id, group=group, topic=topic, payload=payload)
    if as_json:
        tell_json(shown_json(found, show_key=show_key or unmask))
    else:
        terminal().print(shown_sheet(found, show_key=show_key or unmask))
