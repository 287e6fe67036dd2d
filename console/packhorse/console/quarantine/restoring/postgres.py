"""The tables of a discarded message, and the one transaction that takes it back."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Acting, Database
from packhorse.console.facts import Act, Outcome, QuarantinedMessage, State
from packhorse.console.quarantine.redrive import acted_already
from packhorse.console.quarantine.restoring import sql
from packhorse.console.quarantine.restoring.deciding import (
    Discarded,
    KeyMove,
    KeyRow,
    RestoreOrder,
    key_move,
)
from packhorse.console.quarantine.sql import LAST_ACT, PARK_KEY
from packhorse.console.truth.postgres import quarantined_of
from packhorse.console.truth.sql import QUARANTINED_OF
from packhorse.core.errors import OwnershipLost, UnknownId
from packhorse.core.rights import Right


class RestoringTables:
    """The discarded messages of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def discarded(self, person: Person, message: QuarantinedMessage) -> Discarded:
        """Return what is kept of *message* besides."""
        names = {"id": message.id, "group": message.group, "topic": message.topic}
        with self._database.reading(person) as rows:
            row = rows.first(sql.DISCARDED, names)
        if row is None:
            raise UnknownId(f"message {message.id} is no longer kept; see packhorse status {message.id}")
        return Discarded(**row)

    def outcomes(
        self, person: Person, message: QuarantinedMessage, ids: Sequence[UUID]
    ) -> dict[UUID, tuple[Outcome, datetime]]:
        """Return what became of these messages in the group of *message*."""
        values = {"ids": list(ids), "group": message.group, "topic": message.topic}
        with self._database.reading(person) as rows:
            found = rows.all(sql.OUTCOMES, values)
        return {row["id"]: (Outcome(row["outcome"]), row["changed_at"]) for row in found}

    def restore(self, person: Person, order: RestoreOrder, *, why: str, out_of_order: bool) -> datetime:
        """
        Take the message back and record the act; return when.

        The inbox row is claimed first (as processors lock them), then the message, then the audit row is written, then the key
        is locked and parked with the message as its head; the commit makes all of it true at once.

        Raises:
            Forbidden: The person may not act.
            OwnershipLost: A row is no longer as *order* says, or the key is not free; nothing was done.
        """
        values = {
            "id": order.id,
            "group": order.group,
            "topic": order.topic,
            "attempt": order.attempt,
            "redrives": order.redrives,
            "quarantined_at": order.quarantined_at,
            "discarded_at": order.discarded_at,
        }
        with self._database.acting(person, Right.ACT, doing="restore messages") as act:
            for claim in (sql.REOPEN, sql.RESTORE):
                if not act.all(claim, values):
                    raise OwnershipLost(_who_acted(act, order))
            at = act.record(
                "restore",
                why=why,
                group=order.group,
                topic=order.topic,
                message_id=order.id,
                detail={"attempt": order.attempt, "out_of_order": out_of_order},
            )
            if order.ordered:
                _park(act, order, values)
        return at


def _park(act: Acting, order: RestoreOrder, values: dict[str, Any]) -> None:
    """Let the key wait behind the message; raises OwnershipLost where that would pass somebody."""
    locked = act.first(sql.LOCK_KEY, values)
    row = None
    if locked is not None:
        head = act.all(sql.HEAD_OPEN, {**values, "head": locked["head"]})[0]
        row = KeyRow(head=locked["head"], open=head["open"], draining=locked["draining"])
    move = PARK_KEY if key_move(order, row) is KeyMove.PARK else sql.TAKE_HEAD
    if not act.all(move, values):
        raise OwnershipLost(
            f"message {order.id}: its key was parked by another message just now; nothing was done, try again"
        )


def _who_acted(act: Acting, order: RestoreOrder) -> str:
    names = {"id": order.id, "group": order.group, "topic": order.topic}
    acts = [Act(**row) for row in act.all(LAST_ACT, names)]
    found = [quarantined_of(row) for row in act.all(QUARANTINED_OF, names)]
    state = next((row.state for row in found if (row.group, row.topic) == (order.group, order.topic)), None)
    moved = None if state is State.DISCARDED else state
    return acted_already(order.id, order.group, moved, acts[0] if acts else None)
