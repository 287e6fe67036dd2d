"""Statements queued by handlers, on a real PostgreSQL: order, errors that name the member, and nothing to undo."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import text
from tests.support.lending import OUTBOX, AsyncLane, Lane, lane_on

from packhorse.core.errors import DatabaseUnavailable
from packhorse.local.settings import Endpoints
from packhorse.processor.outcomes import TransactionRefused
from packhorse.processor.running.endings import Contention
from packhorse.processor.running.resources import AsyncLent, Lent
from packhorse.processor.storing import postgres
from packhorse.processor.storing.pipelining.failing import StatementFailed
from packhorse.processor.storing.pipelining.postgres import MOST

INSERT = "INSERT INTO lent VALUES (%s, %s)"


@pytest.fixture(scope="module")
def url(stack: Endpoints) -> Iterator[str]:
    from tests.support.databases import fresh_database

    with fresh_database(stack.database_url) as found:
        yield found


@pytest.fixture
def lane(url: str) -> Iterator[Lane]:
    with lane_on(url) as found:
        yield found


def inserting(*numbers: int) -> Callable[[Lent], None]:
    def handler(lent: Lent) -> None:
        for n in numbers:
            lent.pipeline.execute(INSERT, (n, "queued"))

    return handler


def test_what_is_queued_is_committed_with_the_transaction(lane: Lane) -> None:
    lane.begin()
    for member in range(50):
        lent = lane.handle(inserting(member * 2, member * 2 + 1), member)
        assert not lent.is_exposed
    assert lane.rows() == []
    lane.commit()
    assert lane.rows() == list(range(100))


def test_it_keeps_its_place_among_statements_whose_result_is_read(lane: Lane) -> None:
    """Fails when a cursor of the connection does not wait for what is queued."""

    def handler(lent: Lent) -> None:
        connection = lent.connection
        lent.pipeline.execute(INSERT, (1, "a"))
        lent.pipeline.execute("UPDATE lent SET what = %s WHERE n = %s", ("b", 1))
        assert connection.execute("SELECT what FROM lent").fetchall() == [("b",)]
        lent.pipeline.execute("UPDATE lent SET what = what || 'c'")
        with connection.cursor() as cursor:
            cursor.executemany("UPDATE lent SET what = what || %s", [("d",), ("e",)])
            lent.pipeline.execute("UPDATE lent SET what = what || 'f'")
            with cursor.copy("COPY (SELECT what FROM lent) TO STDOUT") as copy:
                assert list(copy.rows()) == [("bcdef",)]
        lent.pipeline.execute("UPDATE lent SET what = what || 'g'")
        with connection.cursor(name="named") as named:
            named.execute("SELECT what FROM lent")
            assert named.fetchone() == ("bcdefg",)
        lent.pipeline.execute("UPDATE lent SET what = what || 'h'")
        assert lent.session.execute(text("SELECT what FROM lent")).scalar_one() == "bcdefgh"

    lane.begin()
    lane.handle(inserting(2, 3))
    lane.handle(lambda lent: lent.connection.execute("DELETE FROM lent"))
    lane.handle(handler)
    lane.commit()


def test_a_savepoint_undoes_what_was_queued_in_it_and_no_more(lane: Lane) -> None:
    """Fails when what is queued does not wait for the savepoint, or is sent after it was rolled back."""

    def handler(lent: Lent) -> None:
        lent.pipeline.execute(INSERT, (1, "before"))
        with lent.connection.transaction():
            lent.pipeline.execute(INSERT, (2, "kept"))
        with suppress(ZeroDivisionError), lent.connection.transaction():
            lent.pipeline.execute(INSERT, (3, "undone"))
            raise ZeroDivisionError
        with lent.connection.transaction(force_rollback=True):
            lent.pipeline.execute(INSERT, (4, "undone"))
        lent.pipeline.execute(INSERT, (5, "after"))

    lane.begin()
    lane.handle(handler)
    lane.commit()
    assert lane.rows() == [1, 2, 5]


def test_a_statement_that_fails_in_a_savepoint_fails_inside_it(lane: Lane) -> None:
    """Fails when the queue is only waited for at the savepoint's release: then it is not gone back to."""

    def handler(lent: Lent) -> None:
        inserting(1)(lent)
        with suppress(psycopg.errors.UniqueViolation), lent.connection.transaction():
            inserting(2, 1)(lent)
        with suppress(ZeroDivisionError), lent.connection.transaction():
            inserting(1)(lent)
            raise ZeroDivisionError
        inserting(3)(lent)

    lane.begin()
    lane.handle(handler)
    lane.commit()
    assert lane.rows() == [1, 3]


