"""Topic order is commit order for writers that lock the key first: raced on a real database."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import IsolationLevel
from psycopg import errors as pg
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from tests.support.accounts import AmountMoved
from tests.support.wait import eventually
from tests.support.writers import alchemy

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.errors import KeysLocked
from packhorse.producer import Outbox
from packhorse.producer.slots import SLOTS, slot_of

Connection = psycopg.Connection[Any]
OUTBOX = Outbox(origin="bank")


class Base(DeclarativeBase):
    """Root of the bank's tables."""


class Account(Base):
    """An account, changed through the ORM."""

    __tablename__ = "account"
    name: Mapped[str] = mapped_column(primary_key=True)
    balance: Mapped[int]


@pytest.fixture
def engine(url: str) -> Iterator[sa.Engine]:
    engine = sa.create_engine(alchemy(url), pool_size=10)
    yield engine
    engine.dispose()


def change_and_emit(session: Session, name: str) -> None:
    """Do what an application does: change the object, emit; the session holds the UPDATE back until it flushes."""
    account = session.get_one(Account, name)
    account.balance = Account.balance + 1
    OUTBOX.emit(session, AmountMoved(account=name, amount=1), key=name)


def at_once(count: int, work: Callable[[int], None]) -> None:
    """Run *work* in *count* threads that begin together; raise what one of them raised."""
    start = threading.Barrier(count)

    def run(n: int) -> None:
        start.wait(timeout=10)
        work(n)

    with ThreadPoolExecutor(count) as pool:
        for future in [pool.submit(run, n) for n in range(count)]:
            future.result(timeout=60)


def waits_for_a_lock(url: str) -> bool:
    with psycopg.connect(url) as connection:
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        return connection.execute(waiting).fetchone() == (1,)


@pytest.mark.case("B-12")
def test_the_second_session_draws_its_sequence_value_after_the_first_commit(
    url: str, engine: sa.Engine
) -> None:
    """Fails when emit does not flush the session first: the second would then emit before it meets the row lock."""
    with Session(engine) as first, Session(engine) as second, ThreadPoolExecutor(1) as pool:
        change_and_emit(first, "a")
        later = pool.submit(change_and_emit, second, "a")
        eventually(lambda: waits_for_a_lock(url), what="the second session waits for the row lock")
        assert not later.done()
        first.commit()
        later.result(timeout=10)
        second.commit()
    assert order_of_topic(url) == order_of_commits(url)


@pytest.mark.case("B-12")
def test_racing_sessions_leave_the_topic_in_commit_order(url: str, engine: sa.Engine) -> None:
    """Fails (most of the time) when emit does not flush the session first."""

    def work(n: int) -> None:
        for turn in range(20):
            with Session(engine) as session:
                change_and_emit(session, "ab"[(n + turn) % 2])
                session.commit()

    at_once(6, work)
    topic = order_of_topic(url)
    assert sum(map(len, topic.values())) == 120
    assert topic == order_of_commits(url)


def order_of_topic(url: str) -> dict[str, list[str]]:
    return grouped(url, "SELECT aggregateid, xid::text FROM packhorse.outbox o ORDER BY o.seq")


def order_of_commits(url: str) -> dict[str, list[str]]:
    return grouped(url, "SELECT name, xid::text FROM history ORDER BY balance_after")


