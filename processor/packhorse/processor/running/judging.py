"""What becomes of a member: duplicate, waiting, to be run; and after a run: done, tried again or stopped."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from packhorse.core.errors import MessageFault
from packhorse.core.text import inert
from packhorse.processor.outcomes import Outcome, Reason
from packhorse.processor.policy import Again, Retry, Stop, after_failure
from packhorse.processor.record import Delivery, time_of_header
from packhorse.processor.running.faults import ERROR_MAX
from packhorse.processor.running.work import Failure, InboxRow, Known, Member, Ran, Result, Work

_SETTLED = frozenset(
    {Outcome.DONE, Outcome.SKIPPED, Outcome.DISCARDED, Outcome.QUARANTINE, Outcome.PARKED, Outcome.UNCERTAIN}
)


@dataclass(slots=True, kw_only=True)
class Sorted:
    """
    A batch, sorted by what is known of it.

    Attributes:
        members: To be dealt with, in order.
        duplicates: Dealt with before; their deliveries are counted.
        uncopied: Quarantined before, and their copy is not known to be confirmed.
        end: Offset below which the batch reaches; less than its last when a member must wait.
        wait: Seconds until the member at *end* is due; None when nothing waits.
    """

    members: list[Member] = field(default_factory=list)
    duplicates: list[Delivery] = field(default_factory=list)
    uncopied: list[Delivery] = field(default_factory=list)
    end: int
    wait: float | None = None


def below_watermark(delivery: Delivery, work: Work) -> bool:
    """Return whether the offset alone says duplicate: below the watermark, and not of a leader that came after it."""
    if delivery.record.offset >= work.position:
        return False
    epoch = delivery.record.leader_epoch
    return epoch is None or work.leader_epoch is None or epoch <= work.leader_epoch


def sort(deliveries: Sequence[Delivery], known: Known, work: Work) -> Sorted:
    """Return *deliveries* sorted by what is *known*: of equal ids the later are duplicates, a member not due ends it."""
    found = Sorted(end=work.deliveries[-1].record.offset + 1)
    seen = set()
    for delivery in deliveries:
        row = known.rows.get(delivery.id)
        if delivery.id in seen or _is_duplicate(delivery, row, work):
            found.duplicates.append(delivery)
            if row is not None and row.outcome is Outcome.QUARANTINE and not row.copied:
                found.uncopied.append(delivery)
            continue
        if row is not None and row.due_in > 0:
            found.end, found.wait = delivery.record.offset, row.due_in
            break
        seen.add(delivery.id)
        found.members.append(Member(delivery=delivery, row=row))
    return found


def _is_duplicate(delivery: Delivery, row: InboxRow | None, work: Work) -> bool:
    """A copy runs only if its attempt is the recorded one; what was redriven is run from its copy alone."""
    if row is None:
        return work.stream.carries
    if row.outcome in _SETTLED:
        return True
    if work.stream.carries:
        return delivery.attempt != row.attempt
    return row.state == "redriven"


def without_running(member: Member, known: Known, work: Work) -> Result | None:
    """Return the result of a member that no handler may start for: it is charged, or has expired."""
    if member.delivery.record.offset == work.charged and member.handler is not None:
        lost = Ran(Failure.TEMPORARY, Reason.CONNECTION_LOST.value, "the connection ended during each run")
        return after_run(member, lost, jitter=0.0)
    expires = time_of_header(member.delivery.headers.get("expires-at"))
    if expires is not None and known.now is not None and expires <= known.now:
        return Result(
            member.delivery, Outcome.SKIPPED, _not_run(member), reason=Reason.EXPIRED.value, row=member.row
        )
    return None


def without_handler(member: Member, *, type_known: bool, skip: bool) -> Result:
    """Return the result of a member that nothing handles: quarantine, or skipped where the settings say so."""
    reason = Reason.NO_TOMBSTONE_HANDLER if type_known else Reason.UNKNOWN_TYPE
    if skip:
        return Result(member.delivery, Outcome.SKIPPED, _not_run(member), reason=reason.value, row=member.row)
    told = member.delivery.type or "(no usable header type)"
    return _stopped(member, reason.value, f"no handler for {told}", attempt=_not_run(member))


def faulty(member: Member, fault: MessageFault) -> Result:
    """Return the result of a member that can't be decoded."""
    return _stopped(member, fault.reason, str(fault), attempt=_not_run(member))


def after_run(member: Member, ran: Ran, *, jitter: float) -> Result:
    """
    Return the result of a member whose handler has returned or failed; contention and the like are not judged here.

    A redrive orders one attempt: when that fails too, the message is back in quarantine.
    """
    if ran.failure is None:
        return Result(member.delivery, Outcome.DONE, member.attempt, row=member.row)
    if ran.failure is Failure.SKIP:
        return Result(
            member.delivery, Outcome.SKIPPED, member.attempt, error=ran.error or None, row=member.row
        )
    if ran.failure is not Failure.TEMPORARY:
        return _stopped(member, ran.reason, ran.error, attempt=member.attempt, failed_as=ran.reason)
    policy = member.handler.retry if member.handler is not None else Retry()
    age = 0.0 if member.row is None else member.row.age
    step = after_failure(member.attempt, age, policy, jitter=jitter)
    if member.redriven:
        step = Stop(reason=Reason.ATTEMPTS_EXHAUSTED.value)
    if isinstance(step, Again):
        return Result(
            member.delivery,
            Outcome.RETRY,
            member.attempt,
            reason=ran.reason,
            error=ran.error,
            failed_as=ran.reason,
            delay=step.delay,
            row=member.row,
        )
    return _stopped(member, step.reason, ran.error, attempt=member.attempt, failed_as=ran.reason)


def _not_run(member: Member) -> int:
    """Return the attempt to record for a member that was stopped before its handler began: none for a first delivery."""
    return 0 if member.row is None else member.row.attempt


def _stopped(
    member: Member, reason: str, error: str, *, attempt: int, failed_as: str | None = None
) -> Result:
    return Result(
        member.delivery,
        Outcome.QUARANTINE,
        attempt,
        reason=reason,
        error=inert(error, limit=ERROR_MAX),
        failed_as=failed_as,
        row=member.row,
    )
