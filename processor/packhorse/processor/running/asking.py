"""Requests of chunks that are steps of the store."""

from collections.abc import Sequence
from uuid import UUID

from packhorse.processor.jobs.runs import JobRun
from packhorse.processor.plant import Plant
from packhorse.processor.running.job_steps import claimed, finished, recorded, released
from packhorse.processor.running.requests import (
    ClaimJobs,
    ClaimKey,
    ClaimKeys,
    CountDeliveries,
    FindDoubts,
    FinishJobs,
    GetFirstFollowers,
    HadJob,
    LeaveKey,
    LeaveKeys,
    LookUp,
    LookUpJobs,
    MarkStart,
    RecordJobs,
    ReleaseJobs,
    ReleaseKeys,
    Request,
    Write,
)
from packhorse.processor.running.work import Claim, Claimed, ClaimedKeys, Work
from packhorse.processor.storing.store import HeldKey, Steps


def steps_of(request: Request, plant: Plant, work: Work, xid: str) -> Steps[object]:
    """Return the statements that answer *request*."""
    store, source, spot = plant.store, work.stream.source, (work.stream.topic_id, work.partition)
    match request:
        case LookUp(ids, keys):
            return store.look_up(work.stream, work.partition, ids, keys)
        case Write(results, claim, claims):
            return store.write(
                work.stream, results, xid, topic_age=work.topic_age, claim=claim, claims=claims
            )
        case CountDeliveries(ids):
            return store.count_deliveries(work.stream, ids)
        case MarkStart(offset):
            return _begun(plant, spot, offset)
        case ClaimJobs() | LookUpJobs() | FinishJobs() | FindDoubts() | RecordJobs() | ReleaseJobs():
            return _of_jobs(request, plant, work)
        case _:
            return _of_keys(request, plant, source)


def _of_jobs(
    request: ClaimJobs | LookUpJobs | FinishJobs | FindDoubts | RecordJobs | ReleaseJobs,
    plant: Plant,
    work: Work,
) -> Steps[object]:
    """Return the statements that answer a request about jobs."""
    match request:
        case ClaimJobs(members):
            return claimed(plant, members, ended=work.ended)
        case LookUpJobs(ids):
            return plant.store.look_up_jobs(ids)
        case FinishJobs(ends):
            return finished(plant, ends)
        case FindDoubts(ids):
            return plant.store.effects_in_doubt(ids)
        case RecordJobs(ends):
            return recorded(plant, work.stream, ends)
        case ReleaseJobs(runs, reason):
            return released(plant, runs, reason)


def _of_keys(request: Request, plant: Plant, source: str) -> Steps[object]:
    """Return the statements that answer a request about parked keys."""
    store = plant.store
    match request:
        case ReleaseKeys(keys, held):
            return store.release(source, keys, held)
        case ClaimKey(key, held):
            return store.claim(source, key, plant.claims.drainer, held)
        case ClaimKeys(keys):
            return store.claim_keys(source, keys, plant.claims.drainer)
        case GetFirstFollowers(keys):
            return store.first_followers(source, keys)
        case LeaveKey(claim):
            return store.leave(source, claim)
        case LeaveKeys(claims):
            return store.leave_all([HeldKey(source, *claim) for claim in claims])
        case _:
            raise TypeError(f"{type(request).__name__} is no statement")


def _begun(plant: Plant, spot: tuple[UUID, int], offset: int) -> Steps[int]:
    starts = yield from plant.store.mark_start(spot, offset, lived=plant.starts.owes(spot, offset))
    plant.starts.paid(spot, [offset])
    return starts


def runs_in(answer: object) -> Sequence[JobRun]:
    """Return the runs of the jobs that *answer* tells of."""
    return [had.run for had in answer.values() if isinstance(had, HadJob)] if isinstance(answer, dict) else ()


def claims_in(answer: object) -> Sequence[Claim]:
    """Return the claims that *answer* tells of, which are to be renewed from now on."""
    match answer:
        case Claimed(claim=Claim() as claim):
            return [claim]
        case ClaimedKeys(claims):
            return claims
        case _:
            return ()
