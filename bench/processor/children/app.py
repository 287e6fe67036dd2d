"""
Packhorse's processor: `packhorse processor run bench.processor.children.app:app`.

BENCH_MODE says how the handler writes: `plain` (one INSERT), `pipelined`, `async`, or `batch`. What else a scenario asks of it:

* BENCH_FAILS: every so many-th message raises in its first attempt; the ladder has one tier of a second;
* BENCH_SLOW: messages whose number that divides take a second;
* BENCH_WAIT: seconds that each message waits, as for a call to somebody else.
"""

import os
import time
from typing import Any

from bench.processor.messages import FORMS

from packhorse.processor import Batch, BatchContext, Processor, Retry

INSERT_ONE = "INSERT INTO result (id, n) VALUES (%s, %s)"
INSERT_MANY = "INSERT INTO result (id, n) SELECT * FROM unnest(%s::uuid[], %s::bigint[])"

MODE = os.environ.get("BENCH_MODE", "plain")
FORM = os.environ["BENCH_FORM"]
FAILS, SLOW = int(os.environ.get("BENCH_FAILS", "0")), int(os.environ.get("BENCH_SLOW", "0"))
WAIT = float(os.environ.get("BENCH_WAIT", "0"))
TROUBLED = bool(FAILS or SLOW or WAIT)

app = Processor(os.environ["BENCH_GROUP"])
Message: Any = FORMS[FORM](os.environ["BENCH_NAMESPACE"])
retry = Retry(attempts=3, delays=["1s"])


def number(message: Any) -> int:
    """Return the message's number."""
    return int.from_bytes(message.n, "big") if FORM == "bytes" else message.n


def trouble(n: int, attempt: int) -> None:
    """Do what the scenario asks for."""
    if FAILS and n % FAILS == 0 and attempt == 1:
        raise ValueError(f"fails at first: {n}")
    if SLOW and n % SLOW == 0:
        time.sleep(1)
    if WAIT:
        time.sleep(WAIT)


def plain(message: Any, ctx: Any) -> None:
    """Write one row and wait for the answer."""
    n = number(message)
    if TROUBLED:
        trouble(n, ctx.attempt)
    ctx.connection.execute(INSERT_ONE, (ctx.id, n))


def pipelined(message: Any, ctx: Any) -> None:
    """Write one row and wait for nothing."""
    n = number(message)
    if TROUBLED:
        trouble(n, ctx.attempt)
    ctx.pipeline.execute(INSERT_ONE, (ctx.id, n))


async def asynchronous(message: Any, ctx: Any) -> None:
    """Write one row and wait for the answer, in the event loop."""
    await ctx.connection.execute(INSERT_ONE, (ctx.id, number(message)))


def batch(messages: Batch[Message], ctx: BatchContext) -> None:
    """Write a row for each member by one statement; members that fail say so and write none."""
    ids, numbers = [], []
    for item in messages:
        n = number(item.message)
        if TROUBLED:
            try:
                trouble(n, item.attempt)
            except ValueError as error:
                item.retry(error=error)
                continue
        ids.append(item.id)
        numbers.append(n)
    ctx.connection.execute(INSERT_MANY, (ids, numbers))


if MODE == "batch":
    app.batch_handler(Message, retry=retry)(batch)
else:
    handlers: dict[str, Any] = {"plain": plain, "pipelined": pipelined, "async": asynchronous}
    app.handler(Message, retry=retry)(handlers[MODE])
