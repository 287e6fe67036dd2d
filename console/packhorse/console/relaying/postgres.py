"""Relays and holds of one database, read and ordered about by the relay's own statements."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Acting, Database, Rows
from packhorse.console.doctor.sql import SLOTS
from packhorse.console.relaying import sql
from packhorse.console.relaying.model import (
    COUNTED,
    SCANNED,
    GivenUp,
    Held,
    HoldAct,
    HoldOrder,
    HoldPage,
    RelayProcess,
    Relays,
    Slot,
    changed,
    page_of,
)
from packhorse.core.rights import Right
from packhorse.relay.orders.holding import Done, Holding
from packhorse.relay.orders.model import HoldView
from packhorse.relay.postgres.ordering import Statements
from packhorse.relay.postgres.status import statuses


class RelayTables:
    """See relays, and leave orders for them; each method raises what `Database.reading` or `Database.acting` does."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def relays(self, person: Person) -> Relays:
        """Return how each shard stands, who carries it, and the slots that keep the log."""
        with self._database.reading(person, doing="see the relay") as rows:
            processes, slots = rows.all(sql.PROCESSES), rows.all(SLOTS)
            at = _now(rows)
            rows.all(sql.PLANNER)
            shards = statuses(rows.connection, self._database.schema, counted=COUNTED)
        return Relays(
            at=at,
            shards=tuple(shards),
            processes=tuple(RelayProcess(**{**row, "shards": tuple(row["shards"])}) for row in processes),
            slots=tuple(
                Slot(**{name: row[name] for name in ("name", "active", "held", "lost")}) for row in slots
            ),
        )

    def holds(self, person: Person, *, ended: bool, below: int | None, limit: int) -> HoldPage:
        """Return the newest holds *below* that number, those that are over with *ended*."""
        with self._database.reading(person, doing="see holds") as rows:
            found = self._holding(rows).views(ended=ended, below=below, limit=limit + 1)
            return page_of(found, at=_now(rows), limit=limit)

    def hold(self, person: Person, hold: int) -> Held:
        """
        Return one hold whole.

        Raises:
            UnknownId: There is none.
        """
        with self._database.reading(person, doing="see holds") as rows:
            holding = self._holding(rows)
            (view,) = holding.named([hold])
            return Held(
                at=_now(rows),
                view=view,
                waiting=None if view.state == "ended" else holding.waiting(view),
                acts=tuple(HoldAct(**row) for row in rows.all(sql.ACTS, {"id": hold, "since": view.made_at})),
            )

    def releasable(self, person: Person, holds: Sequence[int]) -> list[HoldView]:
        """
        Return the holds that a release would be ordered of.

        Raises:
            UnknownId: One is not there.
            OwnershipLost: One is over, on its way or ordered already; names who acted.
        """
        with self._database.reading(person, doing="see holds") as rows:
            return _released(self._holding(rows), holds)

    def discardable(self, person: Person, hold: int, row: UUID) -> GivenUp:
        """
        Return the row that would be given up.

        Raises:
            UnknownId, OwnershipLost: As `releasable`.
            UsageError: The row does not wait in the hold.
        """
        with self._database.reading(person, doing="see holds") as rows:
            holding = self._holding(rows)
            (view,) = _released(holding, [hold])
            return GivenUp(view=view, row=holding.discardable(view, str(row)))

    def release(self, person: Person, orders: Sequence[HoldOrder], *, why: str, rate: int | None) -> str:
        """
        Order the release of what was shown, all of it or nothing, on the record; return who is on record.

        Raises:
            Forbidden: The person may not act.
            UnknownId, OwnershipLost: As `releasable`; or a hold is no longer as it was shown.
        """
        with self._database.acting(person, Right.ACT, doing="release holds") as act:
            holding = self._holding(act)
            views = _shown(holding, orders)
            for done in holding.release(views, rate=rate):
                _record(act, done, why)
            return act.actor

    def discard(self, person: Person, order: HoldOrder, row: UUID, *, why: str) -> str:
        """
        Give up one row and order the release of its hold without it, on the record; return who is on record.

        Raises:
            Forbidden: The person may not act.
            UnknownId, OwnershipLost: As `release`.
            UsageError: The row does not wait in the hold.
        """
        with self._database.acting(person, Right.ACT, doing="give up rows of the outbox") as act:
            holding = self._holding(act)
            (view,) = _shown(holding, [order])
            _record(act, holding.discard(view, str(row), actor=act.actor, why=why), why)
            return act.actor

    def _holding(self, rows: Rows) -> Holding:
        rows.all(sql.PLANNER)
        return Holding(Statements(rows.connection, self._database.schema, scanned=SCANNED))


def _now(rows: Rows) -> datetime:
    at: datetime = rows.all(sql.NOW)[0]["at"]
    return at


def _released(holding: Holding, holds: Sequence[int]) -> list[HoldView]:
    views = holding.named(holds)
    for view in views:
        if (refusal := holding.refusal(view)) is not None:
            raise refusal
    return views


def _shown(holding: Holding, orders: Sequence[HoldOrder]) -> list[HoldView]:
    """Return the holds of *orders*, once they are found to be as they were shown."""
    of = {order.id: order for order in orders}
    views = _released(holding, list(of))
    for view in views:
        if (lost := changed(of[view.id], view)) is not None:
            raise lost
    return views


def _record(act: Acting, done: Done, why: str) -> None:
    act.record(done.act, why=why, message_id=None if done.row is None else UUID(done.row), detail=done.detail)
