"""Run one handler on one message, with the real database or with none; neither broker nor registry."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from packhorse.core import logs
from packhorse.core.errors import UsageError
from packhorse.core.message import TypedMessage
from packhorse.processor import (
    AsyncContext,
    Context,
    Outcome,
    Processor,
    Quarantine,
    Skip,
    TransactionRefused,
)
from packhorse.processor.outcomes import SwallowedError
from packhorse.processor.running.resources import AsyncLent, Lent
from packhorse.processor.storing.postgres import standing
from packhorse.producer import Outbox, message_context, postgres
from packhorse.producer.connections import async_driver, family_of, sync_driver
from packhorse.producer.rows import Draft
from packhorse.producer.statements import Statement, Steps
from packhorse.testing.deliveries import Prepared, prepared
from packhorse.testing.emitted import Emitted, aemitted, emitted
from packhorse.testing.memory import AsyncNoDatabase, NoDatabase
from packhorse.testing.postgres import conninfo_of
from packhorse.testing.sql import FORGET, MARK, UNDO, XID, XID_NOW

if TYPE_CHECKING:
    from packhorse.producer.connections import Async, Sync

LOG = logs.logger("testing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """
    How a handler dealt with a message.

    Attributes:
        outcome: done, skipped (it raised Skip) or quarantine (it raised Quarantine).
        reason: Reason code of Quarantine.
        emitted: What it emitted, in order; nothing unless it is done.
    """

    outcome: Outcome
    reason: str | None = None
    emitted: tuple[Emitted[Any], ...] = ()


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
    Skip and Quarantine undo what the handler wrote. Any other error undoes it too and is raised here as it is: whether it
    means another attempt is the processor's to decide. Nothing is recorded in the inbox, so the handler runs each time.

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
        TransactionRefused: The handler ended the transaction that it was given.
    """
    ready = prepared(app, message, key)
    if ready.handler.is_async:
        raise UsageError(f"handler {ready.handler.name} is async; use `await arun_handler(…)`")
    if connection is None:
        memory = NoDatabase(app.group)
        return _in_memory(lambda: _call(ready, memory, app.group, attempt), memory)
    driver = sync_driver(connection)
    xid = postgres.run(driver, _marked())
    seen = len(emitted(connection, database_schema=database_schema))
    lent = Lent(cast("Any", driver), lambda: _sessions(connection, driver), _outbox(app, database_schema))
    try:
        _call(ready, lent, app.group, attempt)
        lent.settle()
        check_open(driver)
        postgres.run(driver, _kept(xid))
    except BaseException as error:
        lent.drop()
        if _can_undo(driver, error):
            postgres.run(driver, _undone())
        if (said := _said(error)) is None:
            raise
        return said
    lent.drop()
    follow_ups = emitted(connection, database_schema=database_schema)[seen:]
    return Handled(outcome=Outcome.DONE, emitted=tuple(follow_ups))


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
    ready = prepared(app, message, key)
    if not ready.handler.is_async:
        raise UsageError(f"handler {ready.handler.name} is not async; use `run_handler(…)` without await")
    if connection is None:
        memory = AsyncNoDatabase(app.group)
        return await _in_memory_async(_acall(ready, memory, app.group, attempt), memory)
    driver = await async_driver(connection)
    xid = await postgres.arun(driver, _marked())
    seen = len(await aemitted(connection, database_schema=database_schema))
    sessions = await _async_sessions(connection, driver)
    lent = AsyncLent(cast("Any", driver), lambda: sessions, _outbox(app, database_schema))
    try:
        await _acall(ready, lent, app.group, attempt)
        await lent.settle()
        check_open(driver)
        await postgres.arun(driver, _kept(xid))
    except BaseException as error:
        await lent.drop()
        if _can_undo(driver, error):
            await postgres.arun(driver, _undone())
        if (said := _said(error)) is None:
            raise
        return said
    await lent.drop()
    follow_ups = (await aemitted(connection, database_schema=database_schema))[seen:]
    return Handled(outcome=Outcome.DONE, emitted=tuple(follow_ups))


def _call(ready: Prepared, resources: Any, group: str, attempt: int) -> None:
    context = Context(ready.delivery, resources, group=group, attempt=attempt, log=LOG)
    with _around(context):
        ready.handler.function(*ready.arguments(context))


async def _acall(ready: Prepared, resources: Any, group: str, attempt: int) -> None:
    context = AsyncContext(ready.delivery, resources, group=group, attempt=attempt, log=LOG)
    with _around(context):
        await ready.handler.function(*ready.arguments(context))


def _around(context: Context | AsyncContext) -> AbstractContextManager[object]:
    return message_context(
        correlation_id=context.correlation_id or str(context.id),
        causation_id=str(context.id),
        actor=context.actor,
        tenant=context.tenant,
    )


def _in_memory(call: Callable[[], None], memory: NoDatabase) -> Handled:
    try:
        call()
    except (Skip, Quarantine) as end:
        return _said(end) or Handled(outcome=Outcome.DONE)
    return Handled(outcome=Outcome.DONE, emitted=tuple(memory.emitted))


async def _in_memory_async(call: Coroutine[Any, Any, None], memory: AsyncNoDatabase) -> Handled:
    try:
        await call
    except (Skip, Quarantine) as end:
        return _said(end) or Handled(outcome=Outcome.DONE)
    return Handled(outcome=Outcome.DONE, emitted=tuple(memory.emitted))


def _said(end: BaseException) -> Handled | None:
    """Return what *end* means, where the handler said so itself; None for every other error."""
    if isinstance(end, Skip):
        return Handled(outcome=Outcome.SKIPPED)
    if isinstance(end, Quarantine):
        return Handled(outcome=Outcome.QUARANTINE, reason=end.reason)
    return None


def _outbox(app: Processor, database_schema: str) -> Outbox:
    return Outbox(origin=app.group, schema=database_schema)


def _sessions(given: object, driver: Any) -> Any:
    if family_of(given) == "sqlalchemy":
        from packhorse.testing.sqlalchemy import Joined

        return Joined(given)
    from packhorse.processor.storing.sqlalchemy import Sessions

    return Sessions(conninfo_of(driver))


async def _async_sessions(given: object, driver: Any) -> Any:
    """Return the maker of sessions; the one beside psycopg is only made ready where SQLAlchemy is in use at all."""
    if family_of(given) == "sqlalchemy":
        from packhorse.testing.sqlalchemy import AsyncJoined

        return await AsyncJoined.to(given)
    if "sqlalchemy" not in sys.modules:
        return None
    from packhorse.processor.storing.sqlalchemy import AsyncSessions

    sessions = AsyncSessions(conninfo_of(driver))
    await sessions.prepare(driver)
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
        raise TransactionRefused(ENDED)
    yield Statement(FORGET, ())


def _can_undo(driver: Any, error: BaseException) -> bool:
    """Return True while the savepoint around the handler is there: not when the handler ended the transaction."""
    return not isinstance(error, TransactionRefused) and standing(driver) in {"open", "failed"}


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
            raise TransactionRefused(ENDED)
        case _:
            return


ENDED = (
    "the handler ended the transaction that it was given, and with it what the test had written; use "
    "`with ctx.connection.transaction():` for a savepoint"
)
