"""Redrives of sets for operators: freeze, confirm once, see, pause, resume, abort, whatever face asks."""

from datetime import datetime
from typing import Protocol

from packhorse.console.acting.person import Person
from packhorse.console.paging import checked_limit
from packhorse.console.redriving.records import (
    OPEN,
    Frozen,
    MemberRow,
    Progress,
    RedriveRow,
    RunState,
)
from packhorse.console.redriving.tallying import Member
from packhorse.console.redriving.wanted import How, Wanted
from packhorse.core.acts import checked_why
from packhorse.core.clock import Clock
from packhorse.core.errors import UsageError


class RedriveSource(Protocol):
    """
    The redrives of one database; returning from an act promises that it is durable, raising that nothing was done.

    Raises, each of them:
        Forbidden: The person may not look or act.
        DatabaseUnavailable, NotReady: The database does not answer; a table or right is missing.
    """

    def freeze(self, person: Person, wanted: Wanted, how: How, *, now: datetime) -> Frozen:
        """Freeze the set that is wanted at this moment."""

    def confirm(self, person: Person, redrive_id: int, *, why: str) -> datetime:
        """Let exactly that set be redriven, once."""

    def move(
        self, person: Person, redrive_id: int, *, to: RunState, since: frozenset[RunState], why: str
    ) -> datetime:
        """Bring the run from one of *since* to another state."""

    def find(self, person: Person, redrive_id: int) -> tuple[RedriveRow, Progress]:
        """Return one redrive and how far it is."""

    def page(self, person: Person, *, before: int | None, limit: int) -> tuple[RedriveRow, ...]:
        """Return redrives, the newest first."""

    def members(
        self, person: Person, redrive_id: int, *, state: str | None, after: int, limit: int
    ) -> tuple[MemberRow, ...]:
        """Return members of one, in order."""


class Redrives:
    """The redrives of sets in one database, for one person."""

    def __init__(self, tables: RedriveSource, person: Person, *, clock: Clock) -> None:
        self._tables = tables
        self._person = person
        self._clock = clock

    def preview(self, wanted: Wanted, how: How, *, everything: bool = False) -> Frozen:
        """
        Freeze the set that *wanted* means now; what comes to quarantine later is not in it.

        Raises:
            UsageError: *wanted* narrows nothing and *everything* does not say that this is meant; or more fit than *how* allows.
            UnknownId: Nothing fits.
            Forbidden: The person may not act.
        """
        if wanted.is_everything and not everything:
            raise UsageError(
                "no filter: that is every message in quarantine, of every group; narrow it (--group, --reason, --failure, …), "
                "or say --all; nothing was frozen"
            )
        return self._tables.freeze(self._person, wanted, how, now=self._clock.now())

    def confirm(self, redrive_id: int, *, why: str) -> datetime:
        """
        Let exactly the frozen set be redriven; return when that was recorded. A runner then works on it.

        Raises:
            UnknownId: There is no such redrive.
            UsageError: *why* is empty or too long.
            OwnershipLost: Somebody has confirmed it already, or the preview expired; names who and when.
            Forbidden: The person may not act, any more.
        """
        return self._tables.confirm(self._person, redrive_id, why=checked_why(why))

    def pause(self, redrive_id: int, *, why: str) -> datetime:
        """Ask for no more members until resumed: when this returns, none is asked for any more. Raises what `confirm` does."""
        return self._moved(redrive_id, RunState.PAUSED, {RunState.RUNNING}, why)

    def resume(self, redrive_id: int, *, why: str) -> datetime:
        """Go on with a paused or halted run; after a halt the stages begin small again. Raises what `confirm` does."""
        return self._moved(redrive_id, RunState.RUNNING, {RunState.PAUSED, RunState.HALTED}, why)

    def abort(self, redrive_id: int, *, why: str) -> datetime:
        """End a run or throw a preview away for good; what was asked for goes on. Raises what `confirm` does."""
        return self._moved(redrive_id, RunState.ABORTED, {*OPEN, RunState.PREVIEWED}, why)

    def find(self, redrive_id: int) -> tuple[RedriveRow, Progress]:
        """
        Return one redrive and how far it is.

        Raises:
            UnknownId: There is no such redrive.
        """
        return self._tables.find(self._person, redrive_id)

    def page(self, *, before: int | None = None, limit: int = 50) -> tuple[RedriveRow, ...]:
        """
        Return at most *limit* redrives, the newest first, older than *before*.

        Raises:
            UsageError: *limit* is not allowed.
        """
        return self._tables.page(self._person, before=before, limit=checked_limit(limit))

    def members(
        self, redrive_id: int, *, state: Member | None = None, after: int = 0, limit: int = 50
    ) -> tuple[MemberRow, ...]:
        """
        Return at most *limit* members of one redrive behind number *after*.

        Raises:
            UsageError: *limit* is not allowed.
            UnknownId: There is no such redrive.
        """
        return self._tables.members(
            self._person,
            redrive_id,
            state=None if state is None else state.value,
            after=after,
            limit=checked_limit(limit),
        )

    def _moved(self, redrive_id: int, to: RunState, since: set[RunState], why: str) -> datetime:
        return self._tables.move(
            self._person, redrive_id, to=to, since=frozenset(since), why=checked_why(why)
        )
