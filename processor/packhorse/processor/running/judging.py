"""What becomes of a member after a run or instead of one: done, tried again, behind its head, or stopped."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from packhorse.core.errors import MessageFault
from packhorse.core.text import inert
from packhorse.processor.jobs.deciding import End
from packhorse.processor.jobs.spec import JobSpec
from packhorse.processor.outcomes import Outcome, Reason
from packhorse.processor.policy import Again, Retry, Stop, after_failure
from packhorse.processor.record import digest_of, time_of_header
from packhorse.processor.running.faults import ERROR_MAX
from packhorse.processor.running.work import (
    Failure,
    Known,
    Member,
    Ran,
    Result,
)
from packhorse.processor.tiers.ladder import AT_ONCE


def without_running(member: Member, known: Known, charged: Reason | None) -> Result | None:
    """Return the result of a member that no handler may start for: it is charged, or has expired."""
    if charged is not None and member.handler is not None:
        return after_run(member, Ran(Failure.TEMPORARY, charged.value, _CHARGED[charged]), jitter=0.0)
    expires = time_of_header(member.delivery.headers.get("expires-at"))
    if expires is not None and known.now is not None and expires <= known.now:
        return _plain(member, Outcome.SKIPPED, _not_run(member), reason=Reason.EXPIRED.value)
    return None


_CHARGED = {
    Reason.CONNECTION_LOST: "the connection ended during each run",
    Reason.TIMEOUT: "the handler did not come back from its time-out",
}


def without_handler(member: Member, *, type_known: bool, skip: bool) -> Result:
    """Return the result of a member that nothing handles: quarantine, or skipped where the settings say so."""
    reason = Reason.NO_TOMBSTONE_HANDLER if type_known else Reason.UNKNOWN_TYPE
    if skip:
        return _plain(member, Outcome.SKIPPED, _not_run(member), reason=reason.value)
    told = member.delivery.type or "(no usable header type)"
    return _stopped(member, reason.value, f"no handler for {told}", attempt=_not_run(member))


def without_named(member: Member, named: str) -> Result:
    """Return the result of a member that a replay brings to a handler that is not there: it is never skipped."""
    text = f"no handler for replays named {named} for {member.delivery.type or '(no usable header type)'}"
    return _stopped(member, Reason.UNKNOWN_HANDLER.value, text, attempt=_not_run(member))


def faulty(member: Member, fault: MessageFault) -> Result:
    """Return the result of a member that can't be decoded."""
    return _stopped(member, fault.reason, str(fault), attempt=_not_run(member))


def reused(member: Member) -> Result:
    """Return the result of a message whose id another one had: nothing of it may be dropped, nobody can say which is meant."""
    text = "its id is in the inbox for another payload; the producer has used one id for two messages"
    return _stopped(member, Reason.ID_REUSED.value, text, attempt=0)


def crashed(member: Member, starts: int) -> Result:
    """Return the result of a member whose runs have killed *starts* processes."""
    ran = Ran(Failure.PERMANENT, Reason.CRASHED.value, f"{starts} processes died while they ran it")
    return after_run(member, ran, jitter=0.0)


def ended_before(member: Member, end: End) -> Result:
    """Return the result of a member whose job ended before it, or is not there."""
    if end.outcome is Outcome.QUARANTINE:
        return _stopped(member, end.reason, end.text, attempt=_not_run(member))
    return _plain(member, end.outcome, _not_run(member), reason=end.reason, error=end.text)


def too_late(member: Member) -> Result:
    """Return the result of a job that was not done in the time that its type gives it, before another run of it."""
    spec = member.job
    assert spec is not None, "who is too late has a deadline"
    return after_run(member, outlived(spec), jitter=0.0)._replace(attempt=_not_run(member), failed_as=None)


def in_doubt(result: Result, effects: Sequence[str]) -> Result:
    """
    Return *result*, a job's that stops for good, as it is while nobody knows whether *effects* have happened: that is for a person first.

    What it would have stopped for stays in the text, behind the error, whose class and place still tell failures apart.
    """
    names = ", ".join(inert(name, limit=_NAME) for name in effects[:_NAMES]) + ", …" * (len(effects) > _NAMES)
    which = f"effect {names}" if len(effects) == 1 else f"effects {names}"
    told = f"; it stops for {result.reason}, and nobody knows whether {which} happened"
    error = inert(result.error or "", limit=ERROR_MAX - len(told))
    return result._replace(reason=Reason.UNCERTAIN.value, error=(error + told).removeprefix("; "))


_NAMES, _NAME = 3, 60
"""How many effects the text of an error names, and with how many characters: it is short."""


