"""Ends that are no ordinary errors, and logs that are cut: the process stops with an error, or goes on; it never looks well and stands still."""

from typing import Any

import pytest
from tests.support.processing import GROUP, Ground
from tests.support.wait import eventually

from packhorse.processor import AsyncContext, Processor


@pytest.mark.case("P-29")
@pytest.mark.case("X-04")
def test_an_async_handler_that_exits_stops_the_process(ground: Ground) -> None:
    """Fails when the event loop is not run again after a task's SystemExit: the lane would wait for ever, unseen."""
    app = Processor(GROUP)

    @app.handler(ground.message)
    async def handle(message: Any, ctx: AsyncContext) -> None:
        await ctx.connection.execute("INSERT INTO result (id, n, attempt) VALUES (%s, 0, 1)", (ctx.id,))
        raise SystemExit(3)

    ground.make_topics(app)
    sent = ground.send(0)
    with ground.processing(app, drain_timeout=2) as running:
        running.taken = True
        eventually(lambda: running.error is not None, what="the processor stops")
    assert "SystemExit" in str(running.error)
    assert ground.outcome(sent) is None
    assert ground.results() == []
    assert ground.watermark() == 0
