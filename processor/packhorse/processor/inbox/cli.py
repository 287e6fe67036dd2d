"""`packhorse processor retention`: do what is due in the inbox now, say what it keeps."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.schemas.flags import Json, Schema, Url

if TYPE_CHECKING:
    from packhorse.processor.inbox.model import Turn
    from packhorse.processor.inbox.postgres import InboxTables
    from packhorse.processor.settings import InboxSettings

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Keep the inbox small: rows go once their message can't come back.",
)

Days = Annotated[
    int | None,
    typer.Option(
        "--inbox-days",
        min=0,
        help="Days that closed rows live; 0: for ever. [dim]PACKHORSE_PROCESSOR_INBOX_DAYS[/]",
    ),
]


@app.command()
def run(
    inbox_days: Days = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say which day partitions would be dropped, and change nothing.")
    ] = False,
    database_url: Url = None,
    database_schema: Schema = None,
    as_json: Json = False,
) -> None:
    """
    Do what is due now: make day partitions, drop those whose rows may all go, clean the others by rows.

    Never removed are rows of messages that wait (retry, parked, quarantine, uncertain), rows above the watermark, and rows of
    a group that is away. Running processors do all this by themselves; both at once are safe.

    [bold]Example[/]: packhorse processor retention run --dry-run
    """
    import threading

    from packhorse.core.clock import SYSTEM_CLOCK
    from packhorse.processor.inbox.retention import InboxRetention
    from packhorse.processor.keeping.keeper import own_name

    settings, tables = _set_up(database_url, database_schema, inbox_days)
    retention = InboxRetention(tables, settings.inbox_rules, every=settings.inbox_every, by=own_name())
    turn = retention.run(threading.Event().wait, SYSTEM_CLOCK.monotonic, act=not dry_run)
    if turn is None:
        typer.echo(json.dumps({"elsewhere": True}) if as_json else "another process works on it just now")
    elif as_json:
        typer.echo(json.dumps(turn.as_dict()))
    else:
        _print(turn)


@app.command()
def status(database_url: Url = None, database_schema: Schema = None, as_json: Json = False) -> None:
    """
    Say when the inbox was last gone through, since when each group keeps its rows, and which old partitions stay and why.

    [bold]Example[/]: packhorse processor retention status --json
    """
    from packhorse.core.text import inert

    _, tables = _set_up(database_url, database_schema, None)
    try:
        last, facts = tables.last(), tables.facts()
    finally:
        tables.close()
    days = sorted(part.day for part in facts.parts if part.day is not None)
    overdue = dict(last.detail.get("overdue", {}))
    if as_json:
        groups = {each.group: each.kept_from.isoformat() for each in last.groups}
        told = {
            "at": last.at.isoformat() if last.at else None,
            "by": last.by,
            "kept_from": groups,
            "first_day": days[0].isoformat() if days else None,
            "last_day": days[-1].isoformat() if days else None,
            "overdue": overdue,
        }
        typer.echo(json.dumps(told))
        return
    typer.echo(f"last turn   {f'{last.at:%Y-%m-%d %H:%M:%S %Z} by {last.by}' if last.at else 'never'}")
    typer.echo(f"partitions  {f'{days[0]} to {days[-1]}' if days else 'none but the default one'}")
    for each in last.groups:
        typer.echo(f"kept from   {each.kept_from:%Y-%m-%d %H:%M:%S %Z}  group {inert(each.group)}")
    for name, why in overdue.items():
        typer.echo(f"stays       {name}: {inert(why)}")


def _print(turn: "Turn") -> None:
    from packhorse.core.text import inert

    for what, names in (("made", turn.made), ("dropped", turn.dropped), ("due", turn.due)):
        for name in names:
            typer.echo(f"{what:<10}  {name}")
    for name, why in turn.overdue.items():
        typer.echo(f"stays       {name}: {inert(why)}")
    typer.echo(f"rows        {turn.removed} removed one by one")


def _set_up(url: str | None, schema: str | None, days: int | None) -> "tuple[InboxSettings, InboxTables]":
    from packhorse.processor.inbox.postgres import InboxTables
    from packhorse.processor.settings import InboxSettings

    settings = InboxSettings.load({"database_url": url, "database_schema": schema, "inbox_days": days})
    return settings, InboxTables(settings.database_url.get_secret_value(), settings.database_schema)
