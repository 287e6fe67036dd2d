"""
A chunk of jobs: each is claimed under a lease, its body runs with no transaction open, and its end is recorded with the message's.

Order of effects, and what a crash between two of them does:

1. `ClaimJobs`, a portion of the chunk at a time: the jobs are running, under leases. After a crash their leases run out and whoever is assigned the partition takes
   them over, by compare-and-set; nobody else can have begun them.
2. Bodies, one after another. What they keep (checkpoints, steps, effects) is fenced by the lease and stays.
3. `RecordJobs`, or where more is to be written `Begin`, `FinishJobs`, what bodies want written, `Write`, `CommitTransaction`: the job's
   end, its result and the inbox row are one transaction. Whose lease is another's by now is left out: nothing of it is written.
4. Copies and the watermark follow, as for any message.

A job that stops for good while an effect of its may or may not have happened is recorded as uncertain, whatever it stops for: between
`FinishJobs` and `Write` its effects are asked for, and where one is in doubt the transaction is begun anew with that.

Jobs of a type that does not say that it is quick wait for one another for a moment alone: what is not the lane's any more, because the
one before it takes long, is neither begun nor recorded nor given back here (see `hands`).

A partition that goes away while a body runs does not stop it: the lease says whose job it is, not the partition. Whoever has the
partition then waits for the lease, and finds the inbox row when the body has come to its end here.
"""

from collections.abc import Generator, Sequence
from typing import Any

from packhorse.core.errors import PackhorseError
from packhorse.processor.jobs.deciding import LOOK_AGAIN, End, Wait, not_had
from packhorse.processor.jobs.runs import JobRun, Phase
from packhorse.processor.outcomes import Reason
from packhorse.processor.running.jobends import Effects, Ended, JobEnded, Jobs, recorded
from packhorse.processor.running.judging import after_run, ended_before, too_late
from packhorse.processor.running.preparing import decode, mark_start
from packhorse.processor.running.requests import (
    ClaimJobs,
    HadJob,
    HadJobs,
    JobRows,
    LookUpJobs,
    ReleaseJobs,
    Request,
    RunJob,
)
from packhorse.processor.running.verdict import Attempt, judged
from packhorse.processor.running.work import Failure, Member, Ran

FIRST_PORTION = 16
"""Jobs that are claimed at first; the next claim takes twice as many, while the chunk's time lasts: what is not claimed need not be given back."""


def run_jobs(
    members: Sequence[Member], how: Attempt, group: str, *, marked: int | None = None
) -> Generator[Request, Any, Ended | None]:
    """
    Deal with *members*, all jobs; return what came of it, or None when another was first with a message of theirs.

    Args:
        members: What is known of them is in them; those with a result are recorded without being run.
        how: How they are run.
        group: The group whose workers these are.
        marked: They may have killed a process: their starts are put on record, once they are had, and so many are allowed.

    Raises:
        Contention, Stopped, GivenUp, Down, Probed, DatabaseUnavailable: What was not run to its end is given back.
    """
    jobs = Jobs(how=how, group=group, marked=marked)
    decided = [member for member in members if member.result is not None]
    todo = [member for member in members if member.result is None]
    if not (yield from recorded([(member, None) for member in decided], jobs)):
        return None
    began, most = how.clock(), len(todo) if how.together else FIRST_PORTION
    while todo:
        portion, todo, most = todo[:most], todo[most:], 2 * most
        if not (yield from _portion(portion, jobs)):
            return None
        if how.clock() - began > how.time:
            break
    return Ended(jobs.members, jobs.results, jobs.held)


def _portion(todo: list[Member], jobs: Jobs) -> Generator[Request, Any, bool]:
    """Claim the jobs of *todo*, run and record them; return False when another was first with a message of theirs."""
    had: HadJobs = yield ClaimJobs(todo, jobs.how.in_hand)
    ready = [(member, had[member.delivery.id]) for member in todo if member.delivery.id in had]
    jobs.how.hands.open({member.delivery.record.offset: one.run for member, one in ready})
    missing = [member for member in todo if member.delivery.id not in had]
    yet = [one.run for _, one in ready]
    try:
        over = (yield from _not_had(missing, jobs)) if missing else []
        well = yield from recorded([(member, None) for member in over], jobs)
        well = well and (yield from _worked(ready, yet, jobs))
    except PackhorseError:
        yield ReleaseJobs(_mine(ready, yet, jobs), "given back")
        raise
    if yet := _mine(ready, yet, jobs):
        yield ReleaseJobs(yet, "given back")
    return well


