"""
The tables of jobs, steps and effects, simulated as far as the statements on leases, effects and steps need them.

A transaction runs at once and as a whole: what it locks makes others wait until its commit, so nobody could tell. The contract
suite holds it to what a real database does.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, TypeVar
from uuid import UUID

from packhorse.core.jobs import JobState, check_transition
from packhorse.processor.storing.sql import queries_for
from packhorse.processor.storing.steps import Answer, Statement, Steps

T = TypeVar("T")

QUERIES = queries_for("packhorse")
RECORD_MESSAGE = b"what became of a job's message"


@dataclass(frozen=True, slots=True)
class Job:
    """A row of `job`, and what the inbox says of its message: `due` is when it comes again, `tries` how many runs were charged."""

    id: UUID
    state: str = "accepted"
    attempt: int = 0
    token: UUID | None = None
    lease_until: float = 0.0
    cancel_asked: bool = False
    result: str | None = None
    due: float = 0.0
    tries: int = 0


@dataclass(frozen=True, slots=True)
class EffectRecord:
    """A row of `job_effect`."""

    idempotency_key: str
    digest: str
    state: str
    attempt: int
    calls: int
    intended_at: float
    timeout: float
    answer: str | None = None
    why: str | None = None


@dataclass(slots=True)
class Tables:
    """All rows; none is ever changed, only replaced."""

    jobs: dict[UUID, Job] = field(default_factory=dict)
    effects: dict[tuple[UUID, str], EffectRecord] = field(default_factory=dict)
    steps: dict[tuple[UUID, str], str | None] = field(default_factory=dict)


class Database:
    """
    One server.

    Attributes:
        written: Called with the name, the parameters and the rows of each statement that may have written.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.tables = Tables()
        self.written: Callable[[bytes, dict[str, Any], list[tuple[Any, ...]]], None] = lambda *more: None
        self.statements = {
            QUERIES.read_effect: self.read_effect,
            QUERIES.intend_effect: self.intend_effect,
            QUERIES.intend_again: self.intend_again,
            QUERIES.change_effect: self.change_effect,
            QUERIES.effects_in_doubt: self.effects_in_doubt,
            QUERIES.read_step: self.read_step,
            QUERIES.record_step: self.record_step,
            QUERIES.claim_jobs: self.claim_jobs,
            QUERIES.claim_job: self.claim_jobs,
            QUERIES.look_up_jobs: self.look_up_jobs,
            QUERIES.finish_jobs: self.finish_jobs,
            QUERIES.finish_job: self.finish_jobs,
            QUERIES.renew_jobs: self.renew_jobs,
            QUERIES.standing_jobs: self.standing_jobs,
            QUERIES.due_jobs: lambda v: [(0, None)],
            RECORD_MESSAGE: self.record_message,
        }

    def backup(self) -> Tables:
        tables = self.tables
        return Tables(dict(tables.jobs), dict(tables.effects), dict(tables.steps))

    def restore(self, tables: Tables) -> None:
        self.tables = tables
        self.tables = self.backup()

    def move(self, job: Job, state: JobState, **changes: Any) -> None:
        """Change a job, as far as the table of states allows."""
        check_transition(JobState(job.state), state)
        self.tables.jobs[job.id] = replace(job, state=state.value, **changes)

    def run(self, steps: Steps[T]) -> T:
        """Execute *steps* in one transaction."""
        before = self.backup()
        try:
            statement = next(steps)
            while True:
                statement = steps.send(self._execute(statement))
        except StopIteration as end:
            result: T = end.value
            return result
        except BaseException:
            self.tables = before
            raise

    def _execute(self, statement: Statement) -> Answer:
        rows = self.statements[statement.text](statement.parameters)
        self.written(statement.text, statement.parameters, rows)
        return Answer(rows, len(rows))

    def _owns(self, v: dict[str, Any]) -> bool:
        job = self.tables.jobs.get(v["job"])
        return job is not None and (job.token, job.state) == (v["token"], "running")

    def read_effect(self, v: dict[str, Any]) -> list[tuple[Any, ...]]:
        row = self.tables.effects.get((v["job"], v["key"]))
        if row is None:
            return [(self._owns(v), *[None] * 7)]
        known = (row.state, row.idempotency_key, row.digest, row.calls)
        return [(self._owns(v), *known, self.now() - row.intended_at, row.timeout, row.answer)]

    def intend_effect(self, v: dict[str, Any]) -> list[tuple[Any, ...]]:
        key = (v["job"], v["key"])
        if not self._owns(v):
            return [(False, False)]
        if key in self.tables.effects:
            return [(True, False)]
        self.tables.effects[key] = EffectRecord(
            v["idempotency_key"], v["digest"], "intended", v["attempt"], 1, self.now(), v["timeout"]
        )
        return [(True, True)]

    def intend_again(self, v: dict[str, Any]) -> list[tuple[Any, ...]]:
        return self._update(
            v,
            state="intended",
            attempt=v["attempt"],
            calls=v["calls"] + 1,
            intended_at=self.now(),
            timeout=v["timeout"],
            answer=None,
        )

    def change_effect(self, v: dict[str, Any]) -> list[tuple[Any, ...]]:
        return self._update(v, state=v["state"], answer=v["answer"])

    def _update(self, v: dict[str, Any], **changes: Any) -> list[tuple[Any, ...]]:
        key = (v["job"], v["key"])
        row = self.tables.effects.get(key)
        if not self._owns(v):
            return [(False, False)]
        if row is None or (row.state, row.calls) != (v["was"], v["calls"]):
            return [(True, False)]
        self.tables.effects[key] = replace(row, why=v["why"], **changes)
        return [(True, True)]

    def effects_in_doubt(self, v: dict[str, Any]) -> list[tuple[Any, ...]]:
        open_ones = sorted(
            (row.intended_at, job, key)
            for (job, key), row in self.tables.effects.items()
            if row.state in {"intended", "uncertain"}
        )
        names = {one: [key for _, job, key in open_ones if job == one] for one in ids(v["ids"])}
        return [(one, keys) for one, keys in names.items() if keys]

    def read_step(self, v: dict[str, Any]) -> list[tuple[Any, ...]]:
        key = (v["job"], v["name"])
        return [(self._owns(v), key in self.tables.steps, self.tables.steps.get(key))]

    def record_step(self, v: dict[str, Any]) -> list[tuple[Any, ...]]:
        key = (v["job"], v["name"])
        if not self._owns(v):
            return [(False, False)]
        if key in self.tables.steps:
            return [(True, False)]
        self.tables.steps[key] = v["result"]
        return [(True, True)]

    def claim_jobs(self, v: dict[str, Any]) -> list[tuple[Any, ...]]:
        found = []
        for one, token, attempt in zip(ids(v["ids"]), ids(v["tokens"]), ids(v["attempts"], int), strict=True):
            job = self.tables.jobs[one]
            is_over = job.state == "running" and job.lease_until < self.now()
            if (job.state in {"accepted", "retrying"} or is_over) and not job.cancel_asked:
                until = self.now() + v["lease"]
                self.move(job, JobState.RUNNING, token=token, attempt=attempt, lease_until=until)
                found.append((one, token, None, None, None, 0.0))
        return found

    def look_up_jobs(self, v: dict[str, Any]) -> list[tuple[Any, ...]]:
        jobs = [self.tables.jobs[one] for one in ids(v["ids"])]
        return [
            (j.id, j.state, v.get("group"), j.lease_until - self.now(), j.cancel_asked, j.token, None, False)
            for j in jobs
        ]

    def finish_jobs(self, v: dict[str, Any]) -> list[tuple[Any, ...]]:
        found = []
        for one, token, state, result in zip(
            ids(v["ids"]), ids(v["tokens"]), v["states"], v["results"], strict=True
        ):
            job = self.tables.jobs[one]
            if token is None:
                is_free = job.state == "running" and job.lease_until < self.now()
                may = job.state in {"accepted", "retrying"} or is_free
                found += [] if may or job.state == "running" else [(one,)]
            else:
                may = self._owns({"job": one, "token": token})
            if may:
                self.move(job, JobState(state), token=None, lease_until=-inf, result=result or job.result)
                found.append((one,))
        return found

    def renew_jobs(self, v: dict[str, Any]) -> list[tuple[Any, ...]]:
        found = self.standing_jobs(v)
        for (one,) in found:
            job = self.tables.jobs[one]
            self.tables.jobs[one] = replace(job, lease_until=self.now() + v["lease"])
        return [(one, self.tables.jobs[one].cancel_asked) for (one,) in found]

    def standing_jobs(self, v: dict[str, Any]) -> list[tuple[Any, ...]]:
        pairs = zip(ids(v["ids"]), ids(v["tokens"]), strict=True)
        jobs = [(self.tables.jobs[one], token) for one, token in pairs]
        return [(job.id,) for job, token in jobs if (job.state, job.token) == ("running", token)]

    def record_message(self, v: dict[str, Any]) -> list[tuple[Any, ...]]:
        job = self.tables.jobs[v["job"]]
        self.tables.jobs[job.id] = replace(job, due=v["due"], tries=v["tries"])
        return []


def ids(literal: str, kind: Callable[[str], Any] = UUID) -> list[Any]:
    """Return what an array literal holds."""
    parts = literal[1:-1].split(",") if len(literal) > 2 else []
    return [None if part == "NULL" else kind(part) for part in parts]
