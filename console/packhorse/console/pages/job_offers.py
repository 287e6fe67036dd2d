"""What a person is offered to do about a job, before it is done: in words, with what the act is given back. Pure: no I/O, no clock."""

from datetime import datetime, timedelta
from urllib.parse import quote
from uuid import UUID

from packhorse.console.jobs.deciding import (
    Verdict,
    check_cancellable,
    check_lost,
    check_resolvable,
)
from packhorse.console.pages.offers import Offer
from packhorse.console.pages.showing import moment, sentence
from packhorse.console.quarantine.redrive import Preview
from packhorse.console.truth.jobs import Effect, Job, JobFacts
from packhorse.core.errors import UsageError
from packhorse.core.jobs import JobState
from packhorse.core.rights import Right, Standing
from packhorse.core.text import counted
from packhorse.processor.jobs.effects.model import START_WITHIN


def path_of(job: Job, act: str = "") -> str:
    """Return the address of the job's page, or of an act on it."""
    return f"/jobs/{job.id}" + (f"/{act}" if act else "")


def cancel_offer(facts: JobFacts, now: datetime, standing: Standing) -> Offer:
    """
    Offer to take the job back; what runs is asked of its worker, what waits is cancelled at once, and the two are told apart.

    Raises:
        UsageError, OwnershipLost: As `check_cancellable`.
    """
    job = facts.job
    check_cancellable(job)
    runs = job.state is JobState.RUNNING
    return Offer(
        title="Ask the worker of a job to stop" if runs else "Cancel a job at once",
        happens=_of_a_worker() if runs else _at_once(),
        warnings=tuple(_warnings_of_cancel(facts, now)),
        action=path_of(job, "cancel"),
        hidden={"seen": job.state.value},
        button="Ask it to stop" if runs else "Cancel the job",
        back=path_of(job),
        may=Right.ACT in standing.rights,
        needs="act",
        is_danger=True,
        facts=_facts(job),
    )


def _of_a_worker() -> tuple[str, ...]:
    return (
        "It is on record that the job is to stop; its worker hears it with its next heartbeat, within a second or so.",
        "The job stops where its code asks whether it should; what it has done by then stays done.",
        "It is cancelled when its worker says so, and not before. A job that comes to its end first has succeeded.",
    )


def _at_once() -> tuple[str, ...]:
    return (
        "In one transaction the job becomes cancelled and the act is recorded. No worker begins it any more.",
        "A message of it that is on its way already is met and dropped.",
        "That is final: it can't be had back, only submitted anew.",
    )


def _warnings_of_cancel(facts: JobFacts, now: datetime) -> list[str]:
    job, found = facts.job, []
    if job.state is JobState.RUNNING and job.cancel_asked_at is not None:
        found.append(f"{job.cancel_asked_by} has asked it to stop already: nothing would be changed.")
    if facts.lease_over(now):
        found.append("Its lease is over: nobody hears it until another worker takes the job over.")
    if facts.in_doubt:
        found.append(
            f"{counted(len(facts.in_doubt), 'outside effect')} may or may not have happened: once the job is cancelled, no run of it asks the outside system."
        )
    return found


def redrive_offer(facts: JobFacts, preview: Preview, standing: Standing) -> Offer:
    """Offer to send the job back: exactly the redrive that was previewed."""
    job, order = facts.job, preview.order
    return Offer(
        title="Redrive one job",
        happens=(
            *(sentence(each) for each in preview.steps),
            "Steps and effects that are done are not done again; the attempt goes on from the checkpoint.",
        ),
        warnings=tuple(sentence(each) for each in preview.warnings),
        action=path_of(job, "redrive"),
        hidden={
            "id": order.id,
            "group": order.group,
            "topic": order.topic,
            "attempt": order.attempt,
            "redrives": order.redrives,
            "quarantined_at": order.quarantined_at.isoformat(),
        },
        button="Redrive this job",
        back=path_of(job),
        may=Right.ACT in standing.rights,
        needs="act",
        facts=(*_facts(job), ("In quarantine", moment(order.quarantined_at))),
    )


