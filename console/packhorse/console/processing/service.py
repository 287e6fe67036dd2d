"""One group from inside, for one person."""

from typing import Protocol

from packhorse.console.acting.person import Person
from packhorse.console.paging import checked_limit
from packhorse.console.pausing.known import no_group
from packhorse.console.processing.follows import Following
from packhorse.console.processing.model import Inside, KeyPosition, ParkedPage, key_position
from packhorse.core.errors import UnknownId, UsageError
from packhorse.processor.pausing.pauses import Scope


class ProcessingSource(Protocol):
    """See groups from inside; promises and raises what `ProcessingTables` does."""

    def inside(self, person: Person, group: str) -> Inside:
        """Return *group* from inside."""

    def parked(self, person: Person, group: str, *, after: KeyPosition | None, limit: int) -> ParkedPage:
        """Return the keys that are parked for longest."""

    def following(self, person: Person, group: str, scope: Scope) -> Following:
        """Return whether the processes follow what was ordered of *scope*."""


class Processing:
    """The groups of one database, as one person sees them; each method raises Forbidden, DatabaseUnavailable and NotReady too."""

    def __init__(self, tables: ProcessingSource, person: Person) -> None:
        self._tables = tables
        self._person = person

    def inside(self, group: str) -> Inside:
        """
        Return *group* from inside: what waits in its tiers, its processes and what they say, what people have paused.

        Raises:
            UnknownId: Nothing is known of it.
        """
        found = self._tables.inside(self._person, group)
        if not found.known:
            raise UnknownId(f"{no_group(group)}; the page of all groups names those that are")
        return found

    def parked(self, group: str, *, after: str | None = None, limit: int = 50) -> ParkedPage:
        """
        Return a page of the group's parked keys, those that are parked for longest first.

        Raises:
            UsageError: *after* is no position, or *limit* is not allowed.
        """
        return self._tables.parked(self._person, group, after=key_position(after), limit=checked_limit(limit))

    def following(self, group: str, scope: Scope) -> Following:
        """
        Return whether a group, topic or partition is paused, and whether the processes say that they follow.

        Raises:
            UsageError: It is a key.
        """
        if scope.is_key:
            raise UsageError("a key has no processes of its own: ask for its topic or partition")
        return self._tables.following(self._person, group, scope)
