"""What the tables know about one message, from one snapshot."""

from typing import Any
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Database
from packhorse.console.facts import (
    Act,
    Discard,
    Facts,
    FailedAttempt,
    Forgotten,
    Hold,
    InboxRow,
    OutboxRow,
    Outcome,
    QuarantinedMessage,
    State,
)
from packhorse.console.truth import sql
from packhorse.core.ids import time_of


class FactTables:
    """Be the `FactSource` of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def facts(self, message_id: UUID, person: Person) -> Facts:
        """Return all that is known about *message_id*, from one snapshot."""
        wanted = {"id": message_id}
        with self._database.reading(person) as rows:
            outbox = rows.first(sql.OUTBOX_ROW, wanted)
            discard = rows.first(sql.DISCARD_OF, wanted)
            return Facts(
                id=message_id,
                schema=self._database.schema,
                recorded=None if outbox is None else OutboxRow(**outbox),
                holds=tuple(Hold(**row) for row in rows.all(sql.HOLDS_OF, wanted)),
                discard=None if discard is None else Discard(**discard),
                inbox=tuple(_inbox_row(row) for row in rows.all(sql.INBOX_ROWS, wanted)),
                attempts=tuple(FailedAttempt(**row) for row in rows.all(sql.FAILED_ATTEMPTS, wanted)),
                quarantined=tuple(quarantined_of(row) for row in rows.all(sql.QUARANTINED_OF, wanted)),
                acts=tuple(Act(**row) for row in rows.all(sql.ACTS_OF, wanted)),
                forgotten=tuple(
                    Forgotten(**row) for row in rows.all(sql.FORGOTTEN, {"at": time_of(message_id)})
                ),
            )


def quarantined_of(row: dict[str, Any]) -> QuarantinedMessage:
    """Return the quarantined message of a row."""
    return QuarantinedMessage(**{**row, "state": State(row["state"])})


def _inbox_row(row: dict[str, Any]) -> InboxRow:
    return InboxRow(**{**row, "outcome": Outcome(row["outcome"])})
