"""
A chunk of jobs: each is claimed under a lease, its body runs with no transaction open, and its end is recorded with the message's.

Order of effects, and what a crash between two of them does:

1. `ClaimJobs`, a portion of the chunk at a time: the jobs are running, under leases. After a crash their leases run out and whoever is assigned the partition takes
   them over, by compare-and-set; nobody else can have begun them.
2. Bodies, one after another. What they keep (checkpoints, steps, effects) is fenced by the lease and stays.
3. `Begin`, `FinishJobs`, what bodies want written, `Write`, `CommitTransaction`: the job's end, its result and the inbox row are
   one transaction. Whose lease is another's by now is left out: nothing of it is written.
4. Copies and the watermark follow, as for any message.

A partition that goes away while a body runs does not stop it: the lease says whose job it is, not the partition. Whoever has the
partition then waits for the lease, and finds the inbox row when the body has come to its end here.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from packhorse.core.errors import PackhorseError
from packhorse.processor.jobs.deciding import LOOK_AGAIN, End, Wait, not_had
from packhorse.processor.jobs.runs import JobRun, Phase
from packhorse.processor.outcomes import Outcome, Reason
from packhorse.processor.running.endings import Contention
from packhorse.processor.running.judging import after_run, done, ended_before, too_late
from packhorse.processor.running.preparing import decode, mark_start
from packhorse.processor.running.requests import (
    Begin,
    ClaimJobs,
    CommitTransaction,
    FinishJobs,
    HadJob,
    HadJobs,
    JobRows,
    LookUp,
    LookUpJobs,
    ReleaseJobs,
    Request,
    RollBack,
    RunJob,
    RunWrites,
    Write,
)
from packhorse.processor.running.verdict import Attempt, judged
from packhorse.processor.running.work import Failure, InboxRow, Known, Member, Ran, Result

FIRST_PORTION = 16
"""Jobs that are claimed at first; the next claim takes twice as many, while the chunk's time lasts: what is not claimed need not be given back."""
MOST_TRIES = 5
"""Times that the recording of an end may lose to other transactions; the body is not run again for that."""

Effects = Generator[Request, Any, Any]


class Ended(NamedTuple):
    """What came of a chunk of jobs: members and their results, in one order; and, by offset, the seconds that others wait."""

    members: list[Member]
    results: list[Result]
    held: dict[int, float]


@dataclass(slots=True, kw_only=True)
class _Jobs:
    """How far a chunk of jobs has come."""

    how: Attempt
    group: str
    marked: int | None
    members: list[Member] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    held: dict[int, float] = field(default_factory=dict)

    def hold(self, member: Member, seconds: float) -> None:
        self.held[member.delivery.record.offset] = seconds


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
    jobs = _Jobs(how=how, group=group, marked=marked)
    decided = [member for member in members if member.result is not None]
    todo = [member for member in members if member.result is None]
    if not (yield from _recorded([(member, None) for member in decided], jobs)):
        return None
    began, most = how.clock(), FIRST_PORTION
    while todo:
        portion, todo, most = todo[:most], todo[most:], 2 * most
        if not (yield from _portion(portion, jobs)):
            return None
        if how.clock() - began > how.time:
            break
    return Ended(jobs.members, jobs.results, jobs.held)


def _portion(todo: list[Member], jobs: _Jobs) -> Generator[Request, Any, bool]:
    """Claim the jobs of *todo*, run and record them; return False when another was first with a message of theirs."""
    had: HadJobs = yield ClaimJobs(todo, jobs.how.in_hand)
    ready = [(member, had[member.delivery.id]) for member in todo if member.delivery.id in had]
    missing = [member for member in todo if member.delivery.id not in had]
    yet = [one.run for _, one in ready]
    try:
        over = (yield from _not_had(missing, jobs)) if missing else []
        well = yield from _recorded([(member, None) for member in over], jobs)
        well = well and (yield from _worked(ready, yet, jobs))
    except PackhorseError:
        yield ReleaseJobs(yet, "given back")
        raise
    if yet:
        yield ReleaseJobs(yet, "given back")
    return well


