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

from packhorse.processor import AsyncContext, Context, Processor, Quarantine, Retry, Skip

app = Processor("figures")


@app.handler(AmountMoved, retry=Retry(attempts=5, delays=["1s", 5, 0.5], budget="15m"), permanent=(KeyError,))
def moved(message: AmountMoved, ctx: Context) -> None:
    assert_type(ctx.id, UUID)
    assert_type(ctx.key, str | None)
    assert_type(ctx.timestamp, datetime)
    assert_type(ctx.attempt, int)
    assert_type(ctx.connection, psycopg.Connection[Any])
    assert_type(ctx.session, Session)
    assert_type(ctx.emit(AccountOpened(account="a", owner="o", limit=1), key="a", headers={"a": "b"}), UUID)
    assert_type(ctx.emit_tombstone(AccountOpened, key="a"), UUID)
    ctx.log.info("moved", account=message.account)
    if message.amount < 0:
        raise Skip("nothing moved")
    if message.amount == 0:
        raise Quarantine("no-amount")


@app.handler(AccountOpened)
async def opened(message: AccountOpened, ctx: AsyncContext) -> None:
    assert_type(ctx.connection, psycopg.AsyncConnection[Any])
    assert_type(ctx.session, AsyncSession)
    assert_type(await ctx.emit(message, key=None), UUID)


@app.tombstone_handler(AccountOpened)
def closed(ctx: Context) -> None:
    assert_type(ctx.raw_key, bytes | None)


@app.handler(AmountMoved)  # type: ignore[arg-type]
def other_message(message: AccountOpened, ctx: Context) -> None: ...


@app.handler(AmountMoved)  # type: ignore[arg-type]
async def sync_context(message: AmountMoved, ctx: Context) -> None: ...


@app.handler(AmountMoved)  # type: ignore[arg-type]
def no_context(message: AmountMoved) -> None: ...


@app.handler(int)  # type: ignore[type-var]
def no_message(message: int, ctx: Context) -> None: ...
