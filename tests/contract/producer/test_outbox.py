"""What an outbox promises, through each of the six kinds of connection, on a real database."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

import psycopg
import pytest
from tests.support.accounts import AccountOpened, AmountMoved
from tests.support.writers import KINDS, Rows, Writer, opened

from packhorse.core.errors import (
    InvalidMessage,
    KeysLocked,
    NotReady,
    PayloadTooLarge,
    SchemaNotRegistered,
    UsageError,
    ValueMismatch,
)
from packhorse.core.message import DEFAULT_MAX_PAYLOAD_BYTES
from packhorse.producer import Outbox, Outgoing, Tombstone, message_context


class ChangedMyMind(Exception):
    """What makes a caller roll back to its savepoint."""


T = TypeVar("T")
MOVED = AmountMoved(account="a", amount=5)
WRONG = AmountMoved(account="a", amount="five")  # type: ignore[arg-type]

pytestmark = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def outbox() -> Outbox:
    return Outbox(origin="bank")


def through(kind: str, url: str, body: Callable[[Writer], Awaitable[T]]) -> T:
    """Run *body* on a new connection of *kind*."""

    async def run() -> T:
        async with opened(kind, url) as writer:
            return await body(writer)

    return asyncio.run(run())


def seen(url: str, query: str = "SELECT aggregateid FROM packhorse.outbox ORDER BY seq") -> Rows:
    """Return what another connection sees: what is committed."""
    with psycopg.connect(url) as connection:
        return connection.execute(query.encode()).fetchall()


@pytest.mark.case("B-01")
def test_a_rollback_leaves_nothing(kind: str, url: str, outbox: Outbox) -> None:
    """Fails when the outbox writes on a connection of its own, or commits."""

    async def body(writer: Writer) -> None:
        await writer.emit(outbox, MOVED, key="a")
        await writer.emit_many(outbox, [(MOVED, "b"), (MOVED, "c")], lock_key=True)
        await writer.rollback()
        await writer.emit(outbox, MOVED, key="after")
        await writer.commit()

    through(kind, url, body)
    assert seen(url) == [("after",)]


@pytest.mark.case("B-01")
def test_a_rollback_to_a_savepoint_takes_back_what_came_after_it(kind: str, url: str, outbox: Outbox) -> None:
    """Fails when rows are held back and written at the end of the transaction."""

    async def body(writer: Writer) -> None:
        await writer.emit(outbox, MOVED, key="kept")
        with suppress(ChangedMyMind):
            async with writer.savepoint():
                await writer.emit(outbox, MOVED, key="gone")
                await writer.emit_many(outbox, [(MOVED, "gone"), (MOVED, "gone")])
                raise ChangedMyMind
        await writer.emit(outbox, MOVED, key="too")
        assert [one.key for one in await writer.emitted()] == ["kept", "too"]
        await writer.commit()

    through(kind, url, body)
    assert seen(url) == [("kept",), ("too",)]


@pytest.mark.case("B-02")
def test_rows_are_in_the_callers_transaction_and_it_stays_the_callers_to_end(
    kind: str, url: str, outbox: Outbox
) -> None:
    """Fails when the outbox begins or commits a transaction, or SQLAlchemy does not know of the one that is open."""

    async def body(writer: Writer) -> None:
        await writer.emit(outbox, MOVED, key="first, before any statement of the caller")
        await writer.execute("INSERT INTO business VALUES (1)")
        await writer.emit_many(outbox, [(MOVED, "a"), (MOVED, "b")])
        assert seen(url) == []
        await writer.commit()

    through(kind, url, body)
    joined = "SELECT count(*) FROM packhorse.outbox o JOIN business b ON b.xmin = o.xid::xid"
    assert seen(url, joined) == [(3,)]


@pytest.mark.case("B-02")
def test_a_message_alone_is_committed_by_the_callers_commit(kind: str, url: str, outbox: Outbox) -> None:
    """Fails when SQLAlchemy's own transaction is not begun: its commit would then do nothing."""

    async def body(writer: Writer) -> None:
        await writer.emit(outbox, MOVED, key="alone")
        await writer.commit()

    through(kind, url, body)
    assert seen(url) == [("alone",)]


