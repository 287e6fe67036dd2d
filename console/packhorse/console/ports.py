"""What the console asks of the world outside; the adapters are `postgres` and `kafka`."""

from datetime import datetime
from typing import Protocol
from uuid import UUID

from packhorse.console.facts import Facts, QuarantinedMessage
from packhorse.console.pages import Filter, Page, Position
from packhorse.console.redrive import Order
from packhorse.console.status import Search


class Tables(Protocol):
    """
    Read one database; each method sees one snapshot and leaves no transaction open.

    Raises, each of them:
        DatabaseUnavailable: The database does not answer, or not in time.
        NotReady: A table or right is missing.
    """

    def facts(self, message_id: UUID) -> Facts:
        """Return all that is known about *message_id*; empty facts when nothing is."""

    def page(self, wanted: Filter, *, after: Position | None, limit: int) -> Page:
        """Return at most *limit* quarantined messages, the newest first, behind *after*."""

    def bytes_of(self, message: QuarantinedMessage) -> tuple[bytes | None, list[tuple[str, bytes | None]]]:
        """Return payload and headers of *message* as they arrived."""

    def role(self) -> str:
        """Return the database role that acts are recorded under."""

    def redrive(self, order: Order, *, actor: str, why: str) -> datetime:
        """
        Order the redrive and record the act in one transaction; return when.

        Returning promises that all three rows are durable; raising promises that none was changed.

        Raises:
            OwnershipLost: A row is no longer as *order* says; names who acted and when.
        """

    def discard(self, order: Order, *, actor: str, why: str) -> datetime:
        """Give the message up and record the act in one transaction; return when. Promises and raises what `redrive` does."""

    def followers(self, message: QuarantinedMessage) -> int:
        """Return how many messages wait behind *message*."""


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
