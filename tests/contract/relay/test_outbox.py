"""One suite on the simulated outbox and on the real one: what the relay's core may rest on."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol
from uuid import UUID

import psycopg
import pytest
from tests.simulation.relay.database import Database, Transaction
from tests.simulation.relay.outbox import SimOutbox
from tests.support.pgbouncer import Pooler
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.errors import DatabaseUnavailable
from packhorse.relay.deciding.commands import HoldChange, Save
from packhorse.relay.holds import Fault, Hold, Kind, Scope
from packhorse.relay.model import ID, SEQ, Batch, Position
from packhorse.relay.ports import Outbox
from packhorse.relay.postgres.outbox import PostgresOutbox

LIMIT = 3
LEASE = 60.0


class Writing(Protocol):
    """One writer's transaction."""

    def insert(self, key: str) -> str:
        """Insert a row and return its id."""

    def commit(self, *, flush: bool = True) -> None:
        """Commit, with or without waiting for the log."""

    def rollback(self) -> None:
        """Roll back."""


class World(Protocol):
    """A database, as writers and as relays see it."""

    def begin(self) -> Writing:
        """Begin a transaction of a writer."""

    def outbox(self) -> Outbox:
        """Return another relay's view."""

    def lose(self, outbox: Outbox) -> None:
        """Cut the connection of *outbox*."""

    def pass_time(self, seconds: float) -> None:
        """Let the database's clock go on."""


class SimWriting:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._transaction: Transaction = database.begin()

    def insert(self, key: str) -> str:
        seq = self._database.draw()
        name = str(UUID(int=seq))
        self._database.insert(self._transaction, seq, key, name)
        return name

    def commit(self, *, flush: bool = True) -> None:
        lsn = self._database.log_commit(self._transaction)
        if flush:
            self._database.flush(lsn)
        self._database.show(self._transaction, lsn)

    def rollback(self) -> None:
        self._database.abort(self._transaction)


class SimWorld:
    def __init__(self) -> None:
        self._database = Database()
        self._now = 0.0

    def begin(self) -> SimWriting:
        return SimWriting(self._database)

    def outbox(self) -> SimOutbox:
        return SimOutbox(self._database, 0, now=lambda: self._now, pause=lambda: None)

    def lose(self, outbox: Outbox) -> None:
        outbox.close()

    def pass_time(self, seconds: float) -> None:
        self._now += seconds


class RealWriting:
    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url)

    def insert(self, key: str) -> str:
        row = self._connection.execute(
            "INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, payload)"
            " VALUES (%s, 'topic', %s, 't.T', '1', 'x') RETURNING id::text",
            (SYSTEM_CHANCE.token(), key),
        ).fetchone()
        assert row is not None
        return str(row[0])

    def commit(self, *, flush: bool = True) -> None:
        if not flush:
            self._connection.execute("SET LOCAL synchronous_commit = off")
        self._connection.commit()
        self._connection.close()

    def rollback(self) -> None:
        self._connection.rollback()
        self._connection.close()


