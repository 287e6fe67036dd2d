"""`packhorse relay notify on|off`: let commits wake the relay, or let them be."""

from enum import StrEnum
from typing import Annotated

import typer

from packhorse.schemas.flags import Schema, Url


class Switch(StrEnum):
    """What to do with the trigger."""

    ON = "on"
    OFF = "off"


def notify(
    switch: Annotated[
        Switch, typer.Argument(help="Make the trigger on the outbox, or drop it.", show_default=False)
    ],
    database_url: Url = None,
    database_schema: Schema = None,
) -> None:
    """
    Let each commit wake a relay that listens (PACKHORSE_RELAY_LISTEN=true), or let them be. Off by default.

    While it is on, commits with outbox rows wait for each other in the whole server, and transactions with rows can't be
    prepared for two-phase commit. Run it as the role that owns the outbox.

    [bold]Example[/]: packhorse relay notify on
    """
    from packhorse.relay.postgres.waking import switch as switch_trigger
    from packhorse.relay.settings import StatusSettings

    settings = StatusSettings.load({"database_url": database_url, "database_schema": database_schema})
    on = switch is Switch.ON
    changed = switch_trigger(settings.database_url.get_secret_value(), settings.database_schema, on=on)
    typer.echo(f"waking by NOTIFY is {switch.value}{'' if changed else ', as before'}")
