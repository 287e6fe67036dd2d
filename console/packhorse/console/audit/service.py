"""What people did, for whoever may see."""

from typing import Protocol
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.audit.pages import MAX_LIMIT, Entry, Filter, Page, Position
from packhorse.console.paging import checked_limit
from packhorse.core.errors import UnknownId
from packhorse.core.ids import time_of


class AuditSource(Protocol):
    """Read what people did."""

    def page(self, person: Person, wanted: Filter, *, after: Position | None, limit: int) -> Page:
        """Return at most *limit* acts, the newest first, behind *after*; raises what `Database.reading` does."""

    def done_by(self, person: Person, once: UUID) -> tuple[Entry, ...]:
        """Return what the form of number *once* has done; raises what `Database.reading` does."""


class Audit:
    """The record of one database, for one person."""

    def __init__(self, table: AuditSource, person: Person) -> None:
        self._table = table
        self._person = person

    def page(self, wanted: Filter, *, after: Position | None = None, limit: int = 50) -> Page:
        """
        Return one page of what people did.

        Raises:
            UsageError: *limit* is not allowed.
            Forbidden: The person may not look.
        """
        limit = checked_limit(limit, most=MAX_LIMIT)
        return self._table.page(self._person, wanted, after=after, limit=limit)

    def done_by(self, once: UUID) -> tuple[Entry, ...]:
        """
        Return what the form of number *once* has done; nothing: none of it is on the record.

        Raises:
            UnknownId: No form has that number.
            Forbidden: The person may not look.
        """
        if time_of(once) is None:
            raise UnknownId(f"{once} is the number of no form")
        return self._table.done_by(self._person, once)
