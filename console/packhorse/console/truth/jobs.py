"""What the tables say of a job: how it stands, each change of that, its steps and its outside effects. Plain values."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from packhorse.core.jobs import ENDED, JobState
from packhorse.producer.jobs.reading import Transition

FIRST_SHOWN = 100
"""Changes, steps and effects of one job that are read; those in doubt come first, then the newest."""
IN_DOUBT = frozenset({"intended", "uncertain"})
"""States of an effect of which nobody knows yet whether it has happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """
    How a job stands.

    Attributes:
        topic: Of its message.
        group: Whose workers run it; None until one has met it.
        attempt: Runs so far, the one that goes on included.
        changed_by, reason: Who or what brought it into its state, and why.
        worker, lease_until: Who runs it, and how long without a sign of life.
        error: Class and place of the last failure; text only where it was declared safe.
        input_bytes, checkpoint_bytes, result_bytes: Sizes; None: there is none, or it was erased at `purged_at`.
        request_key, one_waiting, one_running: Names that the application gave; they may say who somebody is.
    """

    id: UUID
    type: str
    version: int
    topic: str
    group: str | None
    state: JobState
    attempt: int
    tenant: str | None
    correlation_id: str | None
    causation_id: str | None
    origin: str | None
    traceparent: str | None
    priority: str
    accepted_at: datetime
    changed_at: datetime
    changed_by: str
    reason: str | None
    started_at: datetime | None
    finished_at: datetime | None
    not_before: datetime | None
    expires_at: datetime | None
    worker: UUID | None
    lease_until: datetime | None
    cancel_asked_at: datetime | None
    cancel_asked_by: str | None
    cancel_why: str | None
    progress_done: int | None
    progress_total: int | None
    progress_text: str | None
    progress_at: datetime | None
    error: str | None
    input_bytes: int | None
    checkpoint_bytes: int | None
    result_bytes: int | None
    purged_at: datetime | None
    request_key: str | None
    one_waiting: str | None
    one_running: str | None

    @property
    def ended(self) -> bool:
        """Return whether nothing is going to happen by itself or is waited for."""
        return self.state in ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step that is done and is not run again."""

    name: str
    at: datetime
    attempt: int
    result_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """
    One outside effect.

    Attributes:
        idempotency_key: What the outside system is given, the same over attempts and redrives.
        state: intended, answered, happened, did-not-happen or uncertain.
        calls: How often it was called, or was about to be.
        timeout: Seconds that one call may take: before that a "no" of the other side counts for nothing.
        changed_by, why: Of a person's decision too.
    """

    key: str
    idempotency_key: str
    state: str
    attempt: int
    calls: int
    intended_at: datetime
    timeout: float
    changed_at: datetime
    changed_by: str
    why: str | None
    answer_bytes: int | None

    @property
    def in_doubt(self) -> bool:
        """Return whether nobody knows yet if it has happened."""
        return self.state in IN_DOUBT


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """
    All that is known of one job, in the snapshot of its message's facts.

    Attributes:
        steps, effects: At most FIRST_SHOWN of them; `step_count` and `effect_count` say how many there are.
        due_at: When its outbox row is to be written; None: it is, or nothing waits for a time.
        runs_instead: The job that runs under its name, of which one alone may; None: none does.
        contact: Who is told when jobs of its type need a person.
        declared_by: The group whose application says that it runs jobs of the type; None: no processor of it has run here yet.
        message_lost: It is accepted, and neither outbox nor inbox know its message (any more).
    """

    job: Job
    transitions: tuple[Transition, ...] = ()
    steps: tuple[Step, ...] = ()
    step_count: int = 0
    effects: tuple[Effect, ...] = ()
    effect_count: int = 0
    due_at: datetime | None = None
    runs_instead: UUID | None = None
    contact: str | None = None
    declared_by: str | None = None
    message_lost: bool = False

    @property
    def group(self) -> str | None:
        """Return the group whose workers run it, as far as that is known."""
        return self.job.group or self.declared_by

    @property
    def in_doubt(self) -> tuple[Effect, ...]:
        """Return the effects of which nobody knows whether they have happened."""
        return tuple(each for each in self.effects if each.in_doubt)

    def lease_over(self, now: datetime) -> bool:
        """Return whether it is said to run and nobody has given a sign of life in time."""
        job = self.job
        return job.state is JobState.RUNNING and (job.lease_until is None or job.lease_until <= now)


def job_standing(facts: JobFacts, now: datetime) -> str:
    """Return in a few words how the job stands; never more than is known: accepted is not done, and a lease that is over is said."""
    job, lines = facts.job, [f"job {facts.job.state}"]
    match job.state:
        case JobState.ACCEPTED if facts.due_at is not None:
            lines.append("waits for its time" if facts.due_at > now else "its time has come")
        case JobState.ACCEPTED | JobState.RETRYING if facts.runs_instead is not None:
            lines.append("another of its name runs")
        case JobState.RUNNING if facts.lease_over(now):
            lines.append("its lease is over")
        case JobState.UNCERTAIN:
            lines.append("an outside effect may or may not have happened")
        case JobState.QUARANTINED if job.reason is not None:
            lines.append(job.reason)
        case _:
            pass
    if job.state is JobState.RUNNING and job.cancel_asked_at is not None:
        lines.append("asked to stop")
    return ", ".join(lines)
