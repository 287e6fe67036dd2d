"""What people did, for whoever may see."""

from typing import Protocol

from packhorse.console.acting.person import Person
from packhorse.console.audit.pages import MAX_LIMIT, Filter, Page, Position
from packhorse.console.paging import checked_limit


class AuditSource(Protocol):
    """Read what people did."""

    def page(self, person: Person, wanted: Filter, *, after: Position | None, limit: int) -> Page:
        """Return at most *limit* acts, the newest first, behind *after*; raises what `Database.reading` does."""


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
