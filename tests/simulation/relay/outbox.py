"""The port `Outbox` on the simulated database, and the keeper of the lease."""

from collections.abc import Callable
from uuid import UUID

from tests.simulation.relay.database import Database, RelayRow, Row, behind, shard_of, visible

from packhorse.core.errors import DatabaseUnavailable, NotReady
from packhorse.relay import model
from packhorse.relay.deciding.commands import Save
from packhorse.relay.holds import Leg, Scope
from packhorse.relay.model import Batch, Position
from packhorse.relay.ports import Orders, Ownership

RowTuple = model.Row


def as_tuple(row: Row) -> RowTuple:
    """Return *row* as the relay's adapters give it."""
    return (row.seq, topic_of(row.key), row.key, row.name.encode(), 0, row.name, "t.T", "1", *[None] * 10)


def topic_of(key: str) -> str:
    """Return the aggregate type that a key's rows go to: there are two topics."""
    return "lines" if key == "C" else "topic"


class SimOutbox:
    """
    Be the port `Outbox`; before and after each statement other parties may run.

    Attributes:
        pause: Lets others run; may raise the end of this process.
        cut: Asked before and after each statement: is this connection cut now?
        order: Key that rows are sorted by; a planted error changes it.
        shards: Of how many shards this one reads its rows; part of the statements, which are put together in `own`.
    """

    def __init__(
        self, database: Database, shard: int, *, now: Callable[[], float], pause: Callable[[], None]
    ) -> None:
        self.database = database
        self.shard = shard
        self.shards: Callable[[], int] = lambda: self._shards
        self._shards = 1
        self.now = now
        self.pause = pause
        self.cut: Callable[[], bool] = lambda: False
        self.order: Callable[[Row], tuple[int, int]] = lambda row: (row.seq, 0)
        self.wait_for_log = True
        self.with_target = True
        self.check_token = True
        self.stretch: Callable[[], int] = lambda: 1_000
        self._incarnation = -1
        self._busy = False

    def _begin(self, *, connect: bool = False) -> None:
        while self._busy:
            self.pause()
        self._busy = True
        try:
            self.pause()
            if connect and self._incarnation == -1:
                self._incarnation = self.database.incarnation
            self._maybe_cut("before")
        except BaseException:
            self._busy = False
            raise

    def _end(self) -> None:
        try:
            self.pause()
            self._maybe_cut("after")
        finally:
            self._busy = False

    def _maybe_cut(self, when: str) -> None:
        if self.cut() or self._incarnation != self.database.incarnation:
            self._incarnation = -1
            raise DatabaseUnavailable(f"cut {when} the statement's end")

    def own(self, token: UUID, owner: str, lease: float) -> Ownership | None:
        del owner
        self._begin(connect=True)
        row = self._row()
        if row is None:
            self._end()
            raise NotReady("there is no row for this shard")
        free = row.token is None or row.token == token or row.lease_until < self.now()
        free = free and not (row.finish and row.position.target is None)
        if free:
            row.epoch += row.token != token
            row.token, row.lease_until = token, self.now() + lease
            self._shards = len(self.database.relays)
        found = self._ownership(row) if free else None
        self._end()
        return found

    def _row(self) -> RelayRow | None:
        return self.database.relays.get(self.shard)

    def _owned(self, token: UUID) -> RelayRow | None:
        row = self._row()
        return row if row is not None and row.token == token else None

    def _mine(self) -> list[Row]:
        """Return the committed rows of this shard."""
        shards = self.shards()
        return [row for row in self.database.rows if shard_of(row.key, shards) == self.shard]

    def _ownership(self, row: RelayRow) -> Ownership:
        return Ownership(
            position=row.position, epoch=row.epoch, trouble=row.trouble, holds=tuple(row.holds.values()), orders=row.orders,
            finish=row.finish, mode=row.mode, shard=self.shard, shards=self._shards,
        )  # fmt: skip

    def orders(self) -> Orders:
        self._begin()
        row = self._row()
        if row is None:
            self._end()
            raise NotReady("there is no row for this shard")
        found = Orders(holds=tuple(row.holds.values()), orders=row.orders, finish=row.finish)
        self._end()
        return found

    def fetch_held(self, scope: Scope, leg: Leg, limit: int) -> Batch:
        self._begin()
        start, database = leg.start, self.database
        assert start.target is not None
        rows = [row for row in self._mine() if visible(row.xid, start.target) and not behind(row, start)]
        top = max((row.seq for row in rows), default=0)
        top = top if leg.upto is None else min(top, leg.upto)
        high = min(start.progress + self.stretch(), top)
        found = sorted(
            (
                row
                for row in rows
                if start.progress < row.seq <= high
                and row.name not in database.discarded
                and self.matches(scope, as_tuple(row))
            ),
            key=lambda row: row.seq,
        )
        full = len(found) > limit
        batch = Batch(
            start=start,
            target=start.target,
            rows=[as_tuple(row) for row in found[:limit]],
            complete=not full and high >= top,
            reach=found[limit - 1].seq if full else high,
        )
        self._end()
        return batch

    @staticmethod
    def matches(scope: Scope, row: RowTuple) -> bool:
        """Tell what the SQL looks at: topic, key and id, but not the partition."""
        if row[model.AGGREGATETYPE] != scope.aggregatetype:
            return False
        if scope.aggregateid is not None:
            return bool(row[model.AGGREGATEID] == scope.aggregateid)
        return scope.message_id is None or bool(row[model.ID] == scope.message_id)

    def fetch(self, position: Position, limit: int) -> Batch:
        self._begin()
        database = self.database
        now = database.snapshot()
        target = position.target or now
        seen = target if self.with_target else now
        rows = sorted(
            (row for row in self._mine() if visible(row.xid, seen) and not behind(row, position)),
            key=self.order,
        )
        unflushed = None
        if position.target is None and self.wait_for_log and database.flushed < database.inserted:
            unflushed = str(database.inserted)
        batch = Batch(
            start=position,
            target=target,
            rows=[as_tuple(row) for row in rows[:limit]],
            complete=len(rows) <= limit,
            unflushed=unflushed,
        )
        self._end()
        return batch

    def log_reached(self, until: str) -> bool:
        self._begin()
        reached = self.database.flushed >= int(until)
        self._end()
        return reached

    def flush_log(self) -> None:
        self._begin()
        self._durable_write()
        self._end()

    def save(self, token: UUID, save: Save) -> bool:
        self._begin()
        row = self._owned(token) if self.check_token else self._row()
        mine = row is not None and (row.position == save.old or not self.check_token)
        if row is not None and mine:
            row.position, row.published = save.new, row.published + save.rows
            self.database.change_holds(self.shard, tuple(save.holds))
            self._durable_write()
        self._end()
        return mine

    def _durable_write(self) -> None:
        transaction = self.database.begin()
        lsn = self.database.log_commit(transaction)
        self.database.flush(lsn)
        self.database.show(transaction, lsn)

    def record_trouble(self, token: UUID, text: str | None) -> bool:
        self._begin()
        row = self._owned(token)
        if row is not None:
            row.trouble = text
        self._end()
        return row is not None

    def record_mode(self, token: UUID, mode: str, cause: str) -> bool:
        del cause
        self._begin()
        row = self._owned(token)
        if row is not None:
            row.mode = mode
        self._end()
        return row is not None

    def lag(self, position: Position) -> tuple[int, float]:
        return sum(not behind(row, position) for row in self._mine()), 0.0

    def release(self, token: UUID) -> None:
        self._begin()
        if (row := self._owned(token)) is not None:
            row.token = None
        self._end()

    def close(self) -> None:
        self._incarnation = -1


