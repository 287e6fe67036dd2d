"""What the console asks of the world outside; the adapters are the modules `postgres`, `kafka` and `registry` of each room."""

from datetime import datetime
from typing import Protocol
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.facts import Facts, QuarantinedMessage
from packhorse.console.quarantine.around.model import Around, Bytes
from packhorse.console.quarantine.pages import LOOK, Filter, Page, Position
from packhorse.console.quarantine.redrive import Order
from packhorse.console.truth.keys import KeyFacts
from packhorse.console.truth.status import Search


class FactSource(Protocol):
    """
    Read what one database knows; each method sees one snapshot and leaves no transaction open.

    Raises, each of them:
        DatabaseUnavailable: The database does not answer, or not in time.
        NotReady: A table or right is missing.
        Forbidden: The person may not look.
    """

    def facts(self, message_id: UUID, person: Person) -> Facts:
        """Return all that is known about *message_id*; empty facts when nothing is."""

    def key(self, group: str, topic: str, hashed: str, person: Person) -> KeyFacts:
        """Return how *group* stands with the key of *topic* that *hashed* stands for."""


class QuarantineSource(Protocol):
    """
    Read and act on the quarantine of one database; raises what `FactSource` does.

    Returning from an act promises that all its rows are durable; raising promises that none was changed.
    """

    def page(
        self, person: Person, wanted: Filter, *, after: Position | None, limit: int, look: int = LOOK
    ) -> Page:
        """
        Return at most *limit* quarantined messages, the newest first, behind *after*.

        Where no index leads to those that fit, the next *look* alone are looked at, and the page says how far that was.
        """

    def knows(self, person: Person, group: str) -> bool:
        """Return whether anything is known of *group* in this database."""

    def bytes_of(self, person: Person, message: QuarantinedMessage) -> Bytes:
        """Return payload and headers of *message* as they arrived."""

    def unmask(self, person: Person, message: QuarantinedMessage, *, why: str) -> Bytes:
        """Return the same, on record in the transaction that reads it. Raises Forbidden without the right to personal fields."""

    def around(self, person: Person, message: QuarantinedMessage) -> Around:
        """Return what stands around *message*."""

    def followers(self, person: Person, message: QuarantinedMessage) -> int:
        """Return how many messages wait behind *message*."""

    def redrive(self, person: Person, order: Order, *, why: str) -> datetime:
        """
        Order the redrive and record the act in one transaction; return when.

        Raises:
            OwnershipLost: A row is no longer as *order* says; names who acted and when.
        """

    def discard(self, person: Person, order: Order, *, why: str) -> datetime:
        """Give the message up and record the act in one transaction; return when. Promises and raises what `redrive` does."""


class Topics(Protocol):
    """Look into topics; commits nothing, joins no group."""

    def look(self, topic: str, *, key: str | None, message_id: UUID, since: datetime) -> Search:
        """
        Search the partition of *key* (every partition without one) for *message_id*, from *since* on, within bounds.

        Never raises for the broker's sake: an absent broker or topic is what the answer says.
        """


class Payloads(Protocol):
    """Decode payloads for eyes."""

    def masked(self, payload: bytes) -> tuple[object | None, str | None]:
        """
        Return the value as JSON-able data with every personal field masked, or None and why it can't be shown.

        Never raises for the bytes' or the registry's sake.
        """

    def whole(self, payload: bytes) -> tuple[object | None, str | None]:
        """Return the same with personal fields as they are, for who may see them."""
