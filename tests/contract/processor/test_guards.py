"""A handler can't break the transaction that it was lent: on a real PostgreSQL, each way is refused or found out."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel, sql
from sqlalchemy import text
from tests.contract.processor.test_pipeline import INSERT, in_a_loop
from tests.support.databases import fresh_database
from tests.support.lending import AsyncLane, Lane, lane_on
from tests.support.wait import eventually

from packhorse.local.settings import Endpoints
from packhorse.processor.outcomes import TransactionRefused
from packhorse.processor.running.resources import AsyncLent, Lent
from packhorse.processor.storing import postgres


@pytest.fixture(scope="module")
def url(stack: Endpoints) -> Iterator[str]:
    with fresh_database(stack.database_url) as found:
        yield found


@pytest.fixture
def lane(url: str) -> Iterator[Lane]:
    with lane_on(url) as found:
        yield found


def executing(query: Any, *params: Any) -> Callable[[Any], Any]:
    return lambda connection: connection.execute(query, *params)


def enter(connection: Any) -> None:
    with connection:
        pass


WAYS: dict[str, Callable[[Any], Any]] = {
    "commit": lambda c: c.commit(),
    "rollback": lambda c: c.rollback(),
    "close": lambda c: c.close(),
    "with": enter,
    "autocommit": lambda c: setattr(c, "autocommit", False),
    "set_autocommit": lambda c: c.set_autocommit(False),
    "isolation_level": lambda c: setattr(c, "isolation_level", IsolationLevel.SERIALIZABLE),
    "set_isolation_level": lambda c: c.set_isolation_level(IsolationLevel.SERIALIZABLE),
    "read_only": lambda c: c.set_read_only(True),
    "deferrable": lambda c: c.set_deferrable(True),
    "tpc_begin": lambda c: c.tpc_begin("x"),
    "tpc_prepare": lambda c: c.tpc_prepare(),
    "tpc_commit": lambda c: c.tpc_commit(),
    "tpc_rollback": lambda c: c.tpc_rollback(),
    "COMMIT": executing("COMMIT"),
    "End": executing(b"  End;"),
    "abort": executing(" /* well /* nested */ */ -- so\n abort"),
    "BEGIN": executing("BEGIN"),
    "START": executing("START  TRANSACTION ISOLATION LEVEL SERIALIZABLE"),
    "PREPARE TRANSACTION": executing("PREPARE TRANSACTION 'x'"),
    "ROLLBACK": executing("ROLLBACK AND CHAIN"),
    "COMMIT PREPARED": executing("COMMIT PREPARED 'x'"),
    "composed": executing(sql.SQL("COMM{}").format(sql.SQL("IT"))),
    "several": executing("SELECT ';'; SELECT E'\\';'; SELECT $a$;$a$; COMMIT; BEGIN"),
    "hidden": executing('SELECT 1 AS ";"; /* ; */ COMMIT; BEGIN'),
    "executemany": lambda c: c.cursor().executemany("COMMIT", [()]),
    "stream": lambda c: list(c.cursor().stream("COMMIT")),
    "copy": lambda c: c.cursor().copy("COPY lent FROM STDIN; COMMIT").__enter__(),
    "named": lambda c: c.cursor(name="named").execute("SELECT 1; COMMIT"),
    "withhold": lambda c: c.cursor(name="named", withhold=True).execute("SELECT 1"),
    "WITH HOLD": executing("DECLARE c CURSOR WITH HOLD FOR SELECT 1"),
    "SET": executing("SET search_path = elsewhere"),
    "SET SESSION": executing("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"),
    "SET ROLE": executing("SET ROLE postgres"),
    "SET TRANSACTION": executing("SET TRANSACTION READ ONLY"),
    "SET LOCAL transaction": executing("SET LOCAL transaction_read_only = on"),
    "SET LOCAL synchronous_commit": executing("SET LOCAL synchronous_commit = off"),
    "DISCARD": executing("DISCARD ALL"),
    "DEALLOCATE": executing("DEALLOCATE ALL"),
    "our savepoint": executing("ROLLBACK TO SAVEPOINT packhorse_member"),
    "their savepoint": executing("ROLLBACK TO theirs"),
    "release theirs": executing("RELEASE theirs"),
}


def is_whole(lane: Lane) -> bool:
    """Return whether the transaction stands, and the row of the first handler in it."""
    assert postgres.standing(lane.connection) == "open"
    return lane.connection.execute("SELECT n FROM lent").fetchall() == [(1,)] and lane.rows() == []


def first(lent: Lent) -> None:
    lent.connection.execute("SAVEPOINT theirs")
    lent.connection.execute(INSERT, (1, "first"))


@pytest.mark.parametrize("way", WAYS)
def test_each_way_out_is_refused_and_nothing_of_it_is_done(lane: Lane, way: str) -> None:
    lane.begin()
    lane.handle(first)
    with pytest.raises(TransactionRefused, match="refused"):
        lane.handle(lambda lent: WAYS[way](lent.connection))
    assert is_whole(lane)
    lane.commit()
    assert lane.rows() == [1]


NOT_ASYNC = {"with", "autocommit", "isolation_level", "stream", "copy", "named", "withhold", "executemany"}


@pytest.mark.parametrize("way", [way for way in WAYS if way not in NOT_ASYNC])
def test_each_way_out_is_refused_in_async_handlers_too(url: str, way: str) -> None:
    async def handler(lent: AsyncLent) -> None:
        await WAYS[way](lent.connection)

    async def leaving(lent: AsyncLent) -> None:
        await lent.connection.execute("SAVEPOINT theirs")
        await lent.connection.execute(INSERT, (1, "first"))

    async def body(lane: AsyncLane) -> None:
        await lane.begin()
        await lane.handle(leaving)
        with pytest.raises(TransactionRefused, match="refused"):
            await lane.handle(handler)
        assert postgres.standing(lane.connection) == "open"
        assert await lane.rows() == []
        await lane.commit()
        assert await lane.rows() == [1]

    in_a_loop(url, body)


async def with_async(connection: Any) -> None:
    async with connection:
        pass


async def copy_async(connection: Any) -> None:
    async with connection.cursor().copy("COPY lent FROM STDIN; COMMIT"):
        pass


async def stream_async(connection: Any) -> None:
    async for _ in connection.cursor().stream("COMMIT"):
        pass


@pytest.mark.parametrize(
    "way",
    [
        with_async,
        copy_async,
        stream_async,
        lambda c: c.cursor().executemany("COMMIT", [()]),
        lambda c: c.cursor(name="named").execute("SELECT 1; COMMIT"),
        lambda c: c.cursor(name="named", withhold=True).execute("SELECT 1"),
    ],
)
def test_ways_that_differ_in_async_are_refused(url: str, way: Callable[[Any], Any]) -> None:
    async def body(lane: AsyncLane) -> None:
        await lane.begin()
        with pytest.raises(TransactionRefused, match="refused"):
            await lane.handle(lambda lent: way(lent.connection))
        assert postgres.standing(lane.connection) == "open"
        await lane.roll_back()

    in_a_loop(url, body)


ALLOWED: list[Any] = [
    "SET LOCAL search_path = public",
    "SET CONSTRAINTS ALL DEFERRED",
    "SAVEPOINT mine; INSERT INTO lent VALUES (7, ''); ROLLBACK TO mine; RELEASE SAVEPOINT mine",
    "SELECT 'COMMIT; COMMIT'",
    "SELECT $$; COMMIT$$ -- ; COMMIT",
    "SELECT 1 AS commit",
    'SELECT 1 AS "end;"',
    "DO $$ BEGIN PERFORM 1; END $$",
    "CREATE FUNCTION one() RETURNS int BEGIN ATOMIC SELECT 1; END; DROP FUNCTION one()",
    "",
]


@pytest.mark.parametrize("query", ALLOWED)
def test_what_stays_inside_is_allowed(lane: Lane, query: str) -> None:
    lane.begin()
    lane.handle(lambda lent: lent.connection.execute(query))
    lane.commit()


@pytest.mark.parametrize(
    "query",
    [
        "DO $$ BEGIN COMMIT; END $$",
        "CREATE PROCEDURE leave() LANGUAGE plpgsql AS $$ BEGIN ROLLBACK; END $$; CALL leave()",
        "DO $$ BEGIN EXECUTE 'COMMIT'; END $$",
    ],
)
def test_code_in_the_server_cannot_end_it(lane: Lane, query: str) -> None:
    lane.begin()
    with pytest.raises(psycopg.Error):
        lane.handle(lambda lent: lent.connection.execute(query))
    assert postgres.standing(lane.connection) == "failed"
    lane.roll_back()
    assert lane.rows() == []


def test_what_a_handler_sets_on_its_connection_ends_with_it(lane: Lane) -> None:
    """Fails when handlers share a connection object: its row factory and its open blocks would be the next one's."""

    def leaving(lent: Lent) -> None:
        lent.connection.row_factory = psycopg.rows.dict_row
        lent.connection.transaction().__enter__()

    def next_one(lent: Lent) -> None:
        assert lent.connection.execute("SELECT 1").fetchone() == (1,)
        with lent.connection.transaction():
            lent.connection.execute(INSERT, (1, ""))

    lane.begin()
    lane.handle(leaving)
    lane.handle(next_one)
    lane.commit()
    assert lane.rows() == [1]


