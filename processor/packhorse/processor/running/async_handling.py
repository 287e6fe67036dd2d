"""How `async def` handlers are run: what they are lent, their time-outs, and how a run is judged by where it left its transaction."""

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from packhorse.processor.context import AsyncContext
from packhorse.processor.jobs.runs import JobRun
from packhorse.processor.member.fence import NO_FENCE, Fence
from packhorse.processor.plant import Plant
from packhorse.processor.running.batching import AsyncBatchContext, answers
from packhorse.processor.running.batching import Batch as Together
from packhorse.processor.running.deadlines import Deadline
from packhorse.processor.running.lanework import (
    around,
    broken,
    ended_at,
    failed_at,
    timed_out,
    together,
    wrote,
)
from packhorse.processor.running.resources import AsyncLent
from packhorse.processor.running.work import (
    Failure,
    Member,
    Ran,
)
from packhorse.processor.signals import Point
from packhorse.processor.storing import postgres

if TYPE_CHECKING:
    from packhorse.processor.storing.sqlalchemy import AsyncSessions


class On(NamedTuple):
    """What a handler is run on: the lane's connection, the transaction's id, and what says that it counts for nothing."""

    connection: postgres.AsyncGuardedConnection
    xid: str
    fence: Fence


class AsyncHandling:
    """
    Run handlers on one lane's connection; for its task.

    Raises StatementFailed where another member's queued statement turns out to have failed.

    Attributes:
        task: The handler that runs, to be cancelled.
    """

    def __init__(self, plant: Plant, deadline: Deadline) -> None:
        self._plant = plant
        self._deadline = deadline
        self._sessions: AsyncSessions | None = None
        self.task: asyncio.Future[Any] | None = None

    async def one(self, on: On, member: Member, *, sync: bool) -> Ran:
        """Run *member* by itself, also where its handler takes batches."""
        if member.handler is None or member.handler.kind == "one":
            return await self._handler(on, member, sync=sync)
        answer = await self.batch(on, [member])
        return answer if isinstance(answer, Ran) else answer[0]

    async def _handler(self, on: On, member: Member, *, sync: bool) -> Ran:
        plant, handler, connection = self._plant, member.handler, on.connection
        assert handler is not None
        lent = AsyncLent(connection, self.sessions, plant.outbox, member)
        context = AsyncContext(
            member.delivery, lent, group=plant.app.group, attempt=member.attempt, log=plant.log
        )
        plant.signal(Point.ATTEMPT)
        self._deadline.start(handler.timeout)
        task = self.task = asyncio.ensure_future(self._call(member, context, lent, sync=sync))
        try:
            await task
            ran = ended_at(connection, member, touched=context.touched or lent.is_exposed)
        except BaseException as error:  # noqa: BLE001 every way a handler can end has an outcome
            touched = context.touched or lent.is_exposed
            ran = failed_at(connection, error, member, touched=touched, fence=on.fence)
        finally:
            self.task = None
            fired = self._deadline.stop_soon()
            await lent.drop()
        return await self._judged(on, ran, member, fired=fired)

    async def _judged(self, on: On, ran: Ran | None, member: Member, *, fired: bool) -> Ran:
        """Return how a run has ended, once its time-out and what others have queued are looked at."""
        connection, handler = on.connection, member.handler
        if connection.closed:
            return Ran(Failure.CONNECTION, "", "the connection was lost")
        blamed = connection.pipe.failed
        if blamed is not None and blamed.member is not member:
            raise blamed
        if fired and handler is not None:
            return timed_out(handler)
        return broken(await postgres.awas_committed(connection, on.xid)) if ran is None else ran

    async def _call(self, member: Member, context: AsyncContext, lent: AsyncLent, *, sync: bool) -> None:
        handler = member.handler
        assert handler is not None
        with around(member, context, self._plant):
            if handler.tombstones:
                await handler.function(context)
            else:
                await handler.function(member.message, context)
            await lent.settle(sync=sync)

    async def batch(self, on: On, members: list[Member]) -> list[Ran] | Ran:
        """Run the batch handler of *members*; return how each ended, or how all did when it failed."""
        plant, handler, connection = self._plant, members[0].handler, on.connection
        assert handler is not None
        batch: Together[Any] = Together(members, group=plant.app.group, log=plant.log)
        lent = AsyncLent(connection, self.sessions, plant.outbox, members[0])
        context = AsyncBatchContext(batch.answers, lent, log=plant.log)
        plant.signal(Point.ATTEMPT)
        self._deadline.start(handler.timeout)
        task = self.task = asyncio.ensure_future(self._call_batch(members, batch, context, lent))
        try:
            await task
            ran = ended_at(connection, members[0], touched=context.touched or lent.is_exposed)
        except BaseException as error:  # noqa: BLE001 every way a handler can end has an outcome
            ran = failed_at(connection, error, members[0], touched=True, fence=on.fence)
        finally:
            self.task = None
            fired = self._deadline.stop_soon()
            batch.close()
            await lent.drop()
        judged = await self._judged(on, ran, members[0], fired=fired)
        return judged if judged.failure is not None else answers(batch, handler, touched=judged.touched)

    async def _call_batch(
        self, members: list[Member], batch: "Together[Any]", context: AsyncBatchContext, lent: AsyncLent
    ) -> None:
        handler = members[0].handler
        assert handler is not None
        with together(members, self._plant):
            await handler.function(batch, context)
            batch.close()
            await context.settle()
            await lent.settle(sync=True)

    def runs(self, task: "asyncio.Future[Any] | None") -> None:
        """Take that *task* runs, the body of a job, or that it has ended."""
        self.task = task

    async def writes(self, on: On, member: Member, run: JobRun) -> Ran:
        """Do in the transaction what the body of a job wants written with its success, as `Handling.writes`."""
        handler = member.handler
        assert handler is not None
        lent = AsyncLent(on.connection, self.sessions, self._plant.outbox, member)
        self._deadline.start(handler.timeout)
        task = self.task = asyncio.ensure_future(_written(run, lent))
        try:
            await task
            ran = ended_at(on.connection, member, touched=True)
        except BaseException as error:  # noqa: BLE001 it is the application's code
            ran = failed_at(on.connection, error, member, touched=True, fence=NO_FENCE)
        finally:
            self.task = None
            fired = self._deadline.stop_soon()
            await lent.drop()
        return wrote(ran, handler, fired=fired)

    def sessions(self) -> "AsyncSessions":
        """Return what makes sessions, made when it is first asked for."""
        if self._sessions is None:
            from packhorse.processor.storing.sqlalchemy import AsyncSessions

            self._sessions = AsyncSessions(self._plant.conninfo)
        return self._sessions


async def _written(run: JobRun, lent: AsyncLent) -> None:
    for write in run.writes:
        if (answer := write(lent.connection)) is not None:
            await answer
    if run.drafts:
        await lent.emit(run.drafts)
    await lent.settle(sync=True)