@pytest.mark.case("B-03")
def test_sequence_follows_the_calls(kind: str, url: str, outbox: Outbox) -> None:
    """Fails when emit_many's rows go in another order than they were given."""
    many = [(MOVED, f"{n:03}") for n in range(300)]
    mixed = [Outgoing(message=MOVED, key=f"m{n:02}", tenant=str(n % 3)) for n in range(30)]

    async def body(writer: Writer) -> list[UUID]:
        ids = [await writer.emit(outbox, MOVED, key="first")]
        ids += await writer.emit_many(outbox, many)
        ids += [await writer.emit(outbox, AccountOpened(account="a", owner="o", limit=1), key="middle")]
        ids += await writer.emit_many(outbox, [*mixed, Tombstone(of=AmountMoved, key="m30")])
        ids += [await writer.call(outbox, "emit_tombstone", AmountMoved, key="last")]
        await writer.commit()
        return ids

    ids = through(kind, url, body)
    rows = seen(url, "SELECT id, aggregateid, payload IS NULL FROM packhorse.outbox ORDER BY seq")
    assert [row[0] for row in rows] == ids
    assert [row[1] for row in rows] == [
        "first", *(key for _, key in many), "middle", *(f"m{n:02}" for n in range(31)), "last",
    ]  # fmt: skip
    assert [row[1] for row in rows if row[2]] == ["m30", "last"]


@pytest.mark.case("B-05")
@pytest.mark.parametrize("many", [False, True])
def test_a_wrong_value_leaves_no_row_and_a_usable_transaction(
    kind: str, url: str, outbox: Outbox, many: bool
) -> None:
    """Fails when the first rows of a call are sent before the last one is encoded."""

    async def body(writer: Writer) -> None:
        await writer.execute("INSERT INTO business VALUES (1)")
        arguments = ([*[(MOVED, "a")] * 6_000, (WRONG, "a")],) if many else (WRONG,)
        method, named = ("emit_many", {}) if many else ("emit", {"key": "a"})
        with pytest.raises(ValueMismatch, match=r"amount: given str 'five'; allowed: ") as caught:
            await writer.call(outbox, method, *arguments, **named)
        assert caught.value.path == "amount"
        await writer.commit()

    through(kind, url, body)
    assert seen(url) == []
    assert seen(url, "SELECT n FROM business") == [(1,)]


@pytest.mark.case("B-06")
def test_a_payload_over_the_limit_is_refused_at_the_write(kind: str, url: str, outbox: Outbox) -> None:
    """Fails when the limit is not asked for; the largest that is allowed goes in."""
    room = DEFAULT_MAX_PAYLOAD_BYTES - 5 - 3 - 1

    async def body(writer: Writer) -> None:
        await writer.emit(outbox, AmountMoved(account="x" * room, amount=1), key="fits")
        with pytest.raises(PayloadTooLarge, match=r"payload of 921601 bytes, the limit is 921600"):
            await writer.emit(outbox, AmountMoved(account="x" * (room + 1), amount=1), key="a")
        await writer.commit()

    through(kind, url, body)
    assert seen(url, "SELECT length(payload) FROM packhorse.outbox") == [(DEFAULT_MAX_PAYLOAD_BYTES,)]


@pytest.mark.case("B-07")
def test_a_tombstone_is_null_with_its_key_for_the_database_and_for_tests(
    kind: str, url: str, outbox: Outbox
) -> None:
    """Fails when a tombstone is written as an empty payload, or the test helpers show it as something else."""

    async def body(writer: Writer) -> None:
        await writer.call(outbox, "emit_tombstone", AmountMoved, key="a", headers={"why": "closed"})
        (one,) = await writer.emitted()
        assert (one.of, one.key, one.message, one.payload) == (AmountMoved, "a", None, None)
        assert one.headers == {"why": "closed"}
        await writer.commit()

    through(kind, url, body)
    columns = "aggregatetype, aggregateid, type, schema_version, payload IS NULL"
    assert seen(url, f"SELECT {columns} FROM packhorse.outbox") == [
        ("account", "a", "bank.AmountMoved", "2", True)
    ]


def test_everything_that_is_said_of_a_message_stands_in_its_row(kind: str, url: str, outbox: Outbox) -> None:
    given = UUID("019b76da-a800-7000-8000-000000000001")
    expires_at = datetime(2026, 7, 31, 12, 0, 0, 5, tzinfo=UTC)

    async def body(writer: Writer) -> None:
        with message_context(correlation_id="c", actor="ada", tenant="north"):
            await writer.emit(
                outbox, MOVED, key="ключ", id=given, headers={"a": "ü"}, causation_id="x", expires_at=expires_at
            )  # fmt: skip
            await writer.emit_many(outbox, [Outgoing(message=MOVED, key="ключ", headers={"a": "ü"})] * 2)
        first, *others = await writer.emitted()
        assert first.message == MOVED
        assert (first.id, first.key, first.headers, first.origin) == (given, "ключ", {"a": "ü"}, "bank")
        assert (first.correlation_id, first.causation_id, first.actor, first.tenant) == (
            "c",
            "x",
            "ada",
            "north",
        )
        assert first.expires_at == "2026-07-31T12:00:00.000005Z"
        assert [(one.key, one.headers, one.tenant) for one in others] == [("ключ", {"a": "ü"}, "north")] * 2
        await writer.commit()

    through(kind, url, body)
    late = "SELECT count(*) FROM packhorse.outbox WHERE created_at > clock_timestamp() AT TIME ZONE 'UTC'"
    assert seen(url, late) == [(0,)]