def test_a_handler_that_fails_leaves_nothing_to_undo(lane: Lane) -> None:
    """Fails when statements are sent before their handler has returned."""

    def failing(lent: Lent) -> None:
        inserting(100, 101)(lent)
        raise ZeroDivisionError

    lane.begin()
    for n in range(40):
        lane.handle(inserting(n), n)
        with pytest.raises(ZeroDivisionError):
            lane.handle(failing, -n)
    lane.commit()
    assert lane.rows() == list(range(40))


@pytest.mark.parametrize("behind", [0, 1, 30])
def test_a_statement_that_fails_names_its_member(lane: Lane, behind: int) -> None:
    lane.begin()
    lane.handle(inserting(1, 2), "first")
    lane.handle(inserting(3, 1, 4), "twice")
    for n in range(behind):
        lane.handle(inserting(10 + n, 60 + n), "other")
    with pytest.raises(StatementFailed, match="UniqueViolation") as caught:
        lane.commit()
    assert caught.value.member == "twice"
    assert isinstance(caught.value.__cause__, psycopg.errors.UniqueViolation)
    assert postgres.standing(lane.connection) == "failed"
    lane.roll_back()
    lane.begin()
    lane.handle(inserting(7))
    lane.commit()
    assert lane.rows() == [7]


def test_an_earlier_members_error_is_not_the_one_in_hands(lane: Lane) -> None:
    """Fails when a cursor raises the bare error of another member's statement into the handler in hand."""
    lane.begin()
    lane.handle(inserting(1, 1), "twice")
    with pytest.raises(StatementFailed) as caught:
        lane.handle(lambda lent: lent.connection.execute("SELECT 1"), "innocent")
    assert caught.value.member == "twice"
    assert lane.connection.pipe.failed is caught.value
    lane.roll_back()
    assert lane.connection.pipe.failed is None


def test_an_earlier_members_error_is_known_when_a_handler_hides_it(lane: Lane) -> None:
    def hiding(lent: Lent) -> None:
        with suppress(Exception):
            lent.connection.execute("SELECT 1")

    lane.begin()
    lane.handle(inserting(1, 1), "twice")
    lane.handle(hiding, "innocent")
    assert postgres.standing(lane.connection) == "failed"
    assert lane.connection.pipe.failed is not None
    assert lane.connection.pipe.failed.member == "twice"
    lane.roll_back()


def test_the_own_error_is_raised_where_a_result_is_read(lane: Lane) -> None:
    def handler(lent: Lent) -> None:
        inserting(1, 1)(lent)
        lent.connection.execute("SELECT 1")

    lane.begin()
    with pytest.raises(psycopg.errors.UniqueViolation):
        lane.handle(handler)
    lane.roll_back()


def test_with_savepoints_each_members_error_is_its_own(lane: Lane) -> None:
    """Fails when the savepoint does not come before what its member sends, or is not gone back to."""

    def guarded(numbers: list[int], *, use: bool = False) -> bool:
        lent_error = False
        postgres.savepoint(lane.connection)
        lent = Lent(lane.connection, lane.sessions, OUTBOX, numbers)
        try:
            inserting(*numbers)(lent)
            if use:
                lent.connection.execute("SELECT 1")
            lent.settle(sync=True)
        except psycopg.errors.UniqueViolation:
            lent_error = True
        lent.drop()
        if lent_error:
            postgres.undo(lane.connection)
        return lent_error

    lane.begin()
    assert not guarded([])
    assert lane.connection.pgconn.pipeline_status == 0
    assert not guarded([1, 2])
    assert guarded([3, 1])
    assert not guarded([4])
    assert guarded([4, 5], use=True)
    assert not guarded([6], use=True)
    assert not guarded([])
    lane.commit()
    assert lane.rows() == [1, 2, 4, 6]


