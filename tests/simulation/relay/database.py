"""
A database as the relay meets it: snapshots, transaction ids, sequence values, the log, and crashes.

What Postgres does apart is apart here too: a transaction id is drawn at the first write, a sequence value at the insert,
and a commit inserts its record into the log, flushes it (or doesn't), and only then becomes visible. Prepared transactions
outlive a crash, a restore brings an earlier state back, and a slot hands out what the flushed log says.
"""

from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from uuid import UUID

from packhorse.relay import shards
from packhorse.relay.deciding.commands import HoldChange
from packhorse.relay.holds import Hold, Scope
from packhorse.relay.model import Position

shard_of = lru_cache(maxsize=None)(shards.shard_of)


@dataclass(frozen=True)
class Row:
    """One outbox row."""

    seq: int
    xid: int
    key: str
    name: str
    lsn: int


@dataclass
class Transaction:
    """One transaction that has written."""

    xid: int
    rows: list[Row] = field(default_factory=list)
    prepared: bool = False


@dataclass
class RelayRow:
    """One shard's row."""

    position: Position
    token: UUID | None = None
    epoch: int = 0
    lease_until: float = 0.0
    trouble: str | None = None
    published: int = 0
    holds: dict[Scope, Hold] = field(default_factory=dict)
    orders: int = 0
    finish: bool = False
    wanted: int | None = None
    mode: str = "polling"


@dataclass(frozen=True)
class Commit:
    """A commit's record in the log."""

    lsn: int
    xid: int
    rows: tuple[Row, ...]