def _not_had(missing: list[Member], jobs: _Jobs) -> Generator[Request, Any, list[Member]]:
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
    ready: list[tuple[Member, HadJob]], yet: list[JobRun], jobs: _Jobs
) -> Generator[Request, Any, bool]:
    """
    Run the bodies and record how they end; return False when another was first with a message.

    Runs leave *yet* as their bodies end; what is in it afterwards, or when an error comes out, is to be given back.
    """
    ended: list[tuple[Member, JobRun | None]] = []
    try:
        yield from _decoded(ready)
        began = jobs.how.clock()
        for member, had in ready:
            if ended and jobs.how.clock() - began > jobs.how.time:
                break
            if jobs.marked is not None:
                yield from mark_start(member, jobs.marked)
            yield from _body(member, had, jobs)
            yet.remove(had.run)
            if had.run.lost:
                jobs.hold(member, LOOK_AGAIN)
            else:
                ended.append((member, had.run))
    except PackhorseError:
        yield from _recorded(ended, jobs)
        raise
    return (yield from _recorded(ended, jobs))


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


def _body(member: Member, had: HadJob, jobs: _Jobs) -> Effects:
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
        ran = yield RunJob(member, run)
    if run.lost:
        return
    jobs.how.ran = run.ran = ran
    if ran.failure is not None:
        member.result = judged(member, ran, jobs.how)
    jobs.how.running.clear()
    run.phase = Phase.ENDED


def _recorded(ended: list[tuple[Member, JobRun | None]], jobs: _Jobs) -> Generator[Request, Any, bool]:
    """
    Record the ends, those with something to write each in a transaction of its own, the others together.

    Returns False when another was first with a message. What loses to other transactions is tried again; no body is run for it.
    """
    together = [one for one in ended if not _writes(one)]
    apart = [[one] for one in ended if _writes(one)]
    for group in [together, *apart] if together else apart:
        if not (yield from _patiently(group, jobs)):
            yield from _let_go(group)
            return False
    return True


def _patiently(ended: list[tuple[Member, JobRun | None]], jobs: _Jobs) -> Generator[Request, Any, bool]:
    """Commit *ended*, again when it loses to other transactions, MOST_TRIES times in all."""
    for _ in range(MOST_TRIES - 1):
        try:
            return (yield from _commit(ended, jobs))
        except Contention:
            yield RollBack()
    return (yield from _commit(ended, jobs))


def _let_go(ended: list[tuple[Member, JobRun | None]]) -> Effects:
    """
    Give back the jobs of those members that another has dealt with since the inbox was asked; the others are still to be recorded.

    The other had the job before: it failed there, and was claimed here before its message was known to be tried again.
    """
    known: Known = yield LookUp([member.delivery.id for member, _ in ended], [])
    dealt = [
        run
        for member, run in ended
        if run is not None and _standing(known.rows.get(member.delivery.id)) != _standing(member.row)
    ]
    for run in dealt:
        run.phase = Phase.IDLE
    yield ReleaseJobs(dealt, "its message was dealt with")


def _standing(row: InboxRow | None) -> tuple[Outcome, int] | None:
    return None if row is None else (row.outcome, row.attempt)


def _writes(one: tuple[Member, JobRun | None]) -> bool:
    member, run = one
    return run is not None and member.result is None and run.has_writes


def _commit(ended: list[tuple[Member, JobRun | None]], jobs: _Jobs) -> Generator[Request, Any, bool]:
    """Record *ended* in one transaction; return False when another was first with a message."""
    yield Begin(jobs.how.in_hand)
    ends = [(member.result or done(member), run) for member, run in ended]
    ours = yield FinishJobs(ends)
    mine = [(m, r, one) for (m, one), (r, _) in zip(ended, ends, strict=True) if m.delivery.id in ours]
    for member, _ in ended:
        if member.delivery.id not in ours:
            jobs.hold(member, LOOK_AGAIN)
    for member, _, one in mine:
        if one is not None and _writes((member, one)):
            jobs.how.runs([member])
            ran: Ran = yield RunWrites(member, one)
            if ran.failure is not None:
                yield RollBack()
                member.result = judged(member, ran, jobs.how) or after_run(member, ran, jitter=0.0)
                return (yield from _commit(ended, jobs))
            jobs.how.running.clear()
    if not mine:
        yield RollBack()
        return True
    results = [result for _, result, _ in mine]
    if (yield Write(results)) is False:
        yield RollBack()
        return False
    yield CommitTransaction([one for _, _, one in mine if one is not None])
    jobs.members += [member for member, _, _ in mine]
    jobs.results += results
    return True
