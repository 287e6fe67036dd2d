"""How the ends of jobs are recorded: with their messages, in one transaction, each under its lease."""

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from packhorse.processor.jobs.deciding import LOOK_AGAIN
from packhorse.processor.jobs.runs import JobRun, Phase
from packhorse.processor.outcomes import Outcome, Reason
from packhorse.processor.running.endings import Contention
from packhorse.processor.running.judging import after_run, done, in_doubt
from packhorse.processor.running.requests import (
    Begin,
    CommitTransaction,
    FindDoubts,
    FinishJobs,
    LookUp,
    RecordJobs,
    ReleaseJobs,
    Request,
    RollBack,
    RunWrites,
    Write,
)
from packhorse.processor.running.verdict import Attempt, judged
from packhorse.processor.running.work import InboxRow, Known, Member, Ran, Result
from packhorse.processor.storing.rows import is_plain

MOST_TRIES = 5
"""Times that the recording of an end may lose to other transactions; the body is not run again for that."""

Effects = Generator[Request, Any, Any]
JobEnded = tuple[Member, JobRun | None]
"""A member whose end is to be recorded, and the run under whose lease it did; None without one."""


class Ended(NamedTuple):
    """What came of a chunk of jobs: members and their results, in one order; and, by offset, the seconds that others wait."""

    members: list[Member]
    results: list[Result]
    held: dict[int, float]


@dataclass(slots=True, kw_only=True)
class Jobs:
    """How far a chunk of jobs has come."""

    how: Attempt
    group: str
    marked: int | None
    members: list[Member] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    held: dict[int, float] = field(default_factory=dict)

    def hold(self, member: Member, seconds: float) -> None:
        """Let *member* wait alone for so long."""
        self.held[member.delivery.record.offset] = seconds


def recorded(ended: list[JobEnded], jobs: Jobs) -> Generator[Request, Any, bool]:
    """
    Record the ends, those with something to write each in a transaction of its own, the others together.

    Returns False when another was first with a message. What loses to other transactions is tried again, of several each by itself: one
    whose row somebody has locked keeps no other waiting. No body is run for it. What was handed on meanwhile is left to whoever has it.
    """
    groups = deque([[one for one in ended if not _writes(one)], *([one] for one in ended if _writes(one))])
    lost: Contention | None = None
    while groups:
        group = groups.popleft()
        if not group or not (group := still_had(group, jobs.how)):
            continue
        began = jobs.how.clock()
        try:
            if not (yield from _patiently(group, jobs)):
                yield from _let_go(group)
                return False
        except Contention as error:
            yield RollBack()
            if len(group) == 1:
                lost = error
            else:
                groups.extend([one] for one in group)
            continue
        if _writes(group[0]):
            jobs.how.took = jobs.how.took.and_more(jobs.how.clock() - began)
        jobs.how.hands.drop([member.delivery.record.offset for member, _ in group])
    if lost is not None:
        raise lost
    return True


def still_had(ended: list[JobEnded], how: Attempt) -> list[JobEnded]:
    """Return those of *ended* that were not handed on, and will not be from here on: the lane works on them."""
    had = set(how.hands.take([member.delivery.record.offset for member, _ in ended]))
    return [one for one in ended if one[0].delivery.record.offset in had]


def _patiently(ended: list[JobEnded], jobs: Jobs) -> Generator[Request, Any, bool]:
    """Commit *ended*; one alone that loses to other transactions again, MOST_TRIES times in all."""
    for _ in range(MOST_TRIES - 1 if len(ended) == 1 else 0):
        try:
            return (yield from _commit(ended, jobs))
        except Contention:
            yield RollBack()
    return (yield from _commit(ended, jobs))


def _let_go(ended: list[JobEnded]) -> Effects:
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


def _writes(one: JobEnded) -> bool:
    member, run = one
    return run is not None and member.result is None and run.has_writes


def _commit(ended: list[JobEnded], jobs: Jobs) -> Generator[Request, Any, bool]:
    """Record *ended* in one transaction; return False when another was first with a message."""
    if plain := _plain(ended):
        return (yield from _record(plain, jobs))
    yield Begin(jobs.how.in_hand)
    ends = [(member.result or done(member), run) for member, run in ended]
    ours = yield FinishJobs(ends)
    mine = [(m, r, one) for (m, one), (r, _) in zip(ended, ends, strict=True) if m.delivery.id in ours]
    for member, _ in ended:
        if member.delivery.id not in ours:
            jobs.hold(member, LOOK_AGAIN)
    if (yield from _doubted([member for member, _, _ in mine])):
        yield RollBack()
        return (yield from _commit(ended, jobs))
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


def _doubted(members: list[Member]) -> Generator[Request, Any, bool]:
    """
    Let those of *members* that stop for good wait for a person while an effect of theirs is in doubt; return whether there are any.

    It comes behind `FinishJobs`: from there on no run of theirs can record an intent that is missed here.
    """
    stopped = {
        member.delivery.id: member
        for member in members
        if (result := member.result) is not None
        and result.outcome is Outcome.QUARANTINE
        and result.reason != Reason.UNCERTAIN.value
    }
    doubts: dict[UUID, tuple[str, ...]] = (yield FindDoubts(list(stopped))) if stopped else {}
    for job_id, effects in doubts.items():
        member = stopped[job_id]
        assert member.result is not None, "who stops has a result"
        member.result = in_doubt(member.result, effects)
    return bool(doubts)


def _plain(ended: list[JobEnded]) -> list[tuple[Member, Result, JobRun]]:
    """Return *ended* with their results when one statement can record them, as most: done at the first attempt, and nothing to write."""
    plain = []
    for one in ended:
        member, run = one
        result = member.result or done(member)
        if run is None or not is_plain(result) or _writes(one):
            return []
        plain.append((member, result, run))
    return plain


def _record(plain: list[tuple[Member, Result, JobRun]], jobs: Jobs) -> Generator[Request, Any, bool]:
    """Record *plain* in one statement; return False when another was first with a message."""
    ours = yield RecordJobs([(result, run) for _, result, run in plain])
    if ours is False:
        return False
    for member, result, _ in plain:
        if member.delivery.id in ours:
            jobs.members.append(member)
            jobs.results.append(result)
        else:
            jobs.hold(member, LOOK_AGAIN)
    return True
