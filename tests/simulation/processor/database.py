"""
The processor's database, simulated as far as its statements need it: READ COMMITTED, row locks, what a crash takes away.

A statement sees what was committed when it began, and what its own transaction wrote. It waits for a row that another
transaction has written or locked, and then looks at that row anew, at nothing else. What the store's statements say stands in
`statements`; the store itself is the product's.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from types import SimpleNamespace
from typing import Any

import psycopg
from tests.simulation.processor.hub import Actor, Hub, Killed

from packhorse.core.errors import DatabaseUnavailable
from packhorse.processor.running.endings import Contention

Row = dict[str, Any]
Name = tuple[str, Any]
TABLES = (
    "inbox",
    "retry",
    "quarantined",
    "key",
    "parked",
    "watermark",
    "in_hand",
    "started",
    "failed",
)
LOCK_WAIT = 2.0
IDLE = 4.0
"""Seconds after which the server ends a transaction that lies idle; below the group's session time-out."""


@dataclass(slots=True)
class Tables:
    """All that is committed; rows are never changed, only replaced. `effects` is the handlers' own table, in commit order."""

    rows: dict[str, dict[Any, Row]] = field(default_factory=lambda: {name: {} for name in TABLES})
    effects: list[Any] = field(default_factory=list)

    def copy(self) -> "Tables":
        return Tables({name: dict(rows) for name, rows in self.rows.items()}, list(self.effects))


class Blocked(Exception):
    """The statement waits for another transaction."""


@dataclass(slots=True, eq=False)
class Transaction:
    """What a transaction has written and locked."""

    wrote: dict[str, dict[Any, Row | None]] = field(default_factory=dict)
    effects: list[Any] = field(default_factory=list)
    locks: set[Name] = field(default_factory=set)


class Database:
    """One server; a restore makes it another incarnation."""

    def __init__(self, hub: Hub, *, lazy: bool) -> None:
        self.hub = hub
        self.tables = Tables()
        self.incarnation = 1
        self.up = True
        self.lazy = lazy
        self.flushed = Tables()
        self.locks: dict[Name, Transaction] = {}
        self.sessions: list[Session] = []
        self.waiting: list[Actor] = []
        self.xids = 0
        self.backups: list[Tables] = []
        self.ever_parked: set[Any] = set()
        self.done: Callable[[str, Row, Any], None] = lambda name, values, answer: None

    def flush(self) -> None:
        """Write the log to disk: what is committed survives a crash."""
        if self.lazy:
            self.flushed = self.tables.copy()

    def end(self, transaction: Transaction) -> None:
        """Let go of what a transaction has locked."""
        for name in transaction.locks:
            self.locks.pop(name, None)
        transaction.locks.clear()
        waiting, self.waiting = self.waiting, []
        for actor in waiting:
            self.hub.wake(actor)

    def commit(self, transaction: Transaction) -> None:
        for table, rows in transaction.wrote.items():
            into = self.tables.rows[table]
            for key, row in rows.items():
                if row is None:
                    into.pop(key, None)
                else:
                    into[key] = row
        self.tables.effects.extend(transaction.effects)
        self.ever_parked.update(transaction.wrote.get("parked", ()))
        self.end(transaction)

    def cut(self) -> None:
        """End every session; what was not committed is gone."""
        for session in list(self.sessions):
            session.lose()

    def crash(self) -> None:
        """Lose the tail of commits that were not on disk yet."""
        self.cut()
        if self.lazy:
            self.tables = self.flushed.copy()

    def restore(self) -> None:
        """Go back to the last backup, as another incarnation."""
        self.cut()
        self.tables = self.backups.pop()
        self.flushed = self.tables.copy()
        self.incarnation += 1


