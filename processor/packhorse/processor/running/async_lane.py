"""
A lane for `async def` handlers: one async connection in the process's one event loop, awaited from a lane's thread.

The twin of `lane.Lane`; what both do alike is in `lanework`.
"""

import asyncio
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from uuid import UUID

from packhorse.core.errors import DatabaseUnavailable, PackhorseError
from packhorse.processor.copies import CopiesMissed
from packhorse.processor.jobs.runs import JobRun, Phase, abandon
from packhorse.processor.member.fence import Fence
from packhorse.processor.partition.events import ChunkEnded
from packhorse.processor.plant import Plant
from packhorse.processor.running.asking import claims_in, runs_in, steps_of
from packhorse.processor.running.async_handling import AsyncHandling, On
from packhorse.processor.running.async_link import AsyncLink
from packhorse.processor.running.endings import Contention
from packhorse.processor.running.event_loop import EventLoop
from packhorse.processor.running.faults import describe
from packhorse.processor.running.job_handling import arun_body
from packhorse.processor.running.lanework import (
    Chunks,
    all_decoded,
    copies_sent,
    decoded,
    forgotten,
    left_by,
    round_sent,
)
from packhorse.processor.running.requests import (
    Begin,
    ClaimJobs,
    CommitTransaction,
    Decode,
    DecodeAll,
    MarkStart,
    RecordJobs,
    ReleaseJobs,
    Request,
    RollBack,
    RollBackToSavepoint,
    RunBatch,
    RunHandler,
    RunJob,
    RunWrites,
    Savepoint,
    SendKept,
    SendRound,
    Write,
)
from packhorse.processor.running.work import Member, Ran, Work
from packhorse.processor.signals import Point
from packhorse.processor.storing import postgres
from packhorse.processor.storing.steps import COMMIT, ROLLBACK
from packhorse.processor.storing.store import Place

LOOP_WAIT = 3.0
"""Seconds that the event loop may take to answer once a handler did not come back from its time-out."""