def _mine(ready: list[tuple[Member, HadJob]], yet: list[JobRun], jobs: Jobs) -> list[JobRun]:
    """Return those of *yet* that were not handed on, and will not be: the lane works on them."""
    if not yet:
        return yet
    left = {member.delivery.record.offset: had.run for member, had in ready if had.run in yet}
    return [left[at] for at in jobs.how.hands.take(left)]


def _not_had(missing: list[Member], jobs: Jobs) -> Generator[Request, Any, list[Member]]:
    """Decide what becomes of members whose job could not be had; return those that are over."""
    rows: JobRows = yield LookUpJobs([member.delivery.id for member in missing])
    over: list[Member] = []
    for member in missing:
        match not_had(rows.get(member.delivery.id), jobs.group):
            case Wait(seconds):
                jobs.hold(member, seconds)
            case End() as end:
                member.result = ended_before(member, end)
                over.append(member)
    return over


def _worked(
    ready: list[tuple[Member, HadJob]], yet: list[JobRun], jobs: Jobs
) -> Generator[Request, Any, bool]:
    """
    Run the bodies and record how they end; return False when another was first with a message.

    Runs leave *yet* as their bodies end; what is in it afterwards, or when an error comes out, is to be given back.
    """
    ended: list[JobEnded] = []
    try:
        yield from _decoded(ready)
        began = jobs.how.clock()
        for member, had in ready:
            if ended and jobs.how.clock() - began > jobs.how.time:
                break
            if not jobs.how.hands.take([member.delivery.record.offset]):
                break  # one before it took long: all that waited for that was handed on
            if jobs.marked is not None:
                yield from mark_start(member, jobs.marked)
            yield from _body(member, had, jobs)
            yet.remove(had.run)
            if had.run.lost:
                jobs.hold(member, LOOK_AGAIN)
            else:
                ended.append((member, had.run))
    except PackhorseError:
        yield from recorded(ended, jobs)
        raise
    return (yield from recorded(ended, jobs))


def _decoded(ready: list[tuple[Member, HadJob]]) -> Effects:
    """Decode the inputs of jobs whose body is to run."""
    yet = [(member, had.input) for member, had in ready if had.run.phase is not Phase.ENDED]
    yield from decode(yet)
    for member, given in yet:
        if given is None:
            ran = Ran(Failure.PERMANENT, Reason.NO_JOB.value, "its input was erased")
            member.result = after_run(member, ran, jitter=0.0)


def _left(member: Member, age: float) -> float | None:
    """Return the seconds that the job has until its deadline; None without one, or where a person has ordered the run."""
    spec = member.job
    return None if spec is None or spec.deadline is None or member.redriven else spec.deadline - age


def _body(member: Member, had: HadJob, jobs: Jobs) -> Effects:
    """Run the body of one job, unless an earlier ownership of the partition has; decide its result."""
    run = had.run
    if member.result is None and run.phase is not Phase.ENDED:
        run.left = _left(member, had.age)
        if run.left is not None and run.left <= 0:
            member.result = too_late(member)
    if member.result is not None:
        return
    ran = run.ran if run.phase is Phase.ENDED else None
    if ran is None:
        jobs.how.runs([member])
        began = jobs.how.clock()
        ran = yield RunJob(member, run)
        jobs.how.took = jobs.how.took.and_one(jobs.how.clock() - began)
    if run.lost:
        return
    jobs.how.ran = run.ran = ran
    if ran.failure is not None:
        member.result = judged(member, ran, jobs.how)
    jobs.how.running.clear()
    run.phase = Phase.ENDED