def test_a_value_that_cannot_be_sent_is_refused_where_it_is_queued(lane: Lane) -> None:
    lane.begin()
    with pytest.raises(psycopg.ProgrammingError, match="cannot adapt"):
        lane.handle(lambda lent: lent.pipeline.execute(INSERT, (1, object())))
    with pytest.raises(psycopg.ProgrammingError, match="2 placeholders but 1"):
        lane.handle(lambda lent: lent.pipeline.execute(INSERT, (1,)))
    lane.commit()
    assert lane.rows() == []


def test_values_of_all_types_and_forms_arrive_as_they_were(lane: Lane) -> None:
    """Fails when converted values of one statement are shared with the next, or types are remembered by text alone."""
    numbers = [1, -40_000, 3_000_000_00, True]

    def handler(lent: Lent) -> None:
        for n in numbers:
            lent.pipeline.execute("INSERT INTO lent VALUES (%s::int, %s)", (int(n) if n is True else n, None))
        lent.pipeline.execute("UPDATE lent SET what = %(w)s WHERE n = %(n)s", {"n": 1, "w": "named"})
        lent.pipeline.execute(
            sql.SQL("UPDATE {} SET what = 'composed' WHERE n < 0").format(sql.Identifier("lent"))
        )
        lent.pipeline.execute(b"DELETE FROM lent WHERE n = 300000000")

    lane.begin()
    lane.handle(handler)
    with pytest.raises(StatementFailed, match="UniqueViolation"):
        lane.commit()
    lane.roll_back()
    numbers.remove(True)
    lane.begin()
    lane.handle(handler)
    lane.handle(handler_of_lists)
    lane.commit()
    with psycopg.connect(lane.url) as connection:
        assert connection.execute("SELECT * FROM lent ORDER BY n").fetchall() == [
            (-40_000, "composed"),
            (1, "named"),
            (2, "7"),
            (3, "{a,b}"),
        ]


def handler_of_lists(lent: Lent) -> None:
    values: list[Any] = [2, 7]
    lent.pipeline.execute("INSERT INTO lent VALUES (%s, %s::int::text)", values)
    values[:] = [3, ["a", "b"]]
    lent.pipeline.execute("INSERT INTO lent VALUES (%s, %s::text[]::text)", values)
    values[:] = [4, None]


def updating(lent: Lent) -> None:
    for n in range(150):
        for _ in range(3):
            lent.pipeline.execute(f"UPDATE lent SET what = %s WHERE n = {n}", ("y",))


def test_many_texts_and_many_statements_are_bounded(lane: Lane) -> None:
    """Fails when each text is prepared for good, or one handler may queue without bound."""

    def handler(lent: Lent) -> None:
        for n in range(MOST * 2 + 500):
            lent.pipeline.execute(f"INSERT INTO lent VALUES ({n}, %s)", ("x",))

    lane.begin()
    lent = lane.handle(handler)
    assert lent.is_exposed
    lane.handle(updating)
    lane.commit()
    assert len(lane.rows()) == MOST * 2 + 500
    assert lane.connection.execute("SELECT count(*) <= 100 FROM pg_prepared_statements").fetchone() == (True,)


def test_a_statement_that_could_not_be_prepared_is_forgotten(lane: Lane) -> None:
    def thrice(lent: Lent) -> None:
        for n in range(3):
            lent.pipeline.execute("INSERT INTO not_yet VALUES (%s)", (n,))

    lane.begin()
    lane.handle(thrice)
    with pytest.raises(StatementFailed, match="UndefinedTable"):
        lane.commit()
    lane.roll_back()
    lane.connection.execute("CREATE TABLE not_yet (n int)")
    lane.begin()
    lane.handle(thrice)
    lane.commit()
    assert lane.connection.execute("SELECT count(*) FROM not_yet").fetchone() == (3,)
    lane.connection.execute("DROP TABLE not_yet")


def test_a_rollback_forgets_what_is_queued(lane: Lane) -> None:
    lane.begin()
    for n in range(40):
        lane.handle(inserting(n))
    lane.roll_back()
    lane.begin()
    lane.handle(inserting(50))
    lane.commit()
    assert lane.rows() == [50]