def test_a_later_lock_only_tries_and_a_refusal_leaves_the_transaction_usable(
    kind: str, url: str, outbox: Outbox
) -> None:
    async def body(writer: Writer) -> None:
        with psycopg.connect(url) as other:
            outbox.lock_keys(other, ["b"])
            await writer.call(outbox, "lock_keys", ["a", "c"])
            await writer.call(outbox, "lock_keys", ["c", "d"])
            with pytest.raises(KeysLocked, match=r"1 of 2 key slots .* lock_keys\("):
                await writer.call(outbox, "lock_keys", ["a", "b"])
            with pytest.raises(KeysLocked):
                await writer.emit(outbox, MOVED, key="b", lock_key=True)
        await writer.emit(outbox, MOVED, key="b", lock_key=True)
        await writer.commit()

    through(kind, url, body)
    assert seen(url) == [("b",)]


def test_locks_end_with_the_transaction_and_the_next_one_may_wait_again(
    kind: str, url: str, outbox: Outbox
) -> None:
    async def body(writer: Writer) -> None:
        for end in (writer.commit, writer.rollback):
            await writer.emit_many(outbox, [(MOVED, "a"), (MOVED, "b")], lock_key=True)
            await end()
            with psycopg.connect(url) as other:
                outbox.lock_keys(other, ["z"])
                outbox.lock_keys(other, ["a", "b"])

    through(kind, url, body)


def test_locks_taken_after_a_savepoint_go_with_it(kind: str, url: str, outbox: Outbox) -> None:
    async def body(writer: Writer) -> None:
        await writer.execute("SELECT 1")
        with suppress(ChangedMyMind):
            async with writer.savepoint():
                await writer.call(outbox, "lock_keys", ["a"])
                raise ChangedMyMind
        assert await writer.execute("SELECT coalesce(current_setting('packhorse.locked', true), '')") == [
            ("",)
        ]
        with psycopg.connect(url) as other:
            outbox.lock_keys(other, ["z"])
            outbox.lock_keys(other, ["a"])

    through(kind, url, body)


@pytest.mark.case("X-11")
def test_missing_tables_are_named_and_the_transaction_goes_on(
    kind: str, empty_database: str, outbox: Outbox
) -> None:
    """Fails when the tables are found missing by a statement that fails."""

    async def body(writer: Writer) -> None:
        await writer.execute("CREATE TABLE business (n int)")
        with pytest.raises(NotReady, match=r"table packhorse.outbox is missing .* `packhorse migrate up`"):
            await writer.emit(outbox, MOVED, key="a")
        with pytest.raises(NotReady, match="packhorse migrate up"):
            await writer.call(outbox, "lock_keys", ["a"])
        await writer.commit()

    through(kind, empty_database, body)
    assert seen(empty_database, "SELECT count(*) FROM business") == [(0,)]


def test_an_unregistered_schema_is_named_and_the_transaction_goes_on(
    kind: str, unregistered: str, outbox: Outbox
) -> None:
    async def body(writer: Writer) -> None:
        with pytest.raises(
            SchemaNotRegistered, match=r"bank.AmountMoved version 2 .*packhorse schemas register"
        ):
            await writer.emit(outbox, MOVED, key="a")
        await writer.register(AmountMoved)
        await writer.emit(outbox, MOVED, key="a")
        await writer.rollback()
        with pytest.raises(SchemaNotRegistered):
            await writer.emit(outbox, MOVED, key="a")

    through(kind, unregistered, body)


def test_the_id_is_remembered_once_it_is_committed(kind: str, url: str, outbox: Outbox) -> None:
    async def body(writer: Writer) -> None:
        await writer.emit(outbox, MOVED, key="a")
        await writer.execute("TRUNCATE packhorse.schema_version")
        await writer.emit(outbox, MOVED, key="a")

    through(kind, url, body)


def test_the_other_colour_is_refused(kind: str, url: str, outbox: Outbox) -> None:
    async def body(writer: Writer) -> None:
        writer.is_async = not writer.is_async
        with pytest.raises(UsageError, match="is not allowed here; pass a psycopg"):
            await writer.emit(outbox, MOVED, key="a")
        writer.is_async = not writer.is_async

    through(kind, url, body)


def test_a_refused_message_sends_nothing(kind: str, url: str, outbox: Outbox) -> None:
    async def body(writer: Writer) -> None:
        wrong: list[dict[str, Any]] = [
            {"key": 5},
            {"key": "a", "headers": {"a": 1}},
            {"key": "a", "actor": "\0"},
        ]
        for arguments in wrong:
            with pytest.raises(InvalidMessage):
                await writer.emit(outbox, MOVED, **arguments)
        assert await writer.emitted() == []

    through(kind, url, body)
