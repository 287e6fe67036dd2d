"""Decide about a cancelling, or about an effect in doubt: whether it may be, and what comes of it. Pure: no I/O, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from packhorse.console.truth.jobs import Effect, Job
from packhorse.core.errors import OwnershipLost, UnknownId, UsageError
from packhorse.core.jobs import CANCELLABLE, JobState
from packhorse.core.moments import zulu
from packhorse.processor.jobs.effects.model import START_WITHIN


class Verdict(StrEnum):
    """What a person knows of an outside effect."""

    HAPPENED = "happened"
    DID_NOT_HAPPEN = "did-not-happen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelling:
    """
    What came of a cancelling.

    Attributes:
        state: How the job stands now: cancelled, or running and asked to stop.
        at, by: When, and by whom first.
        is_new: False: somebody had asked it to stop before; nothing was changed.
    """

    id: UUID
    state: JobState
    at: datetime
    by: str
    is_new: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """
    What came of a decision about an effect.

    Attributes:
        left: Other effects of the job that are in doubt, twenty at most.
        redriven: The job goes on: a redrive of its message was ordered along with the decision.
        state: How the job stands now.
    """

    id: UUID
    effect: str
    verdict: Verdict
    at: datetime
    by: str
    left: tuple[str, ...]
    redriven: bool
    state: JobState


def no_job(job_id: UUID) -> str:
    """Return the sentence for an id that is no job's here."""
    return (
        f"there is no job {job_id} in this database: it was never committed here, or it is older than what is kept; "
        f"packhorse explain {job_id} says more"
    )


def check_cancellable(job: Job) -> None:
    """
    Check that *job* can be taken back, or asked to stop.

    Raises:
        UsageError: It rests until a person decides; names the act that ends it.
        OwnershipLost: It has ended; says how, when and by whom.
    """
    if job.state in CANCELLABLE or job.state is JobState.RUNNING:
        return
    if job.ended:
        raise OwnershipLost(
            f"job {job.id} is {job.state} already, since {zulu(job.changed_at)} by {job.changed_by}; nothing was done now; see "
            f"packhorse job show {job.id}"
        )
    raise UsageError(
        f"job {job.id} is {job.state}: nothing of it runs that could be stopped; give it up instead: packhorse quarantine discard "
        f"{job.id} --why TEXT; nothing was done"
    )


def cancelling_words(job: Job, in_doubt: Sequence[Effect]) -> tuple[str, ...]:
    """Return what cancelling *job* comes to, and what a person should know of it before."""
    if job.state is JobState.RUNNING:
        does = "its worker is asked to stop, and what it has done by then stays done; it may end by itself before"
    else:
        does = "it is taken back at once, for good: no run of it begins any more"
    if not in_doubt:
        return (does,)
    names = ", ".join(each.key for each in in_doubt[:5])
    warns = (
        f"! effects are in doubt ({names}): once it is cancelled no run asks the outside system; packhorse job show {job.id} has their "
        "idempotency keys"
    )
    return does, warns


def check_cancelled_as_seen(job: Job, seen: JobState | None) -> None:
    """
    Check that to cancel *job* does what somebody was told who saw it in state *seen*; None: they were told nothing.

    Raises:
        OwnershipLost: It runs by now, so its worker would be asked, where it would have been cancelled at once; or the reverse.
    """
    if seen is None or (seen is JobState.RUNNING) == (job.state is JobState.RUNNING):
        return
    raise OwnershipLost(
        f"job {job.id} was {seen} when you looked, and is {job.state} since {zulu(job.changed_at)} by {job.changed_by}: to cancel it "
        "is another thing by now; look again; nothing was done"
    )


