"""What the body of a job gets beside its input: who the job is, where it left off, and ways to keep, tell and write."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

from packhorse.core.logs import Log
from packhorse.processor.durations import Duration
from packhorse.processor.jobs.chunking import checkpoint_at, pieces, place_in
from packhorse.processor.jobs.metadata import JobCancelled, JobMetadata
from packhorse.processor.record import Delivery

if TYPE_CHECKING:
    from packhorse.processor.jobs.effects.calling import AsyncEffects, Effects
    from packhorse.processor.jobs.effects.model import Verdict
    from packhorse.processor.jobs.runs import JobRun
    from packhorse.processor.jobs.steps_done import AsyncDoneSteps, DoneSteps
    from packhorse.processor.jobs.tools import JobTools
    from packhorse.processor.storing.postgres import AsyncConnection, Connection
    from packhorse.processor.storing.steps import Steps

__all__ = ["AsyncJobContext", "JobCancelled", "JobContext"]

T = TypeVar("T")


class JobContext(JobMetadata):
    """
    What a `def` body of a job gets beside its input.

    Attributes:
        id: The job's.
        attempt: Number of this run, from 1.
        log: Writes log records with named fields; give it nothing of the input.
    """

    __slots__ = ("_done", "_effects")

    def __init__(self, delivery: Delivery, run: JobRun, tools: JobTools, *, group: str, log: Log) -> None:
        super().__init__(delivery, run, tools, group=group, log=log)
        self._effects: Effects | None = None
        self._done: DoneSteps | None = None

    def step(self, name: str, call: Callable[[], T]) -> T:
        """
        Run *call* unless the step *name* of the job is done, and return what it returned the first time.

        Its result, JSON of at most 64 KiB, is recorded after it has returned: a crash in between runs it once more. What must not
        happen twice is an `effect`.

        Raises:
            UsageError: *name* is no name, or the result is no JSON.
            OwnershipLost: Another worker has taken the job over; the result is not on record.
            Exception: What *call* raises.
        """
        if self._done is None:
            from packhorse.processor.jobs.steps_done import DoneSteps

            tools = self._tools
            self._done = DoneSteps(self._run, tools.ledger.run, queries=tools.store.queries, pause=_pause)
        return cast("T", self._done.step(name, call))

    def effect(
        self,
        key: str,
        call: Callable[[str], Any],
        *,
        verify: Callable[[str], Verdict] | None = None,
        arguments: object = None,
        timeout: Duration = "30s",
        refused: tuple[type[Exception], ...] = (),
    ) -> Any:
        """
        Bring an outside effect about once in the life of the job, and return its answer.

        Its intent is on record before the call, its answer after it. After a crash in between *verify* asks the outside system;
        without it, or if it can't tell, the job is `uncertain` and a person decides.

        Args:
            key: Names the effect within the job: 1 to 200 characters, nothing personal.
            call: Is given the idempotency key, the same in every attempt and after redrives; returns the answer, JSON of at most
                64 KiB. It must end by itself within *timeout*: give its client that.
            verify: Is given the idempotency key; returns `Happened(answer)`, `DID_NOT_HAPPEN` or `CANT_TELL`.
            arguments: What the effect is about; the same key with others is refused.
            timeout: How long the call may take. A "no" of *verify* counts only after it.
            refused: Errors of *call* that mean that surely nothing was done.

        Raises:
            EffectInDoubt, Later: Let them out of the body.
            EffectConflict, UsageError: Something is not allowed; nothing was called.
            OwnershipLost: Another worker has taken the job over.
            Exception: What *call* or *verify* raises; the next attempt verifies.
        """
        if self._effects is None:
            from packhorse.processor.jobs.effects.calling import Effects

            tools = self._tools
            self._effects = Effects(
                self._run, tools.ledger.run, tools.clock, queries=tools.store.queries, pause=_pause
            )
        return self._effects.call(
            key, call, verify=verify, arguments=arguments, timeout=timeout, refused=refused
        )

    def checkpoint(self, state: object) -> None:
        """
        Keep *state*, JSON of at most 256 KiB, for the next run of the job to go on from, as `state`; durable when it returns.

        Raises:
            BadValue: It is no JSON, or too large.
            OwnershipLost: Another worker has taken the job over; nothing is written.
            DatabaseUnavailable: It can't be written now.
        """
        from packhorse.processor.jobs.driving import drive

        drive(self._checkpointed(state), self._tools.ledger.run, _pause)

    def chunks(self, total: int, size: int = 1_000) -> Iterator[range]:
        """
        Yield the positions of *total* items in pieces of *size*, from where the last run of the job left off.

            for piece in ctx.chunks(len(lines), size=500):
                write(lines[piece.start : piece.stop])

        A piece counts as done when the next one is asked for: then that is kept as the job's checkpoint, progress is told, and the
        body ends here if it should stop. A crash repeats the piece that was in hand. *total* is the same in each run.

        Raises:
            UsageError: A number is not allowed, or the body keeps checkpoints of its own.
            JobCancelled, OwnershipLost, DatabaseUnavailable: As `check` and `checkpoint`.
        """
        for piece in pieces(total, size, place_in(self.state)):
            self.check()
            yield piece
            self.checkpoint(checkpoint_at(piece.stop))
            self.progress(piece.stop, total)

    def on_success(self, write: Callable[[Connection], object]) -> None:
        """
        Have *write* called with the connection of the transaction that records the job's success, once the body has returned.

        What it writes is there if and only if the job has succeeded. It may be called again when that transaction loses to
        another one. An error of it is a failure of the run, and so is that all of them together outlast the job's `timeout`, which
        counts anew for them. Commit and rollback are refused by name.
        """
        self._run.writes.append(write)


class AsyncJobContext(JobMetadata):
    """What an `async def` body of a job gets beside its input; attributes and promises are those of `JobContext`."""

    __slots__ = ("_done", "_effects")

    def __init__(self, delivery: Delivery, run: JobRun, tools: JobTools, *, group: str, log: Log) -> None:
        super().__init__(delivery, run, tools, group=group, log=log)
        self._effects: AsyncEffects | None = None
        self._done: AsyncDoneSteps | None = None

    async def _execute(self, steps: Steps[T]) -> T:
        """Wait for the database in a thread, so that the event loop goes on."""
        return await asyncio.to_thread(self._tools.ledger.run, steps)

    async def step(self, name: str, call: Callable[[], Awaitable[T] | T]) -> T:
        """Run *call*, which may be `async def`, unless the step is done, as `JobContext.step`."""
        if self._done is None:
            from packhorse.processor.jobs.steps_done import AsyncDoneSteps

            queries = self._tools.store.queries
            self._done = AsyncDoneSteps(self._run, self._execute, queries=queries, pause=asyncio.sleep)
        return cast("T", await self._done.step(name, call))

    async def effect(
        self,
        key: str,
        call: Callable[[str], Any],
        *,
        verify: Callable[[str], Any] | None = None,
        arguments: object = None,
        timeout: Duration = "30s",
        refused: tuple[type[Exception], ...] = (),
    ) -> Any:
        """Bring an outside effect about once, as `JobContext.effect`; *call* and *verify* may be `async def`."""
        if self._effects is None:
            from packhorse.processor.jobs.effects.calling import AsyncEffects

            tools = self._tools
            self._effects = AsyncEffects(
                self._run, self._execute, tools.clock, queries=tools.store.queries, pause=asyncio.sleep
            )
        return await self._effects.call(
            key, call, verify=verify, arguments=arguments, timeout=timeout, refused=refused
        )

    async def checkpoint(self, state: object) -> None:
        """Keep *state*, as `JobContext.checkpoint`."""
        from packhorse.processor.jobs.driving import adrive

        await adrive(self._checkpointed(state), self._execute, asyncio.sleep)

    async def chunks(self, total: int, size: int = 1_000) -> AsyncIterator[range]:
        """Yield positions in pieces, for `async for`, as `JobContext.chunks`."""
        for piece in pieces(total, size, place_in(self.state)):
            self.check()
            yield piece
            await self.checkpoint(checkpoint_at(piece.stop))
            self.progress(piece.stop, total)

    def on_success(self, write: Callable[[AsyncConnection], Awaitable[object] | None]) -> None:
        """Have *write* called, and awaited, in the transaction of the success, as `JobContext.on_success`."""
        self._run.writes.append(write)


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)
