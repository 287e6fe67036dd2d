"""Run the body of one job, with the real database or with none; neither worker nor lease."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.errors import UsageError
from packhorse.core.jobs import JobState
from packhorse.core.message import TypedMessage
from packhorse.processor import AsyncJobContext, JobContext, Processor
from packhorse.processor.jobs.deciding import state_after
from packhorse.processor.jobs.effects.model import idempotency_key
from packhorse.processor.jobs.metadata import JobCancelled
from packhorse.processor.jobs.runs import JobRun, Progress
from packhorse.processor.jobs.values import MOST_CHECKPOINT, MOST_RESULT, json_of
from packhorse.processor.outcomes import Outcome
from packhorse.producer import Outgoing
from packhorse.testing.deliveries import Prepared, prepared
from packhorse.testing.emitted import Emitted
from packhorse.testing.handled import DONE, LOG, Handled
from packhorse.testing.handlers import arun, run

if TYPE_CHECKING:
    from packhorse.producer.connections import Async, Sync

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Kept:
    """
    What a job keeps from run to run; hand it to `run_job` again for the next run of the same job.

    Attributes:
        id: The job's.
        state: The last checkpoint; None without one.
        progress: What was told last: done, total, text.
        steps: What steps that are done returned, by name.
        effects: What effects that were called have answered, by key.
        idempotency_keys: What the outside systems were given, by key.
    """

    id: UUID = field(default_factory=lambda: SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now()))
    state: Any = None
    progress: Progress | None = None
    steps: dict[str, Any] = field(default_factory=dict)
    effects: dict[str, Any] = field(default_factory=dict)
    idempotency_keys: dict[str, str] = field(default_factory=dict)


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

    Steps and effects are called as they come, once by name and key, and kept in memory; `verify` is not asked. Errors that are no
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
        UsageError: No body takes the input, or it is async: use `arun_job`.
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
        self._result: object = None
        self._stopped = False

    def __len__(self) -> int:
        return 1

    def call(self, resources: Any) -> None:
        """Run a `def` body, and what it wants written."""
        context = _Context(self._ready.delivery, self._run, self._kept, self._app.group)
        try:
            self._returned(self._ready.handler.function(self._ready.message, context))
        except JobCancelled:
            self._check_cancelled()
            return
        for write in self._run.writes:
            write(resources.connection)
        if self._run.drafts:
            resources.emit(self._run.drafts)

    async def acall(self, resources: Any) -> None:
        """Run an `async def` body, and what it wants written."""
        context = _AsyncContext(self._ready.delivery, self._run, self._kept, self._app.group)
        try:
            self._returned(await self._ready.handler.function(self._ready.message, context))
        except JobCancelled:
            self._check_cancelled()
            return
        for write in self._run.writes:
            if (answer := write(resources.connection)) is not None:
                await answer
        if self._run.drafts:
            await resources.emit(self._run.drafts)

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

    def _returned(self, value: object) -> None:
        json_of(value, what="the result", most=MOST_RESULT)
        self._result = value

    def _check_cancelled(self) -> None:
        if self._run.cancel is None:
            raise UsageError(
                "the body raised JobCancelled although nobody has cancelled the job; call ctx.check()"
            )
        self._stopped = True


class _Context(JobContext):
    """A `def` body's context that keeps in memory."""

    __slots__ = ("_kept",)

    def __init__(self, delivery: Any, run: JobRun, kept: Kept, group: str) -> None:
        super().__init__(delivery, run, None, group=group, log=LOG)  # type: ignore[arg-type]  # nothing of it is asked for
        self._kept = kept

    @property
    def id(self) -> UUID:
        """Return the job's id."""
        return self._kept.id

    def checkpoint(self, state: object) -> None:
        """Keep *state*."""
        json_of(state, what="checkpoint", most=MOST_CHECKPOINT)
        self._kept.state = self._run.state = state

    def step(self, name: str, call: Callable[[], T]) -> T:
        """Run *call* unless the step is done."""
        if name not in self._kept.steps:
            self._kept.steps[name] = call()
        found: T = self._kept.steps[name]
        return found

    def effect(self, key: str, call: Callable[[str], Any], **options: Any) -> Any:
        """Call unless it was answered."""
        del options
        self._kept.idempotency_keys[key] = idempotency_key(self.id, key)
        if key not in self._kept.effects:
            self._kept.effects[key] = call(self._kept.idempotency_keys[key])
        return self._kept.effects[key]


class _AsyncContext(AsyncJobContext):
    """An `async def` body's context that keeps in memory."""

    __slots__ = ("_kept",)

    def __init__(self, delivery: Any, run: JobRun, kept: Kept, group: str) -> None:
        super().__init__(delivery, run, None, group=group, log=LOG)  # type: ignore[arg-type]  # nothing of it is asked for
        self._kept = kept

    @property
    def id(self) -> UUID:
        """Return the job's id."""
        return self._kept.id

    async def checkpoint(self, state: object) -> None:
        """Keep *state*."""
        json_of(state, what="checkpoint", most=MOST_CHECKPOINT)
        self._kept.state = self._run.state = state

    async def step(self, name: str, call: Callable[[], Awaitable[T] | T]) -> T:
        """Run *call* unless the step is done."""
        if name not in self._kept.steps:
            self._kept.steps[name] = await _awaited(call())
        found: T = self._kept.steps[name]
        return found

    async def effect(self, key: str, call: Callable[[str], Any], **options: Any) -> Any:
        """Call unless it was answered."""
        del options
        self._kept.idempotency_keys[key] = idempotency_key(self.id, key)
        if key not in self._kept.effects:
            self._kept.effects[key] = await _awaited(call(self._kept.idempotency_keys[key]))
        return self._kept.effects[key]


async def _awaited(answer: Any) -> Any:
    return await answer if isinstance(answer, Awaitable) else answer
