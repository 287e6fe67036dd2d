"""The processor's database, simulated: tables, transactions, a watermark, and what a restore takes away."""

from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from packhorse.core.errors import DatabaseUnavailable
from packhorse.processor.outcomes import Outcome
from packhorse.processor.record import Delivery, Stream
from packhorse.processor.running.work import InboxRow, Known, Result
from packhorse.processor.storing.store import Mark

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
Key = tuple[str, UUID]
MarkKey = tuple[UUID, int]


@dataclass(slots=True)
class Row:
    outcome: Outcome
    attempt: int
    due: float | None = None
    first_failed: float | None = None
    reason: str | None = None
    deliveries: int = 1


@dataclass(slots=True)
class Stopped:
    delivery: Delivery
    reason: str
    attempts: int
    copied: bool = False
    state: str = "quarantined"


@dataclass(slots=True)
class Tables:
    """All that is durable. `effects` is the handler's own table: ids in the order of their commits."""

    inbox: dict[Key, Row] = field(default_factory=dict)
    marks: dict[MarkKey, tuple[int, int | None, int]] = field(default_factory=dict)
    quarantined: dict[Key, Stopped] = field(default_factory=dict)
    failed: list[tuple[UUID, int, str]] = field(default_factory=list)
    effects: list[UUID] = field(default_factory=list)


class Blocked(Exception):
    """The statement waits for another transaction; the connection can do nothing else meanwhile."""


class Database:
    """One server; a restore makes it another incarnation and ends every connection."""

    def __init__(self) -> None:
        self.tables = Tables()
        self.incarnation = 1
        self.up = True
        self.now = 0.0
        self.connections: list[Connection] = []
        self.backups: list[Tables] = []

    def connect(self) -> "Connection":
        if not self.up:
            raise DatabaseUnavailable("down")
        connection = Connection(self)
        self.connections.append(connection)
        return connection

    def cut(self) -> None:
        """End every connection; what was not committed is gone."""
        for connection in self.connections:
            connection.lost = True
            connection.pending = None
        self.connections.clear()

    def back_up(self) -> None:
        self.backups.append(deepcopy(self.tables))

    def restore(self) -> None:
        """Go back to the last backup."""
        self.cut()
        self.tables = self.backups.pop()
        self.incarnation += 1


@dataclass(slots=True)
class Pending:
    """What a transaction has written and not committed; effects in order, inbox rows by key."""

    inbox: dict[Key, Row] = field(default_factory=dict)
    quarantined: dict[Key, Stopped] = field(default_factory=dict)
    failed: list[tuple[UUID, int, str]] = field(default_factory=list)
    effects: list[UUID] = field(default_factory=list)


