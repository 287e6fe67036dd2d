"""Handlers that take too long: their query is cancelled, their lane goes on, and nobody waits for them."""

import threading
from typing import Any

import pytest
from tests.support.processing import GROUP, Ground, hold, note
from tests.support.wait import eventually

from packhorse.processor import AsyncContext, Context, Processor, Retry

ONCE = Retry(attempts=1)


@pytest.mark.case("P-33")
def test_a_query_that_outlasts_its_time_out_is_cancelled_and_its_neighbours_are_done(ground: Ground) -> None:
    """Fails when the query is not cancelled, or the time-out is not the reason that is kept."""
    app = Processor(GROUP)

    @app.handler(ground.message, retry=ONCE, timeout="300ms")
    def handle(message: Any, ctx: Context) -> None:
        if message.n == 1:
            ctx.connection.execute("SELECT pg_sleep(30)")
        note(message, ctx)

    ground.make_topics(app)
    sent = [ground.send(n, key=b"%d" % n) for n in range(3)]
    with ground.processing(app, concurrency=1):
        ground.until_outcome(sent[1], "quarantine", timeout=10)
        eventually(lambda: sorted(ground.results()) == [0, 2], what="its neighbours are done")
    errors = ground.rows("SELECT reason FROM packhorse.failed_attempt")
    assert errors == [("timeout",)]


@pytest.mark.case("P-33")
def test_an_async_handler_that_outlasts_its_time_out_is_cancelled(ground: Ground) -> None:
    app = Processor(GROUP)

    @app.handler(ground.message, retry=ONCE, timeout="300ms")
    async def handle(message: Any, ctx: AsyncContext) -> None:
        if message.n == 1:
            await ctx.connection.execute("SELECT pg_sleep(30)")
        await ctx.connection.execute("INSERT INTO result (id, n) VALUES (%s, %s)", (ctx.id, message.n))

    ground.make_topics(app)
    sent = [ground.send(n, key=b"%d" % n) for n in range(3)]
    with ground.processing(app, concurrency=1):
        ground.until_outcome(sent[1], "quarantine", timeout=10)
        eventually(lambda: sorted(ground.results()) == [0, 2], what="its neighbours are done")
    assert ground.rows("SELECT reason FROM packhorse.failed_attempt") == [("timeout",)]


@pytest.mark.case("P-33")
def test_a_handler_that_never_comes_back_loses_its_lane_and_counts_for_nothing(ground: Ground) -> None:
    """Fails when the lane waits for it, or what it does when it comes back is committed."""
    app, returned = Processor(GROUP), threading.Event()
    with hold() as (inside, wait):

        @app.handler(ground.message, retry=ONCE, timeout="200ms")
        def handle(message: Any, ctx: Context) -> None:
            note(message, ctx)
            if message.n == 1:
                wait()
                returned.set()

        ground.make_topics(app)
        sent = [ground.send(n, key=b"%d" % n) for n in range(3)]
        with ground.processing(app, concurrency=1) as running:
            assert inside.wait(20)
            ground.until_outcome(sent[1], "quarantine")
            eventually(lambda: sorted(ground.results()) == [0, 2], what="its neighbours are done")
            assert not returned.is_set()
            assert running.error is None
    assert returned.wait(20)
    assert sorted(ground.results()) == [0, 2]
    assert ground.rows("SELECT reason FROM packhorse.failed_attempt") == [("timeout",)]


@pytest.mark.case("P-33", "T-03")
def test_a_follower_that_never_comes_back_is_charged_and_its_key_goes_on(ground: Ground) -> None:
    """
    Fails when only handlers of the chunk's own records are looked at, so that it is run again for ever, or when the key's lease
    goes on being renewed, so that nobody drains it.
    """
    app, again = Processor(GROUP), Retry(attempts=3, delays=["100ms"])
    with hold() as (inside, wait):

        @app.handler(ground.message, retry=again, timeout="200ms")
        def handle(message: Any, ctx: Context) -> None:
            note(message, ctx)
            if message.n == 1 and ctx.attempt == 1:
                wait()

        ground.make_topics(app)
        sent = [ground.send(n, "fails once" if n == 0 else "") for n in range(3)]
        with ground.processing(app, concurrency=2) as running:
            assert inside.wait(20)
            ground.until_outcome(sent[2], "done", timeout=20)
            assert running.error is None
    assert ground.results() == [0, 1, 2]
    assert ground.rows("SELECT reason FROM packhorse.failed_attempt ORDER BY failed_at") == [
        ("failed",),
        ("timeout",),
    ]


@pytest.mark.case("P-33", "X-04")
def test_an_async_handler_that_blocks_the_event_loop_ends_the_process(ground: Ground) -> None:
    """Fails when only its own lane is replaced: all other async handlers would wait for it for ever, and health would be good."""
    app = Processor(GROUP)
    with hold() as (inside, wait):

        @app.handler(ground.message, retry=ONCE, timeout="200ms")
        async def handle(message: Any, ctx: AsyncContext) -> None:
            wait()

        ground.make_topics(app)
        ground.send(1)
        with ground.processing(app, concurrency=2, drain_timeout=0) as running:
            assert inside.wait(20)
            eventually(lambda: running.error is not None, what="the process ends", timeout=20)
            assert "blocks the event loop" in str(running.error)
            running.taken = True
