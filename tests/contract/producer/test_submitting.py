"""What an outbox promises of jobs, through each of the six kinds of connection, on a real database."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import psycopg
import pytest
from tests.support.accounts import AccountOpened, AmountMoved
from tests.support.writers import KINDS, Rows, Writer, opened

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import (
    InvalidMessage,
    NotReady,
    PayloadTooLarge,
    RequestKeyConflict,
    SchemaNotRegistered,
    UnknownId,
    ValueMismatch,
)
from packhorse.core.jobs import IllegalTransition
from packhorse.producer import Cancelling, JobDraft, JobHandle, JobReference, Outbox, message_context
from packhorse.schemas.decode import Decoder
from packhorse.testing.emitted import Table


class ChangedMyMind(Exception):
    """What makes a caller roll back to its savepoint."""


T = TypeVar("T")
MOVED = AmountMoved(account="a", amount=5)
OTHER = AmountMoved(account="a", amount=6)
WRONG = AmountMoved(account="a", amount="five")  # type: ignore[arg-type]
HOUR = timedelta(hours=1)
NAIVE = datetime(2026, 7, 31, tzinfo=UTC).replace(tzinfo=None)
TABLES = ("job", "job_transition", "job_request", "job_waiting", "job_due", "outbox")

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


def seen(url: str, query: str) -> Rows:
    """Return what another connection sees: what is committed."""
    with psycopg.connect(url) as connection:
        return connection.execute(query.encode()).fetchall()


def counted(url: str) -> dict[str, int]:
    """Return how many rows each table has that a job may have rows in."""
    return {table: seen(url, f"SELECT count(*) FROM packhorse.{table}")[0][0] for table in TABLES}


async def submit(writer: Writer, outbox: Outbox, job: AmountMoved = MOVED, **named: Any) -> JobHandle[Any]:
    found: JobHandle[Any] = await writer.call(outbox, "submit", job, **named)
    return found


async def submit_each_way(writer: Writer, outbox: Outbox) -> None:
    """Submit a job with every kind of row."""
    await submit(writer, outbox)
    await submit(writer, outbox, request_key="k", one_waiting="w", tenant="north")
    await submit(writer, outbox, not_before=SYSTEM_CLOCK.now() + HOUR)
    await writer.call(outbox, "submit_many", [JobDraft(input=MOVED), JobDraft(input=MOVED, request_key="m")])


@pytest.mark.case("B-01")
def test_a_rollback_leaves_neither_job_nor_message(kind: str, url: str, outbox: Outbox) -> None:
    """Fails when a job is written on a connection of the outbox's own, or its history outside of the caller's transaction."""

    async def body(writer: Writer) -> None:
        await submit_each_way(writer, outbox)
        await writer.rollback()
        await writer.commit()

    through(kind, url, body)
    assert counted(url) == dict.fromkeys(TABLES, 0)


@pytest.mark.case("B-01")
def test_a_rollback_to_a_savepoint_takes_back_what_came_after_it(kind: str, url: str, outbox: Outbox) -> None:
    """Fails when jobs are held back and written at the end of the transaction, or a request key outlives its job."""

    async def body(writer: Writer) -> UUID:
        kept = await submit(writer, outbox)
        with suppress(ChangedMyMind):
            async with writer.savepoint():
                await submit_each_way(writer, outbox)
                raise ChangedMyMind
        again = await submit(writer, outbox, request_key="k", one_waiting="w", tenant="north")
        assert again.is_new
        await writer.commit()
        return kept.id

    kept = through(kind, url, body)
    assert counted(url) == {
        "job": 2, "job_transition": 2, "job_request": 1, "job_waiting": 1, "job_due": 0, "outbox": 2,
    }  # fmt: skip
    assert (kept,) in seen(url, "SELECT id FROM packhorse.job")


@pytest.mark.case("B-02")
def test_a_job_is_in_the_callers_transaction_and_it_stays_the_callers_to_end(
    kind: str, url: str, outbox: Outbox
) -> None:
    """Fails when submitting begins or commits a transaction, or SQLAlchemy does not know of the one that is open."""

    async def body(writer: Writer) -> None:
        await submit(writer, outbox)
        await writer.execute("INSERT INTO business VALUES (1)")
        await submit_each_way(writer, outbox)
        assert counted(url) == dict.fromkeys(TABLES, 0)
        await writer.commit()

    through(kind, url, body)
    joined = "SELECT count(*) FROM packhorse.outbox o JOIN business b ON b.xmin = o.xid::xid JOIN packhorse.job j ON j.id = o.id"
    assert seen(url, joined) == [(5,)]
    assert seen(url, "SELECT count(*) FROM packhorse.job") == [(6,)]


def test_everything_that_is_said_of_a_job_stands_in_its_rows(kind: str, url: str, outbox: Outbox) -> None:
    given, expires_at = UUID("019b76da-a800-7000-8000-000000000001"), SYSTEM_CLOCK.now() + HOUR

    async def body(writer: Writer) -> JobHandle[Any]:
        with message_context(correlation_id="c", actor="ada", tenant="north"):
            handle = await submit(
                writer, outbox, id=given, request_key="ключ", one_running="r", causation_id="x",
                priority="high", expires_at=expires_at, headers={"a": "ü"},
            )  # fmt: skip
        await writer.commit()
        return handle

    assert through(kind, url, body) == JobHandle(id=given, type="bank.AmountMoved", is_new=True)
    columns = "id, type, version, topic, state, attempt, tenant, actor, correlation_id, causation_id, origin, request_key, "
    columns += "priority, one_waiting, one_running, not_before, expires_at, changed_by"
    assert seen(url, f"SELECT {columns} FROM packhorse.job") == [
        (given, "bank.AmountMoved", 2, "bank.account.high", "accepted", 0, "north", "ada", "c", "x", "bank", "ключ", "high",
         None, "r", None, expires_at, "ada")
    ]  # fmt: skip
    columns = "id, aggregatetype, aggregateid, type, schema_version, tenant, actor, correlation_id, causation_id, origin, "
    columns += "headers::text, expires_at::timestamptz, payload"
    ((*row, payload),) = seen(url, f"SELECT {columns} FROM packhorse.outbox")
    assert row == [
        given, "account.high", None, "bank.AmountMoved", "2", "north", "ada", "c", "x", "bank", '{"a": "ü"}', expires_at,
    ]  # fmt: skip
    ((input_,),) = seen(url, "SELECT input FROM packhorse.job")
    decoder = Decoder(Table(dict(seen(url, "SELECT schema_id, schema FROM packhorse.schema_version"))))
    assert decoder.decode(bytes(input_), AmountMoved) == MOVED
    reference = JobReference(id=str(given), type="bank.AmountMoved", version=2)
    assert decoder.decode(bytes(payload), JobReference) == reference
    assert seen(url, "SELECT before, after, actor FROM packhorse.job_transition") == [
        (None, "accepted", "ada")
    ]


def test_many_jobs_are_all_or_none_and_stand_in_the_order_of_the_call(
    kind: str, url: str, outbox: Outbox
) -> None:
    many = [JobDraft(input=AmountMoved(account="a", amount=n)) for n in range(300)]

    async def body(writer: Writer) -> list[JobHandle[Any]]:
        with pytest.raises(ValueMismatch, match="amount"):
            await writer.call(outbox, "submit_many", [*many, JobDraft(input=WRONG)])
        with pytest.raises(RequestKeyConflict):
            await writer.call(
                outbox,
                "submit_many",
                [*many, JobDraft(input=MOVED, request_key="k"), JobDraft(input=OTHER, request_key="k")],
            )
        handles: list[JobHandle[Any]] = await writer.call(outbox, "submit_many", many)
        await writer.commit()
        return handles

    handles = through(kind, url, body)
    assert [row[0] for row in seen(url, "SELECT id FROM packhorse.outbox ORDER BY seq")] == [
        one.id for one in handles
    ]
    assert counted(url)["job"] == 300


@pytest.mark.parametrize(
    ("named", "error", "said"),
    [
        ({"request_key": "k" * 201}, InvalidMessage, "request_key of 201 characters is not allowed: 1 to 200"),
        ({"request_key": "a\x1bb"}, InvalidMessage, r"request_key holds U\+001B at position 1"),
        ({"one_waiting": ""}, InvalidMessage, "one_waiting of 0 characters"),
        ({"one_running": 7}, InvalidMessage, "one_running is int; pass text"),
        ({"priority": "urgent"}, InvalidMessage, "priority='urgent' is not allowed: high, normal, low"),
        ({"not_before": NAIVE}, InvalidMessage, "not_before 2026-07-31T00:00:00 has no time zone"),
        ({"expires_at": NAIVE}, InvalidMessage, "expires_at 2026-07-31T00:00:00 has no time zone"),
        ({"expires_at": datetime(2020, 7, 31, tzinfo=UTC)}, InvalidMessage, "expires_at 2020-07-31T.* has passed"),
        ({"job": WRONG}, ValueMismatch, "amount: given str 'five'"),
        ({"job": AmountMoved(account="x" * 921_600, amount=1)}, PayloadTooLarge, "the limit is 921600"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_before_anything_is_written(
    kind: str, url: str, outbox: Outbox, named: dict[str, Any], error: type[Exception], said: str
) -> None:
    """Fails when a check is left to the database, whose error would take the caller's transaction along."""

    async def body(writer: Writer) -> None:
        await writer.execute("INSERT INTO business VALUES (1)")
        with pytest.raises(error, match=said):
            await submit(writer, outbox, **named)
        await writer.commit()

    through(kind, url, body)
    assert seen(url, "SELECT n FROM business") == [(1,)]
    assert counted(url) == dict.fromkeys(TABLES, 0)