class RealWorld:
    def __init__(self, url: str) -> None:
        self._url = self.relay_url = url
        self._outboxes: list[PostgresOutbox] = []

    def begin(self) -> RealWriting:
        return RealWriting(self._url)

    def outbox(self) -> PostgresOutbox:
        outbox = PostgresOutbox(self.relay_url, "packhorse", batch_rows=LIMIT)
        self._outboxes.append(outbox)
        return outbox

    def lose(self, outbox: Outbox) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = 'packhorse-relay'"
            )

    def pass_time(self, seconds: float) -> None:
        """Move the end of the lease instead of waiting for it."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(
                "UPDATE packhorse.relay SET lease_until = lease_until - %s * interval '1 second'", (seconds,)
            )

    def close(self) -> None:
        for outbox in self._outboxes:
            outbox.close()


class PooledWorld(RealWorld):
    """The relays come through a pooler, which lends each transaction another server connection."""

    def __init__(self, url: str, pooler: Pooler) -> None:
        super().__init__(url)
        self._pooler = pooler
        self.relay_url = pooler.url(url)
        pooler.lend_both(url)

    def lose(self, outbox: Outbox) -> None:
        self._pooler.cut_clients(self._url)


@pytest.fixture(params=["simulated", "real", "pooled"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "simulated":
        yield SimWorld()
        return
    url = request.getfixturevalue("database")
    pooled = request.param == "pooled"
    real = PooledWorld(url, request.getfixturevalue("pooler")) if pooled else RealWorld(url)
    yield real
    real.close()


@pytest.fixture
def outbox(world: World) -> Outbox:
    """Own the shard at the beginning."""
    outbox = world.outbox()
    assert outbox.own(TOKEN, "contract", LEASE) is not None
    return outbox


TOKEN = UUID(int=7)
OTHER = UUID(int=8)


def start(outbox: Outbox) -> Position:
    owned = outbox.own(TOKEN, "contract", LEASE)
    assert owned is not None
    return owned.position


def ids(batch: Batch) -> list[str]:
    return [row[ID] for row in batch.rows]


def walk(
    outbox: Outbox, position: Position, *, between: Callable[[], None] = lambda: None
) -> tuple[list[str], Position]:
    """Return the ids of one whole cycle from *position*, and the position behind it."""
    found: list[str] = []
    last = 0
    while True:
        batch = outbox.fetch(position, LIMIT)
        assert len(batch.rows) <= LIMIT
        for row in batch.rows:
            assert row[SEQ] > last, "rows of one target come in seq order"
            last = row[SEQ]
        found += ids(batch)
        position = batch.end(len(batch.rows))
        between()
        if batch.complete:
            return found, position


def committed(world: World, *keys: str) -> list[str]:
    writing = world.begin()
    names = [writing.insert(key) for key in keys]
    writing.commit()
    return names


def test_a_cycle_brings_each_committed_row_once_and_the_next_brings_none(
    world: World, outbox: Outbox
) -> None:
    first, second = committed(world, "a", "b"), committed(world, "a")
    found, position = walk(outbox, start(outbox))
    assert found == first + second
    assert walk(outbox, position)[0] == []


def test_a_cycle_of_many_batches_holds_on_to_its_target(world: World, outbox: Outbox) -> None:
    names = [name for _ in range(4) for name in committed(world, "a", "b")]
    later: list[str] = []
    found, position = walk(outbox, start(outbox), between=lambda: later.extend(committed(world, "c")))
    assert found == names
    assert walk(outbox, position)[0] == later


@pytest.mark.case("R-01")
def test_a_row_that_commits_late_comes_in_a_following_cycle(world: World, outbox: Outbox) -> None:
    """Fails when a cycle reads from a seq or from the horizon's xmax alone."""
    slow = world.begin()
    early = slow.insert("a")
    quick = committed(world, "b")
    found, position = walk(outbox, start(outbox))
    assert found == quick
    slow.commit()
    assert walk(outbox, position)[0] == [early]


@pytest.mark.case("R-03")
def test_late_rows_and_new_ones_share_a_large_cycle_in_seq_order(world: World, outbox: Outbox) -> None:
    one, two = world.begin(), world.begin()
    late = [one.insert("a"), two.insert("b"), one.insert("a")]
    first = committed(world, "c")
    found, position = walk(outbox, start(outbox))
    assert found == first
    middle = [one.insert("a"), two.insert("b")]
    fresh = [name for _ in range(3) for name in committed(world, "d", "e")]
    last = [two.insert("b")]
    one.commit()
    two.commit()
    assert walk(outbox, position)[0] == [*late, *middle, *fresh, *last]


@pytest.mark.case("R-03")
def test_a_transaction_that_stays_open_holds_up_nobody(world: World, outbox: Outbox) -> None:
    """Fails when the cycle stops at the oldest running transaction."""
    long = world.begin()
    kept = [long.insert("a") for _ in range(5)]
    position = start(outbox)
    for _ in range(4):
        names = committed(world, "b", "b")
        found, position = walk(outbox, position)
        assert found == names
    long.commit()
    assert walk(outbox, position)[0] == kept


@pytest.mark.case("B-01")
def test_a_rolled_back_row_never_comes(world: World, outbox: Outbox) -> None:
    gone = world.begin()
    gone.insert("a")
    position = walk(outbox, start(outbox))[1]
    gone.rollback()
    assert walk(outbox, position)[0] == []


@pytest.mark.case("B-03")
def test_rows_of_one_transaction_keep_the_order_of_the_calls(world: World, outbox: Outbox) -> None:
    names = committed(world, *"kkkkkkkk")
    assert walk(outbox, start(outbox))[0] == names


@pytest.mark.case("R-04")
def test_another_relay_goes_on_in_the_middle_of_a_saved_cycle(world: World, outbox: Outbox) -> None:
    """Fails when progress is read without its target: rows committed since would be passed over."""
    slow = world.begin()
    early = slow.insert("a")
    names = [name for _ in range(3) for name in committed(world, "a", "b")]
    at = start(outbox)
    batch = outbox.fetch(at, LIMIT)
    half = batch.end(2)
    assert outbox.save(TOKEN, Save(at, half, 2))
    slow.commit()
    outbox.release(TOKEN)
    successor = world.outbox()
    owned = successor.own(OTHER, "successor", LEASE)
    assert owned is not None
    assert owned.position == half
    found, position = walk(successor, owned.position)
    assert ids(batch)[:2] + found == names
    assert walk(successor, position)[0] == [early]


