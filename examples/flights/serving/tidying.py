"""What the demo does as a person would, so that no more than a few dozen things wait for one however long it goes on."""

from collections.abc import Callable
from typing import Any

import psycopg

from examples.common.children import Children
from examples.flights.rehearsal import Say
from examples.flights.serving import sql
from examples.flights.serving.schedule import Resting, surplus

MOST_MESSAGES = 24
MOST_JOBS = 12
EVERY = 20.0
"""Seconds between two looks: what comes in a day is seen to more quickly than it comes."""

# What is looked at has waited for two minutes: its refusal is mended, its figures are closed, its call is over.
ORDERS: dict[str, tuple[str, ...]] = {
    "poison": ("quarantine", "discard", "{id}", "--why", "nothing can mend it", "--yes"),
    "refused": ("quarantine", "redrive", "{id}", "--why", "mended since", "--yes"),
    "quarantined": ("job", "redrive", "{id}", "--why", "the figures are closed by now", "--yes"),
    "uncertain": ("job", "resolve", "{id}", "--happened", "--why", "the post has the letter", "--yes"),
}
"""By what something waits for: what is run for it, each act on the record as a person's would be."""


class Tidier:
    """See to what waits longest once too much waits, one order at a time, without waiting for it."""

    def __init__(self, connection: psycopg.Connection[Any], children: Children, say: Say) -> None:
        self._connection = connection
        self._children = children
        self._say = say
        self._look_at = EVERY
        self._order: Callable[[], int | None] = lambda: 0

    def go_on(self, *, now: float) -> None:
        """Give the next order if one is called for at *now*, in seconds since the beginning, and the last one is carried out."""
        if now < self._look_at or self._order() is None:
            return  # it may wait for whoever has paused the group, and the demo goes on meanwhile
        self._look_at = now + EVERY
        found = self._surplus()
        if found is not None:
            order = [word.format(id=found.id) for word in ORDERS[found.kind]]
            self._order = self._children.begin(*order)
            self._say(f"many wait for a person, so the demo does it for one: packhorse {' '.join(order[:3])}")

    def _surplus(self) -> Resting | None:
        return surplus(self._resting(sql.RESTING_MESSAGES), most=MOST_MESSAGES) or surplus(
            self._resting(sql.RESTING_JOBS), most=MOST_JOBS
        )

    def _resting(self, statement: str) -> list[Resting]:
        return [Resting(id=row[0], kind=row[1]) for row in self._connection.execute(statement).fetchall()]
