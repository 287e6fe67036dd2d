"""Jobs, as the API is asked and answers."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from packhorse.console.api.models.base import NO_NUL, WHOLE, Answer, Asked, Count, Cursor, Moment, Name, Why
from packhorse.console.facts import Act
from packhorse.console.jobs import model
from packhorse.console.jobs.deciding import Verdict
from packhorse.console.jobs.model import MAX_TEXT, Filter
from packhorse.console.paging import MOST
from packhorse.console.truth.explanation import Action
from packhorse.console.truth.jobs import Step
from packhorse.console.truth.status import Published
from packhorse.core.jobs import JobState
from packhorse.producer.jobs.reading import Transition

_DAYS = 366 * 86_400


class JobsAsked(Asked):
    """
    Which jobs are wanted; what is not given lets all pass.

    Attributes:
        state: In one of these; may be given more than once.
        topic: Of this topic, which is their queue.
        since, until: Accepted from then on; before then.
        text: The recorded error holds it, in capitals or not.
        stuck_for: Accepted for more than so many seconds and due, running with the lease over, or uncertain.
        show_key: Show the names that the application gave.
    """

    state: Annotated[list[JobState], Field(max_length=len(JobState), default_factory=list)]
    type: Name | None = None
    tenant: Name | None = None
    topic: Name | None = None
    since: Moment | None = None
    until: Moment | None = None
    text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT, pattern=NO_NUL), WHOLE] | None = None
    stuck_for: Annotated[int, Field(ge=0, le=_DAYS)] | None = None
    limit: Annotated[int, Field(ge=1, le=MOST)] = 50
    after: Cursor | None = None
    show_key: bool = False

    def filter(self) -> Filter:
        """Return what the service is asked for."""
        return Filter(
            states=frozenset(self.state),
            type=self.type,
            tenant=self.tenant,
            topic=self.topic,
            since=self.since,
            until=self.until,
            text=self.text,
            stuck=None if self.stuck_for is None else timedelta(seconds=self.stuck_for),
        )


class JobShowAsked(Asked):
    """
    What is shown of a job.

    Attributes:
        input: Decode the input; fields that its schema marks personal are masked.
        show_key: Show the names that the application gave.
    """

    input: bool = False
    show_key: bool = False


class ListedJobAnswer(Answer):
    """
    How a job stands.

    Attributes:
        group: Whose workers run it; null until one has met it.
        attempt: Runs so far, the one that goes on included.
        changed_by, reason: Who or what brought it into its state, and why.
        lease_until: How long its worker may be without a sign of life; in the past: it is dead or stuck.
        error: Class and place of the last failure; text only where it was declared safe.
        request_key, one_waiting, one_running: Only with `show_key=true`.
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
    has_request_key: bool
    has_one_waiting: bool
    has_one_running: bool
    request_key: str | None
    one_waiting: str | None
    one_running: str | None


class JobsAnswer(Answer):
    """
    One page of jobs, the newest first.

    Attributes:
        next: `after` of the next page; null on the last.
        looked_to: The page is not full because so many were looked at, down to this job; more may fit behind `next`.
    """

    jobs: list[ListedJobAnswer]
    next: str | None
    looked_to: UUID | None


class JobCountsAnswer(Answer):
    """Jobs by state and type; `said` is how those that are not exact came about."""

    counts: list[model.Count]
    said: str | None


class EffectAnswer(Answer):
    """
    One outside effect.

    Attributes:
        idempotency_key: What the outside system is given, the same over attempts and redrives.
        calls: How often it was called, or was about to be: give it back when you say what has happened.
        timeout: Seconds that one call may take: before that a "no" counts for nothing.
        in_doubt: Nobody knows whether it has happened.
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
    in_doubt: bool


class JobAnswer(ListedJobAnswer):
    """
    A job with its history.

    Attributes:
        transitions: Each change of its state, the newest hundred.
        effects: Those in doubt first; `effect_count` says how many there are, as `step_count` does of steps.
        due_at: When its outbox row is to be written; null: it is, or nothing waits for a time.
        runs_instead: The job that runs under its name, of which one alone may.
        contact: Who is told when jobs of its type need a person.
        declared_by: The group whose application says that it runs jobs of the type.
        message_lost: It is accepted, and neither outbox nor inbox know its message: POST /jobs/{id}/send writes it anew.
    """

    transitions: list[Transition]
    steps: list[Step]
    step_count: int
    effects: list[EffectAnswer]
    effect_count: int
    due_at: datetime | None
    runs_instead: UUID | None
    contact: str | None
    declared_by: str | None
    message_lost: bool


class KeptAnswer(Answer):
    """What an application put into a job; `results` are those of its steps, `answers` those of its effects."""

    result: Any
    checkpoint: Any
    actor: str | None
    results: dict[str, Any]
    answers: dict[str, Any]


class JobShownAnswer(JobAnswer):
    """
    One job, and what can be done about it.

    Attributes:
        standing: Of job and message, in one line.
        waits, next, can: In words, what it waits for, what comes next, and what a person can do.
        input: Decoded, only if it was asked for; `input_said` is why there is none to see.
        kept: Everything else that was put into it; only where it was unmasked, which is on record.
    """

    standing: str
    published: Published
    published_why: str
    acts: list[Act]
    waits: list[str]
    next: list[str]
    can: list[Action]
    input: Any
    input_said: str | None
    unmasked: bool
    kept: KeptAnswer | None


class CancellingAnswer(Answer):
    """
    What came of a cancelling.

    Attributes:
        state: cancelled, or running: its worker is asked to stop, and the job stops where its code asks.
        at, by: When, and by whom first.
        is_new: False: somebody had asked before; nothing was changed.
    """

    id: UUID
    state: JobState
    at: datetime
    by: str
    is_new: bool


class JobSentAnswer(Answer):
    """A message that was written anew, under the id that it had."""

    state: Literal["sent anew"]
    sent_at: datetime
    actor: str


class ResolveBody(Asked):
    """
    What is known of an outside effect in doubt.

    Attributes:
        effect: Its key; may be left out where one alone is in doubt.
        calls: How often it had been called when it was looked at: what was called again since is not decided.
        answer: What the outside system answered, as the job's code is to see it; only where it has happened.
    """

    verdict: Verdict
    effect: Annotated[str, Field(min_length=1, max_length=2_000, pattern=NO_NUL), WHOLE] | None = None
    calls: Count
    answer: Any = None
    why: Why


class ResolutionAnswer(Answer):
    """
    What came of a decision.

    Attributes:
        left: Other effects of the job that are in doubt, twenty at most.
        redriven: The job goes on by itself: its redrive was ordered along with the decision.
        state: How the job stands now.
    """

    id: UUID
    effect: str
    verdict: Verdict
    at: datetime
    by: str
    left: list[str]
    redriven: bool
    state: JobState