def test_a_lease_is_taken_when_it_is_free_over_or_ones_own(world: World, outbox: Outbox) -> None:
    other = world.outbox()
    assert other.own(OTHER, "other", LEASE) is None
    again = outbox.own(TOKEN, "contract", LEASE)
    assert again is not None
    assert again.epoch == 1
    world.pass_time(LEASE + 1)
    taken = other.own(OTHER, "other", LEASE)
    assert taken is not None
    assert taken.epoch == 2
    assert outbox.own(TOKEN, "contract", LEASE) is None
    outbox.release(TOKEN)
    assert other.own(OTHER, "other", LEASE) is not None
    other.release(OTHER)
    assert outbox.own(TOKEN, "contract", LEASE) is not None


@pytest.mark.case("R-12")
def test_a_save_needs_the_token_and_the_old_value(world: World, outbox: Outbox) -> None:
    """Fails when SAVE compares only one of them."""
    committed(world, "a")
    at = start(outbox)
    position = walk(outbox, at)[1]
    assert not outbox.save(OTHER, Save(at, position, 1))
    assert not outbox.save(TOKEN, Save(position, position, 1))
    assert outbox.save(TOKEN, Save(at, position, 1))
    assert not outbox.save(TOKEN, Save(at, position, 1))
    assert start(outbox) == position


@pytest.mark.case("R-19")
def test_an_unflushed_commit_is_told_and_flushed_on_demand(world: World, outbox: Outbox) -> None:
    """Fails when the insert position is read before the target, or a flush is taken for granted."""
    position = start(outbox)

    def unflushed() -> Batch | None:
        nonlocal position
        writing = world.begin()
        writing.insert("a")
        writing.commit(flush=False)
        batch = outbox.fetch(position, LIMIT)
        assert len(batch.rows) == 1
        position = batch.end(1)
        return batch if batch.unflushed is not None else None

    batch = eventually(unflushed, what="a fetch between a commit without flush and the next flush")
    assert batch is not None
    assert batch.unflushed is not None
    outbox.flush_log()
    assert outbox.log_reached(batch.unflushed)


def test_trouble_is_written_by_the_owner_alone(world: World, outbox: Outbox) -> None:
    assert outbox.record_trouble(TOKEN, "row 1 is too large")
    assert not outbox.record_trouble(OTHER, None)
    owned = outbox.own(TOKEN, "contract", LEASE)
    assert owned is not None
    assert owned.trouble == "row 1 is too large"


def test_what_waits_is_counted_behind_the_position(world: World, outbox: Outbox) -> None:
    for _ in range(3):
        committed(world, "a", "b")
    at = start(outbox)
    assert outbox.lag(at)[0] == 6
    half = outbox.fetch(at, LIMIT).end(2)
    assert outbox.lag(half)[0] == 4
    assert outbox.lag(walk(outbox, at)[1])[0] == 0


def test_without_its_connection_only_own_begins_anew(world: World, outbox: Outbox) -> None:
    """Fails when another method reconnects by itself: it would go on with what the last connection told."""
    at = start(outbox)
    world.lose(outbox)
    calls: list[Callable[[], object]] = [
        lambda: outbox.fetch(at, LIMIT),
        lambda: outbox.save(TOKEN, Save(at, at, 0)),
        outbox.flush_log,
        lambda: outbox.log_reached("0/0"),
        lambda: outbox.record_trouble(TOKEN, None),
        lambda: outbox.release(TOKEN),
    ]
    for call in calls:
        with pytest.raises(DatabaseUnavailable):
            call()
    assert start(outbox) == at


@pytest.mark.case("R-10")
def test_a_hold_is_saved_however_long_its_key_and_its_topic_are(outbox: Outbox) -> None:
    """Fails when the table's index holds the texts themselves: an entry has an end, and a hold that can't be saved stops all."""
    position = start(outbox)
    scopes = [
        Scope(kind=Kind.KEY, aggregatetype="orders", aggregateid="k" * 20_000),
        Scope(kind=Kind.TOPIC, aggregatetype="t" * 20_000),
    ]
    faults = [
        Fault(scope=scope, code="too_large", reason="r", heals=False, topic=scope.aggregatetype)
        for scope in scopes
    ]
    holds = [Hold(fault=fault, position=position) for fault in faults]
    for changed in (holds, [replace(hold, tries=1) for hold in holds]):
        assert outbox.save(
            TOKEN, Save(position, position, 0, [HoldChange(hold.scope, hold) for hold in changed])
        )
        assert list(outbox.orders().holds) == changed
    assert outbox.save(TOKEN, Save(position, position, 0, [HoldChange(hold.scope, None) for hold in holds]))
    assert outbox.orders().holds == ()
