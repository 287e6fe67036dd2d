"""People's orders in the tables: each one transaction that the relay's owner then carries out."""

import json
from collections.abc import Sequence

from packhorse.core.person import Person
from packhorse.relay.orders import sql
from packhorse.relay.orders.holding import Done, Holding
from packhorse.relay.orders.model import HoldView, OutboxRow, Waiting
from packhorse.relay.orders.republishing import Republishing


class PostgresOrders(Republishing):
    """Read holds and leave orders about them, and about ranges that are to go again; see `Ordering`."""

    def holds(self, *, ended: bool = False) -> list[HoldView]:
        """Return the open holds, the newest first, at most MOST; with *ended* those that are over too."""
        with self._translated():
            return self._holding.views(ended=ended)

    def named(self, ids: Sequence[int]) -> list[HoldView]:
        """
        Return the holds of *ids*.

        Raises:
            UnknownId: One is not there.
        """
        with self._translated():
            return self._holding.named(ids)

    def waiting(self, view: HoldView) -> Waiting:
        """Count what waits in *view*, up to a bound, and name the first rows of it."""
        with self._translated():
            return self._holding.waiting(view)

    def row(self, view: HoldView, row_id: str) -> OutboxRow:
        """
        Return the row that is to be given up from *view*.

        Raises:
            UsageError, OwnershipLost: It can't be.
        """
        with self._translated():
            return self._holding.discardable(view, row_id)

    def release(
        self, views: Sequence[HoldView], *, person: Person, why: str | None, rate: int | None = None
    ) -> list[HoldView]:
        """
        Order the release of *views*, all of them or none; return them as they stand then.

        Raises:
            Forbidden: *person* may not act.
            OwnershipLost: One is no longer as it was shown; names who acted.
        """
        with self._ordering(person, "release holds") as actor:
            for done in self._holding.release(views, rate=rate):
                self._record(done, actor, why)
        return self.named([view.id for view in views])

    def discard(self, view: HoldView, row_id: str, *, person: Person, why: str) -> HoldView:
        """
        Give up one row and order the release of *view* without it; return the hold as it stands then.

        Raises:
            Forbidden: *person* may not act.
            UsageError, OwnershipLost: The row can't be given up, or the hold is no longer as it was shown.
        """
        with self._ordering(person, "give up rows of the outbox") as actor:
            self._record(self._holding.discard(view, row_id, actor=actor, why=why), actor, why)
        return self.named([view.id])[0]

    def explained(self, view: HoldView) -> Exception | None:
        """Return why no release of *view* can be ordered, with who acted on it last; None: it can."""
        with self._translated():
            return self._holding.refusal(view)

    @property
    def _holding(self) -> Holding:
        return Holding(self._statements)

    def _record(self, done: Done, actor: str, why: str | None) -> None:
        self._rows(
            sql.AUDIT, actor=actor, act=done.act, row=done.row, detail=json.dumps(done.detail), why=why
        )
