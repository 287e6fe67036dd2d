"""
A lane for `async def` handlers: one async connection in the process's one event loop, awaited from a lane's thread.

The twin of `lane.Lane`; what both do alike is in `lanework`.
"""

import asyncio
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from packhorse.core.errors import DatabaseUnavailable, PackhorseError
from packhorse.processor.context import AsyncContext
from packhorse.processor.copies import CopiesMissed
from packhorse.processor.member.fence import Fence
from packhorse.processor.partition.events import ChunkEnded
from packhorse.processor.plant import Plant
from packhorse.processor.running.batching import AsyncBatchContext, answers
from packhorse.processor.running.batching import Batch as Together
from packhorse.processor.running.endings import Contention
from packhorse.processor.running.faults import describe
from packhorse.processor.running.lanework import (
    COMMIT,
    ROLLBACK,
    Chunks,
    all_decoded,
    around,
    broken,
    copies_sent,
    decoded,
    ended_at,
    failed_at,
    left_by,
    round_sent,
    steps_of,
    timed_out,
    together,
)
from packhorse.processor.running.resources import AsyncLent
from packhorse.processor.running.work import (
    Begin,
    Claimed,
    CommitTransaction,
    Decode,
    DecodeAll,
    Failure,
    MarkStart,
    Member,
    Ran,
    Request,
    RollBack,
    RollBackToSavepoint,
    RunBatch,
    RunHandler,
    Savepoint,
    SendKept,
    SendRound,
    Work,
    Write,
)
from packhorse.processor.signals import Point
from packhorse.processor.storing import postgres
from packhorse.processor.storing.store import Place

if TYPE_CHECKING:
    from packhorse.processor.storing.sqlalchemy import AsyncSessions


LOOP_WAIT = 3.0
"""Seconds that the event loop may take to answer once a handler did not come back from its time-out."""


class EventLoop:
    """The one event loop of the process, in a thread of its own, started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        """Return the loop, running."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=_run, args=(self._loop,), name="packhorse-event-loop", daemon=True
                ).start()
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """
    Run *loop* for ever.

    SystemExit and KeyboardInterrupt of any task end `run_forever` after they were kept in their task; whoever awaits that
    task must go on to tell the lane, which waits for an outcome.
    """
    while not loop.is_closed():
        with suppress(SystemExit, KeyboardInterrupt):
            loop.run_forever()


