"""Find what somebody looks for, by whatever they have of it: at a bounded cost, and never more said than was looked through."""

from typing import Protocol
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.facts import Place
from packhorse.console.finding.model import AtPlace, Found
from packhorse.processor.record import key_hash

NO_BROKER = AtPlace(id=None, said="not looked: PACKHORSE_KAFKA_BOOTSTRAP_SERVERS is not set")


class FindingSource(Protocol):
    """Look into the tables of one database; promises and raises what `FindingTables` does."""

    def is_job(self, person: Person, message_id: UUID) -> bool:
        """Return whether *message_id* is the id of a job."""

    def found(self, person: Person, *, key: bytes | None, hashed: str | None, name: str | None) -> Found:
        """Return what is known under these, from one snapshot."""


class Places(Protocol):
    """Look at one place of a topic; commits nothing, joins no group."""

    def at(self, place: Place) -> AtPlace:
        """Return which message stands at *place*; never raises for the broker's sake."""


class Finding:
    """
    What can be found in one database, for one person.

    Args:
        places: Where records are looked at; None when no broker is set.
    """

    def __init__(self, tables: FindingSource, person: Person, *, places: Places | None = None) -> None:
        self._tables = tables
        self._person = person
        self._places = places

    def is_job(self, message_id: UUID) -> bool:
        """Return whether *message_id* is the id of a job, which its message has too."""
        return self._tables.is_job(self._person, message_id)

    def find(self, *, key: bytes | None = None, hashed: str | None = None, name: str | None = None) -> Found:
        """
        Return what is known under *key*, or the key that *hashed* stands for, and the groups and topics whose names hold *name*.

        Raises:
            Forbidden: The person may not look.
            DatabaseUnavailable, NotReady: The database does not answer; a table or right is missing.
        """
        hashes = hashed if hashed is not None or key is None else key_hash(key)
        return self._tables.found(self._person, key=key, hashed=hashes, name=name)

    def at(self, place: Place) -> AtPlace:
        """Return which message stands at *place* of its topic, by a look at that record alone."""
        return NO_BROKER if self._places is None else self._places.at(place)
