"""Run the body of one job, with the real database or with none; neither worker nor lease."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from packhorse.core.errors import UsageError
from packhorse.core.jobs import JobState
from packhorse.core.message import TypedMessage
from packhorse.processor import AsyncJobContext, JobContext, Processor
from packhorse.processor.jobs.deciding import state_after
from packhorse.processor.jobs.driving import Call, Work, adrive, drive
from packhorse.processor.jobs.metadata import JobCancelled
from packhorse.processor.jobs.runs import JobRun
from packhorse.processor.jobs.values import MOST_RESULT
from packhorse.processor.outcomes import Outcome
from packhorse.producer import Outgoing
from packhorse.testing.deliveries import Prepared, prepared
from packhorse.testing.emitted import Emitted
from packhorse.testing.handled import DONE, Handled
from packhorse.testing.handlers import arun, run
from packhorse.testing.kept import AsyncKeepingContext, KeepingContext, Kept, Memory, as_kept, never

if TYPE_CHECKING:
    from packhorse.producer.connections import Async, Sync


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """
    How the body of a job ended.

    Attributes:
        state: succeeded, retrying (Retry, Later), quarantined (Quarantine), cancelled (Skip, or `check` where *cancelled*).
        result: What it returned.
        reason: Reason code of Quarantine.
        after: Of retrying the seconds that it asks to wait; None: what its policy says.
        emitted: What it emitted, in order; nothing unless it has succeeded.
        kept: What the next run of the job finds.
    """

    state: JobState
    result: Any
    reason: str | None
    after: float | None
    emitted: tuple[Emitted[Any], ...]
    kept: Kept


def run_job(
    app: Processor,
    job: TypedMessage | Outgoing,
    *,
    connection: Sync | None = None,
    attempt: int = 1,
    kept: Kept | None = None,
    cancelled: bool = False,
    database_schema: str = "packhorse",
) -> Worked:
    """
    Run *app*'s body for *job* and say how it ended; what `on_success` and `emit` write stays in the open transaction of *connection*.

    Steps and effects are called as they come, once by name and key, and kept in memory; `verify` is not asked. Names, arguments and
    what is returned are checked as by a worker, and come back as JSON gives them: a tuple as a list. Errors that are no
    outcome (all but Skip, Quarantine, Retry, Later and a wanted JobCancelled) are raised as they are: whether one means another attempt is the worker's to
    decide.

    Args:
        app: The processor.
        job: The input; an `Outgoing` with the key None says more about it (tenant, actor, …).
        connection: A connection or session of the test; None: what wants one is refused, and what is emitted is kept in memory.
        attempt: What `ctx.attempt` says.
        kept: What an earlier run has kept; None: it is a new job.
        cancelled: Somebody has cancelled it: `ctx.cancelled` is true, and `ctx.check()` ends it.
        database_schema: Database schema of the tables.

    Raises:
        UsageError: No body takes the input, or it is async: use `arun_job`; a name, an argument or a result is not allowed.
        EffectConflict: The body wants an effect under a key that stands for other arguments.
    """
    body = _Body(app, job, attempt, kept or Kept(), cancelled=cancelled)
    return body.worked(run(app, body, connection, database_schema)[0])


async def arun_job(
    app: Processor,
    job: TypedMessage | Outgoing,
    *,
    connection: Async | None = None,
    attempt: int = 1,
    kept: Kept | None = None,
    cancelled: bool = False,
    database_schema: str = "packhorse",
) -> Worked:
    """Run an `async def` body on an async *connection*; promises and raises what `run_job` does."""
    body = _Body(app, job, attempt, kept or Kept(), cancelled=cancelled)
    return body.worked((await arun(app, body, connection, database_schema))[0])


class _Body:
    """One run of a body, as `run` and `arun` take it."""

    def __init__(
        self, app: Processor, job: TypedMessage | Outgoing, attempt: int, kept: Kept, *, cancelled: bool
    ) -> None:
        self._app, self._kept = app, kept
        self._ready: Prepared = prepared(app, job, None)
        handler = self._ready.handler
        if handler.job is None:
            raise UsageError(f"{handler.name} is a handler of messages; use `run_handler`")
        self.name, self.is_async = handler.name, handler.is_async
        self._run = JobRun(
            kept.id, kept.id, attempt, state=kept.state, cancel="cancelled" if cancelled else None
        )
        self._memory = Memory(kept, self._run)
        self._result: object = None
        self._stopped = False

    def __len__(self) -> int:
        return 1

    def call(self, resources: Any) -> None:
        """Run a `def` body, and what it wants written."""
        context = KeepingContext(self._ready.delivery, self._run, self._memory, self._app.group)
        drive(self._work(context, resources), never, never)

    async def acall(self, resources: Any) -> None:
        """Run an `async def` body, and what it wants written."""
        context = AsyncKeepingContext(self._ready.delivery, self._run, self._memory, self._app.group)
        await adrive(self._work(context, resources), never, never)

    def ended(self, emitted: Any) -> list[Handled]:
        """Return that it is done, with all that was emitted."""
        from dataclasses import replace

        return [replace(DONE, emitted=tuple(emitted))]

    def worked(self, handled: Handled) -> Worked:
        """Return how the body ended."""
        self._kept.progress = self._run.progress or self._kept.progress
        outcome = Outcome.SKIPPED if self._stopped else handled.outcome
        state = state_after(outcome, handled.reason)
        succeeded = state is JobState.SUCCEEDED
        return Worked(
            state=state,
            result=self._result if succeeded else None,
            reason=handled.reason,
            after=handled.after,
            emitted=handled.emitted if succeeded else (),
            kept=self._kept,
        )

    def _work(self, context: JobContext | AsyncJobContext, resources: Any) -> Work[None]:
        ready, run = self._ready, self._run
        try:
            value = yield Call(lambda: ready.handler.function(ready.message, context))
        except JobCancelled:
            self._check_cancelled()
            return
        self._result = as_kept(value, what="the result", most=MOST_RESULT)
        for write in run.writes:
            yield Call(partial(write, resources.connection))
        if run.drafts:
            yield Call(lambda: resources.emit(run.drafts))

    def _check_cancelled(self) -> None:
        if self._run.cancel is None:
            raise UsageError(
                "the body raised JobCancelled although nobody has cancelled the job; call ctx.check()"
            )
        self._stopped = True
