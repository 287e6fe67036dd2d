"""What people see of holds and order about them, in the transaction of whoever asks: that one checks the right, and keeps the record."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from packhorse.core.errors import OwnershipLost
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
from packhorse.relay.postgres.holds import read

_COLUMNS_OF_HOLD = 22
MOST = 10_000
"""Holds that are read at once."""


class Asks(Protocol):
    """Run the statements about orders in an open transaction; see `Statements`."""

    scanned: int

    def rows(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """Run *statement* and return its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What an order leaves for the record: its name, the row that it is about, and which hold."""

    act: str
    row: str | None
    detail: dict[str, Any]


class Holding:
    """Holds, as one transaction has them; each method raises what `Asks` does."""

    def __init__(self, asks: Asks) -> None:
        self._asks = asks

    def views(
        self, *, ended: bool, ids: Sequence[int] | None = None, below: int | None = None, limit: int = MOST
    ) -> list[HoldView]:
        """Return the holds of *ids*, or all, those that are over with *ended*, the newest first and *below* that number."""
        found = self._asks.rows(
            sql.HOLDS, all=ended, ids=None if ids is None else list(ids), below=below, limit=limit
        )
        return [_view(row) for row in found]

    def named(self, ids: Sequence[int]) -> list[HoldView]:
        """
        Return the holds of *ids*.

        Raises:
            UnknownId: One is not there.
        """
        return chosen(self.views(ended=True, ids=ids), ids)

    def waiting(self, view: HoldView) -> Waiting:
        """Count what waits in *view*, up to a bound, and name the first rows of it."""
        at, scope, hold = view.hold.position, view.scope, view.hold
        values: dict[str, object] = {
            "shard": view.shard, "horizon": at.horizon, "target": at.target, "progress": at.progress, "until": hold.until,
            "resume": None if hold.resume is None else hold.resume.horizon, "type": scope.aggregatetype, "key": scope.aggregateid,
            "id": scope.message_id if scope.kind is Kind.ROW else None,
        }  # fmt: skip
        screen = self._screen(view.shard)
        rows, first = self._asks.rows(sql.WAITING, **values), self._asks.rows(sql.FIRST, **values)
        scanned = next(row[4] for row in rows if row[4] is not None)
        groups = [(key, id_, count, oldest) for key, id_, count, oldest, last in rows if last is None]
        return waiting_of(view, screen, groups, first, scanned=scanned, most=self._asks.scanned)

    def discardable(self, view: HoldView, row_id: str) -> OutboxRow:
        """
        Return the row that is to be given up from *view*.

        Raises:
            UsageError, OwnershipLost: It can't be.
        """
        rows = [OutboxRow(**dict(zip(OutboxRow.__slots__, row, strict=True)))
                for row in self._asks.rows(sql.ROW, row=row_id, hold=view.id)]  # fmt: skip
        if (refusal := undiscardable(view, self._screen(view.shard), row_id, rows)) is not None:
            raise refusal
        return rows[0]

    def release(self, views: Sequence[HoldView], *, rate: int | None) -> list[Done]:
        """
        Order the release of *views*, all of them or none.

        Raises:
            OwnershipLost: One is no longer as it was shown; names who acted.
        """
        for shard in sorted({view.shard for view in views}):
            self._asks.rows(sql.ORDER, shard=shard)
        done = []
        for view in views:
            self._ask(view, rate)
            done.append(Done(act="release", row=view.hold.fault.id, detail={**_detail(view), "rate": rate}))
        return done

    def discard(self, view: HoldView, row_id: str, *, actor: str, why: str) -> Done:
        """
        Give up one row and order the release of *view* without it.

        Raises:
            UsageError, OwnershipLost: The row can't be given up, or the hold is no longer as it was shown.
        """
        self._asks.rows(sql.ORDER, shard=view.shard)
        self._ask(view, view.hold.rate)
        row = self.discardable(view, row_id)
        given = self._asks.rows(
            sql.DISCARD, row=row.id, id=view.id, type=row.aggregatetype, seq=row.seq, actor=actor, why=why
        )
        if not given:
            raise OwnershipLost(f"row {row.id} is discarded already; nothing was done now")
        return Done(act="discard", row=row.id, detail={**_detail(view), "seq": row.seq})

    def refusal(self, view: HoldView) -> Exception | None:
        """Return why no release of *view* can be ordered, with who acted on it last; None: it can."""
        last = self._asks.rows(sql.LAST_ACT, id=view.id)
        return unreleasable(view, last[0][0] if last else None)

    def _ask(self, view: HoldView, rate: int | None) -> None:
        """Order the release; refuse when the hold is no longer as it was shown."""
        hold = view.hold
        asked = self._asks.rows(
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
        (now,) = self.views(ended=True, ids=[view.id])
        raise self.refusal(now) or OwnershipLost(
            f"hold {view.id} is no longer as it was shown; nothing was done, see `packhorse relay hold show {view.id}`"
        )

    def _screen(self, shard: int) -> Screen:
        return Screen(view.hold for view in reversed(self.views(ended=False)) if view.shard == shard)


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