def test_a_request_key_gives_one_job_in_its_scope_and_refuses_another_input(
    kind: str, url: str, outbox: Outbox
) -> None:
    async def body(writer: Writer) -> None:
        first = await submit(writer, outbox, request_key="k")
        await writer.commit()
        again = await submit(writer, outbox, request_key="k")
        assert (again.id, again.is_new) == (first.id, False)
        with pytest.raises(
            RequestKeyConflict, match=f"stands for job {first.id} of bank.AmountMoved"
        ) as caught:
            await submit(writer, outbox, OTHER, request_key="k", one_waiting="w")
        assert caught.value.existing == first.id
        assert str(caught.value.refused) in str(caught.value)
        assert (await submit(writer, outbox, OTHER, request_key="k", tenant="north")).is_new
        opened_ = AccountOpened(account="a", owner="o", limit=1)
        assert (await writer.call(outbox, "submit", opened_, request_key="k")).is_new
        await writer.commit()

    through(kind, url, body)
    assert counted(url) == {
        "job": 3, "job_transition": 3, "job_request": 3, "job_waiting": 0, "job_due": 0, "outbox": 3,
    }  # fmt: skip


@pytest.mark.case("J-09")
def test_the_job_that_waits_by_a_name_is_given_back_until_it_waits_no_more(
    kind: str, url: str, outbox: Outbox
) -> None:
    """Fails when the name is kept while the job runs, or forgotten while it waits for its time."""

    async def body(writer: Writer) -> None:
        first = await submit(writer, outbox, one_waiting="w", not_before=SYSTEM_CLOCK.now() + HOUR)
        again = await submit(writer, outbox, OTHER, one_waiting="w", request_key="k")
        assert (again.id, again.is_new) == (first.id, False)
        assert (await submit(writer, outbox, OTHER, request_key="k")).id == first.id, (
            "the key stands for it too"
        )
        await writer.execute("UPDATE packhorse.job SET state = 'running', changed_by = 'worker'")
        third = await submit(writer, outbox, one_waiting="w")
        assert third.is_new
        await writer.commit()

    through(kind, url, body)
    assert counted(url)["job"] == 2


