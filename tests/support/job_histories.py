"""
Judge what became of jobs, from what the application itself has kept: its results, the starts of its bodies, the records on the topic.

Of the product's tables only those that are promised are read: how a job stands, its transitions, and the inbox.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tests.support.jobs import JobGround
from tests.support.jobs_child import Start
from tests.support.topics import Record, records

from packhorse.core.jobs import ALLOWED, ENDED, JobState

_TRANSITIONS = "SELECT job_id, before, after, at, attempt FROM packhorse.job_transition ORDER BY job_id, id"
_JOBS = "SELECT id, state, attempt, result, token, lease_until FROM packhorse.job"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHistory:
    """
    All that is known once nothing moves any more.

    Attributes:
        accepted: Jobs whose transaction was committed, each with its number.
        results: Numbers that the application's own table holds, by job; a job's result is written once.
        transitions: By job, in order: before, after, when, attempt.
        jobs: By job: state, attempt, result, token, the lease's end.
        inbox: Outcomes by message.
        starts: How often a body began, by job.
        published: Records of the source topic.
    """

    accepted: Mapping[UUID, int]
    results: Mapping[UUID, list[int]]
    transitions: Mapping[UUID, list[tuple[Any, ...]]]
    jobs: Mapping[UUID, tuple[Any, ...]]
    inbox: Mapping[UUID, list[str]]
    starts: Mapping[UUID, int]
    published: Collection[Record]


def history_of(ground: JobGround, accepted: Mapping[UUID, int], begun: Collection[Start]) -> JobHistory:
    """Read it."""
    results, transitions, inbox = (
        defaultdict[UUID, list[int]](list),
        defaultdict[UUID, list[tuple[Any, ...]]](list),
        defaultdict[UUID, list[str]](list),
    )
    for job_id, n in ground.rows("SELECT id, n FROM result"):
        results[job_id].append(n)
    for job_id, *change in ground.rows(_TRANSITIONS):
        transitions[job_id].append(tuple(change))
    for message_id, outcome in ground.rows("SELECT message_id, outcome FROM packhorse.inbox"):
        inbox[message_id].append(outcome)
    return JobHistory(
        accepted=accepted,
        results=results,
        transitions=transitions,
        jobs={row[0]: row[1:] for row in ground.rows(_JOBS)},
        inbox=inbox,
        starts=Counter(start.id for start in begun),
        published=records(ground.kafka, ground.topic),
    )


def faults(history: JobHistory) -> list[str]:
    """Return all that is wrong with a history in which all jobs are to have succeeded."""
    found = [*_strangers(history)]
    for job_id, n in history.accepted.items():
        found += [f"{job_id} (n={n}): {text}" for text in _of(history, job_id, n)]
    return found


def _strangers(history: JobHistory) -> Iterator[str]:
    """Nothing is anywhere of a job whose transaction was rolled back."""
    known = history.accepted.keys()
    for name, ids in {
        "job": history.jobs.keys(),
        "transitions": history.transitions.keys(),
        "result": history.results.keys(),
        "inbox": history.inbox.keys(),
        "starts": history.starts.keys(),
        "topic": {UUID(record.id) for record in history.published},
    }.items():
        for one in ids - known:
            yield f"{one} was never accepted, and is in {name}"


def _of(history: JobHistory, job_id: UUID, n: int) -> Iterator[str]:
    if history.results.get(job_id) != [n]:
        yield f"its results are {history.results.get(job_id)}"
    if history.inbox.get(job_id) != ["done"]:
        yield f"the inbox has {history.inbox.get(job_id)}"
    state, attempt, result, token, lease = history.jobs.get(job_id, (None,) * 5)
    if (state, result, token, lease) != ("succeeded", {"n": n}, None, None):
        yield f"it is {state} with {result}, token {token}, lease until {lease}"
    changes = history.transitions.get(job_id, [])
    yield from chain(changes)
    if changes and changes[-1][3] != attempt:
        yield f"it ended at attempt {changes[-1][3]} and says {attempt}"
    running = sum(after == "running" for _, after, _, _ in changes)
    begun = history.starts.get(job_id, 0)
    if history.starts and not 1 <= begun <= running:
        yield f"{begun} bodies began in {running} runs"


def chain(changes: list[tuple[Any, ...]], end: str = "succeeded") -> Iterator[str]:
    """Yield what is wrong: each change is allowed and begins where the one before ended; there is one *end*, and it is the last."""
    told = " > ".join(str(after) for _, after, _, _ in changes)
    stood: str | None = None
    for before, after, _, _ in changes:
        if before != stood:
            yield f"a change from {before} follows one to {stood}: {told}"
        if JobState(after) not in ALLOWED[None if before is None else JobState(before)]:
            yield f"{before} > {after} is not allowed: {told}"
        stood = after
    ends = [after for _, after, _, _ in changes if after in ENDED]
    if ends != [end] or stood != end:
        yield f"it is not {end}, once: {told}"
    times = [at for _, _, at, _ in changes]
    if times != sorted(times):
        yield f"its changes are not in the order of their times: {told}"
    attempts = [attempt for _, _, _, attempt in changes]
    if attempts != sorted(attempts):
        yield f"its attempts go back: {attempts}"
