"""How everything flows: one look, or what two say, whatever face asks."""

from collections.abc import Callable, Collection
from typing import Protocol

from packhorse.console.acting.person import Person
from packhorse.console.top.facts import NO_BROKER, Ends, Look, Place, rates
from packhorse.console.top.view import View, view_of


class Looks(Protocol):
    """Look at the tables of one database; raises what `Database.reading` does."""

    def look(self, person: Person) -> Look:
        """Return how everything stands, from one snapshot."""


class AsksEnds(Protocol):
    """Ask where topics end; never raises for the broker's sake."""

    def ends(self, places: Collection[Place]) -> Ends:
        """Return where each of *places* ends."""


class Top:
    """
    What flows, for one person.

    Args:
        broker: Makes what asks the broker, at the first question; None when no broker is set.
    """

    def __init__(
        self, tables: Looks, person: Person, *, broker: Callable[[], AsksEnds] | None = None
    ) -> None:
        self._tables = tables
        self._person = person
        self._make = broker
        self._broker: AsksEnds | None = None

    def look(self) -> Look:
        """Return how everything stands now."""
        return self._tables.look(self._person)

    def view(self, now: Look, before: Look | None) -> View:
        """Return what *now* means, with rates since *before*; asks the broker where the topics end."""
        return view_of(now, rates(before, now), self._ends(now))

    def _ends(self, look: Look) -> Ends:
        if self._make is None:
            return NO_BROKER
        if self._broker is None:
            self._broker = self._make()
        places = {(mark.topic, mark.partition) for mark in look.marks}
        return self._broker.ends(places) if places else Ends(of={})