@pytest.mark.case("J-07")
def test_cancelling_follows_the_callers_rollback_and_commit(kind: str, url: str, outbox: Outbox) -> None:
    """Fails when a job is cancelled on a connection of the outbox's own."""

    async def body(writer: Writer) -> None:
        handle = await submit(writer, outbox, one_waiting="w", not_before=SYSTEM_CLOCK.now() + HOUR)
        await writer.commit()
        assert await writer.call(outbox, "cancel", handle.id) is Cancelling.CANCELLED
        await writer.rollback()
        assert seen(url, "SELECT state FROM packhorse.job") == [("accepted",)]
        with suppress(ChangedMyMind):
            async with writer.savepoint():
                await writer.call(outbox, "cancel", handle.id)
                raise ChangedMyMind
        await writer.commit()
        assert seen(url, "SELECT state FROM packhorse.job") == [("accepted",)]
        assert counted(url)["job_due"] == 1
        with message_context(actor="ada"):
            await writer.call(outbox, "cancel", handle.id, why="ordered twice")
        await writer.commit()
        assert await writer.call(outbox, "cancel", handle.id) is Cancelling.CANCELLED, "so it is"
        await writer.commit()

    through(kind, url, body)
    columns = "state, changed_by, reason, finished_at IS NOT NULL, cancel_asked_by, cancel_why"
    assert seen(url, f"SELECT {columns} FROM packhorse.job") == [
        ("cancelled", "ada", "ordered twice", True, "ada", "ordered twice")
    ]
    assert counted(url) == {
        "job": 1, "job_transition": 2, "job_request": 0, "job_waiting": 0, "job_due": 0, "outbox": 0,
    }  # fmt: skip