class AsyncLane:
    """One async connection and what is done on it; `run`, `cancel` and `close` are called from threads."""

    def __init__(self, plant: Plant, loop: EventLoop, stuck: Callable[[], None] = lambda: None) -> None:
        self._plant = plant
        self._loop = loop
        self._deadline = plant.deadlines.slot(self._time_out, stuck, again=None)
        self._gone = Fence()
        self._handling = AsyncHandling(plant, self._deadline)
        self._link = AsyncLink(plant.conninfo, self._prepare)
        self._fence = Fence()
        self._work: Work | None = None
        self._has_marked = False
        self._id = plant.chance.message_id(plant.clock.now())
        self._xid = ""
        self._taken: Sequence[int] = ()
        self._job: JobRun | None = None
        self._runs: Sequence[JobRun] = ()

    def is_fresh(self) -> bool:
        """Connect if needed; return whether that was a reconnect, so that what is remembered counts for nothing."""
        known = self._link.was_connected and self._link.is_lost
        asyncio.run_coroutine_threadsafe(self._link.connect(), self._loop.get()).result()
        if known:
            self._plant.reconnected()
        return known

    def run(self, batch: Chunks, work: Work, fence: Fence) -> ChunkEnded:
        """Do what *batch* asks for until it has ended; blocks the calling thread alone."""
        self._work, self._fence, self._has_marked, self._taken, self._runs = work, fence, False, (), ()
        try:
            ended = asyncio.run_coroutine_threadsafe(self._drive(batch), self._loop.get()).result()
            if self._link.is_lost:
                self._plant.claims.lose(self)
            if self._has_marked:
                asyncio.run_coroutine_threadsafe(self._forget_start(work), self._loop.get()).result()
            return ended
        finally:
            self._work, self._runs = None, ()
            self._plant.claims.forget(self)

    def cancel(self) -> None:
        """
        Cancel the handler that runs; from any thread.

        Bodies of jobs go on, and what is written with their success too, unless the process ends: leases say whose they are,
        whoever has the partition.
        """
        if not self._runs or self._plant.runs.stopping:
            self._cancel()

    def _time_out(self) -> None:
        if (run := self._job) is not None:
            run.cancel = run.cancel or "timeout"
        self._cancel()

    def _cancel(self) -> None:
        task = self._handling.task
        if task is not None:
            self._loop.get().call_soon_threadsafe(task.cancel)

    def abandon(self, mine: Callable[[Sequence[JobRun]], list[JobRun]] = list) -> None:
        """Let what still runs count for nothing, of jobs those that are *mine*: its handler does not come back. From any thread."""
        self._gone.up = True
        for run in mine(self._runs):
            abandon(run)
        self._plant.deadlines.forget(self._deadline)
        if (connection := self._link.open) is not None:
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
        if self._link.open is not None:
            asyncio.run_coroutine_threadsafe(self._link.end(), self._loop.get()).result()

    async def _forget_start(self, work: Work) -> None:
        steps = forgotten(self._plant, work)
        with suppress(PackhorseError):
            await self._link.connect()
            await postgres.arun(self._link.held, steps)

    async def _prepare(self, connection: postgres.AsyncGuardedConnection) -> None:
        if "sqlalchemy" in sys.modules:
            await self._handling.sessions().prepare(connection)

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
            await self._link.end()
            raise

    async def _answer(self, request: Request) -> object:
        match request:
            case RunHandler(member, sync):
                return await self._handling.one(self._on(), member, sync=sync)
            case DecodeAll(_, in_hand):
                await self._take(in_hand)
                return await asyncio.to_thread(all_decoded, request, self._plant)
            case Decode():
                return await asyncio.to_thread(decoded, request, self._plant)
            case RunBatch(members):
                return await self._handling.batch(self._on(), members)
            case Begin() | Savepoint() | RollBackToSavepoint() | RollBack() | CommitTransaction():
                await self._transact(request)
            case SendKept(ids):
                await self._send_kept(ids)
            case SendRound(deliveries):
                await asyncio.to_thread(round_sent, deliveries, self._plant, self._here)
            case RunJob() | RunWrites() | ClaimJobs() | RecordJobs() | ReleaseJobs():
                return await self._of_job(request)
            case _:
                return await self._store(request)
        return None

    async def _transact(
        self, request: Begin | Savepoint | RollBackToSavepoint | RollBack | CommitTransaction
    ) -> None:
        match request:
            case Begin(in_hand):
                await self._begin(in_hand)
            case Savepoint():
                postgres.savepoint(self._link.held)
            case RollBackToSavepoint():
                await postgres.async_undo(self._link.held)
            case RollBack():
                await self._roll_back()
            case CommitTransaction(runs):
                await self._commit(runs)

    async def _of_job(self, request: RunJob | RunWrites | ClaimJobs | RecordJobs | ReleaseJobs) -> object:
        match request:
            case RunJob(member, run):
                return await self._run_job(member, run)
            case RunWrites(member, run):
                return await self._handling.writes(self._on(), member, run)
            case ClaimJobs(_, in_hand):
                await self._take(in_hand)
                answer = await self._store(request)
                self._runs = runs_in(answer)
                return answer
            case RecordJobs():
                self._plant.signal(Point.BEFORE_RESULT)
                self._gone.check()
                answer = await self._store(request)
                self._plant.signal(Point.AFTER_RESULT)
                return answer
            case ReleaseJobs():
                with suppress(PackhorseError):  # they stay leases that nobody works under
                    await self._store(request)
                return None

    async def _run_job(self, member: Member, run: JobRun) -> Ran:
        self._gone.check()
        self._job = run
        try:
            return await arun_body(self._plant, self._deadline, member, run, self._handling.runs)
        finally:
            self._job = None
            if run.lost and run.phase is not Phase.IDLE:
                self._plant.runs.forget([run])

    def _on(self) -> On:
        return On(self._link.held, self._xid, self._fence)

    @property
    def _here(self) -> Work:
        assert self._work is not None
        return self._work

    async def _take(self, in_hand: Sequence[int]) -> None:
        """Put on record what is in hand, once for each chunk."""
        if not in_hand or in_hand == self._taken:
            return
        plant, work = self._plant, self._here
        spot = work.stream.topic_id, work.partition
        steps = plant.store.take_in_hand(
            self._id, plant.member, spot, in_hand, alone=len(work.deliveries) == 1
        )
        await postgres.arun(self._link.held, steps)
        self._taken = in_hand

    async def _begin(self, in_hand: Sequence[int]) -> None:
        await self._take(in_hand)
        connection = self._link.held
        self._xid = await postgres.abegin(connection)

    async def _store(self, request: Request) -> object:
        self._has_marked = self._has_marked or isinstance(request, MarkStart)
        try:
            answer = await postgres.arun(
                self._link.held, steps_of(request, self._plant, self._here, self._xid)
            )
        except postgres.UniqueViolation:
            if isinstance(request, Write | RecordJobs):
                return False
            raise
        except postgres.IntegrityError as error:
            # A day partition that is attached in this instant refuses a row of its day that was bound for the default one.
            raise Contention(f"a statement was refused: {describe(error)}") from error
        if claims := claims_in(answer):
            self._plant.claims.enter(self, self._here.stream.source, *claims)
        return answer

    async def _commit(self, runs: Sequence[JobRun]) -> None:
        self._plant.signal(Point.BEFORE_RESULT)
        if not runs:
            self._fence.check()
        self._gone.check()
        try:
            await postgres.acommand(self._link.held, COMMIT)
        except postgres.IntegrityError as error:
            raise Contention(f"the commit was refused: {describe(error)}") from error
        self._plant.runs.forget(runs)
        self._plant.signal(Point.AFTER_RESULT)

    async def _roll_back(self) -> None:
        if self._link.is_lost:
            return
        try:
            await postgres.acommand(self._link.held, ROLLBACK)
        except PackhorseError:
            await self._link.end()

    async def _send_kept(self, ids: Sequence[UUID]) -> None:
        store, source = self._plant.store, self._here.stream.source
        uncopied = await postgres.arun(self._link.held, store.uncopied(source, ids))
        if uncopied:
            try:
                places: Sequence[Place] = await asyncio.to_thread(copies_sent, uncopied, self._plant)
            except CopiesMissed as missed:
                await postgres.arun(
                    self._link.held, store.confirm_copies(source, list(missed.places.values()))
                )
                raise
            await postgres.arun(self._link.held, store.confirm_copies(source, places))