class AsyncLane:
    """One async connection and what is done on it; `run`, `cancel` and `close` are called from threads."""

    def __init__(self, plant: Plant, loop: EventLoop, stuck: Callable[[], None] = lambda: None) -> None:
        self._plant = plant
        self._loop = loop
        self._deadline = plant.deadlines.slot(self.cancel, stuck, again=None)
        self._gone = Fence()
        self._connection: postgres.AsyncGuardedConnection | None = None
        self._was_connected = False
        self._sessions: AsyncSessions | None = None
        self._fence = Fence()
        self._work: Work | None = None
        self._has_marked = False
        self._id = plant.chance.message_id(plant.clock.now())
        self._xid = ""
        self._task: asyncio.Future[None] | None = None

    def is_fresh(self) -> bool:
        """Connect if needed; return whether that was a reconnect, so that what is remembered counts for nothing."""
        known = self._was_connected and (self._connection is None or self._connection.closed)
        asyncio.run_coroutine_threadsafe(self._connect(), self._loop.get()).result()
        if known:
            self._plant.reconnected()
        return known

    def run(self, batch: Chunks, work: Work, fence: Fence) -> ChunkEnded:
        """Do what *batch* asks for until it has ended; blocks the calling thread alone."""
        self._work, self._fence, self._has_marked = work, fence, False
        try:
            ended = asyncio.run_coroutine_threadsafe(self._drive(batch), self._loop.get()).result()
            if self._has_marked:
                asyncio.run_coroutine_threadsafe(self._forget_start(work), self._loop.get()).result()
            return ended
        finally:
            self._work = None
            self._plant.claims.forget(self)

    def cancel(self) -> None:
        """Cancel the handler that runs; from any thread."""
        task = self._task
        if task is not None:
            self._loop.get().call_soon_threadsafe(task.cancel)

    def abandon(self) -> None:
        """Let what still runs count for nothing: its handler does not come back. From any thread."""
        self._gone.up = True
        self._plant.deadlines.forget(self._deadline)
        if (connection := self._connection) is not None:
            then = left_by(self, self._plant)
            postgres.terminate(self._plant.conninfo, connection.info.backend_pid, then)
        threading.Thread(target=self._see_to_loop, name="packhorse-event-loop-check", daemon=True).start()

    def _see_to_loop(self) -> None:
        """End the process when the handler does not come back because it blocks the event loop: all `async def` wait for it."""
        answers = threading.Event()
        self._loop.get().call_soon_threadsafe(answers.set)
        if not answers.wait(LOOP_WAIT):
            self._plant.broke(
                "an async handler has outlasted its time-out and blocks the event loop, so that no other one can run; await "
                "what takes long, or make it a `def` handler"
            )

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back by the server."""
        if self._connection is not None:
            asyncio.run_coroutine_threadsafe(self._end(), self._loop.get()).result()

    async def _forget_start(self, work: Work) -> None:
        """
        Take back that the message was begun: this process has lived through it, however it ended.

        Only for what this run has marked: one that only waited for another drainer has lived through nothing.
        """
        with suppress(PackhorseError):
            await self._connect()
            offsets = [delivery.record.offset for delivery in work.deliveries]
            spot = work.stream.topic_id, work.partition
            await postgres.arun(self._held(), self._plant.store.clear_starts(spot, offsets))

    async def _connect(self) -> None:
        found = self._connection
        if found is not None and not found.closed:
            if postgres.standing(found) != "none":
                await postgres.acommand(found, ROLLBACK)
            return
        self._connection = None
        self._connection = await postgres.aconnect(self._plant.conninfo)
        self._was_connected = True
        if "sqlalchemy" in sys.modules:
            await self._sessions_here().prepare(self._connection)

    async def _end(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.end()

    async def _drive(self, batch: Chunks) -> ChunkEnded:
        try:
            request = next(batch)
            while True:
                try:
                    answer = await self._execute(request)
                except PackhorseError as error:
                    request = batch.throw(error)
                else:
                    request = batch.send(answer)
        except StopIteration as done:
            ended: ChunkEnded = done.value
            return ended

    async def _execute(self, request: Request) -> object:
        try:
            return await self._answer(request)
        except DatabaseUnavailable:
            await self._end()
            raise

    async def _answer(self, request: Request) -> object:
        match request:
            case RunHandler(member, sync):
                return await self._run_one(member, sync=sync)
            case DecodeAll():
                return await asyncio.to_thread(all_decoded, request, self._plant)
            case Decode():
                return await asyncio.to_thread(decoded, request, self._plant)
            case RunBatch(members):
                return await self._run_batch(members)
            case Begin() | Savepoint() | RollBackToSavepoint() | RollBack() | CommitTransaction():
                await self._transact(request)
            case SendKept(ids):
                await self._send_kept(ids)
            case SendRound(deliveries):
                await asyncio.to_thread(round_sent, deliveries, self._plant, self._here)
            case _:
                return await self._store(request)
        return None

    def _held(self) -> postgres.AsyncGuardedConnection:
        if self._connection is None or self._connection.closed:
            raise DatabaseUnavailable("the connection was lost")
        return self._connection

    async def _transact(
        self, request: Begin | Savepoint | RollBackToSavepoint | RollBack | CommitTransaction
    ) -> None:
        match request:
            case Begin(in_hand):
                await self._begin(in_hand)
            case Savepoint():
                postgres.savepoint(self._held())
            case RollBackToSavepoint():
                await postgres.async_undo(self._held())
            case RollBack():
                await self._roll_back()
            case CommitTransaction():
                await self._commit()

    @property
    def _here(self) -> Work:
        assert self._work is not None
        return self._work

    async def _begin(self, in_hand: Sequence[int]) -> None:
        plant, work, connection = self._plant, self._here, self._held()
        if in_hand:
            spot = work.stream.topic_id, work.partition
            steps = plant.store.take_in_hand(
                self._id, plant.member, spot, in_hand, alone=len(work.deliveries) == 1
            )
            await postgres.arun(connection, steps)
        self._xid = await postgres.abegin(connection)

    async def _store(self, request: Request) -> object:
        self._has_marked = self._has_marked or isinstance(request, MarkStart)
        try:
            answer = await postgres.arun(self._held(), steps_of(request, self._plant, self._here, self._xid))
        except postgres.UniqueViolation:
            if isinstance(request, Write):
                return False
            raise
        except postgres.IntegrityError as error:
            # A day partition that is attached in this instant refuses a row of its day that was bound for the default one.
            raise Contention(f"a statement was refused: {describe(error)}") from error
        if isinstance(answer, Claimed) and answer.claim is not None:
            self._plant.claims.enter(self, self._here.stream.source, answer.claim)
        return answer

    async def _commit(self) -> None:
        self._plant.signal(Point.BEFORE_RESULT)
        self._fence.check()
        self._gone.check()
        try:
            await postgres.acommand(self._held(), COMMIT)
        except postgres.IntegrityError as error:
            raise Contention(f"the commit was refused: {describe(error)}") from error
        self._plant.signal(Point.AFTER_RESULT)

    async def _roll_back(self) -> None:
        connection = self._connection
        if connection is None or connection.closed:
            return
        try:
            await postgres.acommand(connection, ROLLBACK)
        except PackhorseError:
            await self._end()

    async def _send_kept(self, ids: Sequence[UUID]) -> None:
        store, source = self._plant.store, self._here.stream.source
        uncopied = await postgres.arun(self._held(), store.uncopied(source, ids))
        if uncopied:
            try:
                places: Sequence[Place] = await asyncio.to_thread(copies_sent, uncopied, self._plant)
            except CopiesMissed as missed:
                await postgres.arun(self._held(), store.confirm_copies(source, list(missed.places.values())))
                raise
            await postgres.arun(self._held(), store.confirm_copies(source, places))

    async def _run_one(self, member: Member, *, sync: bool) -> Ran:
        """Run *member* by itself, also where its handler takes batches."""
        if member.handler is None or member.handler.kind == "one":
            return await self._run_handler(member, sync=sync)
        answer = await self._run_batch([member])
        return answer if isinstance(answer, Ran) else answer[0]

    async def _run_handler(self, member: Member, *, sync: bool) -> Ran:
        plant, handler, connection = self._plant, member.handler, self._held()
        assert handler is not None
        lent = AsyncLent(connection, self._sessions_here, plant.outbox, member)
        context = AsyncContext(
            member.delivery, lent, group=plant.app.group, attempt=member.attempt, log=plant.log
        )
        plant.signal(Point.ATTEMPT)
        self._deadline.start(handler.timeout)
        task = self._task = asyncio.ensure_future(self._call(member, context, lent, sync=sync))
        try:
            await task
            ran = ended_at(connection, member, touched=context.touched or lent.is_exposed)
        except BaseException as error:  # noqa: BLE001 every way a handler can end has an outcome
            touched = context.touched or lent.is_exposed
            ran = failed_at(connection, error, member, touched=touched, fence=self._fence)
        finally:
            self._task = None
            fired = self._deadline.stop_soon()
            await lent.drop()
        return await self._judged(ran, member, fired=fired)

    async def _judged(self, ran: Ran | None, member: Member, *, fired: bool) -> Ran:
        """Return how a run has ended, once its time-out and what others have queued are looked at."""
        connection, handler = self._connection, member.handler
        if connection is None or connection.closed:
            return Ran(Failure.CONNECTION, "", "the connection was lost")
        if fired and handler is not None:
            return timed_out(handler)
        blamed = connection.pipe.failed
        if blamed is not None and blamed.member is not member:
            raise blamed
        return broken(await postgres.awas_committed(connection, self._xid)) if ran is None else ran

    async def _call(self, member: Member, context: AsyncContext, lent: AsyncLent, *, sync: bool) -> None:
        handler = member.handler
        assert handler is not None
        with around(member, context, self._plant):
            if handler.tombstones:
                await handler.function(context)
            else:
                await handler.function(member.message, context)
            await lent.settle(sync=sync)

    async def _run_batch(self, members: list[Member]) -> list[Ran] | Ran:
        plant, handler, connection = self._plant, members[0].handler, self._held()
        assert handler is not None
        batch: Together[Any] = Together(members, group=plant.app.group, log=plant.log)
        lent = AsyncLent(connection, self._sessions_here, plant.outbox, members[0])
        context = AsyncBatchContext(batch.answers, lent, log=plant.log)
        plant.signal(Point.ATTEMPT)
        self._deadline.start(handler.timeout)
        task = self._task = asyncio.ensure_future(self._call_batch(members, batch, context, lent))
        try:
            await task
            ran = ended_at(connection, members[0], touched=context.touched or lent.is_exposed)
        except BaseException as error:  # noqa: BLE001 every way a handler can end has an outcome
            ran = failed_at(connection, error, members[0], touched=True, fence=self._fence)
        finally:
            self._task = None
            fired = self._deadline.stop_soon()
            batch.close()
            await lent.drop()
        judged = await self._judged(ran, members[0], fired=fired)
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

    def _sessions_here(self) -> "AsyncSessions":
        if self._sessions is None:
            from packhorse.processor.storing.sqlalchemy import AsyncSessions

            self._sessions = AsyncSessions(self._plant.conninfo)
        return self._sessions
