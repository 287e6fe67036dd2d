"""What lanes do for jobs as statements: claims, ends and giving back, with the runs that this process has in hand."""

from collections.abc import Sequence
from uuid import UUID

from packhorse.processor.jobs.deciding import state_after
from packhorse.processor.jobs.runs import JobRun, Phase
from packhorse.processor.plant import Plant
from packhorse.processor.record import Stream
from packhorse.processor.running.requests import HadJob
from packhorse.processor.running.work import Member, Result
from packhorse.processor.storing.jobs import JobEnd, Wanted
from packhorse.processor.storing.store import Steps

NO_AGE = 0.0


def claimed(plant: Plant, members: Sequence[Member], *, ended: bool = False) -> Steps[dict[UUID, HadJob]]:
    """
    Take the jobs of *members* under leases, as far as they may run, and enter their runs; return them by job.

    One whose body this process has run to its end already, without having recorded it, is had as it is; one whose body still
    runs in another lane is not.
    """
    runs, found = plant.runs, dict[UUID, HadJob]()
    wanted: dict[UUID, Wanted] = {}
    for member in members:
        job_id = member.delivery.id
        run = runs.of(job_id)
        if run is not None and not run.lost and run.phase is Phase.ENDED:
            found[job_id] = HadJob(run, None, NO_AGE)
        elif ended:
            continue
        elif run is None or run.lost or run.phase is Phase.IDLE:
            was = run.token if run is not None and run.phase is Phase.IDLE else None
            wanted[job_id] = Wanted(job_id, plant.chance.token(), was, member.attempt)
    if not wanted:
        return found
    had = yield from plant.store.claim_jobs(list(wanted.values()), plant.member, plant.job_lease)
    for job in had.values():
        run = JobRun(job.id, job.token, wanted[job.id].attempt, state=job.state, request_key=job.request_key)
        runs.enter(run)
        found[job.id] = HadJob(run, job.input, job.age)
    return found


def finished(plant: Plant, ends: Sequence[tuple[Result, JobRun | None]]) -> Steps[frozenset[UUID]]:
    """
    Record ends in the open transaction; return the jobs that were theirs to end.

    One that is decided without a run is ended under the lease that this process still has of it, if nobody works under that. Runs whose lease
    is another's by now are forgotten.
    """
    ours = yield from plant.store.finish_jobs([_end(plant, result, run) for result, run in ends])
    _lose(plant, ends, ours)
    return ours


def recorded(plant: Plant, stream: Stream, ends: Sequence[tuple[Result, JobRun]]) -> Steps[frozenset[UUID]]:
    """Record ends with their messages, as `finished`, in a transaction of its own; forget the runs: what they did is durable."""
    ours = yield from plant.store.record_jobs(
        stream, [_end(plant, result, run) for result, run in ends], [result for result, _ in ends]
    )
    _lose(plant, ends, ours)
    plant.runs.forget([run for _, run in ends])
    return ours


def _lose(plant: Plant, ends: Sequence[tuple[Result, JobRun | None]], ours: frozenset[UUID]) -> None:
    lost = [run for result, run in ends if run is not None and result.delivery.id not in ours]
    for run in lost:
        run.lost = True
    plant.runs.forget(lost)


def _end(plant: Plant, result: Result, run: JobRun | None) -> JobEnd:
    job_id, state = result.delivery.id, state_after(result.outcome, result.reason)
    left = plant.runs.of(job_id) if run is None else run
    token = left.token if left is not None and (run is not None or left.phase is not Phase.RUNNING) else None
    return JobEnd(
        job_id,
        token,
        state,
        result.attempt,
        result.reason,
        result.error,
        run.value if run is not None and state == "succeeded" else None,
        None if run is None else run.progress,
    )


def released(plant: Plant, runs: Sequence[JobRun], reason: str) -> Steps[None]:
    """
    Give *runs* back, and forget them; where that fails they stay as leases that nobody works under, to be had again.

    Those whose body has ended but is not recorded stay as they are, and those that are lost, or left by their lane.
    """
    back = [run for run in runs if run.phase is not Phase.ENDED and not run.lost]
    for run in back:
        run.phase = Phase.IDLE
    yield from plant.store.release_jobs(back, reason)
    plant.runs.forget(back)