def send_offer(facts: JobFacts, standing: Standing) -> Offer:
    """
    Offer to write the message of a job anew that nobody knows any more.

    Raises:
        UsageError: As `check_lost`.
    """
    job = facts.job
    check_lost(job, lost=facts.message_lost)
    return Offer(
        title="Write the message of a job anew",
        happens=(
            "In one transaction an outbox row is written under the id that the job has, and the act is recorded.",
            "The relay publishes it, and a worker begins the job.",
            "Should the first message still lie on its topic, whichever of the two comes second is a duplicate and does nothing.",
        ),
        action=path_of(job, "send"),
        button="Write it anew",
        back=path_of(job),
        may=Right.ACT in standing.rights,
        needs="act",
        facts=_facts(job),
    )


def unmask_offer(facts: JobFacts, standing: Standing) -> Offer:
    """Offer to show all that was put into the job."""
    job = facts.job
    return Offer(
        title="Show what was put into a job",
        happens=(
            "It goes on the record that you look, and why, before anything is decoded.",
            "You see input, result, checkpoint, steps' results and effects' answers as they are, personal fields too, on one page.",
            "The page keeps nothing: to look again is another look, on the record again.",
        ),
        action=path_of(job, "unmask"),
        button="Show it, on the record",
        back=path_of(job),
        may=Right.PERSONAL in standing.rights,
        needs=Right.PERSONAL.value,
        facts=_facts(job),
    )


def resolve_offer(facts: JobFacts, effect: Effect, standing: Standing) -> Offer:
    """Offer to say what became of an effect in doubt; how often it had been called goes back with the act."""
    job = facts.job
    left = [each for each in facts.in_doubt if each.key != effect.key]
    goes_on = (
        f"Still in doubt {'is' if len(left) == 1 else 'are'} {counted(len(left), 'other effect')}: the job goes on once each is decided."
        if left
        else "It was the last in doubt: the redrive of the job is asked along with it, in the same transaction, and it goes on by itself."
    )
    return Offer(
        title=f"What became of effect {effect.key}?",
        happens=(
            "Your word, who you are and why go on the record; the effect is not in doubt any more.",
            goes_on if job.state is JobState.UNCERTAIN else f"The job stays {job.state}.",
        ),
        action=path_of(job, "resolve"),
        hidden={"effect": effect.key, "calls": effect.calls},
        button="Put it on the record",
        back=path_of(job),
        may=Right.ACT in standing.rights,
        needs="act",
        facts=(
            *_facts(job),
            ("Called", f"{counted(effect.calls, 'time')}, the last time in attempt {effect.attempt}"),
            ("Last called", moment(effect.intended_at)),
        ),
    )


def no_before(facts: JobFacts, effect: Effect, now: datetime) -> datetime | None:
    """
    Return until when it can't be said that the effect has not happened, because its call may be on its way; None: it can be.

    Raises:
        UsageError, OwnershipLost: Nothing can be said of it now, as `check_resolvable`.
    """
    check_resolvable(facts.job, effect, Verdict.HAPPENED, calls=None, now=now)
    try:
        check_resolvable(facts.job, effect, Verdict.DID_NOT_HAPPEN, calls=None, now=now)
    except UsageError:
        return effect.intended_at + timedelta(seconds=effect.timeout + START_WITHIN)
    return None


def resolve_path(job: Job, effect: Effect) -> str:
    """Return where to say what became of the effect."""
    return f"{path_of(job, 'resolve')}?effect={quote(effect.key, safe='')}"


def said_path(job_id: UUID, key: str) -> str:
    """Return where to see what came of what was said of the effect."""
    return f"/jobs/{job_id}/resolve/asked?effect={quote(key, safe='')}"


def _facts(job: Job) -> tuple[tuple[str, object], ...]:
    return (("Job", str(job.id)), ("Type", job.type), ("State", f"{job.state}, by {job.changed_by}"))