def test_cancelling_asks_the_worker_of_one_that_runs_and_is_refused_where_it_is_too_late(
    kind: str, url: str, outbox: Outbox
) -> None:
    async def body(writer: Writer) -> None:
        handle = await submit(writer, outbox)
        for state in ("running", "succeeded"):
            await writer.execute(f"UPDATE packhorse.job SET state = '{state}', changed_by = 'worker'")
            if state == "running":
                for actor in ("ada", "bob"):
                    asked = await writer.call(outbox, "cancel", handle.id, actor=actor)
                    assert asked is Cancelling.ASKED
                rows = await writer.execute("SELECT state, cancel_asked_by FROM packhorse.job")
                assert rows == [("running", "ada")]
        with pytest.raises(IllegalTransition, match="has ended as succeeded; there is nothing to cancel"):
            await writer.call(outbox, "cancel", handle.id)
        failed = await submit(writer, outbox)
        await writer.execute(
            f"UPDATE packhorse.job SET state = 'quarantined', changed_by = 'worker' WHERE id = '{failed.id}'"
        )
        with pytest.raises(IllegalTransition, match="waits for a person: discard it instead"):
            await writer.call(outbox, "cancel", failed.id)
        with pytest.raises(UnknownId, match="is not known here"):
            await writer.call(outbox, "cancel", UUID(int=1))
        await writer.commit()

    through(kind, url, body)


def test_what_is_missing_is_named_and_the_transaction_stays_usable(
    kind: str, unregistered: str, outbox: Outbox
) -> None:
    async def body(writer: Writer) -> None:
        with pytest.raises(SchemaNotRegistered, match="packhorse schemas register"):
            await submit(writer, outbox)
        await writer.execute("ALTER TABLE packhorse.job_due RENAME TO job_gone")
        try:
            with pytest.raises(
                NotReady, match=r"table packhorse.job_due is missing .* `packhorse migrate up`"
            ):
                await submit(writer, Outbox())
        finally:
            await writer.rollback()

    through(kind, unregistered, body)
