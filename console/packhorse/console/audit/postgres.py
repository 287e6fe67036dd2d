"""The table of what people did, to be read."""

from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Database, form
from packhorse.console.acting.sql import DONE_BY
from packhorse.console.audit import sql
from packhorse.console.audit.pages import Entry, Filter, Page, Position, page_of
from packhorse.core.rights import Right


class AuditTable:
    """What people did in one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(self, person: Person, wanted: Filter, *, after: Position | None, limit: int) -> Page:
        """
        Return at most *limit* acts, the newest first, behind *after*.

        Raises:
            Forbidden: The person may not look.
        """
        values = {
            "actor": wanted.actor,
            "act": wanted.act,
            "id": wanted.message_id,
            "group": wanted.group,
            "since": wanted.since,
            "until": wanted.until,
            "after_at": after and after.at,
            "after_id": after and after.id,
            "limit": limit + 1,
        }
        with self._database.reading(person, right=Right.SEE, doing="see what people did") as rows:
            return page_of([Entry(**row) for row in rows.all(sql.PAGE, values)], limit=limit)

    def done_by(self, person: Person, once: UUID) -> tuple[Entry, ...]:
        """
        Return what the form of number *once*, a UUIDv7, has done, in the order of the record.

        Raises:
            Forbidden: The person may not look.
        """
        with self._database.reading(person, right=Right.SEE, doing="see what people did") as rows:
            return tuple(Entry(**row) for row in rows.all(DONE_BY, form(once)))