class Database:
    """The server's memory; what a crash leaves of it is what the log had on disk."""

    def __init__(self, shards: int = 1) -> None:
        self.next_xid = 1
        self.next_seq = 1
        self.inserted = 0
        self.flushed = 0
        self.running: dict[int, Transaction] = {}
        self.completed = 0
        self.committed: dict[int, int] = {}
        self.logged: dict[int, int] = {}
        self.rows: list[Row] = []
        self.relays = {shard: RelayRow(Position(horizon="1:1:")) for shard in range(shards)}
        self.incarnation = 0
        self.commit_order: dict[str, list[str]] = {}
        self.log: list[Commit] = []
        self.slots: dict[int, int] = {}
        self.discarded: set[str] = set()
        self.gone: set[str] = set()

    # --- writers

    def begin(self) -> Transaction:
        """Draw a transaction id; nothing of it is in the log yet."""
        transaction = Transaction(self.next_xid)
        self.next_xid += 1
        self.running[transaction.xid] = transaction
        return transaction

    def draw(self) -> int:
        self.next_seq += 1
        return self.next_seq - 1

    def insert(self, transaction: Transaction, seq: int, key: str, name: str) -> None:
        self._log(transaction.xid)
        transaction.rows.append(Row(seq, transaction.xid, key, name, self.inserted))

    def undo_from(self, transaction: Transaction, count: int) -> None:
        """Roll back to the savepoint behind the first *count* rows."""
        del transaction.rows[count:]

    def log_commit(self, transaction: Transaction) -> int:
        """Insert the commit record; return the position that must be flushed for it to last."""
        self._log(transaction.xid)
        self.log.append(Commit(self.inserted, transaction.xid, tuple(transaction.rows)))
        return self.inserted

    def prepare(self, transaction: Transaction) -> None:
        """Make a transaction outlive crashes; it goes on running."""
        self._log(transaction.xid)
        self.flush(self.inserted)
        transaction.prepared = True

    def flush(self, until: int) -> None:
        self.flushed = max(self.flushed, until)

    def show(self, transaction: Transaction, lsn: int) -> None:
        """Make a commit visible."""
        del self.running[transaction.xid]
        self.completed = max(self.completed, transaction.xid)
        self.committed[transaction.xid] = lsn
        self.rows += transaction.rows
        for row in sorted(transaction.rows, key=lambda row: row.seq):
            self.commit_order.setdefault(row.key, []).append(row.name)

    def abort(self, transaction: Transaction) -> None:
        if self.running.pop(transaction.xid, None) is not None:
            self.completed = max(self.completed, transaction.xid)

    def _log(self, xid: int) -> None:
        self.inserted += 1
        self.logged[xid] = self.inserted

    # --- readers

    def snapshot(self) -> str:
        xmax = self.completed + 1
        running = sorted(xid for xid in self.running if xid < xmax)
        return f"{running[0] if running else xmax}:{xmax}:{','.join(map(str, running))}"

    # --- faults

    def crash(self) -> set[int]:
        """Lose what the log has not on disk; transaction ids and sequence values given out since are given out again."""
        lost = {xid for xid, lsn in self.committed.items() if lsn > self.flushed}
        for xid in lost:
            del self.committed[xid]
        gone = {row.name for row in self.rows if row.xid in lost}
        self.rows = [row for row in self.rows if row.xid not in lost]
        for key, names in self.commit_order.items():
            self.commit_order[key] = [name for name in names if name not in gone]
        self.running = {xid: each for xid, each in self.running.items() if each.prepared}
        self.log = [commit for commit in self.log if commit.lsn <= self.flushed]
        committed = {commit.xid for commit in self.log}
        for commit in self.log:
            # the record was on disk, and nobody had been told yet
            if commit.xid in self.running or commit.xid not in self.committed:
                self._replay(commit)
        self.running = {xid: each for xid, each in self.running.items() if xid not in committed}
        self.inserted = self.flushed
        self.logged = {xid: lsn for xid, lsn in self.logged.items() if lsn <= self.flushed}
        self.next_xid = max([*self.logged, *self.running], default=0) + 1
        self.completed = self.next_xid - 1
        prepared = [row for each in self.running.values() for row in each.rows]
        self.next_seq = max((row.seq for row in [*self.rows, *prepared]), default=0) + 1
        self.incarnation += 1
        return lost

    def _replay(self, commit: Commit) -> None:
        self.committed[commit.xid] = commit.lsn
        self.rows += commit.rows
        for row in sorted(commit.rows, key=lambda row: row.seq):
            self.commit_order.setdefault(row.key, []).append(row.name)

    def backup(self) -> "Database":
        """Return a copy of what is on disk."""
        copy = deepcopy(self)
        copy.crash()
        return copy

    def restore(self, copy: "Database") -> None:
        """Be what *copy* was: transaction ids, sequence values and the relay's row too; slots are not part of a backup."""
        copy = deepcopy(copy)
        before, incarnation = {row.name for row in self.rows}, self.incarnation
        gone = self.gone | before - {row.name for row in copy.rows}
        self.__dict__.update(copy.__dict__)
        self.gone, self.incarnation, self.slots = gone, incarnation + 1, {}
        self.relays = {shard: replace(row, token=None, lease_until=0.0) for shard, row in self.relays.items()}

    # --- the relays' rows

    def shard_of(self, row: Row) -> int:
        return shard_of(row.key, len(self.relays))

    def published(self) -> bool:
        """Tell whether every committed row is behind its shard's position."""
        shards = self.relays
        return all(behind(row, shards[self.shard_of(row)].position) for row in self.rows)

    def holds(self) -> list[tuple[int, Hold]]:
        """Return the open holds, with their shards."""
        return [(shard, hold) for shard, row in self.relays.items() for hold in row.holds.values()]

    def change_holds(self, shard: int, changes: "list[HoldChange] | tuple[HoldChange, ...]") -> None:
        """Do what a save says of holds; an order that came in between stays."""
        holds = self.relays[shard].holds
        for change in changes:
            if change.hold is None:
                holds.pop(change.scope, None)
                continue
            there = holds.get(change.scope)
            asked = there is not None and there.asked and not (there.releasing or change.hold.releasing)
            holds[change.scope] = replace(change.hold, asked=asked)


@lru_cache(maxsize=4096)
def _parsed(snapshot: str) -> tuple[int, frozenset[int]]:
    _, xmax, running = snapshot.split(":")
    return int(xmax), frozenset(int(xid) for xid in running.split(",") if xid)


def visible(xid: int, snapshot: str) -> bool:
    """Tell what pg_visible_in_snapshot tells."""
    xmax, running = _parsed(snapshot)
    return xid < xmax and xid not in running


def behind(row: Row, position: Position) -> bool:
    """Tell whether *row* is published according to *position*."""
    if visible(row.xid, position.horizon):
        return True
    return position.target is not None and visible(row.xid, position.target) and row.seq <= position.progress
