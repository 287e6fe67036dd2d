"""Holds in the database: their rows in the outbox, and what the table says of them."""

import json
from collections.abc import Sequence
from typing import Any

from packhorse.relay.deciding.commands import HoldChange
from packhorse.relay.holds import Fault, Hold, Kind, Leg, Scope
from packhorse.relay.model import SEQ, Batch, Position
from packhorse.relay.postgres.lowest import Lowest, Rows

STRETCH = 20_000
"""Values of seq that one look goes through: some 20 ms, so that the relay's other rows do not wait long."""
LOOKS = 5
"""Looks for the lowest seq in one call."""


class HeldRows:
    """Read the rows of holds, in short looks."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._lowest: Lowest | None = None
        self._top = 0

    def forget(self) -> None:
        """Void what was found out through a connection that is gone."""
        self._lowest = None

    def fetch(self, scope: Scope, leg: Leg, limit: int) -> Batch:
        """Be `Outbox.fetch_held`, without the payloads that were held back."""
        start = leg.start
        assert start.target is not None
        lowest = self._looked_for(start.horizon, start.target)
        if not lowest.done:
            return Batch(start=start, target=start.target, rows=(), complete=False, reach=start.progress)
        top = self._top if leg.upto is None else min(leg.upto, self._top)
        begins = min((seq for seq in (lowest.low, lowest.low_of_late) if seq is not None), default=top + 1)
        low = max(start.progress, begins - 1)
        high = min(low + STRETCH, top)
        rows = self._rows(
            "HELD", low=low, high=high, type=scope.aggregatetype, key=scope.aggregateid, id=scope.message_id,
            horizon=start.horizon, target=start.target, limit=limit,
        )  # fmt: skip
        full = len(rows) == limit
        reach = rows[-1][SEQ] if full else high
        return Batch(
            start=start, target=start.target, rows=rows, complete=not full and high >= top, reach=reach
        )

    def _looked_for(self, horizon: str, target: str) -> Lowest:
        """Go on looking for where the rows begin; what stands above the outbox's highest seq of now is in no target of before."""
        lowest = self._lowest
        if lowest is None or (lowest.horizon, lowest.target) != (horizon, target):
            lowest = self._lowest = Lowest(self._rows, horizon, target)
            self._top = self._rows("TOP")[0][0]
        for _ in range(LOOKS):
            if not lowest.done:
                lowest.look()
        return lowest


def read(row: Sequence[Any]) -> Hold:
    """Return the hold that a row of HOLDS says."""
    (
        scope, aggregatetype, aggregateid, partition, partitions, message_id, seq, code, reason, heals, horizon, target,
        progress, until, resume, resume_target, resume_progress, releasing, asked, tries, sent, rate,
    ) = row  # fmt: skip
    kind = Kind[scope.upper()]
    of = Scope(
        kind=kind, aggregatetype=aggregatetype, aggregateid=aggregateid, partition=partition, partitions=partitions,
        message_id=message_id if kind is Kind.ROW else None,
    )  # fmt: skip
    fault = Fault(
        scope=of, code=code, reason=reason, heals=heals, topic=aggregatetype, seq=seq, id=message_id
    )
    return Hold(
        fault=fault, position=Position(horizon=horizon, target=target, progress=progress if target else 0), until=until,
        resume=None if resume is None else Position(horizon=resume, target=resume_target, progress=resume_progress if resume_target else 0),
        releasing=releasing, asked=asked, tries=tries, sent=sent, rate=rate,
    )  # fmt: skip


def written(changes: Sequence[HoldChange]) -> dict[str, str]:
    """Return the parameters of SAVE_HOLDS."""
    ended = [_named(change.scope) for change in changes if change.hold is None]
    made = [_as_json(change.hold) for change in changes if change.hold is not None]
    return {"ended": json.dumps(ended), "made": json.dumps(made)}


def _named(scope: Scope) -> dict[str, Any]:
    name = {
        Kind.ROW: scope.message_id,
        Kind.KEY: scope.aggregateid,
        Kind.PARTITION: str(scope.partition),
        Kind.TOPIC: "",
    }[scope.kind]
    return {"scope": scope.kind.name.lower(), "aggregatetype": scope.aggregatetype, "name": name}


def _as_json(hold: Hold) -> dict[str, Any]:
    scope, fault, at, resume = hold.scope, hold.fault, hold.position, hold.resume
    return {
        "scope": scope.kind.name.lower(), "aggregatetype": scope.aggregatetype, "aggregateid": scope.aggregateid,
        "partition": scope.partition, "partitions": scope.partitions, "message_id": fault.id or scope.message_id, "seq": fault.seq,
        "code": fault.code, "reason": fault.reason, "heals": fault.heals,
        "horizon": at.horizon, "target": at.target, "progress": at.progress, "until": hold.until,
        "resume_horizon": None if resume is None else resume.horizon,
        "resume_target": None if resume is None else resume.target,
        "resume_progress": 0 if resume is None else resume.progress,
        "state": "releasing" if hold.releasing else "held", "tries": hold.tries, "sent": hold.sent, "rate": hold.rate,
    }  # fmt: skip
