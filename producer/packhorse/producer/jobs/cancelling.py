"""The pure middle of cancelling: who asks, and what the database's answer means."""

from uuid import UUID

from packhorse.core.acts import MAX_WHY
from packhorse.core.errors import InvalidMessage, UnknownId
from packhorse.core.jobs import NEEDS_PERSON, IllegalTransition, JobState
from packhorse.core.message import MAX_TEXT
from packhorse.producer.jobs.drafts import Cancelling
from packhorse.producer.jobs.rows import NOBODY
from packhorse.producer.jobs.submitting import Submitter
from packhorse.producer.rows import checked_id, first_of
from packhorse.producer.statements import Statement, Steps


def cancelled(
    submitter: Submitter, database: str, job_id: UUID, *, why: str | None, actor: str | None
) -> Steps[Cancelling]:
    """
    Yield what cancels a job, and return what it came to.

    Raises:
        UnknownId: No such job is here.
        IllegalTransition: It has ended, or waits for a person.
    """
    stamp = submitter.writer.stamp()
    by = _checked_actor(first_of(actor, stamp.context.actor)) or stamp.origin or NOBODY
    reason = _checked_why(why)
    yield from submitter.prepare(database)
    answer = yield Statement(submitter.queries.cancel, (checked_id(job_id), by, reason), returns=True)
    return outcome(job_id, *answer[0])


def outcome(job_id: UUID, before: str | None, after: str | None) -> Cancelling:
    """
    Return what a cancelling came to, from the job's state *before* and *after*; None and None: there is no such job.

    >>> outcome(UUID(int=1), "accepted", "cancelled"), outcome(UUID(int=1), "running", "running")
    (<Cancelling.CANCELLED: 'cancelled'>, <Cancelling.ASKED: 'asked'>)

    Raises:
        UnknownId, IllegalTransition: As `cancelled`.
    """
    if before is None or after is None:
        raise UnknownId(f"job {job_id} is not known here: look for it in the database that accepted it")
    if after == JobState.CANCELLED:
        return Cancelling.CANCELLED
    if after == JobState.RUNNING:
        return Cancelling.ASKED
    if after in NEEDS_PERSON:
        raise IllegalTransition(
            f"job {job_id} is {after} and waits for a person: discard it instead of cancelling it"
        )
    raise IllegalTransition(f"job {job_id} has ended as {after}; there is nothing to cancel")


def _checked_actor(actor: str | None) -> str | None:
    if actor is not None and (not isinstance(actor, str) or "\0" in actor or len(actor) > MAX_TEXT):
        raise InvalidMessage(f"actor is not allowed: text of 0 to {MAX_TEXT} characters, without NUL")
    return actor


def _checked_why(why: str | None) -> str | None:
    text = why.strip() if isinstance(why, str) else why
    if text is not None and (not isinstance(text, str) or "\0" in text or not 1 <= len(text) <= MAX_WHY):
        size = f"of {len(text)} characters" if isinstance(text, str) else f"as {type(text).__name__}"
        raise InvalidMessage(f"why {size} is not allowed: text of 1 to {MAX_WHY} characters, without NUL")
    return text
