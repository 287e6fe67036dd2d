"""Holds in the database: their rows in the outbox, and what the table says of them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from packhorse.relay.deciding.commands import HoldChange
from packhorse.relay.holds import Fault, Hold, Kind, Leg, Scope
from packhorse.relay.model import SEQ, Batch, Position, Row

STRETCH = 20_000
"""Values of seq that one look goes through: some 20 ms, so that the relay's other rows do not wait long."""
LOOKS = 5
"""Looks for the lowest seq in one call."""
CHUNK = 20_000
Rows = Callable[..., list[Row]]


@dataclass(slots=True, kw_only=True)
class _Search:
    """Where the rows between two snapshots begin and end; void with the connection."""

    horizon: str
    target: str
    first: int
    low: int | None = None
    top: int = 0
    done: bool = False


class HeldRows:
    """Read the rows of holds, in short looks."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._search: _Search | None = None

    def forget(self) -> None:
        """Void what was found out through a connection that is gone."""
        self._search = None

    def fetch(self, scope: Scope, leg: Leg, limit: int) -> Batch:
        """Be `Outbox.fetch_held`, without the payloads that were held back."""
        start = leg.start
        assert start.target is not None
        search = self._searched(start.horizon, start.target)
        if not search.done:
            return Batch(start=start, target=start.target, rows=(), complete=False, reach=start.progress)
        top = search.top if leg.upto is None else min(leg.upto, search.top)
        low = max(start.progress, (search.low or 1) - 1 if search.low is not None else top)
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

    def _searched(self, horizon: str, target: str) -> _Search:
        search = self._search
        if search is None or (search.horizon, search.target) != (horizon, target):
            xmax = int(horizon.split(":")[1])
            late = self._rows("RUNNING_THEN", horizon=horizon, target=target)
            search = _Search(
                horizon=horizon, target=target, first=xmax, low=min((seq for _, seq in late), default=None)
            )
            search.top = self._rows("TOP")[0][0]
            self._search = search
        for _ in range(LOOKS):
            if search.done:
                break
            least, last, count = self._rows("LOWEST", first=str(search.first), target=target)[0]
            if least is not None:
                search.low = least if search.low is None else min(search.low, least)
            search.done = count < CHUNK
            search.first = search.first if last is None else int(last) + 1
        return search


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
