"""Read one job from the tables, in the snapshot of whoever asks."""

from typing import Any
from uuid import UUID

from packhorse.console.acting.postgres import Rows
from packhorse.console.truth import sql_jobs
from packhorse.console.truth.jobs import FIRST_SHOWN, Effect, Job, JobFacts, Step
from packhorse.core.jobs import JobState
from packhorse.producer.jobs.reading import Transition


def job_facts(rows: Rows, job_id: UUID) -> JobFacts | None:
    """Return all that is known of the job; None: there is none of that id."""
    wanted = {"id": job_id, "most": FIRST_SHOWN}
    row = rows.first(sql_jobs.JOB_OF, wanted)
    if row is None:
        return None
    return JobFacts(
        job=job_of(row),
        transitions=tuple(_transition(each) for each in rows.all(sql_jobs.TRANSITIONS, wanted)),
        steps=tuple(Step(**each) for each in reversed(rows.all(sql_jobs.STEPS, wanted))),
        effects=tuple(Effect(**each) for each in rows.all(sql_jobs.EFFECTS, wanted)),
        **rows.all(sql_jobs.BESIDES, wanted)[0],
    )


def job_of(row: dict[str, Any]) -> Job:
    """Return the job of a row."""
    return Job(**{**row, "state": JobState(row["state"])})


def _transition(row: dict[str, Any]) -> Transition:
    before = None if row["before"] is None else JobState(row["before"])
    return Transition(**{**row, "before": before, "after": JobState(row["after"])})
