"""A set that is to be redriven, from the fields of a form to what the service is asked. Pure: no I/O, no clock."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from packhorse.console.pages.resting import timed
from packhorse.console.redriving.wanted import stages_from

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
