"""People's orders in the tables: each one transaction that the relay's owner then carries out."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg

from packhorse.core.errors import DatabaseUnavailable, NotReady, OwnershipLost
from packhorse.core.person import Person
from packhorse.core.rights import Right
from packhorse.relay import sql as relay_sql
from packhorse.relay.errors import StatementFailed
from packhorse.relay.holds import Kind, Screen
from packhorse.relay.orders import sql
from packhorse.relay.orders.model import (
    SCANNED,
    HoldView,
    OutboxRow,
    Waiting,
    chosen,
    undiscardable,
    unreleasable,
    waiting_of,
)
from packhorse.relay.orders.republish import Found, Stretch, Wanted, before, checked, reason_of
from packhorse.relay.postgres.acting import allowed
from packhorse.relay.postgres.connection import Reach, connect, translated
from packhorse.relay.postgres.holds import read

_COLUMNS_OF_HOLD = 22
MOST = 10_000
"""Holds that are read at once."""
COUNTING = Reach(connect=5.0, answer=600.0)
"""A republish counts every row of its range before it is ordered."""


class PostgresOrders:
    """
    Read holds and leave orders, over one connection.

    Every method raises DatabaseUnavailable when the database does not answer, and NotReady when a table or right is missing;
    then nothing was changed.
    """

    def __init__(self, url: str, schema: str, *, reach: Reach | None = None) -> None:
        """Connect."""
        self._schema = schema
        self._connection = connect(url, reach or Reach())

    def __enter__(self) -> "PostgresOrders":
        """Hand itself out."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._connection.close()

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

    def found(self, wanted: Wanted) -> Found:
        """Count what a republish of *wanted* would send; changes nothing."""
        with self._translated():
            return self._found(wanted)

    def republish(self, found: Found, *, person: Person, why: str | None) -> list[int]:
        """
        Order that what was *found* is sent again; return the ids of the holds that carry it, one a shard.

        Raises:
            Forbidden: *person* may not act.
            NotReady: Nothing lies in the range, or a relay has a hold of the topic in its hands, by now too.
        """
        wanted = checked(found).wanted
        with self._ordering(person, "send rows again") as actor:
            ids = [self._sent_again(wanted, stretch, actor) for stretch in found.stretches]
            detail = json.dumps({**found.as_dict(), "holds": ids, "rate": wanted.rate})
            self._rows(sql.AUDIT, actor=actor, act="republish", row=None, detail=detail, why=why)
        return ids

    def _sent_again(self, wanted: Wanted, stretch: Stretch, actor: str) -> int:
        ordered = self._rows(sql.ORDER, shard=stretch.shard)
        if not ordered or ordered[0][2]:
            raise NotReady(
                "the number of shards changes, and rows of a topic that goes again would belong to several of them; "
                "`packhorse relay shards` shows when that is done: order it again then"
            )
        owned, horizon, _ = ordered[0]
        open_ = self._rows(sql.OPEN_OF, shard=stretch.shard, type=wanted.aggregatetype)
        now = replace(stretch, open_holds=tuple(id_ for id_, *_ in open_), owner="a relay" if owned else None)
        checked(Found(wanted=wanted, stretches=(now,), oldest=None))
        again = {"until": stretch.until, "rate": wanted.rate, "reason": reason_of(stretch, actor)}
        if open_:
            self._execute(sql.FENCE, {"shard": stretch.shard})
        for id_, _, at in open_:
            self._rows(sql.REWIND, id=id_, begin=before(at, stretch.xid), **again)
        if topic := [int(id_) for id_, scope, _ in open_ if scope == "topic"]:
            return topic[0]
        made = self._rows(
            sql.REPUBLISH, shard=stretch.shard, type=wanted.aggregatetype,
            begin=f"{stretch.xid}:{stretch.xid}:", horizon=horizon, first=stretch.first, **again,
        )  # fmt: skip
        return int(made[0][0])

    def _found(self, wanted: Wanted) -> Found:
        stretches = [
            self._stretch(wanted, shard, horizon, owner if owned else None)
            for shard, horizon, owned, owner in self._rows(sql.POSITIONS)
        ]
        oldest = self._rows(sql.OLDEST)
        return Found(
            wanted=wanted, stretches=tuple(each for each in stretches if each is not None), oldest=oldest[0] if oldest else None
        )  # fmt: skip

    def _stretch(self, wanted: Wanted, shard: int, horizon: str, owner: str | None) -> Stretch | None:
        here = {"shard": shard, "type": wanted.aggregatetype}
        by_seq = isinstance(wanted.first, int)
        first = self._rows(sql.FIRST_BY_SEQ if by_seq else sql.FIRST_BY_TIME, first=wanted.first, **here)[0][
            0
        ]
        until = None
        if wanted.last is not None:
            by_seq = isinstance(wanted.last, int)
            until = self._rows(sql.LAST_BY_SEQ if by_seq else sql.LAST_BY_TIME, last=wanted.last, **here)[0][
                0
            ]
        if first is None or (wanted.last is not None and (until is None or until < first)):
            return None
        xid, rows, unpublished, discarded, last, begins, ends = self._rows(
            sql.RANGE, first=first, last=until, horizon=horizon, **here
        )[0]
        open_ = tuple(id_ for id_, *_ in self._rows(sql.OPEN_OF.replace(" FOR UPDATE", ""), **here))
        return Stretch(
            shard=shard, first=first, last=last, until=until, xid=int(xid), horizon=horizon, rows=rows, unpublished=unpublished,
            discarded=discarded, begins=begins, ends=ends, owner=owner, open_holds=open_,
        )  # fmt: skip

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

    @contextmanager
    def _ordering(self, person: Person, doing: str) -> Iterator[str]:
        """
        Run the block in one transaction, durable when it is over, once the right is checked and locked; hand out who acts.

        Raises:
            Forbidden: *person* may not do what *doing* says.
        """
        with self._translated(), self._connection.transaction():
            self._rows(sql.LIMITS)
            yield allowed(self._connection, self._schema, person, Right.ACT, doing=doing)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            with translated(self._connection):
                yield
        except StatementFailed as error:
            raise DatabaseUnavailable(f"{error}; nothing was changed, try again") from error
        except NotReady as error:
            if isinstance(error.__cause__, psycopg.errors.InsufficientPrivilege):
                said = str(error).partition("; `packhorse")[0]
                raise NotReady(
                    f"{said}; `packhorse migrate sql --grants operator=ROLE` prints the rights"
                ) from error
            raise

    def _rows(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        return self._execute(statement, values).fetchall()

    def _execute(self, statement: str, values: dict[str, object]) -> psycopg.Cursor[tuple[Any, ...]]:
        mine = ""
        if "{mine}" in statement:
            shards = self._connection.execute(sql.SHARDS.format(schema=self._schema)).fetchone()
            assert shards is not None
            if shards[0] > 1:
                mine = relay_sql.MINE.format(shards=shards[0], shard=values["shard"])
        text = statement.format(schema=self._schema, mine=mine, scanned=SCANNED)
        return self._connection.execute(text.encode(), values)


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
