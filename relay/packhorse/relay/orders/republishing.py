"""Ranges of the outbox that are to be sent again: counted for people, and ordered."""

import json
from dataclasses import replace

from packhorse.core.errors import NotReady
from packhorse.core.person import Person
from packhorse.relay.orders import sql
from packhorse.relay.orders.republish import Edge, Found, Stretch, Wanted, before, checked, reason_of
from packhorse.relay.postgres.connection import Reach
from packhorse.relay.postgres.ordering import Ordering

COUNTING = Reach(connect=5.0, answer=600.0)
"""A republish counts every row of its range before it is ordered."""


class Republishing(Ordering):
    """Count and order what goes again; a hold of the topic, set back before the range, carries it."""

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
        here: dict[str, object] = {"shard": shard, "type": wanted.aggregatetype}
        first = self._edge(sql.FIRST_BY_SEQ, sql.FIRST_BY_TIME, wanted.first, here)
        until = None
        if wanted.last is not None:
            until = self._edge(sql.LAST_BY_SEQ, sql.LAST_BY_TIME, wanted.last, here)
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

    def _edge(self, by_seq: str, by_time: str, edge: Edge, here: dict[str, object]) -> int | None:
        text = by_seq if isinstance(edge, int) else by_time
        seq: int | None = self._rows(text, edge=edge, **here)[0][0]
        return seq
