"""The tables of a discarded message, and the one transaction that takes it back."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Acting, Database
from packhorse.console.facts import Outcome, QuarantinedMessage, State
from packhorse.console.quarantine.postgres import claim
from packhorse.console.quarantine.restoring import sql
from packhorse.console.quarantine.restoring.deciding import (
    Discarded,
    KeyMove,
    KeyRow,
    RestoreOrder,
    key_move,
)
from packhorse.console.quarantine.sql import PARK_KEY
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
        with self._database.acting(person, Right.ACT, doing="restore messages") as act:
            claim(act, order, sql.REOPEN, sql.RESTORE, state=State.DISCARDED)
            at = act.record(
                "restore",
                why=why,
                group=order.group,
                topic=order.topic,
                message_id=order.id,
                detail={"attempt": order.attempt, "out_of_order": out_of_order},
            )
            if order.ordered:
                _park(act, order)
        return at


def _park(act: Acting, order: RestoreOrder) -> None:
    """Let the key wait behind the message; raises OwnershipLost where that would pass somebody."""
    values = asdict(order)
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
