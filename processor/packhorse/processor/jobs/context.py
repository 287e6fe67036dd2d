"""What the body of a job gets beside its input: who the job is, where it left off, and ways to keep, tell and write."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from packhorse.core.errors import OwnershipLost, PackhorseError, UsageError
from packhorse.core.logs import Log
from packhorse.core.message import TypedMessage
from packhorse.core.text import inert
from packhorse.processor.durations import Duration
from packhorse.processor.jobs.values import MOST_CHECKPOINT, MOST_PROGRESS, json_of
from packhorse.processor.metadata import Metadata
from packhorse.processor.record import Delivery

if TYPE_CHECKING:
    from packhorse.processor.jobs.effects.calling import AsyncEffects, Effects
    from packhorse.processor.jobs.effects.model import Verdict
    from packhorse.processor.jobs.runs import JobRun
    from packhorse.processor.jobs.steps_done import AsyncDoneSteps, DoneSteps
    from packhorse.processor.jobs.tools import JobTools
    from packhorse.processor.storing.postgres import AsyncConnection, Connection
    from packhorse.processor.storing.steps import Steps
    from packhorse.producer import Outgoing


T = TypeVar("T")


class JobCancelled(PackhorseError):
    """Raised by `check` where somebody wants the job to stop; let it out of the body, and the job is cancelled or given back."""


class _Metadata(Metadata):
    """What contexts of both kinds know and say without asking the database."""

    __slots__ = ("_run", "_tools")

    def __init__(self, delivery: Delivery, run: JobRun, tools: JobTools, *, group: str, log: Log) -> None:
        super().__init__(delivery, group=group, attempt=run.attempt, log=log)
        self._run = run
        self._tools = tools

    @property
    def state(self) -> Any:
        """Return what was given to `checkpoint` last, in whatever run of the job; None when nothing was."""
        return self._run.state

    @property
    def request_key(self) -> str | None:
        """Return the request key that the job was submitted with."""
        return self._run.request_key

    @property
    def cancelled(self) -> bool:
        """Return whether the body should stop: the job is cancelled, its time is over, the process ends, or its lease is lost."""
        return self._run.cancel is not None or self._run.lost

    @property
    def stopping(self) -> bool:
        """Return whether the process ends: keep a checkpoint, and call `check`; the job then goes on elsewhere, uncharged."""
        return self._run.cancel == "stopping"

    def check(self) -> None:
        """
        Go on, or end the body here when it should stop; call it where stopping is safe.

        Raises:
            JobCancelled: It should stop. Let it out: a cancelled job is then cancelled, one whose time is over has failed, and one
                whose process ends is given back to be gone on with elsewhere.
            OwnershipLost: Another worker has taken the job over.
        """
        self._run.check_held()
        if self._run.cancel is not None:
            raise JobCancelled(self._run.cancel)

    def progress(self, done: int, total: int | None = None, text: str | None = None) -> None:
        """
        Say how far the body is, for whoever looks; it is written within a second or two, and costs nothing here.

        Args:
            done: Of `total`, in units of the body's own.
            total: None: unknown.
            text: For people, at most 200 characters; no personal data.

        Raises:
            UsageError: A number is below zero or no whole one.
        """
        from packhorse.processor.jobs.runs import Progress

        for name, value in (("done", done), ("total", total)):
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62
            ):
                raise UsageError(f"progress({name}={value!r}) is not allowed: a whole number from 0")
        self._run.progress = Progress(done, total, None if text is None else inert(text, limit=MOST_PROGRESS))

    def emit(
        self,
        message: TypedMessage,
        *,
        key: str | None,
        headers: Mapping[str, str] | None = None,
        expires_at: datetime | None = None,
    ) -> UUID:
        """
        Write a follow-up in the transaction of the job's success, and return its id; a run that fails writes none.

        The id is derived from the job's, the group and how many follow-ups came before it in this run, as `Context.emit` does.
        """
        draft: Outgoing = self._follow_up(message, key, headers, expires_at)
        self._run.drafts.append(draft)
        return draft.id or self.id

    def _keep(self, state: object) -> tuple[str | None, Any]:
        self._run.check_held()
        return json_of(state, what="checkpoint", most=MOST_CHECKPOINT), state

    def _write_checkpoint(self, text: str | None, state: object) -> None:
        run, tools = self._run, self._tools
        if not tools.ledger.run(tools.store.checkpoint_job(run.job_id, run.token, text)):
            run.lost = True
            raise OwnershipLost(
                f"job {run.job_id} was taken over by another worker; its checkpoint is not written"
            )
        run.state = state


class JobContext(_Metadata):
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
            self._done = DoneSteps(self._run, tools.ledger.run, queries=tools.steps, pause=_pause)
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
                self._run, tools.ledger.run, tools.clock, queries=tools.effects, pause=_pause
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
        self._write_checkpoint(*self._keep(state))

    def on_success(self, write: Callable[[Connection], object]) -> None:
        """
        Have *write* called with the connection of the transaction that records the job's success, once the body has returned.

        What it writes is there if and only if the job has succeeded. It may be called again when that transaction loses to
        another one. An error of it is a failure of the run. Commit and rollback are refused by name.
        """
        self._run.writes.append(write)


class AsyncJobContext(_Metadata):
    """What an `async def` body of a job gets beside its input; attributes and promises are those of `JobContext`."""

    __slots__ = ("_done", "_effects")

    def __init__(self, delivery: Delivery, run: JobRun, tools: JobTools, *, group: str, log: Log) -> None:
        super().__init__(delivery, run, tools, group=group, log=log)
        self._effects: AsyncEffects | None = None
        self._done: AsyncDoneSteps | None = None

    async def _execute(self, steps: Steps[T]) -> T:
        return cast("T", await _apart(self._tools.ledger.run, steps))

    async def step(self, name: str, call: Callable[[], Awaitable[T] | T]) -> T:
        """Run *call*, which may be `async def`, unless the step is done, as `JobContext.step`."""
        if self._done is None:
            from packhorse.processor.jobs.steps_done import AsyncDoneSteps

            queries = self._tools.steps
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
                self._run, self._execute, tools.clock, queries=tools.effects, pause=asyncio.sleep
            )
        return await self._effects.call(
            key, call, verify=verify, arguments=arguments, timeout=timeout, refused=refused
        )

    async def checkpoint(self, state: object) -> None:
        """Keep *state*, as `JobContext.checkpoint`."""
        await _apart(self._write_checkpoint, *self._keep(state))

    def on_success(self, write: Callable[[AsyncConnection], Awaitable[object] | None]) -> None:
        """Have *write* called, and awaited, in the transaction of the success, as `JobContext.on_success`."""
        self._run.writes.append(write)


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


async def _apart(call: Callable[..., Any], *arguments: Any) -> Any:
    """Call what waits for the database in a thread, so that the event loop goes on."""
    found: Awaitable[Any] = asyncio.to_thread(call, *arguments)
    return await found
