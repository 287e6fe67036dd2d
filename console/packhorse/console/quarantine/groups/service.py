"""Groups of quarantined messages for operators: counts, notes, and who has acknowledged what."""

from datetime import datetime
from typing import Protocol
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.paging import checked_limit
from packhorse.console.quarantine.groups.model import (
    By,
    GroupFilter,
    GroupPage,
    GroupPosition,
    GroupShown,
    checked_filter,
    checked_note,
    checked_print,
)
from packhorse.core.acts import checked_why


class GroupSource(Protocol):
    """Count, and write what people know, in one database; acts are one transaction with their right and record."""

    def page(
        self, person: Person, wanted: GroupFilter, *, by: By, after: GroupPosition | None, limit: int
    ) -> GroupPage:
        """Return at most *limit* groups behind *after*."""

    def show(self, person: Person, prefix: str) -> GroupShown:
        """Return one group of failures."""

    def note(self, person: Person, prefix: str, note: str) -> tuple[str, datetime]:
        """Write a note; return the print, and when."""

    def acknowledge(self, person: Person, prefix: str, why: str) -> tuple[str, datetime]:
        """Acknowledge a group; return the print, and when."""

    def unacknowledge(self, person: Person, prefix: str, why: str | None) -> tuple[str, datetime]:
        """Take that back; return the print, and when."""

    def print_of(self, person: Person, message_id: UUID, *, group: str | None, topic: str | None) -> str:
        """Return the print of the group that a quarantined message belongs to."""


class Groups:
    """The groups of one database's quarantine, for one person."""

    def __init__(self, tables: GroupSource, person: Person) -> None:
        self._tables = tables
        self._person = person

    def page(
        self,
        wanted: GroupFilter,
        *,
        by: By = By.FAILURE,
        after: GroupPosition | None = None,
        limit: int = 50,
    ) -> GroupPage:
        """
        Return one page of groups with exact counts, the largest first.

        Raises:
            UsageError: *limit* is not allowed, or *wanted* can't be counted.
        """
        wanted = checked_filter(wanted, by)
        return self._tables.page(self._person, wanted, by=by, after=after, limit=checked_limit(limit))

    def show(self, name: str) -> GroupShown:
        """
        Return the one group of failures whose print begins with *name*.

        Raises:
            UsageError: *name* is no print, or several begin so.
            UnknownId: None begins so.
        """
        return self._tables.show(self._person, checked_print(name))

    def note(
        self, name: str | UUID, text: str, *, group: str | None = None, topic: str | None = None
    ) -> tuple[str, datetime]:
        """
        Write a note about the group of failures *name*, or the one that the message of that id belongs to.

        Return its print, and when it was recorded. Raises Forbidden, and what `show` does.
        """
        note = checked_note(text)
        return self._tables.note(self._person, self._print(name, group, topic), note)

    def acknowledge(self, name: str, *, why: str) -> tuple[str, datetime]:
        """
        Put on record that somebody knows of the group of failures *name*: nobody is told of it any more.

        Return its print, and when. Raises Forbidden, OwnershipLost if somebody has, and what `show` does.
        """
        return self._tables.acknowledge(self._person, checked_print(name), checked_why(why))

    def unacknowledge(self, name: str, *, why: str | None = None) -> tuple[str, datetime]:
        """Take an acknowledgement back; return the print, and when. Raises OwnershipLost if there is none."""
        reason = None if why is None else checked_why(why)
        return self._tables.unacknowledge(self._person, checked_print(name), reason)

    def _print(self, name: str | UUID, group: str | None, topic: str | None) -> str:
        if isinstance(name, UUID):
            return self._tables.print_of(self._person, name, group=group, topic=topic)
        return checked_print(name)