class SimKeeper:
    """Be the port `Keeper`; `renew` is one step that the scheduler takes."""

    def __init__(
        self,
        database: Database,
        shard: int,
        *,
        lease: float,
        now: Callable[[], float],
        halt: Callable[[], None],
    ) -> None:
        self._database = database
        self._shard = shard
        self._lease = lease
        self._now = now
        self._halt = halt
        self._token: UUID | None = None
        self._deadline: float | None = None
        self._orders = 0

    def keep(self, token: UUID, deadline: float) -> None:
        self._token, self._deadline, self._orders = token, deadline, 0

    def deadline(self) -> float | None:
        return self._deadline

    def orders(self) -> int:
        return self._orders

    def drop(self) -> None:
        self._token = None

    def due(self) -> bool:
        return (
            self._token is not None
            and self._deadline is not None
            and (self._deadline - self._now() < self._lease * 2 / 3)
        )

    def renew(self, *, reachable: bool) -> None:
        row = self._database.relays.get(self._shard)
        if reachable and row is not None and row.token == self._token:
            row.lease_until = self._deadline = self._now() + self._lease
            self._orders = row.orders
        elif reachable:
            self._deadline, self._token = None, None
            self._halt()
        elif self._deadline is not None and self._now() >= self._deadline:
            self._token = None
            self._halt()
