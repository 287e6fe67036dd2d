"""`packhorse relay cdc-setup`: make ready for streaming, look for old slots, drop one."""

from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.relay.orders import options
from packhorse.schemas.flags import Json, Schema, Url

if TYPE_CHECKING:
    from packhorse.relay.postgres.cdc_setup import CdcSetup


def cdc_setup(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Look at everything, say what would be made, and make nothing.")
    ] = False,
    unbounded_wal: Annotated[
        bool,
        typer.Option(
            "--unbounded-wal",
            help="Accept a server whose max_slot_wal_keep_size is -1: a slot that is left alone may fill its disk.",
        ),
    ] = False,
    list_slots: Annotated[
        bool, typer.Option("--list", help="Only show our slots and the write-ahead log that each holds.")
    ] = False,
    drop_slot: Annotated[
        str | None,
        typer.Option(
            "--drop-slot",
            metavar="NAME",
            help="Only drop this slot, on the record; needs the right to administer. Refused while a relay reads it.",
        ),
    ] = None,
    why: options.Why = None,
    actor: options.ActorName = None,
    database_url: Url = None,
    database_schema: Schema = None,
    as_json: Json = False,
) -> None:
    """
    Make ready for streaming (mode cdc or auto): the publication and the replication slots; exit 1 when something is in the way.

    Looks at wal_level, the role's rights, the server's room for slots and what bounds the log that a slot holds; makes what
    is missing and touches nothing that is there. Run it as a role that owns the outbox and has REPLICATION.

    [bold]Example[/]: packhorse relay cdc-setup --dry-run
    """
    from packhorse.core.errors import UsageError
    from packhorse.relay.postgres.cdc_setup import CdcSetup
    from packhorse.relay.settings import CdcSettings

    if list_slots and drop_slot is not None:
        raise UsageError("--list and --drop-slot are two acts; give one of them")
    settings = CdcSettings.load({"database_url": database_url, "database_schema": database_schema})
    url = settings.replication_url or settings.database_url
    setup = CdcSetup(url.get_secret_value(), settings.database_schema)
    if drop_slot is not None:
        _drop(setup, drop_slot, actor=actor, why=why, as_json=as_json)
    elif list_slots:
        _list(setup, as_json=as_json)
    else:
        _run(setup, act=not dry_run, unbounded=unbounded_wal, as_json=as_json)


def _run(setup: "CdcSetup", *, act: bool, unbounded: bool, as_json: bool) -> None:
    import json

    from packhorse.core.text import inert

    report = setup.run(act=act, unbounded=unbounded)
    if as_json:
        typer.echo(json.dumps(report.as_dict()))
    else:
        for step in report.steps:
            typer.echo(f"{step.done.value:<14} {inert(step.what)}: {inert(step.text)}")
    if report.refused:
        raise typer.Exit(1)


def _list(setup: "CdcSetup", *, as_json: bool) -> None:
    import json

    from packhorse.core.text import inert
    from packhorse.relay.cdc.setup import size

    found = setup.slots()
    if as_json:
        typer.echo(json.dumps({"slots": [slot.as_dict() for slot in found]}))
        return
    for slot in found:
        read = "read by a relay" if slot.active else "nobody reads it"
        needed = "" if slot.used else "; no shard needs it"
        typer.echo(f"{inert(slot.name)}: holds {size(slot.held_bytes)} of log, {read}{needed}")
    if not found:
        typer.echo("there are no slots of ours in this database")


def _drop(setup: "CdcSetup", name: str, *, actor: str | None, why: str | None, as_json: bool) -> None:
    import json

    from packhorse.core.acts import checked_why
    from packhorse.core.text import inert
    from packhorse.relay.cdc.setup import size

    reason = None if why is None else checked_why(why)
    dropped = setup.drop(name, person=options.person_of(actor), why=reason)
    if as_json:
        typer.echo(json.dumps({"dropped": dropped.as_dict()}))
    else:
        typer.echo(f"dropped {inert(dropped.name)}; it held {size(dropped.held_bytes)} of log")
