"""A set that is to be redriven, from the fields of a form to what the service is asked. Pure: no I/O, no clock."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from packhorse.console.pages.resting import timed
from packhorse.console.paging import position_from, token_of
from packhorse.console.redriving.wanted import stages_from
from packhorse.core.errors import UsageError

FILTERS = ("group", "topic", "type", "reason", "failure", "tenant", "key", "text", "since", "until", "ids")
"""Fields that say which messages."""
_YES = ("everything", "beyond_cap")


def set_from(fields: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """
    Return what the service is to be asked, in the form in which the API is asked it.

    >>> from datetime import UTC
    >>> set_from({"group": "figures", "ids": "a b", "stages": "1, 5", "everything": "yes"}, datetime(2026, 1, 2, tzinfo=UTC))
    {'group': 'figures', 'ids': ['a', 'b'], 'stages': [1, 5], 'everything': True}

    Raises:
        UsageError: A time or the stages can't be read.
    """
    found: dict[str, Any] = dict(timed(fields, now))
    if "ids" in found:
        found["ids"] = fields["ids"].replace(",", " ").split()
    if "stages" in found:
        found["stages"] = list(stages_from(fields["stages"].replace(" ", "")))
    return found | {name: found[name] == "yes" for name in _YES if name in found}


def pick_of(message_id: UUID, group: str, topic: str) -> str:
    """Return what the box of one message in quarantine says, as one word."""
    return token_of(str(message_id), group, topic)


def picked_from(text: str) -> list[dict[str, str]]:
    """
    Return the messages whose boxes were ticked, in the form in which the API is asked for them.

    >>> picked_from(pick_of(UUID(int=7), "figures", "airline.aircraft"))
    [{'id': '00000000-0000-0000-0000-000000000007', 'group': 'figures', 'topic': 'airline.aircraft'}]

    Raises:
        UsageError: None was, or one says something else.
    """
    if not text:
        raise UsageError("no message is ticked: tick those that are to be redriven; nothing was done")
    try:
        return [position_from(each, _picked) for each in text.split()]
    except UsageError:
        raise UsageError("a box of the form is none of ours; nothing was done") from None


def _picked(message_id: object, group: object, topic: object) -> dict[str, str]:
    if not (isinstance(message_id, str) and isinstance(group, str) and isinstance(topic, str)):
        raise TypeError("no names")
    return {"id": message_id, "group": group, "topic": topic}
