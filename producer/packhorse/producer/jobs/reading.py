"""How a job stands, its history and its outside effects: rows as values, without any I/O."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from packhorse.core.jobs import ENDED, NEEDS_PERSON, JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """
    How far a running job says it has come.

    Attributes:
        done, total: Of what the job counts; None: it does not count, or does not know.
        text: What it does just now.
        at: When it said so.
    """

    done: int | None
    total: int | None
    text: str | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """
    How a job stood when it was asked for; never its input or its checkpoint. Times are UTC, by the database's clock.

    Attributes:
        id: Its id.
        type, version: Of its input's schema.
        topic: Where its message goes.
        group: Whose workers run it; None until one has met it.
        state: "accepted" is not "done": see `packhorse.core.jobs.JobState`.
        attempt: Number of the newest run that counts, from 1; 0 before the first.
        tenant, actor, correlation_id, causation_id, origin, traceparent, request_key, priority, one_waiting, one_running,
        not_before, expires_at: What was said when it was submitted.
        accepted_at: When it was submitted.
        changed_at, changed_by, reason: When it came into its state, through whom, and why.
        started_at: When its newest run began.
        finished_at: When it ended; None before.
        worker: Who runs it.
        lease_until: Until when the worker's word holds.
        cancel_asked_at, cancel_asked_by, cancel_why: Who wants it to stop; it may have gone on nevertheless.
        progress: What a run of it said last.
        result: What its function returned, once it has succeeded; None too when it was erased.
        error: Class and place of the last failure; text only where that was declared safe.
        purged_at: When its input and result were erased.
    """

    id: UUID
    type: str
    version: int
    topic: str
    group: str | None
    state: JobState
    attempt: int
    tenant: str | None
    actor: str | None
    correlation_id: str | None
    causation_id: str | None
    origin: str | None
    traceparent: str | None
    request_key: str | None = field(repr=False)
    priority: str
    one_waiting: str | None
    one_running: str | None
    not_before: datetime | None
    expires_at: datetime | None
    accepted_at: datetime
    changed_at: datetime
    changed_by: str
    reason: str | None
    started_at: datetime | None
    finished_at: datetime | None
    worker: UUID | None
    lease_until: datetime | None
    cancel_asked_at: datetime | None
    cancel_asked_by: str | None
    cancel_why: str | None
    progress: Progress | None
    result: Any = field(repr=False)
    error: str | None
    purged_at: datetime | None

    @property
    def rests(self) -> bool:
        """Return whether nothing is going to happen by itself: it has ended, or waits for a person."""
        return self.state in ENDED or self.state in NEEDS_PERSON

    @property
    def version_tag(self) -> str:
        """Return a text that is another one whenever what is shown of the job is; the lease alone changes nothing."""
        shown = [getattr(self, name) for name in self.__slots__ if name != "lease_until"]
        return hashlib.sha256(repr(shown).encode(errors="surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """
    One change of a job's state, as the database has written it.

    Attributes:
        at: When, by the database's clock.
        before: None for the first.
        after: The state that it came into.
        actor: Who changed it: a person, an application, or "worker".
        reason: Why.
        attempt: Number of the run.
        worker: Who had it under a lease then.
    """

    at: datetime
    before: JobState | None
    after: JobState
    actor: str
    reason: str | None
    attempt: int
    worker: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """
    One outside effect of a job; never what the outside answered.

    Attributes:
        key: Its name in the job.
        idempotency_key: What the outside system was given.
        state: intended, answered, happened, did-not-happen or uncertain.
        attempt: The run that called last.
        calls: How often it was called.
        intended_at: When the intent was recorded.
        changed_at, changed_by, why: When it came into its state, through whom, and why.
    """

    key: str
    idempotency_key: str
    state: str
    attempt: int
    calls: int
    intended_at: datetime
    changed_at: datetime
    changed_by: str
    why: str | None


def job_of(row: Sequence[Any]) -> Job:
    """Return the job of a row of `sql.GET`."""
    values: dict[str, Any] = dict(zip(JOB_COLUMNS, map(_plain, row), strict=True))
    values["group"] = values.pop("group_id")
    values["state"] = JobState(values["state"])
    values["progress"] = _progress(
        {name: values.pop(f"progress_{name}") for name in ("done", "total", "text", "at")}
    )
    return Job(**values)


def transition_of(row: Sequence[Any]) -> Transition:
    """Return the change of a row of `sql.HISTORY`."""
    at, before, after, actor, reason, attempt, worker = map(_plain, row)
    return Transition(
        at=at,
        before=None if before is None else JobState(before),
        after=JobState(after),
        actor=actor,
        reason=reason,
        attempt=attempt,
        worker=worker,
    )


def effect_of(row: Sequence[Any]) -> Effect:
    """Return the effect of a row of `sql.EFFECTS`."""
    return Effect(**dict(zip(Effect.__slots__, map(_plain, row), strict=True)))


JOB_COLUMNS = (
    "id",
    "type",
    "version",
    "topic",
    "group_id",
    "state",
    "attempt",
    "tenant",
    "actor",
    "correlation_id",
    "causation_id",
    "origin",
    "traceparent",
    "request_key",
    "priority",
    "one_waiting",
    "one_running",
    "not_before",
    "expires_at",
    "accepted_at",
    "changed_at",
    "changed_by",
    "reason",
    "started_at",
    "finished_at",
    "worker",
    "lease_until",
    "cancel_asked_at",
    "cancel_asked_by",
    "cancel_why",
    "progress_done",
    "progress_total",
    "progress_text",
    "progress_at",
    "result",
    "error",
    "purged_at",
)
"""The columns of `sql.GET`, in their order."""


def _progress(said: Mapping[str, Any]) -> Progress | None:
    return None if said["at"] is None else Progress(**said)


def _plain(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value
