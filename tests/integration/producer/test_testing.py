"""What `packhorse.testing` shows and runs, on a real database and with none."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import errors as pg
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from tests.support.accounts import AccountOpened, AmountMoved
from tests.support.writers import alchemy

from packhorse.core.errors import UsageError, ValueMismatch
from packhorse.core.ids import derived_id
from packhorse.processor import (
    AsyncBatchContext,
    AsyncContext,
    Batch,
    BatchContext,
    Context,
    Later,
    Outcome,
    Processor,
    Quarantine,
    Retry,
    Skip,
    TransactionRefused,
)
from packhorse.producer import Outbox, Outgoing, Tombstone
from packhorse.testing import (
    aassert_emitted,
    arun_batch_handler,
    arun_handler,
    assert_emitted,
    emitted,
    register_for_tests,
    run_batch_handler,
    run_handler,
)

OPENED = AccountOpened(account="a", owner="Ada", limit=5)
MOVED = AmountMoved(account="a", amount=3)
Connection = psycopg.Connection[Any]

app = Processor("figures")


@app.handler(AmountMoved)
def moved(message: AmountMoved, ctx: Context) -> None:
    """Count the amount, pass it on, or do what the amount says."""
    match message.amount:
        case -1:
            raise Skip("nothing to do")
        case -2:
            raise Quarantine("negative-amount")
        case -3:
            raise LookupError(message.account)
    ctx.connection.execute("INSERT INTO figure VALUES (%s, %s)", (ctx.key, message.amount))
    ctx.emit(OPENED, key=ctx.key)


@app.tombstone_handler(AmountMoved)
def closed(ctx: Context) -> None:
    """Pass the deletion on."""
    ctx.emit_tombstone(AccountOpened, key=ctx.key or "")


@pytest.fixture
def connection(url: str) -> Iterator[Connection]:
    with psycopg.connect(url) as connection:
        yield connection
        connection.rollback()


def figures(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT account, amount FROM figure").fetchall()


def test_a_handler_runs_in_the_transaction_of_the_test(connection: Connection, url: str) -> None:
    given = UUID("019b76da-a800-7000-8000-000000000001")
    done = run_handler(
        app,
        Outgoing(message=MOVED, key="a", id=given, tenant="north", correlation_id="c"),
        connection=connection,
    )
    assert done.outcome is Outcome.DONE
    assert figures(connection) == [("a", 3)]
    (follow_up,) = done.emitted
    assert follow_up == assert_emitted(connection, AccountOpened, key="a", owner="Ada")
    assert follow_up.id == derived_id(given, "figures", 0)
    assert (follow_up.causation_id, follow_up.correlation_id, follow_up.tenant) == (str(given), "c", "north")
    with psycopg.connect(url) as other:
        assert figures(other) == []


@pytest.mark.parametrize(
    ("amount", "outcome", "reason"),
    [(-1, Outcome.SKIPPED, None), (-2, Outcome.QUARANTINE, "negative-amount")],
)
def test_a_handler_that_says_stop_has_undone_what_it_wrote(
    connection: Connection, amount: int, outcome: Outcome, reason: str | None
) -> None:
    connection.execute("INSERT INTO figure VALUES ('before', 0)")
    ended = run_handler(app, AmountMoved(account="a", amount=amount), key="a", connection=connection)
    assert (ended.outcome, ended.reason, ended.emitted) == (outcome, reason, ())
    assert figures(connection) == [("before", 0)]


def test_an_error_of_the_handler_comes_out_as_it_is_and_is_undone(connection: Connection) -> None:
    connection.execute("INSERT INTO figure VALUES ('before', 0)")
    with pytest.raises(LookupError, match="a"):
        run_handler(app, AmountMoved(account="a", amount=-3), key="a", connection=connection)
    assert figures(connection) == [("before", 0)]


@pytest.mark.case("B-07")
def test_a_tombstone_goes_to_its_own_handler_and_on_as_a_tombstone(connection: Connection) -> None:
    """Fails when the helpers give a tombstone a payload, or hand it to the handler of messages."""
    for where in (connection, None):
        done = run_handler(app, Tombstone(of=AmountMoved, key="a"), connection=where)
        (follow_up,) = done.emitted
        assert (follow_up.of, follow_up.key, follow_up.message, follow_up.payload) == (
            AccountOpened,
            "a",
            None,
            None,
        )
    assert_emitted(connection, AccountOpened, key="a", tombstone=True)


def test_without_a_database_what_is_emitted_is_kept_in_memory() -> None:
    pure = Processor("pure")
    seen: list[Context] = []

    @pure.handler(AmountMoved)
    def handle(message: AmountMoved, ctx: Context) -> None:
        seen.append(ctx)
        ctx.emit(AccountOpened(account=message.account, owner="o", limit=message.amount), key=ctx.key)

    done = run_handler(pure, Outgoing(message=MOVED, key="k", headers={"a": "ü"}), attempt=3)
    assert [(one.key, one.message) for one in done.emitted] == [
        ("k", AccountOpened(account="a", owner="o", limit=3))
    ]
    assert (seen[0].key, seen[0].headers, seen[0].attempt, seen[0].topic) == (
        "k",
        {"a": "ü"},
        3,
        "bank.account",
    )
    assert (seen[0].type, seen[0].tenant) == ("bank.AmountMoved", None)


def test_without_a_database_asking_for_one_is_refused() -> None:
    with pytest.raises(UsageError, match=r"ctx.connection, and the test gave no database: pass connection="):
        run_handler(app, MOVED, key="a")


def test_without_a_database_values_are_still_checked() -> None:
    pure = Processor("pure")

    @pure.handler(AmountMoved)
    def handle(message: AmountMoved, ctx: Context) -> None:
        ctx.emit(AccountOpened(account=message.account, owner="o", limit=2**40), key=ctx.key)

    with pytest.raises(ValueMismatch, match="limit"):
        run_handler(pure, MOVED, key="a")


def test_the_session_of_a_handler_joins_the_tests_transaction(url: str) -> None:
    with_session = Processor("figures")

    @with_session.handler(AmountMoved)
    def handle(message: AmountMoved, ctx: Context) -> None:
        ctx.session.execute(sa.text("INSERT INTO figure VALUES ('session', 1)"))
        ctx.session.commit()
        ctx.emit(OPENED, key="a")
        if message.amount < 0:
            raise Skip

    engine = sa.create_engine(alchemy(url), poolclass=sa.NullPool)
    with psycopg.connect(url) as plain, engine.connect() as connection, Session(engine) as session:
        for given in (plain, connection, session):
            assert run_handler(with_session, MOVED, key="a", connection=given).outcome is Outcome.DONE
            assert len(emitted(given)) == 1
            skipped = run_handler(
                with_session, AmountMoved(account="a", amount=-1), key="a", connection=given
            )
            assert skipped.outcome is Outcome.SKIPPED
            assert len(emitted(given)) == 1
        assert figures(plain) == [("session", 1)]
        assert session.execute(sa.text("SELECT count(*) FROM figure")).scalar() == 1
        plain.rollback()
    with psycopg.connect(url) as other:
        assert figures(other) == []


def test_a_handler_that_ends_the_transaction_is_refused_or_found_out(connection: Connection) -> None:
    for end in (lambda ctx: ctx.connection.commit(), lambda ctx: ctx.connection.execute("COMMIT; BEGIN")):
        with pytest.raises(TransactionRefused, match="is refused"):
            run_handler(a_processor_that(end), MOVED, key="a", connection=connection)
    for around in (b"COMMIT", b"COMMIT; BEGIN"):
        with pytest.raises(TransactionRefused, match="ended the transaction"):
            run_handler(
                a_processor_that(lambda ctx, text=around: ctx.connection.pgconn.exec_(text)),  # type: ignore[misc]
                MOVED,
                key="a",
                connection=connection,
            )


def test_a_handler_that_asks_to_be_tried_again_has_undone_what_it_wrote(connection: Connection) -> None:
    for end, after, charged in (
        (Retry(after="5m"), 300.0, True),
        (Retry("not there yet"), None, True),
        (Later(after="1m"), 60.0, False),
    ):

        def writes_and_raises(ctx: Context, end: Exception = end) -> None:
            ctx.pipeline.execute("INSERT INTO figure VALUES ('undone', 1)")
            raise end

        ended = run_handler(a_processor_that(writes_and_raises), MOVED, key="a", connection=connection)
        assert (ended.outcome, ended.after, ended.charged) == (Outcome.RETRY, after, charged)
    assert figures(connection) == []


batching = Processor("batching")


@batching.batch_handler(AmountMoved)
def moved_together(batch: Batch[AmountMoved], ctx: BatchContext) -> None:
    """Answer with what each amount says; what is left is written in one statement, with a follow-up for each."""
    for item in batch:
        match item.message.amount:
            case -1:
                item.skip("nothing to do")
            case -2:
                item.quarantine("negative-amount")
            case -3:
                item.retry(after="1m", error=LookupError(item.message.account))
            case -4:
                raise LookupError(item.message.account)
            case _:
                ctx.pipeline.execute("INSERT INTO figure VALUES (%s, %s)", (item.key, item.message.amount))
                ctx.emit(item, OPENED, key=item.key)


def amounts(*given: int) -> list[tuple[AmountMoved, str]]:
    return [(AmountMoved(account="a", amount=amount), f"k{amount}") for amount in given]


def test_a_batch_handler_answers_for_each_message(connection: Connection) -> None:
    ended = run_batch_handler(batching, amounts(1, -1, -2, -3, 2), connection=connection)
    assert [one.outcome for one in ended] == [
        Outcome.DONE,
        Outcome.SKIPPED,
        Outcome.QUARANTINE,
        Outcome.RETRY,
        Outcome.DONE,
    ]
    assert ended[2].reason == "negative-amount"
    assert (ended[3].after, type(ended[3].error)) == (60.0, LookupError)
    assert [[(one.key, one.message) for one in answer.emitted] for answer in ended] == [
        [("k1", OPENED)],
        [],
        [],
        [],
        [("k2", OPENED)],
    ]
    assert figures(connection) == [("k1", 1), ("k2", 2)]
    with pytest.raises(LookupError):
        run_batch_handler(batching, amounts(3, -4), connection=connection)
    assert figures(connection) == [("k1", 1), ("k2", 2)]
    alone = run_handler(batching, AmountMoved(account="a", amount=7), key="k7", connection=connection)
    assert alone.outcome is Outcome.DONE
    assert len(alone.emitted) == 1


def test_batches_that_no_processor_would_make_are_refused() -> None:
    with pytest.raises(UsageError, match="a batch of no messages"):
        run_batch_handler(batching, [])
    with pytest.raises(UsageError, match=r"moved takes one message; use `run_handler`"):
        run_batch_handler(app, [MOVED])
    with pytest.raises(UsageError, match=r"moved_together is not async; use `run_batch_handler"):
        asyncio.run(arun_batch_handler(batching, [MOVED]))


def test_an_async_batch_handler_runs_in_memory_and_on_a_connection(url: str) -> None:
    made = Processor("figures")

    @made.batch_handler(AmountMoved)
    async def handle(batch: Batch[AmountMoved], ctx: AsyncBatchContext) -> None:
        for item in batch:
            if item.message.amount < 0:
                item.quarantine("negative-amount")
            else:
                await ctx.emit(item, OPENED, key=item.key)
        if len(batch) > 2:
            await ctx.pipeline.execute("INSERT INTO figure VALUES ('async', 1)")

    async def body() -> None:
        memory = await arun_batch_handler(made, amounts(1, -1))
        assert [one.outcome for one in memory] == [Outcome.DONE, Outcome.QUARANTINE]
        assert [one.key for one in memory[0].emitted] == ["k1"]
        async with await psycopg.AsyncConnection.connect(url) as connection:
            done = await arun_batch_handler(made, amounts(1, 2, 3), connection=connection)
            assert [len(one.emitted) for one in done] == [1, 1, 1]
            await connection.rollback()

    asyncio.run(body())


def test_a_handler_that_swallows_an_error_of_the_database_is_found_out(connection: Connection) -> None:
    def swallow(ctx: Context) -> None:
        with pytest.raises(pg.UndefinedTable):
            ctx.connection.execute("SELECT FROM nowhere")

    connection.execute("INSERT INTO figure VALUES ('before', 0)")
    with pytest.raises(Exception, match="the database had refused one of its statements"):
        run_handler(a_processor_that(swallow), MOVED, key="a", connection=connection)
    assert figures(connection) == [("before", 0)]


def a_processor_that(does: Callable[[Context], object]) -> Processor:
    made = Processor("figures")

    @made.handler(AmountMoved)
    def handle(message: AmountMoved, ctx: Context) -> None:
        does(ctx)

    return made


def test_an_async_handler_runs_on_async_connections_and_in_memory(url: str) -> None:
    made = Processor("figures")

    @made.handler(AmountMoved)
    async def handle(message: AmountMoved, ctx: AsyncContext) -> None:
        if message.amount > 0:
            await ctx.connection.execute("INSERT INTO figure VALUES ('async', 1)")
            await ctx.session.execute(sa.text("INSERT INTO figure VALUES ('async', 2)"))
        await ctx.emit(OPENED, key="a")
        if message.amount < 0:
            raise Quarantine("negative-amount")

    async def body() -> None:
        engine = create_async_engine(alchemy(url), poolclass=sa.NullPool)
        async with (
            await psycopg.AsyncConnection.connect(url) as plain,
            engine.connect() as connection,
            AsyncSession(engine) as session,
        ):
            for given in (plain, connection, session):
                done = await arun_handler(made, MOVED, key="a", connection=given)
                assert [one.message for one in done.emitted] == [OPENED]
                ended = await arun_handler(
                    made, AmountMoved(account="a", amount=-1), key="a", connection=given
                )
                assert (ended.outcome, ended.reason) == (Outcome.QUARANTINE, "negative-amount")
                await aassert_emitted(given, AccountOpened, key="a", times=1)
            await plain.rollback()
        memory = await arun_handler(made, AmountMoved(account="a", amount=0), key="a")
        assert [one.message for one in memory.emitted] == [OPENED]

    asyncio.run(body())
    with psycopg.connect(url) as other:
        assert figures(other) == []


def test_the_wrong_colour_and_a_missing_handler_are_named() -> None:
    with pytest.raises(UsageError, match=r"has no handler for bank.AccountOpened; it has .*closed.*moved"):
        run_handler(app, OPENED, key="a")
    with pytest.raises(UsageError, match=r"moved is not async; use `run_handler"):
        asyncio.run(arun_handler(app, MOVED, key="a"))
    with pytest.raises(UsageError, match="leave key= out"):
        run_handler(app, Outgoing(message=MOVED, key="a"), key="a")


def test_an_assertion_says_what_was_emitted_instead(connection: Connection) -> None:
    outbox = Outbox()
    outbox.emit(connection, MOVED, key="a")
    outbox.emit_tombstone(connection, AmountMoved, key="b")
    with pytest.raises(AssertionError) as caught:
        assert_emitted(connection, AmountMoved, key="a", amount=4)
    said = str(caught.value)
    assert "0 of 1 messages AmountMoved (key='a', amount=4)" in said
    assert "key='a': AmountMoved(account='a', amount=3)" in said
    assert "key='b': a tombstone" in said
    with pytest.raises(AssertionError, match="there are:\n  none"):
        assert_emitted(connection, AccountOpened)
    with pytest.raises(ValueError, match="AmountMoved has no field amuont"):
        assert_emitted(connection, AmountMoved, amuont=3)
    outbox.emit(connection, MOVED, key="a")
    with pytest.raises(AssertionError, match="2 of 1 messages"):
        assert_emitted(connection, AmountMoved, key="a")
    assert assert_emitted(connection, AmountMoved, times=2, amount=3).key == "a"
    with pytest.raises(ValueError, match="times=0"):
        assert_emitted(connection, AmountMoved, times=0)


def test_only_the_open_transaction_is_seen(connection: Connection, url: str) -> None:
    Outbox().emit(connection, MOVED, key="committed")
    connection.commit()
    assert emitted(connection) == []
    with psycopg.connect(url) as other:
        Outbox().emit(other, MOVED, key="other")
        assert emitted(connection) == []
        assert [one.key for one in emitted(other)] == ["other"]


def test_a_registered_schema_keeps_its_id(connection: Connection) -> None:
    connection.execute("UPDATE packhorse.schema_version SET schema_id = 7")
    register_for_tests(connection, AmountMoved)
    found = connection.execute("SELECT DISTINCT schema_id FROM packhorse.schema_version").fetchall()
    assert found == [(7,)]
