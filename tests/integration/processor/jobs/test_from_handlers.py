"""A handler submits a job in its own transaction: the way to an outside effect from an event."""

from typing import Any

import pytest
from tests.support.jobs import JobGround, write
from tests.support.processing import GROUP
from tests.support.wait import eventually

from packhorse.processor import AsyncContext, Context, Processor, Retry
from packhorse.producer import Outbox


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_job_of_a_handler_is_there_once_with_its_message(jobs: JobGround, kind: str) -> None:
    """The first attempt fails behind the submission. Fails when the job is not in the handler's own transaction."""
    outbox = Outbox(origin="tests")
    app = Processor(GROUP)
    app.job(jobs.report)(write)
    retry = Retry(attempts=2, delays=["100ms"])

    def fails(ctx: Any) -> None:
        if ctx.attempt == 1:
            raise ValueError("once")

    if kind == "def":

        @app.handler(jobs.message, retry=retry)
        def noted(message: Any, ctx: Context) -> None:
            outbox.submit(ctx.connection, jobs.report(n=message.n), correlation_id=str(ctx.id))
            fails(ctx)

    else:

        @app.handler(jobs.message, retry=retry)
        async def anoted(message: Any, ctx: AsyncContext) -> None:
            await outbox.asubmit(ctx.connection, jobs.report(n=message.n), correlation_id=str(ctx.id))
            fails(ctx)

    jobs.make_topics(app)
    event = jobs.send(7, topic=f"{jobs.namespace}.notes")
    with jobs.processing(app):
        jobs.until_outcome(event, "done")
        assert jobs.carry() == 1
        eventually(lambda: jobs.results() == [7], what="the job has run")
    assert jobs.rows("SELECT state, correlation_id FROM packhorse.job") == [("succeeded", str(event))]