def check_redrivable(job: Job) -> None:
    """
    Check that there is a message of *job* to be sent back.

    Raises:
        UsageError: It goes on by itself, or can't be had back so; says what can be done.
        OwnershipLost: It has ended.
    """
    match job.state:
        case JobState.QUARANTINED | JobState.UNCERTAIN:
            return
        case JobState.DISCARDED:
            raise UsageError(
                f"job {job.id} is discarded; have it back first: packhorse quarantine restore {job.id} --why TEXT; nothing was done"
            )
        case JobState.RETRYING if job.reason == "redriven":
            raise OwnershipLost(
                f"job {job.id} was sent back already, by {job.changed_by} at {zulu(job.changed_at)}; nothing was done now; see "
                f"packhorse job show {job.id}"
            )
        case _ if job.ended:
            raise OwnershipLost(
                f"job {job.id} is {job.state}, since {zulu(job.changed_at)}, which is final: submit it anew if it is needed again; "
                "nothing was done"
            )
        case _:
            raise UsageError(
                f"job {job.id} is {job.state}, and what it waits for is no person's decision as a rule: packhorse explain {job.id} says "
                f"what; if its message alone is in quarantine: packhorse quarantine redrive {job.id} --why TEXT; nothing was done"
            )


def redrive_warnings(job: Job, now: datetime | None) -> tuple[str, ...]:
    """Return what a person should know beside its effects before *job* is sent back, at *now* by the database's clock."""
    if job.expires_at is None or now is None or job.expires_at > now:
        return ()
    told = (
        f"its expires_at {zulu(job.expires_at)} has passed: no run begins, and it becomes expired, which is final; submit it anew if it "
        "is still wanted"
    )
    return (told,)


def check_lost(job: Job, *, lost: bool) -> None:
    """
    Check that the message of *job* may be written anew: *lost* says that neither outbox nor inbox know it.

    Raises:
        UsageError: It is not lost, or the job does not wait for it.
    """
    if lost:
        return
    raise UsageError(
        f"job {job.id} is {job.state}, and its message is not lost: packhorse explain {job.id} says what it waits for; nothing was done"
    )


def chosen_effect(job_id: UUID, doubt: Sequence[Effect], named: Effect | None, key: str | None) -> Effect:
    """
    Return the effect that is meant: *named*, which is the one of *key* if there is one, or the only one of *doubt*.

    Raises:
        UnknownId: The job has no such effect, or none in doubt.
        UsageError: Several are in doubt and none was named.
        OwnershipLost: What is named is not in doubt any more; says who decided and when.
    """
    if key is None:
        if len(doubt) == 1:
            return doubt[0]
        if doubt:
            names = ", ".join(each.key for each in doubt[:20])
            raise UsageError(
                f"job {job_id} has several effects in doubt; say which with --effect: {names}; nothing was done"
            )
        raise UnknownId(
            f"job {job_id} has no effect in doubt; see packhorse job show {job_id}; nothing was done"
        )
    if named is None:
        raise UnknownId(
            f"job {job_id} has no effect {key}; see packhorse job show {job_id}; nothing was done"
        )
    if not named.in_doubt:
        raise OwnershipLost(
            f"effect {key} of job {job_id} is not in doubt: it is {named.state} by {named.changed_by} since "
            f"{zulu(named.changed_at)}; nothing was done now"
        )
    return named


def check_resolvable(job: Job, effect: Effect, verdict: Verdict, *, calls: int | None, now: datetime) -> None:
    """
    Check that a person may say so of *effect* now; *calls*: how often it had been called when the person looked.

    Raises:
        UsageError: A worker has the job in hand, or the call may still be on its way.
        OwnershipLost: It was called again since the person looked.
    """
    if job.state is JobState.RUNNING:
        raise UsageError(
            f"job {job.id} is running: its worker deals with effect {effect.key} itself; look again once it has stopped; nothing was "
            "done"
        )
    if calls is not None and calls != effect.calls:
        raise OwnershipLost(
            f"effect {effect.key} of job {job.id} was called {effect.calls} times by now, and {calls} when you looked; look again: "
            f"packhorse job show {job.id}; nothing was done"
        )
    over = effect.intended_at + timedelta(seconds=effect.timeout + START_WITHIN)
    if verdict is Verdict.DID_NOT_HAPPEN and now < over:
        raise UsageError(
            f"the call of effect {effect.key} may be on its way until {zulu(over)}, when its own time-out is over: that it has not happened can be "
            "said after that; nothing was done"
        )
