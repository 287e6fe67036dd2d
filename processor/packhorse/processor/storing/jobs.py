"""Jobs and their leases as steps."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from packhorse.core.jobs import JobState
from packhorse.processor.jobs.deciding import JobRow
from packhorse.processor.jobs.runs import JobRun, Progress
from packhorse.processor.record import Stream
from packhorse.processor.running.work import Result
from packhorse.processor.storing.rows import done_rows, literal, uuids
from packhorse.processor.storing.steps import Statement, Steps, Tables

MOST_DUE = 500
"""Jobs of a type whose time has come that are sent at a time."""


class Wanted(NamedTuple):
    """
    A job to be had.

    Attributes:
        id: The job.
        token: Of the lease that is asked for.
        was: The token of a lease that this process has and nobody works under; None without one.
        attempt: The number of the run, from 1.
    """

    id: UUID
    token: UUID
    was: UUID | None
    attempt: int


class Had(NamedTuple):
    """
    A job that was had.

    Attributes:
        token: Of its lease.
        input: Its input, framed; None where it was erased.
        state: The checkpoint that it goes on from.
        age: Seconds since it was accepted, or due.
    """

    id: UUID
    token: UUID
    input: bytes | None
    state: Any
    request_key: str | None
    age: float


class JobEnd(NamedTuple):
    """
    How a job ends for now.

    Attributes:
        token: Of the lease that it ran under; None: it did not run.
        attempt: The run that ended, 0 when none was.
        result: JSON text.
    """

    id: UUID
    token: UUID | None
    state: JobState
    attempt: int
    reason: str | None
    error: str | None
    result: str | None = None
    progress: Progress | None = None


class Declared(NamedTuple):
    """What a processor declares of a type of jobs: seconds after their end that results and rows are kept; None: as set."""

    type: str
    contact: str | None
    keep_result: float | None
    keep_row: float | None


class Beat(NamedTuple):
    """What came of renewing leases: of jobs whose lease stands those that somebody wants cancelled, and those that are lost."""

    cancelled: frozenset[UUID]
    lost: frozenset[UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSteps(Tables):
    """Jobs of the group."""

    def claim_jobs(self, wanted: Sequence[Wanted], member: UUID, lease: float) -> Steps[dict[UUID, Had]]:
        """
        Take those of *wanted* that may run under leases of *lease* seconds; return them by their ids.

        It must not be part of a transaction that runs on: rows are locked until its end.
        """
        answer = yield Statement(
            self.queries.claim_job if len(wanted) == 1 else self.queries.claim_jobs,
            {
                "group": self.group,
                "member": member,
                "lease": lease,
                "ids": uuids(one.id for one in wanted),
                "tokens": uuids(one.token for one in wanted),
                "was": literal(one.was for one in wanted),
                "attempts": literal(one.attempt for one in wanted),
            },
        )
        return {row[0]: Had._make(row) for row in answer.rows}

    def look_up_jobs(self, ids: Sequence[UUID]) -> Steps[dict[UUID, JobRow]]:
        """Return how jobs stand, by their ids; what is not there is not in it."""
        answer = yield Statement(self.queries.look_up_jobs, {"ids": uuids(ids)})
        return {row[0]: JobRow(row[0], JobState(row[1]), *row[2:]) for row in answer.rows}

    def finish_jobs(self, ends: Sequence[JobEnd]) -> Steps[frozenset[UUID]]:
        """Record *ends* in the open transaction; return those jobs that were theirs to end: nothing may be recorded of others."""
        query = self.queries.finish_job if len(ends) == 1 else self.queries.finish_jobs
        answer = yield Statement(query, self._ends(ends))
        return frozenset(row[0] for row in answer.rows)

    def effects_in_doubt(self, ids: Sequence[UUID]) -> Steps[dict[UUID, tuple[str, ...]]]:
        """
        Return the names of those effects of jobs of which nobody knows whether they have happened, by job; only of jobs with one.

        Behind `finish_jobs` in its transaction it misses none: who would record another intent waits for that, and has lost the job then.
        """
        answer = yield Statement(self.queries.effects_in_doubt, {"ids": uuids(ids)})
        return {row[0]: tuple(row[1]) for row in answer.rows}

    def record_jobs(
        self, stream: Stream, ends: Sequence[JobEnd], results: Sequence[Result]
    ) -> Steps[frozenset[UUID]]:
        """
        Record *ends*, and with them *results*, which are all plain, in a transaction of its own; return as `finish_jobs`.

        A unique violation says that another was first with a message, and that nothing is recorded.
        """
        query = self.queries.record_job if len(ends) == 1 else self.queries.record_jobs
        which = {**self._ends(ends), **done_rows(results), "source": stream.source}
        answer = yield Statement(query, which)
        return frozenset(row[0] for row in answer.rows)

    def _ends(self, ends: Sequence[JobEnd]) -> dict[str, Any]:
        return {
            "group": self.group,
            "ids": uuids(one.id for one in ends),
            "tokens": literal(one.token for one in ends),
            "states": [one.state.value for one in ends],
            "attempts": literal(one.attempt for one in ends),
            "reasons": [one.reason for one in ends],
            "errors": [one.error for one in ends],
            "results": [one.result for one in ends],
            **_progress([one.progress for one in ends]),
        }

    def release_jobs(self, runs: Collection[JobRun], reason: str) -> Steps[None]:
        """Give jobs back that are not run to their end; nothing is charged. What is another's by now stays as it is."""
        if runs:
            yield Statement(self.queries.release_jobs, {**_leases(runs), "reason": reason})

    def renew_jobs(self, runs: Sequence[JobRun], lease: float) -> Steps[Beat]:
        """Renew the leases of *runs* and write what progress they say."""
        runs = sorted(runs, key=lambda run: run.job_id)
        which = {**_leases(runs), "lease": lease, **_progress([run.progress for run in runs])}
        answer = yield Statement(self.queries.renew_jobs, which)
        beaten = {row[0] for row in answer.rows}
        missed = [run for run in runs if run.job_id not in beaten]
        lost: frozenset[UUID] = frozenset()
        if missed:
            standing = yield Statement(self.queries.standing_jobs, _leases(missed))
            lost = frozenset(run.job_id for run in missed) - {row[0] for row in standing.rows}
        return Beat(frozenset(row[0] for row in answer.rows if row[1]), lost)

    def checkpoint_job(self, job_id: UUID, token: UUID, value: str | None) -> Steps[bool]:
        """Keep *value*, JSON text, for the next run to go on from; return False when the lease is another's."""
        which = {"id": job_id, "token": token, "value": value}
        answer = yield Statement(self.queries.checkpoint_job, which)
        return answer.touched == 1

    def due_jobs(self, types: Sequence[str]) -> Steps[tuple[int, float | None]]:
        """Write the outbox rows of jobs of *types* that are due, a portion; return how many, and seconds until the next one."""
        answer = yield Statement(self.queries.due_jobs, {"types": list(types), "most": MOST_DUE})
        sent, wait = answer.rows[0]
        return int(sent), None if wait is None else max(float(wait), 0.0)

    def declare_jobs(self, declared: Sequence[Declared]) -> Steps[None]:
        """Put on record what is declared of types of jobs."""
        yield Statement(
            self.queries.declare_jobs,
            {
                "group": self.group,
                "types": [one.type for one in declared],
                "contacts": [one.contact for one in declared],
                "results": literal(one.keep_result for one in declared),
                "rows": literal(one.keep_row for one in declared),
            },
        )


def _leases(runs: Collection[JobRun]) -> dict[str, Any]:
    return {"ids": uuids(run.job_id for run in runs), "tokens": uuids(run.token for run in runs)}


def _progress(said: Sequence[Progress | None]) -> dict[str, Any]:
    return {
        "dones": literal(None if one is None else one.done for one in said),
        "totals": literal(None if one is None else one.total for one in said),
        "texts": [None if one is None else one.text for one in said],
    }