def outlived(spec: JobSpec) -> Ran:
    """Return the end of a job that was not done in the time that its type gives it, with a run or before one."""
    text = f"it was not done within {spec.deadline or 0:g} s"
    if spec.after_deadline == "expire":
        return Ran(Failure.SKIP, Reason.EXPIRED.value, text)
    return Ran(Failure.PERMANENT, Reason.DEADLINE.value, text)


def sent_on(member: Member) -> Result:
    """
    Return the result of a follower that is a job's message, as a replay hands them over: it goes on as a copy, at once.

    Its body runs under a lease of the job's, with no transaction open, as those behind a parked key don't.
    """
    again = _plain(
        member, Outcome.RETRY, member.attempt - 1, reason=Reason.LATER.value, error="a job goes on by itself"
    )
    return again._replace(tier=AT_ONCE)


def parked(member: Member) -> Result:
    """Return the result of a member whose key waits for its head: it waits behind it, and no handler starts."""
    return _plain(member, Outcome.PARKED, 1)


def done(member: Member) -> Result:
    """Return the result of a member whose handler has returned."""
    delivery, row = member.delivery, member.row
    if row is not None:
        return Result(delivery, Outcome.DONE, member.attempt, row=row, key=member.key)
    digest = digest_of(delivery.record.value)
    return _result(
        (delivery, _DONE, 1, None, None, None, 0.0, None, False, member.key, False, None, 0.0, digest)
    )


_DONE = Outcome.DONE
_result: Callable[[tuple[Any, ...]], Result] = partial(tuple.__new__, Result)
"""What `Result(…)` does, of its fields in their order and without a call in Python: most results are made so."""


def after_run(member: Member, ran: Ran, *, jitter: float) -> Result:
    """
    Return the result of a member whose handler has returned or failed; contention and the like are not judged here.

    A redrive orders one attempt: when that fails too, the message is back in quarantine.
    """
    if ran.failure is None:
        return done(member)
    if ran.failure is Failure.SKIP:
        return _plain(
            member, Outcome.SKIPPED, member.attempt, reason=ran.reason or None, error=ran.error or None
        )
    if ran.failure not in {Failure.TEMPORARY, Failure.LATER}:
        return _stopped(member, ran.reason, ran.error, attempt=member.attempt, failed_as=ran.reason)
    charged = ran.failure is Failure.TEMPORARY
    tries = member.attempt if charged else member.attempt - 1
    spent = (0.0 if member.row is None else member.row.spent) + ran.took
    step = _step(member, ran, tries, spent, jitter)
    if member.redriven and charged:
        step = Stop(reason=Reason.ATTEMPTS_EXHAUSTED.value)
    failed_as = ran.reason if charged else None
    if isinstance(step, Again):
        again = _plain(member, Outcome.RETRY, tries, reason=ran.reason, error=ran.error)
        return again._replace(
            failed_as=failed_as,
            delay=step.delay,
            tier=step.tier,
            spent=spent + step.delay,
            parks=member.key is not None,
        )
    return _stopped(member, step.reason, ran.error, attempt=member.attempt, failed_as=failed_as)


def _step(member: Member, ran: Ran, tries: int, spent: float, jitter: float) -> Again | Stop:
    """Return what follows; a server that asks its callers to wait is given at least that."""
    policy = member.handler.retry if member.handler is not None else Retry()
    charged = ran.failure is Failure.TEMPORARY
    step = after_failure(tries, spent, policy, jitter=jitter, after=ran.after, charged=charged)
    if isinstance(step, Again) and step.delay < ran.least:
        return after_failure(tries, spent, policy, jitter=jitter, after=ran.least, charged=charged)
    return step


def _not_run(member: Member) -> int:
    """Return the attempt to record for a member that was stopped before its handler began: none for a first delivery."""
    return 0 if member.row is None else member.row.attempt


def _stopped(
    member: Member, reason: str, error: str, *, attempt: int, failed_as: str | None = None
) -> Result:
    parks = member.key is not None and parks_after(member)
    return _plain(
        member, Outcome.QUARANTINE, attempt, reason=reason, error=inert(error, limit=ERROR_MAX)
    )._replace(failed_as=failed_as, parks=parks)


def parks_after(member: Member) -> bool:
    """Return whether the later messages of its key wait while it is in quarantine; without a handler they do."""
    return member.handler is None or member.handler.after_quarantine == "park"


def _plain(
    member: Member, outcome: Outcome, attempt: int, *, reason: str | None = None, error: str | None = None
) -> Result:
    return Result(
        member.delivery,
        outcome,
        attempt,
        reason,
        error,
        row=member.row,
        key=member.key,
        digest=digest_of(member.delivery.record.value) if member.row is None else None,
    )