class Connection:
    """One session: the answers that a lane gives to a batch's requests, as the real store does."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.lost = False
        self.pending: Pending | None = None
        self._savepoint: Pending | None = None

    @property
    def tables(self) -> Tables:
        if self.lost or not self._database.up:
            self.lost = True
            raise DatabaseUnavailable("the connection was lost")
        return self._database.tables

    def look_up(self, stream: Stream, partition: int, ids: list[UUID]) -> Known:
        tables, now = self.tables, self._database.now
        mark = tables.marks.get((stream.topic_id, partition))
        if mark is None:
            return Known(None, False, None, {})
        rows = {}
        for one in ids:
            row = tables.inbox.get((stream.source, one))
            if row is not None:
                stopped = tables.quarantined.get((stream.source, one))
                rows[one] = InboxRow(
                    row.outcome,
                    row.attempt,
                    0.0 if row.due is None else row.due - now,
                    0.0 if row.first_failed is None else now - row.first_failed,
                    None if stopped is None else stopped.state,
                    stopped is None or stopped.copied or stopped.state != "quarantined",
                )
        wall = EPOCH + timedelta(seconds=now)
        return Known(mark[0], mark[2] == self._database.incarnation, wall, rows)

    def begin(self) -> None:
        assert self.tables is not None
        self.pending, self._savepoint = Pending(), None

    def savepoint(self) -> None:
        assert self.tables is not None
        self._savepoint = deepcopy(self.pending)

    def to_savepoint(self) -> None:
        assert self.tables is not None
        self.pending = deepcopy(self._savepoint)

    def effect(self, one: UUID) -> None:
        """Do what the handler of *one* does."""
        assert self.tables is not None
        assert self.pending is not None
        self.pending.effects.append(one)

    def write(self, stream: Stream, results: list[Result]) -> bool:
        tables, pending = self.tables, self.pending
        assert pending is not None
        keys = [(stream.source, result.delivery.id) for result in results]
        for other in self._database.connections:
            if other is not self and other.pending and any(key in other.pending.inbox for key in keys):
                raise Blocked
        for key, result in zip(keys, results, strict=True):
            row = tables.inbox.get(key)
            expected = None if result.row is None else (Outcome.RETRY, result.row.attempt)
            if (None if row is None else (row.outcome, row.attempt)) != expected:
                return False
            pending.inbox[key] = self._row(result, row)
            if result.failed_as is not None:
                pending.failed.append((result.delivery.id, result.attempt, result.failed_as))
            if result.outcome is Outcome.QUARANTINE:
                pending.quarantined[key] = Stopped(result.delivery, result.reason or "", result.attempt)
        return True

    def _row(self, result: Result, before: Row | None) -> Row:
        now = self._database.now
        failed = result.outcome in {Outcome.RETRY, Outcome.QUARANTINE}
        first = before.first_failed if before is not None else None
        retry = result.outcome is Outcome.RETRY
        return Row(
            outcome=result.outcome,
            attempt=result.attempt + 1 if retry else result.attempt,
            due=now + result.delay if retry else None,
            first_failed=now if failed and first is None else first,
            reason=result.reason,
            deliveries=1 if before is None else before.deliveries + (0 if result.again else 1),
        )

    def commit(self) -> None:
        tables, pending = self.tables, self.pending
        assert pending is not None
        tables.inbox.update(pending.inbox)
        tables.quarantined.update(pending.quarantined)
        tables.failed.extend(pending.failed)
        tables.effects.extend(pending.effects)
        self.pending = None

    def roll_back(self) -> None:
        self.pending = None

    def count_deliveries(self, stream: Stream, ids: list[UUID]) -> None:
        for one in ids:
            if (row := self.tables.inbox.get((stream.source, one))) is not None:
                row.deliveries += 1

    def uncopied(self, source: str, ids: list[UUID]) -> list[Stopped]:
        found = (self.tables.quarantined.get((source, one)) for one in ids)
        return [one for one in found if one and one.state == "quarantined" and not one.copied]

    def confirm_copies(self, stopped: list[Stopped]) -> None:
        known = self.tables.quarantined.values()
        for one in stopped:
            if any(one is other for other in known):
                one.copied = True

    def move_watermark(
        self, stream: Stream, partition: int, *, old: int, new: int, leader_epoch: int | None
    ) -> bool:
        key = (stream.topic_id, partition)
        mark = self.tables.marks.get(key)
        if mark is None or mark[0] != old or mark[2] != self._database.incarnation:
            return False
        self.tables.marks[key] = (new, leader_epoch, self._database.incarnation)
        return True

    def read_watermark(self, stream: Stream, partition: int) -> Mark:
        mark = self.tables.marks.get((stream.topic_id, partition))
        if mark is None:
            return Mark(None, None, False, 0)
        return Mark(mark[0], mark[1], mark[2] == self._database.incarnation, 0)

    def first_watermark(self, stream: Stream, partition: int, offset: int) -> bool:
        key = (stream.topic_id, partition)
        if key in self.tables.marks:
            return False
        self.tables.marks[key] = (offset, None, self._database.incarnation)
        return True

    def adopt_watermark(self, stream: Stream, partition: int, *, old: int, new: int) -> bool:
        key = (stream.topic_id, partition)
        mark = self.tables.marks.get(key)
        if mark is None or mark[0] != old:
            return False
        self.tables.marks[key] = (new, mark[1] if new == old else None, self._database.incarnation)
        return True