class Session:
    """One connection; what the product's adapter does with a psycopg connection, it does with this."""

    def __init__(self, database: Database, faults: Callable[..., bool]) -> None:
        self.database = database
        self.hub = database.hub
        self.life = database.hub.turn.life if database.hub.turn is not None else None
        self._faults = faults
        self.pipe = SimpleNamespace(failed=None)
        self.state = "none"
        self.transaction: Transaction | None = None
        self.xid = ""
        self.canceled = False
        self.is_spared = False
        self.busy: Actor | None = None
        self._savepoint: Transaction | None = None
        self._snapshot: Tables | None = None
        self._idle = 0
        database.sessions.append(self)

    @property
    def closed(self) -> bool:
        return self.state == "lost"

    def end(self) -> None:
        self.lose()

    def terminate(self) -> None:
        self.lose()

    def cancel_safe(self, timeout: float) -> None:
        """Cancel the statement that runs; as often as not that comes too late, or is lost."""
        del timeout
        if self.hub.random.random() < 0.5:
            self.canceled = True
            self.hub.wake(self.busy)

    def lose(self) -> None:
        """Be cut: the server rolls the transaction back."""
        if self.state == "lost":
            return
        self.state = "lost"
        self.database.sessions.remove(self)
        if self.transaction is not None:
            self.database.end(self.transaction)
            self.transaction = None
        self.hub.wake(self.busy)

    # What the adapter asks for.

    def say(self, command: str) -> None:
        """Execute a command around transactions and savepoints."""
        self.reach(command)
        if command == "BEGIN":
            self.transaction = Transaction()
            self.database.xids += 1
            self.xid = str(self.database.xids)
            self.state = "open"
            self._watch()
        elif command == "COMMIT":
            failed, transaction = self.state == "failed", self.transaction
            self.transaction, self.state = None, "none"
            if transaction is not None:
                self.database.end(transaction) if failed else self.database.commit(transaction)
        elif command.startswith("ROLLBACK TO"):
            self._to_savepoint()
        elif command == "ROLLBACK":
            transaction, self.transaction, self.state = self.transaction, None, "none"
            if transaction is not None:
                self.database.end(transaction)
        else:
            self._set_savepoint()
        self.answered(command)

    def _set_savepoint(self) -> None:
        now = self.transaction
        assert now is not None
        wrote = {table: dict(rows) for table, rows in now.wrote.items()}
        self._savepoint = Transaction(wrote, list(now.effects), set(now.locks))

    def _to_savepoint(self) -> None:
        now, then = self.transaction, self._savepoint
        assert now is not None
        assert then is not None
        gone = now.locks - then.locks
        for name in gone:
            self.database.locks.pop(name, None)
        now.locks -= gone
        now.wrote = {table: dict(rows) for table, rows in then.wrote.items()}
        now.effects = list(then.effects)
        self.state = "open"

    def _watch(self) -> None:
        """Let the server end the transaction when it lies idle for too long."""
        self._idle += 1
        mark = self._idle

        def look() -> None:
            if self.state == "open" and self._idle == mark and self.busy is None:
                self.lose()

        self.hub.after(IDLE, look)

    def execute(
        self, statement: Callable[["Session", Row], tuple[list[Any], int]], name: str, values: Row
    ) -> Any:
        """Execute one statement, in the open transaction or in one of its own."""
        self.reach(name)
        own = self.transaction is None
        if own:
            self.transaction = Transaction()
        try:
            answer = self._wait_for(statement, values)
        except psycopg.errors.UniqueViolation:
            self._failed(own)
            raise
        except Contention:
            self._failed(own)
            raise
        finally:
            self._snapshot = None
        if own:
            assert self.transaction is not None
            self.database.commit(self.transaction)
            self.transaction = None
            self.database.done(name, values, answer)
        else:
            self._watch()
        self.answered(name)
        return answer

    def _failed(self, own: bool) -> None:
        if own and self.transaction is not None:
            self.database.end(self.transaction)
            self.transaction = None
        elif self.state == "open":
            self.state = "failed"

    def _wait_for(self, statement: Callable[["Session", Row], Any], values: Row) -> Any:
        deadline = self.hub.now + LOCK_WAIT
        while True:
            try:
                return statement(self, values)
            except Blocked:
                if self._snapshot is None:
                    self._snapshot = self.database.tables.copy()
            if self.hub.now >= deadline:
                raise Contention("lock timeout")
            assert self.hub.turn is not None
            self.database.waiting.append(self.hub.turn)
            self._give_way(deadline)

    def _give_way(self, until: float) -> None:
        self.busy = self.hub.turn
        try:
            self.hub.wait(until)
        finally:
            self.busy = None
        self._check()

    def _check(self) -> None:
        if self.state == "lost" or not self.database.up:
            self.lose()
            raise DatabaseUnavailable("the connection was lost")
        if self.canceled:
            self.canceled = False
            if self.transaction is not None:
                self.state = "failed"
            raise Contention("canceled")

    def reach(self, name: str) -> None:
        """Come to the server, later; or be cut on the way."""
        self._give_way(self.hub.now + self.hub.world.latency())
        if self.state == "failed" and not name.startswith(("ROLLBACK", "COMMIT")):
            raise psycopg.errors.InFailedSqlTransaction("failed")
        self._strike("before", name)

    def answered(self, name: str) -> None:
        """Get the answer; or be cut, though it was done."""
        self._strike("after", name)

    def _strike(self, when: str, name: str) -> None:
        if self.is_spared:
            return
        if self._faults(f"connection cut {when} {name}"):
            self.lose()
            raise DatabaseUnavailable("cut")
        if self._faults(f"killed {when} {name}", 0.003):
            self.hub.world.kill_mine()
        if self._faults(f"frozen {when} {name}", 0.2 if name == "claim_key" else 0.002):
            self.hub.world.freeze_mine()

    def nap(self, seconds: float) -> None:
        """Let a handler take its time with a statement."""
        self._give_way(self.hub.now + seconds)

    # What statements are made of.

    def see(self, table: str, key: Any) -> Row | None:
        """Return the row as this statement sees it."""
        assert self.transaction is not None
        wrote = self.transaction.wrote.get(table)
        if wrote is not None and key in wrote:
            return wrote[key]
        return (self._snapshot or self.database.tables).rows[table].get(key)

    def scan(self, table: str) -> Iterator[tuple[Any, Row]]:
        """Yield all rows as this statement sees them."""
        assert self.transaction is not None
        seen = (self._snapshot or self.database.tables).rows[table]
        wrote = self.transaction.wrote.get(table)
        if not wrote:
            yield from list(seen.items())
            return
        merged = {**seen, **wrote}
        yield from ((key, row) for key, row in merged.items() if row is not None)

    def newest(self, table: str, key: Any) -> Row | None:
        """Lock the row, or the place for it, and return what stands there now."""
        transaction, locks = self.transaction, self.database.locks
        assert transaction is not None
        holder = locks.get((table, key))
        if holder is not transaction:
            if holder is not None:
                raise Blocked
            locks[table, key] = transaction
            transaction.locks.add((table, key))
        wrote = transaction.wrote.get(table)
        if wrote is not None and key in wrote:
            return wrote[key]
        return self.database.tables.rows[table].get(key)

    def is_locked(self, table: str, key: Any) -> bool:
        """Return whether another transaction holds the row."""
        holder = self.database.locks.get((table, key))
        return holder is not None and holder is not self.transaction

    def seize(self, table: str, key: Any, match: Callable[[Row], bool] = lambda row: True) -> Row | None:
        """Lock the row if it matches as this statement sees it, and return it if it still does."""
        row = self.see(table, key)
        if row is None or not match(row):
            return None
        row = self.newest(table, key)
        return row if row is not None and match(row) else None

    def put(self, table: str, key: Any, row: Row | None) -> None:
        """Write a row that is locked."""
        assert self.transaction is not None
        self.transaction.wrote.setdefault(table, {})[key] = row

    def insert(self, table: str, key: Any, row: Row) -> None:
        """Insert a row. Raises UniqueViolation."""
        if self.newest(table, key) is not None:
            raise psycopg.errors.UniqueViolation(f"{table} {key}")
        self.put(table, key, row)

    def effect(self, one: Any) -> None:
        """Do what a handler does."""
        if self.transaction is None or self.state != "open":
            raise DatabaseUnavailable("no transaction")
        self.transaction.effects.append(one)


__all__ = ["Blocked", "Database", "Killed", "Session", "Tables", "inf"]