LATE: dict[str, Callable[[Any], Any]] = {
    "execute": executing(INSERT, (9, "late")),
    "executemany": lambda c: c.cursor().executemany(INSERT, [(9, "late")]),
    "transaction": lambda c: c.transaction().__enter__(),
    "copy": lambda c: c.cursor().copy("COPY lent FROM STDIN").__enter__(),
    "stream": lambda c: list(c.cursor().stream("SELECT 1")),
    "pipeline": lambda c: c.pipeline().__enter__(),
    "named": lambda c: c.cursor(name="late").execute("SELECT 1"),
}


@pytest.mark.parametrize("way", LATE)
def test_a_thread_that_outlives_its_handler_cannot_use_the_connection(lane: Lane, way: str) -> None:
    """Fails when what a handler was lent works on while the next handler has the connection."""
    held: list[Any] = []
    errors: list[BaseException] = []

    def late() -> None:
        try:
            LATE[way](held[0])
        except BaseException as error:  # noqa: BLE001 each kind is looked at
            errors.append(error)

    def second(lent: Lent) -> None:
        lent.connection.execute(INSERT, (2, "second"))
        thread = threading.Thread(target=late)
        thread.start()
        thread.join()

    lane.begin()
    lane.handle(lambda lent: held.append(lent.connection))
    lane.handle(second)
    lane.commit()
    assert [type(error) for error in errors] == [TransactionRefused]
    assert lane.rows() == [2]