def grouped(url: str, query: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    with psycopg.connect(url) as connection:
        for name, value in connection.execute(query.encode()):
            found[name].append(value)
    return dict(found)


@pytest.mark.case("B-12")
def test_many_locked_keys_race_without_deadlock_and_keep_commit_order(url: str) -> None:
    """
    Fails when locks are taken after the rows, or not at all, or in the order of the call (deadlocks).

    Each transaction reads the turns of its keys after it has emitted, without a lock, and counts them up at its end:
    were two of a key open at once, or committed in another order than their sequence values were drawn, turns would
    repeat or go back.
    """
    keys = [f"k{n}" for n in range(40)]
    with psycopg.connect(url) as connection:
        connection.cursor().executemany("INSERT INTO turn VALUES (%s, 0)", [(key,) for key in keys])

    def work(n: int) -> None:
        with psycopg.connect(url) as connection:
            for _ in range(15):
                take_a_turn(connection, sorted(keys, key=lambda _: SYSTEM_CHANCE.fraction())[:15])

    at_once(6, work)
    turns = grouped(url, "SELECT t.key, t.n FROM packhorse.outbox o JOIN taken t USING (id) ORDER BY o.seq")
    assert sum(map(len, turns.values())) == 6 * 15 * 15
    assert turns == {key: list(range(len(turns[key]))) for key in turns}


def take_a_turn(connection: Connection, keys: list[str]) -> None:
    moved = AmountMoved(account="a", amount=1)
    with connection.transaction():
        ids = OUTBOX.emit_many(connection, [(moved, key) for key in keys], lock_key=True)
        turns = dict(connection.execute("SELECT key, n FROM turn WHERE key = ANY(%s)", (keys,)).fetchall())
        connection.cursor().executemany(
            "INSERT INTO taken VALUES (%s, %s, %s)",
            [(one, key, turns[key]) for one, key in zip(ids, keys, strict=True)],
        )
        connection.execute("UPDATE turn SET n = n + 1 WHERE key = ANY(%s)", (sorted(keys),))


@pytest.mark.case("B-12")
def test_fifty_thousand_keys_hold_no_more_locks_than_there_are_slots(url: str) -> None:
    """Fails when keys are locked one by one: the server's lock table (64 a connection, by default) would be full."""
    moved = AmountMoved(account="a", amount=1)
    with psycopg.connect(url) as connection:
        OUTBOX.lock_keys(connection, (str(n) for n in range(50_000)))
        OUTBOX.emit_many(connection, [(moved, str(n)) for n in range(5_000)], lock_key=True)
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        assert connection.execute(held).fetchone() == (SLOTS,)


@pytest.mark.case("B-12")
def test_a_writer_that_locks_late_is_told_at_once_instead_of_deadlocking(url: str) -> None:
    """Fails when a later lock_keys of a transaction waits: each of the two would wait for the other."""
    with psycopg.connect(url) as first, psycopg.connect(url) as second:
        for connection in (first, second):
            connection.execute("SET lock_timeout = '5s'")
        OUTBOX.lock_keys(first, ["a"])
        OUTBOX.lock_keys(second, ["b"])
        for connection, key in ((first, "b"), (second, "a")):
            with pytest.raises(KeysLocked) as caught:
                OUTBOX.emit(connection, AmountMoved(account=key, amount=1), key=key, lock_key=True)
            assert caught.value.retryable
            assert key not in str(caught.value).partition("key slots")[0]
        second.rollback()
        OUTBOX.lock_keys(first, ["b"])


@pytest.mark.case("B-12")
@pytest.mark.parametrize("level", list(IsolationLevel), ids=lambda one: one.name)
def test_the_order_of_locked_keys_is_that_of_commits_in_every_isolation(
    url: str, level: IsolationLevel
) -> None:
    """Fails when the sequence value is drawn in the statement that waits. What was read is older than the lock, as docs say."""
    moved = AmountMoved(account="a", amount=1)
    with psycopg.connect(url) as first, psycopg.connect(url) as second, ThreadPoolExecutor(1) as pool:
        first.isolation_level = second.isolation_level = level
        OUTBOX.lock_keys(first, ["a"])
        later = pool.submit(OUTBOX.emit, second, moved, key="a", lock_key=True)
        eventually(lambda: waits_for_a_lock(url), what="the second writer waits for the key")
        ids = [OUTBOX.emit(first, moved, key="a")]
        first.commit()
        ids.append(later.result(timeout=10))
        (seen,) = second.execute("SELECT count(*) FROM packhorse.outbox").fetchone() or (None,)
        second.commit()
    assert grouped(url, "SELECT aggregateid, id FROM packhorse.outbox o ORDER BY o.seq") == {"a": ids}
    reads_anew = level in {IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED}
    assert seen == (2 if reads_anew else 1)


def test_the_first_lock_of_a_transaction_waits_and_obeys_the_lock_timeout(url: str) -> None:
    with psycopg.connect(url) as first, psycopg.connect(url) as second:
        OUTBOX.lock_keys(first, ["a"])
        second.execute("SET LOCAL lock_timeout = '50ms'")
        with pytest.raises(pg.LockNotAvailable):
            OUTBOX.lock_keys(second, ["a"])


def test_keys_of_one_slot_are_locked_once(url: str) -> None:
    same = next(str(n) for n in range(10_000) if slot_of(str(n)) == slot_of("a"))
    with psycopg.connect(url) as connection:
        OUTBOX.lock_keys(connection, ["a", same, "a"])
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        assert connection.execute(held).fetchone() == (1,)
