"""Which messages the commands of the quarantine mean."""

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packhorse.console.facts import State


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
