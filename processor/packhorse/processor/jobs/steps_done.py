"""Steps of a job with recorded results: one that is done is never run again."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, NamedTuple

from packhorse.core.errors import UsageError
from packhorse.core.text import inert
from packhorse.processor.jobs.driving import (
    AsyncExecute,
    Call,
    Execute,
    Work,
    adrive,
    drive,
    patiently,
)
from packhorse.processor.jobs.fencing import Run, check_owned, written
from packhorse.processor.jobs.naming import checked_name
from packhorse.processor.jobs.values import MOST_RESULT, json_of, loaded
from packhorse.processor.storing.sql import Queries
from packhorse.processor.storing.steps import Statement, Steps


class Done(NamedTuple):
    """A step that is done, and what it returned."""

    result: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTable:
    """The steps of the job of one run; all raise `OwnershipLost` when the run has lost its job."""

    queries: Queries
    run: Run

    def read(self, name: str) -> Steps[Done | None]:
        """Return what the step returned, None when it is not done."""
        answer = yield Statement(self.queries.read_step, self._here(name))
        owned, done, text = answer.rows[0]
        check_owned(self.run, owned)
        return Done(loaded(text)) if done else None

    def record(self, name: str, result: str | None) -> Steps[Done]:
        """Record that the step is done; return what is on record, by whomever: the first result stands."""
        values = {**self._here(name), "attempt": self.run.attempt, "result": result}
        if not written(self.run, (yield Statement(self.queries.record_step, values))):
            found = yield from self.read(name)
            return found or Done(loaded(result))
        return Done(loaded(result))

    def _here(self, name: str) -> dict[str, Any]:
        return {"job": self.run.job_id, "token": self.run.token, "name": name}


def perform_step(name: str, call: Callable[[], Any], table: StepTable) -> Work[Any]:
    """
    Run the step unless it is done, and return what it returned the first time.

    The result is recorded after the call: a crash in between runs the step once more. What must not happen twice is an effect.

    Raises:
        UsageError: *name* is no name, or the result is nothing that JSON can carry.
        OwnershipLost: Another worker has the job by now; the result is not on record.
        Exception: What *call* raises.
    """
    named = checked_name(name, what="step")
    found: Done | None = yield from patiently(lambda: table.read(named))
    if found is None:
        check_owned(table.run, not table.run.lost)
        result = yield Call(call)
        text = json_of(result, what=f"the result of step {inert(named)}", most=MOST_RESULT)
        found = yield from patiently(lambda: table.record(named, text))
    return found.result


class DoneSteps:
    """
    The steps of one run of a `def` job.

    Args:
        run: The job's run.
        execute: Executes steps on a connection of their own.
        queries: The statements.
        pause: Waits while the database is away.
    """

    def __init__(
        self, run: Run, execute: Execute, *, queries: Queries, pause: Callable[[float], object]
    ) -> None:
        self._table = StepTable(queries=queries, run=run)
        self._execute = execute
        self._pause = pause

    def step(self, name: str, call: Callable[[], Any]) -> Any:
        """Run *call* unless the step is done, and return what it returned the first time; raises as `perform_step`."""
        if iscoroutinefunction(call):
            raise UsageError(f"step {inert(str(name))}: its function is `async def`, the job is not")
        return drive(perform_step(name, call, self._table), self._execute, self._pause)


class AsyncDoneSteps:
    """The steps of one run of an `async def` job; see `DoneSteps`."""

    def __init__(
        self,
        run: Run,
        execute: AsyncExecute,
        *,
        queries: Queries,
        pause: Callable[[float], Awaitable[object]],
    ) -> None:
        self._table = StepTable(queries=queries, run=run)
        self._execute = execute
        self._pause = pause

    async def step(self, name: str, call: Callable[[], Any]) -> Any:
        """Run *call*, which may be `async def`, unless the step is done; as `DoneSteps.step`."""
        return await adrive(perform_step(name, call, self._table), self._execute, self._pause)
