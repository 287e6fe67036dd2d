"""Options that the commands of the quarantine share."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

if TYPE_CHECKING:
    from packhorse.console.facts import State
    from packhorse.console.settings import ConsoleSettings

MessageId = Annotated[UUID, typer.Argument(metavar="ID", help="The message's id.")]
Group = Annotated[str | None, typer.Option("--group", metavar="NAME", help="Of this group.")]
Topic = Annotated[str | None, typer.Option("--topic", metavar="NAME", help="From this source topic.")]


class StateChoice(StrEnum):
    """Which messages are meant."""

    QUARANTINED = "quarantined"
    REDRIVEN = "redriven"
    DISCARDED = "discarded"
    ALL = "all"


def state_of(choice: StateChoice) -> "State | None":
    """Return the state that is meant; None: all."""
    from packhorse.console.facts import State

    return None if choice is StateChoice.ALL else State(choice.value)


def settings_of(
    url: str | None, schema: str | None, registry: str | None = None, broker: str | None = None
) -> "ConsoleSettings":
    """Return the console's settings, with what flags say."""
    from packhorse.console.settings import ConsoleSettings

    return ConsoleSettings.load(
        {
            "database_url": url,
            "database_schema": schema,
            "registry_url": registry,
            "kafka_bootstrap_servers": broker,
        }
    )
