"""People's orders in the tables: each one transaction that the relay's owner then carries out."""

import json
from collections.abc import Sequence
from typing import Any

from packhorse.core.errors import OwnershipLost
from packhorse.core.person import Person
from packhorse.relay.holds import Kind, Screen
from packhorse.relay.orders import sql
from packhorse.relay.orders.model import (
    HoldView,
    OutboxRow,
    Waiting,
    chosen,
    undiscardable,
    unreleasable,
    waiting_of,
)
from packhorse.relay.orders.republishing import Republishing
from packhorse.relay.postgres.holds import read

_COLUMNS_OF_HOLD = 22
MOST = 10_000
"""Holds that are read at once."""


class PostgresOrders(Republishing):
    """Read holds and leave orders about them, and about ranges that are to go again; see `Ordering`."""

    def holds(self, *, ended: bool = False) -> list[HoldView]:
        """Return the open holds, the newest first, at most MOST; with *ended* those that are over too."""
        with self._translated():
            return self._views(all=ended, ids=None)

    def named(self, ids: Sequence[int]) -> list[HoldView]:
        """
        Return the holds of *ids*.

        Raises:
            UsageError: One is not there.
        """
        with self._translated():
            return chosen(self._views(all=True, ids=list(ids)), ids)

    def waiting(self, view: HoldView) -> Waiting:
        """Count what waits in *view*, up to a bound, and name the first rows of it."""
        at, scope, hold = view.hold.position, view.scope, view.hold
        values: dict[str, object] = {
            "shard": view.shard, "horizon": at.horizon, "target": at.target, "progress": at.progress, "until": hold.until,
            "resume": None if hold.resume is None else hold.resume.horizon, "type": scope.aggregatetype, "key": scope.aggregateid,
            "id": scope.message_id if scope.kind is Kind.ROW else None,
        }  # fmt: skip
        with self._translated():
            screen = self._screen(view.shard)
            rows, first = self._rows(sql.WAITING, **values), self._rows(sql.FIRST, **values)
        scanned = next(row[4] for row in rows if row[4] is not None)
        groups = [(key, id_, count, oldest) for key, id_, count, oldest, last in rows if last is None]
        return waiting_of(view, screen, groups, first, scanned=scanned)

    def row(self, view: HoldView, row_id: str) -> OutboxRow:
        """
        Return the row that is to be given up from *view*.

        Raises:
            UsageError, OwnershipLost: It can't be.
        """
        with self._translated():
            return self._discardable(view, row_id)

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
            for shard in sorted({view.shard for view in views}):
                self._rows(sql.ORDER, shard=shard)
            for view in views:
                self._ask(view, rate)
                detail = {**_detail(view), "rate": rate}
                self._rows(
                    sql.AUDIT,
                    actor=actor,
                    act="release",
                    row=view.hold.fault.id,
                    detail=json.dumps(detail),
                    why=why,
                )
        return self.named([view.id for view in views])

    def discard(self, view: HoldView, row_id: str, *, person: Person, why: str) -> HoldView:
        """
        Give up one row and order the release of *view* without it; return the hold as it stands then.

        Raises:
            Forbidden: *person* may not act.
            UsageError, OwnershipLost: The row can't be given up, or the hold is no longer as it was shown.
        """
        with self._ordering(person, "give up rows of the outbox") as actor:
            self._rows(sql.ORDER, shard=view.shard)
            self._ask(view, view.hold.rate)
            row = self._discardable(view, row_id)
            given = self._rows(
                sql.DISCARD, row=row.id, id=view.id, type=row.aggregatetype, seq=row.seq, actor=actor, why=why
            )
            if not given:
                raise OwnershipLost(f"row {row.id} is discarded already; nothing was done now")
            detail = {**_detail(view), "seq": row.seq}
            self._rows(sql.AUDIT, actor=actor, act="discard", row=row.id, detail=json.dumps(detail), why=why)
        return self.named([view.id])[0]

    def explained(self, view: HoldView) -> Exception | None:
        """Return why no release of *view* can be ordered, with who acted on it last; None: it can."""
        with self._translated():
            return self._refusal(view)

    def _refusal(self, view: HoldView) -> Exception | None:
        last = self._rows(sql.LAST_ACT, id=view.id)
        return unreleasable(view, last[0][0] if last else None)

    def _ask(self, view: HoldView, rate: int | None) -> None:
        """Order the release; refuse when the hold is no longer as it was shown."""
        hold = view.hold
        asked = self._rows(
            sql.RELEASE,
            id=view.id,
            shard=view.shard,
            rate=rate,
            code=hold.fault.code,
            row=hold.fault.id,
            tries=hold.tries,
        )
        if asked:
            return
        (now,) = self._views(all=True, ids=[view.id])
        raise self._refusal(now) or OwnershipLost(
            f"hold {view.id} is no longer as it was shown; nothing was done, see `packhorse relay hold show {view.id}`"
        )

    def _discardable(self, view: HoldView, row_id: str) -> OutboxRow:
        rows = [OutboxRow(**dict(zip(OutboxRow.__slots__, row, strict=True)))
                for row in self._rows(sql.ROW, row=row_id, hold=view.id)]  # fmt: skip
        if (refusal := undiscardable(view, self._screen(view.shard), row_id, rows)) is not None:
            raise refusal
        return rows[0]

    def _screen(self, shard: int) -> Screen:
        return Screen(view.hold for view in reversed(self._views(all=False, ids=None)) if view.shard == shard)

    def _views(self, *, all: bool, ids: list[int] | None) -> list[HoldView]:  # noqa: A002 the parameter's name in the statement
        return [_view(row) for row in self._rows(sql.HOLDS, all=all, ids=ids, limit=MOST)]


def _view(row: tuple[Any, ...]) -> HoldView:
    id_, shard, state, asked_at, made_at, changed_at, ended_at, owned = row[_COLUMNS_OF_HOLD:]
    return HoldView(
        id=id_, shard=shard, hold=read(row[:_COLUMNS_OF_HOLD]), state=state, asked_at=asked_at if row[18] else None, made_at=made_at,
        changed_at=changed_at, ended_at=ended_at, owned=owned,
    )  # fmt: skip


def _detail(view: HoldView) -> dict[str, Any]:
    scope = view.scope
    return {
        "hold": view.id,
        "shard": view.shard,
        "scope": scope.kind.name.lower(),
        "aggregatetype": scope.aggregatetype,
        "code": view.hold.fault.code,
    }
