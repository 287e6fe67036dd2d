"""
The types of handling as a user sees them; checked by mypy, never run.

A line marked `type: ignore` must be an error: mypy warns of an ignore that nothing needs.
"""

from datetime import datetime
from typing import Any, assert_type
from uuid import UUID

import psycopg
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session
from tests.support.accounts import AccountOpened, AmountMoved

from packhorse.processor import (
    AsyncBatchContext,
    AsyncContext,
    Batch,
    BatchContext,
    Context,
    Item,
    Later,
    Processor,
    Quarantine,
    Retry,
    Skip,
)

app = Processor("figures", ordering="key", concurrency=4, after_quarantine="park")


@app.handler(AmountMoved, retry=Retry(attempts=5, delays=["1s", 5, 0.5], budget="15m"), permanent=(KeyError,))
def moved(message: AmountMoved, ctx: Context) -> None:
    assert_type(ctx.id, UUID)
    assert_type(ctx.key, str | None)
    assert_type(ctx.timestamp, datetime)
    assert_type(ctx.attempt, int)
    assert_type(ctx.connection, psycopg.Connection[Any])
    assert_type(ctx.session, Session)
    ctx.pipeline.execute("UPDATE account SET balance = %s", (message.amount,))
    ctx.pipeline.execute(b"UPDATE account SET balance = %(b)s", {"b": message.amount})
    assert_type(ctx.emit(AccountOpened(account="a", owner="o", limit=1), key="a", headers={"a": "b"}), UUID)
    assert_type(ctx.emit_tombstone(AccountOpened, key="a"), UUID)
    ctx.log.info("moved", account=message.account)
    if message.amount < 0:
        raise Skip("nothing moved")
    if message.amount == 0:
        raise Quarantine("no-amount")
    if message.amount == 1:
        raise Retry("not there yet", after="5m")
    if message.amount == 2:
        raise Later(after="5m")


@app.handler(
    AccountOpened,
    ordering="none",
    after_quarantine="continue",
    isolation="message",
    timeout="30s",
    down=(OSError,),
    safe=(KeyError,),
)
async def opened(message: AccountOpened, ctx: AsyncContext) -> None:
    assert_type(ctx.connection, psycopg.AsyncConnection[Any])
    assert_type(ctx.session, AsyncSession)
    await ctx.pipeline.execute("DELETE FROM account")
    assert_type(await ctx.emit(message, key=None), UUID)


@app.tombstone_handler(AccountOpened)
def closed(ctx: Context) -> None:
    assert_type(ctx.raw_key, bytes | None)


@app.batch_handler(AmountMoved, retry=Retry(delays=["5s"]), timeout=30)
def moved_together(batch: Batch[AmountMoved], ctx: BatchContext) -> None:
    assert_type(len(batch), int)
    assert_type(batch.messages, list[AmountMoved])
    assert_type(batch[0], Item[AmountMoved])
    assert_type(batch[1:], list[Item[AmountMoved]])
    for item in batch:
        assert_type(item, Item[AmountMoved])
        assert_type(item.message, AmountMoved)
        assert_type(item.id, UUID)
        assert_type(item.key, str | None)
        item.retry()
        item.retry(after="5m", error=KeyError())
        item.quarantine("no-amount", "text")
        item.skip("text")
        assert_type(ctx.emit(item, AccountOpened(account="a", owner="o", limit=1), key=item.key), UUID)
        assert_type(ctx.emit_tombstone(item, AccountOpened, key="a"), UUID)
    assert_type(ctx.connection, psycopg.Connection[Any])
    assert_type(ctx.session, Session)
    ctx.pipeline.execute("DELETE FROM account")
    ctx.log.info("moved", count=len(batch))


@app.batch_handler(AccountOpened)
async def opened_together(batch: Batch[AccountOpened], ctx: AsyncBatchContext) -> None:
    assert_type(ctx.connection, psycopg.AsyncConnection[Any])
    assert_type(ctx.session, AsyncSession)
    await ctx.pipeline.execute("DELETE FROM account")
    for item in batch:
        assert_type(await ctx.emit(item, item.message, key=item.key), UUID)


@app.tombstone_handler(AmountMoved, timeout=1.5)
async def amount_gone(ctx: AsyncContext) -> None:
    assert_type(ctx.key, str | None)


@app.batch_handler(AmountMoved)  # type: ignore[arg-type]
def other_batch(batch: Batch[AccountOpened], ctx: BatchContext) -> None: ...


@app.batch_handler(AmountMoved)  # type: ignore[arg-type]
def one_of_a_batch(message: AmountMoved, ctx: BatchContext) -> None: ...


@app.batch_handler(AmountMoved)  # type: ignore[arg-type]
async def sync_batch_context(batch: Batch[AmountMoved], ctx: BatchContext) -> None: ...


@app.handler(AmountMoved)  # type: ignore[arg-type]
def a_batch(batch: Batch[AmountMoved], ctx: Context) -> None: ...


@app.handler(AmountMoved, ordering="partition")  # type: ignore[arg-type]
def other_ordering(message: AmountMoved, ctx: Context) -> None: ...


@app.handler(AmountMoved, down=(KeyboardInterrupt,))  # type: ignore[arg-type]
def no_exception(message: AmountMoved, ctx: Context) -> None: ...


@app.handler(AmountMoved, retries=3)  # type: ignore[call-arg]
def no_option(message: AmountMoved, ctx: Context) -> None: ...


@app.handler(AmountMoved)  # type: ignore[arg-type]
def other_message(message: AccountOpened, ctx: Context) -> None: ...


@app.handler(AmountMoved)  # type: ignore[arg-type]
async def sync_context(message: AmountMoved, ctx: Context) -> None: ...


@app.handler(AmountMoved)  # type: ignore[arg-type]
def no_context(message: AmountMoved) -> None: ...


@app.handler(int)  # type: ignore[type-var]
def no_message(message: int, ctx: Context) -> None: ...