def test_a_lost_connection_is_nobodys_statement(lane: Lane) -> None:
    lane.begin()
    lane.handle(inserting(1), "innocent")
    with psycopg.connect(lane.url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (lane.connection.info.backend_pid,))
    with pytest.raises(DatabaseUnavailable):
        lane.commit()


def test_a_deadlock_is_nobodys_statement(lane: Lane) -> None:
    with psycopg.connect(lane.url, autocommit=True) as other:
        other.execute("INSERT INTO lent VALUES (1, ''), (2, '')")
        other.execute("BEGIN")
        other.execute("SELECT * FROM lent WHERE n = 1 FOR UPDATE")
        lane.begin()
        lane.connection.execute("SET LOCAL lock_timeout = 20")
        lane.handle(lambda lent: lent.pipeline.execute("UPDATE lent SET what = 'mine'"))
        with pytest.raises(Contention):
            lane.commit()
        lane.roll_back()
        other.execute("ROLLBACK")


@pytest.mark.parametrize("query", ["COMMIT", "COPY lent FROM STDIN", "SAVEPOINT a", "SET search_path = x"])
def test_what_would_end_the_transaction_is_not_queued(lane: Lane, query: str) -> None:
    lane.begin()
    with pytest.raises(TransactionRefused, match=r"refused|can't be queued"):
        lane.handle(lambda lent: lent.pipeline.execute(query))
    lane.roll_back()


def test_who_holds_it_after_the_handler_is_refused(lane: Lane) -> None:
    """Fails when the queue is the lane's and not the handler's."""
    lane.begin()
    held: list[Any] = []
    lane.handle(lambda lent: held.append(lent.pipeline))
    with pytest.raises(TransactionRefused, match="the handler has returned"):
        held[0].execute(INSERT, (1, "late"))
    lane.commit()
    assert lane.rows() == []


def in_a_loop(url: str, body: Callable[[AsyncLane], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        connection = await postgres.aconnect(url)
        try:
            await body(AsyncLane(url, connection))
        finally:
            await connection.end()

    with lane_on(url):
        asyncio.run(run())


def test_async_handlers_have_it_too(url: str) -> None:
    async def handler(lent: AsyncLent) -> None:
        await lent.pipeline.execute(INSERT, (1, "a"))
        found = await (await lent.connection.execute("SELECT n FROM lent")).fetchall()
        assert found == [(1,)]
        async with lent.connection.transaction():
            await lent.pipeline.execute(INSERT, (2, "a"))
        with suppress(psycopg.errors.UniqueViolation):
            async with lent.connection.transaction():
                await lent.pipeline.execute(INSERT, (2, "b"))

    async def failing(lent: AsyncLent) -> None:
        await lent.pipeline.execute(INSERT, (3, "a"))
        raise ZeroDivisionError

    async def many(lent: AsyncLent) -> None:
        for n in range(10, MOST + 50):
            await lent.pipeline.execute(INSERT, (n, "a"))

    async def body(lane: AsyncLane) -> None:
        await lane.begin()
        await lane.handle(handler)
        with pytest.raises(ZeroDivisionError):
            await lane.handle(failing)
        await lane.handle(many)
        await lane.commit()
        assert await lane.rows() == [1, 2, *range(10, MOST + 50)]
        await lane.begin()
        await lane.handle(many, "again")
        with pytest.raises(StatementFailed) as caught:
            await lane.commit()
        assert caught.value.member == "again"
        await lane.roll_back()

    in_a_loop(url, body)


def test_a_rollback_that_lets_psycopg_deallocate_all_takes_no_statement_of_the_queue_with_it(
    lane: Lane,
) -> None:
    """
    Fails when the queue goes on to use a name that is gone: psycopg executes DEALLOCATE ALL after each rollback, once it has
    prepared anything itself, and the savepoint before the next handler is prepared by the queue. That handler's message would be charged.
    """

    def handler(lent: Lent) -> None:
        lent.connection.execute("SELECT count(*) FROM lent WHERE n = %s", (1,))
        lent.pipeline.execute("UPDATE lent SET what = %s", ("x",))

    for _ in range(4):
        lane.begin()
        for member in range(8):
            postgres.savepoint(lane.connection)
            lane.handle(handler, member)
        postgres.undo(lane.connection)
        postgres.savepoint(lane.connection)
        lane.handle(handler, 9)
        lane.roll_back()
