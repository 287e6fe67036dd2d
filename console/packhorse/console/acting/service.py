"""Who may do what, and what was done: the people of an installation."""

from typing import Protocol

from packhorse.console.acting.person import Person
from packhorse.core.rights import Standing


class Standings(Protocol):
    """Say what somebody may do."""

    def standing(self, person: Person) -> Standing:
        """Return what *person* may do now; raises what `Database.reading` does."""


class People:
    """The people of one installation, as one of them sees it."""

    def __init__(self, standings: Standings, person: Person) -> None:
        self._standings = standings
        self._person = person

    def me(self) -> Standing:
        """Return what the person who asks may do now."""
        return self._standings.standing(self._person)

    def actor(self) -> str:
        """Return how the person who asks is put on record."""
        return self._person.actor(self.me())