def test_cursors_sessions_and_the_queue_are_taken_back_as_well(lane: Lane) -> None:
    held: dict[str, Any] = {}

    def handler(lent: Lent) -> None:
        held.update(cursor=lent.connection.cursor(), session=lent.session, queue=lent.pipeline, lent=lent)
        held["bound"] = lent.session.connection()

    refused: list[str] = []

    def late() -> None:
        ways: dict[str, Callable[[], Any]] = {
            "cursor": lambda: held["cursor"].execute(INSERT, (9, "late")),
            "queue": lambda: held["queue"].execute(INSERT, (9, "late")),
            "connection": lambda: held["lent"].connection,
            "session of it": lambda: held["lent"].session,
            "session": lambda: held["session"].execute(text("INSERT INTO lent VALUES (9, 'late')")),
            "bound": lambda: held["bound"].execute(text("INSERT INTO lent VALUES (9, 'late')")),
        }
        for name, use in ways.items():
            try:
                use()
            except Exception:  # noqa: BLE001 SQLAlchemy wraps some
                refused.append(name)

    def second(lent: Lent) -> None:
        lent.session.execute(text("INSERT INTO lent VALUES (2, 'second')"))
        thread = threading.Thread(target=late)
        thread.start()
        thread.join()

    lane.begin()
    lane.handle(handler)
    lane.handle(second)
    lane.commit()
    assert refused == ["cursor", "queue", "connection", "session of it", "session", "bound"]
    assert lane.rows() == [2]


def test_sessions_leave_nothing_on_the_lanes_connection(lane: Lane) -> None:
    """Fails when what SQLAlchemy registers on a handler's connection is kept for the lane's: it would grow for ever."""
    lane.begin()
    for _ in range(3):
        lane.handle(lambda lent: lent.session.execute(text("SELECT 1")))
    assert lane.connection._notice_handlers == []
    lane.commit()


def test_a_thread_of_the_handlers_own_may_use_its_session(lane: Lane) -> None:
    def handler(lent: Lent) -> None:
        session = lent.session
        thread = threading.Thread(target=lambda: session.execute(text("INSERT INTO lent VALUES (1, 'own')")))
        thread.start()
        thread.join()

    lane.begin()
    lane.handle(handler)
    lane.handle(handler_of_the_next)
    lane.commit()
    assert lane.rows() == [1, 2]


