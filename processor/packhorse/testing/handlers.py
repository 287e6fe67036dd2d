"""Run one handler on one message, with the real database or with none; neither broker nor registry."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from packhorse.core.errors import PackhorseError, UsageError
from packhorse.core.message import TypedMessage
from packhorse.processor import Processor, TransactionRefused
from packhorse.processor.outcomes import SwallowedError
from packhorse.processor.storing.guarding.postgres import adopted
from packhorse.processor.storing.postgres import standing
from packhorse.producer import Outbox, postgres
from packhorse.producer.connections import async_driver, family_of, sync_driver
from packhorse.producer.rows import Draft
from packhorse.producer.statements import Statement, Steps
from packhorse.testing.emitted import aemitted, emitted
from packhorse.testing.handled import Given, Handled, One, Run, Several, one, said, several
from packhorse.testing.lending import AsyncLentForTest, LentForTest
from packhorse.testing.memory import AsyncNoDatabase, NoDatabase
from packhorse.testing.postgres import conninfo_of
from packhorse.testing.sql import FORGET, MARK, UNDO, XID, XID_NOW

if TYPE_CHECKING:
    from packhorse.producer.connections import Async, Sync


def run_handler(
    app: Processor,
    message: TypedMessage | Draft,
    *,
    key: str | None = None,
    connection: Sync | None = None,
    attempt: int = 1,
    database_schema: str = "packhorse",
) -> Handled:
    """
    Run *app*'s handler for *message* and say how it ended; its writes stay in the open transaction of *connection*.

    The message goes through its encoding and back, so the handler sees what the wire would give it. As in production,
    Skip, Quarantine, Retry and Later undo what the handler wrote. Any other error undoes it too and is raised here as it is: whether it
    means another attempt is the processor's to decide. A batch handler gets a batch of one. What is queued on `ctx.pipeline` runs
    at once, so that its errors show where they are made. Nothing is recorded in the inbox, so the handler runs each time.

    Args:
        app: The processor.
        message: A message; an `Outgoing` says more about it (headers, tenant, …), a `Tombstone` deletes a key.
        key: Its key.
        connection: A connection or session of the test, with the tables, and its schemas known (`register_for_tests`).
            None: the handler gets no database, and what it emits is only kept in memory.
        attempt: What `ctx.attempt` says.
        database_schema: Database schema of the tables.

    Raises:
        UsageError: No handler takes the message, or it is async: use `arun_handler`.
        TransactionRefused: The handler tried to end the transaction that it was given.
    """
    return run(app, one(app, message, key, attempt), connection, database_schema)[0]


def run_batch_handler(
    app: Processor,
    messages: Iterable[Given],
    *,
    connection: Sync | None = None,
    attempt: int = 1,
    database_schema: str = "packhorse",
) -> list[Handled]:
    """
    Run *app*'s batch handler for *messages* at once and say how it ended for each; otherwise as `run_handler`.

    An error that comes out of the handler undoes what it wrote for all of them and is raised here; only of a batch of one Skip,
    Quarantine, Retry and Later are an outcome. (In production the messages then run again in smaller batches.)

    Args:
        app: The processor.
        messages: Of one type, each a message, a message with its key as a tuple, or an `Outgoing`.
        connection: As for `run_handler`.
        attempt: As for `run_handler`.
        database_schema: As for `run_handler`.

    Raises:
        UsageError: There are no messages, no batch handler takes them, or it is async: use `arun_batch_handler`.
        TransactionRefused: The handler tried to end the transaction that it was given.
    """
    return run(app, several(app, messages, attempt), connection, database_schema)


async def arun_handler(
    app: Processor,
    message: TypedMessage | Draft,
    *,
    key: str | None = None,
    connection: Async | None = None,
    attempt: int = 1,
    database_schema: str = "packhorse",
) -> Handled:
    """Run an `async def` handler on an async *connection*; promises and raises what `run_handler` does."""
    return (await arun(app, one(app, message, key, attempt), connection, database_schema))[0]


async def arun_batch_handler(
    app: Processor,
    messages: Iterable[Given],
    *,
    connection: Async | None = None,
    attempt: int = 1,
    database_schema: str = "packhorse",
) -> list[Handled]:
    """Run an `async def` batch handler; promises and raises what `run_batch_handler` does."""
    return await arun(app, several(app, messages, attempt), connection, database_schema)


def run(app: Processor, run: Run, connection: Sync | None, database_schema: str) -> list[Handled]:
    """Do *run* on *connection* and say how it ended, as `run_handler`."""
    if run.is_async:
        raise UsageError(f"handler {run.name} is async; use `await a{_verb(run)}(…)`")
    if connection is None:
        memory = NoDatabase(app.group)
        return _in_memory(lambda: run.call(memory), run, memory)
    driver = sync_driver(connection)
    lane = adopted(driver)
    xid = postgres.run(driver, _marked())
    seen = len(emitted(connection, database_schema=database_schema))
    lent = LentForTest(lane, lambda: _sessions(connection, driver), _outbox(app, database_schema))
    try:
        run.call(lent)
        lent.settle()
        check_open(driver)
        postgres.run(driver, _kept(xid))
    except BaseException as error:  # noqa: BLE001 what is no outcome is raised again
        lent.drop()
        if _can_undo(driver, error):
            postgres.run(driver, _undone())
        return _ended_by(error, run)
    lent.drop()
    return run.ended(emitted(connection, database_schema=database_schema)[seen:])


async def arun(app: Processor, run: Run, connection: Async | None, database_schema: str) -> list[Handled]:
    """Do an async *run*, as `run`."""
    if not run.is_async:
        raise UsageError(f"handler {run.name} is not async; use `{_verb(run)}(…)` without await")
    if connection is None:
        memory = AsyncNoDatabase(app.group)
        return await _in_memory_async(run, memory)
    driver = await async_driver(connection)
    lane = adopted(driver)
    xid = await postgres.arun(driver, _marked())
    seen = len(await aemitted(connection, database_schema=database_schema))
    sessions = await _async_sessions(connection, driver, lane)
    lent = AsyncLentForTest(lane, lambda: sessions, _outbox(app, database_schema))
    try:
        await run.acall(lent)
        await lent.settle()
        check_open(driver)
        await postgres.arun(driver, _kept(xid))
    except BaseException as error:  # noqa: BLE001 what is no outcome is raised again
        await lent.drop()
        if _can_undo(driver, error):
            await postgres.arun(driver, _undone())
        return _ended_by(error, run)
    await lent.drop()
    return run.ended((await aemitted(connection, database_schema=database_schema))[seen:])


def _verb(run: Run) -> str:
    if isinstance(run, Several):
        return "run_batch_handler"
    return "run_handler" if isinstance(run, One) else "run_job"


def _in_memory(call: Callable[[], None], run: Run, memory: NoDatabase) -> list[Handled]:
    try:
        call()
    except PackhorseError as end:
        return _ended_by(end, run)
    return run.ended(memory.emitted)


async def _in_memory_async(run: Run, memory: AsyncNoDatabase) -> list[Handled]:
    try:
        await run.acall(memory)
    except PackhorseError as end:
        return _ended_by(end, run)
    return run.ended(memory.emitted)


def _ended_by(error: BaseException, run: Run) -> list[Handled]:
    """Return what *error* means for the one message of *run*; raise it when it means nothing, or there are several."""
    meant = said(error)
    if meant is None or len(run) > 1:
        raise error
    return [meant]


def _outbox(app: Processor, database_schema: str) -> Outbox:
    return Outbox(origin=app.group, schema=database_schema)


def _sessions(given: object, driver: Any) -> Any:
    if family_of(given) == "sqlalchemy":
        from packhorse.testing.sqlalchemy import Joined

        return Joined(given)
    from packhorse.processor.storing.sqlalchemy import Sessions

    return Sessions(conninfo_of(driver))


async def _async_sessions(given: object, driver: Any, lane: Any) -> Any:
    """Return the maker of sessions; the one beside psycopg is only made ready where SQLAlchemy is in use at all."""
    if family_of(given) == "sqlalchemy":
        from packhorse.testing.sqlalchemy import AsyncJoined

        return await AsyncJoined.to(given)
    if "sqlalchemy" not in sys.modules:
        return None
    from packhorse.processor.storing.sqlalchemy import AsyncSessions

    sessions = AsyncSessions(conninfo_of(driver))
    await sessions.prepare(lane)
    return sessions


def _marked() -> Steps[str]:
    rows = yield Statement(XID, (), returns=True)
    yield Statement(MARK, ())
    return str(rows[0][0])


def _undone() -> Steps[None]:
    yield Statement(UNDO, ())
    yield Statement(FORGET, ())


def _kept(xid: str) -> Steps[None]:
    rows = yield Statement(XID_NOW, (), returns=True)
    if rows[0][0] != xid:
        raise Ended(ENDED)
    yield Statement(FORGET, ())


class Ended(TransactionRefused):
    """The handler ended the transaction: nothing can be undone."""


def _can_undo(driver: Any, error: BaseException) -> bool:
    """Return True while the savepoint around the handler is there: not when the handler ended the transaction."""
    return not isinstance(error, Ended) and standing(driver) in {"open", "failed"}


def check_open(driver: Any) -> None:
    """
    Check that a handler that returned left its transaction as it must.

    Raises:
        TransactionRefused: It ended it.
        SwallowedError: A statement failed in it, and the handler went on.
    """
    match standing(driver):
        case "failed":
            raise SwallowedError(
                "the handler returned although the database had refused one of its statements; let the error out, or "
                "wrap the statement in `with ctx.connection.transaction():`"
            )
        case "none" | "lost":
            raise Ended(ENDED)
        case _:
            return


ENDED = (
    "the handler ended the transaction that it was given, and with it what the test had written; use "
    "`with ctx.connection.transaction():` for a savepoint"
)
