"""
The types of writing as a user sees them; checked by mypy, never run.

A line marked `type: ignore` must be an error: mypy warns of an ignore that nothing needs.
"""

from typing import Any, assert_type
from uuid import UUID

import psycopg
import sqlalchemy as sa
from psycopg.rows import DictRow
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session
from tests.support.accounts import AccountOpened, AmountMoved

from packhorse.core.jobs import JobState
from packhorse.producer import (
    Cancelling,
    Effect,
    Job,
    JobDraft,
    JobHandle,
    Jobs,
    MessageContext,
    Outbox,
    Outgoing,
    Tombstone,
    Transition,
    message_context,
)
from packhorse.testing import (
    Emitted,
    Submitted,
    aemitted,
    assert_emitted,
    assert_submitted,
    emitted,
    submitted,
)

outbox = Outbox(origin="bank")
moved = AmountMoved(account="a", amount=1)


def sync_kinds(
    plain: psycopg.Connection,
    dicts: psycopg.Connection[DictRow],
    connection: sa.Connection,
    session: Session,
    scoped: scoped_session[Session],
) -> None:
    assert_type(outbox.emit(plain, moved, key="a"), UUID)
    assert_type(outbox.emit(dicts, moved, key=None, lock_key=True), UUID)
    assert_type(outbox.emit(connection, moved, key="a", headers={"a": "b"}, tenant="t"), UUID)
    assert_type(outbox.emit(session, moved, key="a", id=UUID(int=1)), UUID)
    assert_type(outbox.emit_tombstone(scoped, AmountMoved, key="a"), UUID)
    assert_type(outbox.emit_many(plain, [(moved, "a"), (moved, None)]), list[UUID])
    opened = AccountOpened(account="a", owner="o", limit=1)
    outbox.emit_many(
        session, [Outgoing(message=opened, key="a"), Tombstone(of=AmountMoved, key="a"), (moved, "a")]
    )
    outbox.lock_keys(plain, ["a", None])


async def async_kinds(
    plain: psycopg.AsyncConnection,
    connection: AsyncConnection,
    session: AsyncSession,
    scoped: async_scoped_session[AsyncSession],
) -> None:
    assert_type(await outbox.aemit(plain, moved, key="a"), UUID)
    assert_type(await outbox.aemit(connection, moved, key="a", lock_key=True), UUID)
    assert_type(await outbox.aemit_many(session, [(moved, "a")]), list[UUID])
    assert_type(await outbox.aemit_tombstone(scoped, AmountMoved, key="a"), UUID)
    await outbox.alock_keys(plain, ["a"])


def mistakes(
    plain: psycopg.Connection, plain_async: psycopg.AsyncConnection, session: AsyncSession, engine: sa.Engine
) -> None:
    outbox.emit(plain, moved)  # type: ignore[call-arg]
    outbox.emit(plain, moved, "a")  # type: ignore[call-arg]
    outbox.emit(plain, moved, key=17)  # type: ignore[arg-type]
    outbox.emit(plain, {"account": "a"}, key="a")  # type: ignore[arg-type]
    outbox.emit(plain, moved, key="a", header={"a": "b"})  # type: ignore[call-arg]
    outbox.emit(plain, moved, key="a", headers={"a": 1})  # type: ignore[dict-item]
    outbox.emit(plain_async, moved, key="a")  # type: ignore[arg-type]
    outbox.emit(session, moved, key="a")  # type: ignore[arg-type]
    outbox.emit(engine, moved, key="a")  # type: ignore[arg-type]
    outbox.emit_tombstone(plain, AmountMoved, key=None)  # type: ignore[arg-type]
    outbox.emit_tombstone(plain, moved, key="a")  # type: ignore[arg-type]
    outbox.emit_many(plain, [moved])  # type: ignore[list-item]
    outbox.lock_keys(plain, [17])  # type: ignore[list-item]
    outbox.origin = "other"  # type: ignore[misc]
    AmountMoved(account="a", amount="1")  # type: ignore[arg-type]


async def async_mistakes(plain: psycopg.Connection, session: Session) -> None:
    await outbox.aemit(plain, moved, key="a")  # type: ignore[arg-type]
    await outbox.aemit(session, moved, key="a")  # type: ignore[arg-type]


def context() -> None:
    with message_context(tenant="t") as current:
        assert_type(current, MessageContext)


def what_tests_see(plain: psycopg.Connection) -> None:
    assert_type(emitted(plain), list[Emitted[Any]])
    assert_type(emitted(plain, AmountMoved), list[Emitted[AmountMoved]])
    one = assert_emitted(plain, AmountMoved, key="a", amount=1)
    assert_type(one.message, AmountMoved | None)


async def what_async_tests_see(plain: psycopg.AsyncConnection) -> None:
    assert_type(await aemitted(plain, AmountMoved), list[Emitted[AmountMoved]])


def jobs_of(plain: psycopg.Connection, session: Session, one: UUID) -> None:
    assert_type(outbox.submit(plain, moved), JobHandle[AmountMoved])
    assert_type(
        outbox.submit(session, moved, request_key="k", priority="low", one_waiting="w", tenant=None),
        JobHandle[AmountMoved],
    )
    drafts = [JobDraft(input=moved), JobDraft(input=moved, request_key="k")]
    assert_type(outbox.submit_many(plain, drafts), list[JobHandle[AmountMoved]])
    assert_type(outbox.cancel(plain, one, why="twice"), Cancelling)
    with Jobs("postgresql://localhost/app", schema="packhorse") as jobs:
        assert_type(jobs.get(one), Job)
        assert_type(jobs.wait(one, timeout=5), Job)
        assert_type(jobs.get(one).state, JobState)
        assert_type(jobs.history(one), list[Transition])
        assert_type(jobs.effects(one), list[Effect])
    assert_type(submitted(plain, AmountMoved), list[Submitted[AmountMoved]])
    assert_type(submitted(plain), list[Submitted[Any]])
    assert_type(assert_submitted(plain, AmountMoved, amount=1).input, AmountMoved)


async def jobs_of_async(plain: psycopg.AsyncConnection, session: AsyncSession, jobs: Jobs, one: UUID) -> None:
    assert_type(await outbox.asubmit(plain, moved, one_running="r"), JobHandle[AmountMoved])
    assert_type(await outbox.asubmit_many(session, [JobDraft(input=moved)]), list[JobHandle[AmountMoved]])
    assert_type(await outbox.acancel(plain, one), Cancelling)
    assert_type(await jobs.aget(one), Job)
    assert_type(await jobs.await_end(one, timeout=5), Job)


def mistakes_with_jobs(plain: psycopg.Connection, plain_async: psycopg.AsyncConnection, jobs: Jobs) -> None:
    outbox.submit(plain, moved, key="a")  # type: ignore[call-arg]
    outbox.submit(plain, moved, priority="urgent")  # type: ignore[arg-type]
    outbox.submit(plain, {"account": "a"})  # type: ignore[type-var]
    outbox.submit(plain_async, moved)  # type: ignore[arg-type]
    outbox.submit_many(plain, [moved])  # type: ignore[arg-type]
    outbox.cancel(plain, "id")  # type: ignore[arg-type]
    jobs.wait(UUID(int=1))  # type: ignore[call-arg]