def handler_of_the_next(lent: Lent) -> None:
    lent.session.execute(text("INSERT INTO lent VALUES (2, 'next')"))


def test_a_task_that_outlives_its_handler_cannot_use_the_connection(url: str) -> None:
    tasks: list[asyncio.Task[Any]] = []

    async def late(lent: AsyncLent, connection: Any) -> None:
        await asyncio.sleep(0)
        while not lent.is_over:
            await asyncio.sleep(0)
        await connection.execute(INSERT, (9, "late"))

    async def handler(lent: AsyncLent) -> None:
        tasks.append(asyncio.create_task(late(lent, lent.connection)))

    async def second(lent: AsyncLent) -> None:
        await lent.connection.execute(INSERT, (2, "second"))
        await asyncio.wait(tasks)

    async def body(lane: AsyncLane) -> None:
        await lane.begin()
        await lane.handle(handler)
        await lane.handle(second)
        await lane.commit()
        assert isinstance(tasks[0].exception(), TransactionRefused)
        assert await lane.rows() == [2]

    in_a_loop(url, body)


def test_a_thread_that_still_runs_a_query_is_found_out(lane: Lane) -> None:
    started = threading.Event()
    threads: list[threading.Thread] = []

    def query(connection: Any) -> None:
        started.set()
        with suppress(psycopg.Error):
            connection.execute("SELECT pg_sleep(60)")

    def handler(lent: Lent) -> None:
        threads.append(threading.Thread(target=query, args=(lent.connection,)))
        threads[0].start()
        started.wait()
        eventually(lent.connection.lock.locked, what="the query runs")

    lane.begin()
    with pytest.raises(TransactionRefused, match="a thread still uses it"):
        lane.handle(handler)
    threads[0].join()
    lane.roll_back()
    lane.begin()
    lane.handle(first)
    lane.commit()
    assert lane.rows() == [1]


def test_a_task_that_still_runs_a_query_is_found_out(url: str) -> None:
    tasks: list[asyncio.Task[Any]] = []

    async def handler(lent: AsyncLent) -> None:
        connection = lent.connection
        tasks.append(asyncio.ensure_future(connection.execute("SELECT pg_sleep(60)")))
        while not connection.lock.locked():
            await asyncio.sleep(0)

    async def body(lane: AsyncLane) -> None:
        await lane.begin()
        with pytest.raises(TransactionRefused, match="still uses it"):
            await lane.handle(handler)
        await asyncio.wait(tasks)
        assert isinstance(tasks[0].exception(), psycopg.errors.QueryCanceled)
        await lane.roll_back()

    in_a_loop(url, body)


def test_what_is_left_open_is_found_out(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the lane waits for ever for a connection that nobody gives back."""
    monkeypatch.setattr("packhorse.processor.storing.guarding.postgres.FREE_WAIT", 0.05)
    held: list[Any] = []

    def copying(lent: Lent) -> None:
        held.append(lent.connection.cursor().copy("COPY lent FROM STDIN"))
        held[0].__enter__()

    def piping(lent: Lent) -> None:
        held.append(lent.connection.pipeline())
        held[0].__enter__()

    for handler, about in ((piping, r"connection.pipeline\(\) is still open"), (copying, "COPY or a stream")):
        held.clear()
        lane.connection.end()
        lane.connection = postgres.connect(lane.url)
        lane.begin()
        with pytest.raises(TransactionRefused, match=about):
            lane.handle(handler)
        assert lane.connection.closed
    held.clear()


def test_two_queues_at_once_are_refused(lane: Lane) -> None:
    def handler(lent: Lent) -> None:
        with lent.connection.pipeline():
            lent.pipeline.execute(INSERT, (1, ""))
            lent.connection.execute(INSERT, (2, ""))

    lane.begin()
    with pytest.raises(TransactionRefused, match="two queues"):
        lane.handle(handler)
    lane.roll_back()


def test_swallowed_errors_leave_the_transaction_failed(lane: Lane) -> None:
    """Fails when what is queued is sent behind the error, and so hides it."""

    def handler(lent: Lent) -> None:
        with suppress(psycopg.Error):
            lent.connection.execute("SELECT nonsense")
        for n in range(20):
            with suppress(psycopg.Error):
                lent.pipeline.execute(INSERT, (n, ""))

    lane.begin()
    lane.handle(handler)
    assert postgres.standing(lane.connection) == "failed"
    lane.roll_back()
