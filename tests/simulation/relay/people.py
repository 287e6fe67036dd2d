"""People at the tables, each act one transaction: releases, ranges that are sent again, another number of shards."""

from collections.abc import Mapping
from dataclasses import replace

from tests.simulation.relay.database import Database, RelayRow, Row, shard_of
from tests.simulation.relay.outbox import topic_of

from packhorse.relay.holds import Fault, Hold, Kind, Scope
from packhorse.relay.model import Position
from packhorse.relay.orders.republish import before
from packhorse.relay.resharding import model as resharding
from packhorse.relay.resharding.model import Standing, Step


def order_release(database: Database, shard: int, scope: Scope) -> None:
    """Want a hold back."""
    row = database.relays[shard]
    if (hold := row.holds.get(scope)) is not None and not hold.releasing:
        row.holds[scope] = replace(hold, asked=True)
        row.orders += 1


# --- ranges that are sent again


def republish(database: Database, topic: str, first: int, last: int | None, *, now: float) -> bool:
    """Want the rows of *topic* from *first* to *last* again; False when a relay has a hold of the topic in its hands."""
    stretches = {
        shard: rows for shard in database.relays if (rows := _stretch(database, shard, topic, first, last))
    }
    for shard in stretches:
        row = database.relays[shard]
        if _open(row, topic) and row.token is not None and row.lease_until > now:
            return False
    for shard, rows in stretches.items():
        xmin = int(database.snapshot().split(":")[0])
        until = None if last is None else max(row.seq for row in rows)
        xid = min(xmin, *(row.xid for row in rows))
        _send_again(database.relays[shard], topic, min(row.seq for row in rows), until, xid)
    return bool(stretches)


def _stretch(database: Database, shard: int, topic: str, first: int, last: int | None) -> list[Row]:
    return [
        row
        for row in database.rows
        if topic_of(row.key) == topic
        and database.shard_of(row) == shard
        and first <= row.seq
        and (last is None or row.seq <= last)
    ]


def _open(row: RelayRow, topic: str) -> Mapping[Scope, Hold]:
    return {scope: hold for scope, hold in row.holds.items() if scope.aggregatetype == topic}


def _send_again(row: RelayRow, topic: str, first: int, until: int | None, xid: int) -> None:
    """Set the holds of the topic back before the range; make one of the topic where there is none."""
    row.orders += 1
    open_ = _open(row, topic)
    if open_:
        row.token = None
    for scope, hold in open_.items():
        row.holds[scope] = _set_back(hold, until, xid)
    scope = Scope(kind=Kind.TOPIC, aggregatetype=topic)
    if scope in open_:
        return
    horizon = row.position.horizon
    row.holds[scope] = Hold(
        fault=Fault(scope=scope, code="republish", reason="republish", heals=False, topic=topic),
        position=Position(horizon=f"{xid}:{xid}:", target=horizon, progress=first - 1),
        until=until,
        resume=None if until is None else Position(horizon=horizon),
        asked=True,
    )


def _set_back(hold: Hold, until: int | None, xid: int) -> Hold:
    resume = None if until is None else hold.resume or hold.position
    if until is not None and hold.until is not None:
        until = max(until, hold.until)
    topic = hold.scope.kind is Kind.TOPIC
    return replace(
        hold, position=Position(horizon=before(hold.position.horizon, xid)), until=until, resume=resume,
        releasing=hold.releasing and not topic, asked=hold.asked or topic,
    )  # fmt: skip


# --- another number of shards


def wanted(database: Database) -> int | None:
    """Return the number of shards that was ordered; None: no change is on its way."""
    return next((row.wanted for row in database.relays.values() if row.finish), None)


def advance(database: Database, number: int, *, now: float) -> Step | None:
    """Take the next step to *number* of shards; None when a wide hold forbids it."""
    shards = [
        Standing(
            shard=shard,
            owner="sim" if row.token is not None and row.lease_until > now else None,
            horizon=row.position.horizon,
            target=row.position.target,
            finish=row.finish,
            wanted=row.wanted,
        )
        for shard, row in database.relays.items()
    ]
    step = resharding.next_step(shards, number)
    wide = any(hold.scope.kind >= Kind.PARTITION for _, hold in database.holds())
    if wide and step in {Step.ORDER, Step.SWITCH}:
        return None
    if step is Step.ORDER:
        for row in database.relays.values():
            row.finish, row.wanted, row.orders = True, number, row.orders + 1
    elif step is Step.LEVEL:
        target = database.snapshot()
        for row in database.relays.values():
            row.position = Position(horizon=row.position.horizon, target=target)
            row.token = None
    elif step is Step.SWITCH:
        switch(database, number)
    return step


def switch(database: Database, number: int) -> None:
    """Deal rows and holds to *number* shards, all at the first one's position."""
    old = database.relays
    first = old[0]
    row = replace(
        first, epoch=max(row.epoch for row in old.values()) + 1, orders=max(row.orders for row in old.values()) + 1,
        token=None, finish=False, wanted=None, holds={},
    )  # fmt: skip
    database.relays = {shard: replace(row, holds={}) for shard in range(number)}
    for holds in [row.holds for row in old.values()]:
        for scope, hold in holds.items():
            database.relays[shard_of(scope.aggregateid, number)].holds[scope] = hold


def abort(database: Database) -> None:
    """Take the order of another number back."""
    for row in database.relays.values():
        if row.finish:
            row.finish, row.wanted, row.orders = False, None, row.orders + 1
