"""
The batch: from deliveries to durable results, as a generator that asks its lane for every effect.

Order of effects, and what a crash between two of them does:

1. `LookUp`, then `Decode`: nothing was done.
2. `Begin`, handlers, `Write`, `CommitTransaction`: before the commit nothing has happened; after it a redelivery finds
   the inbox rows.
3. `SendCopies`: a redelivery finds outcome quarantine without a confirmed copy and sends it again.
4. `MoveWatermark`: a redelivery below it needs no row.
5. The Kafka commit is the partition's business and comes after this generator has ended.

A failing member costs the others one more run: the transaction is rolled back and run again with a savepoint before
each member, the failing one's outcome decided. The lane throws infrastructure errors into the generator.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from packhorse.core.errors import (
    BrokerUnavailable,
    DatabaseUnavailable,
    MessageFault,
    PackhorseError,
    RegistryUnavailable,
)
from packhorse.processor.app import Processor
from packhorse.processor.judging import (
    Sorted,
    after_run,
    below_watermark,
    faulty,
    sort,
    without_handler,
    without_running,
)
from packhorse.processor.outcomes import Outcome, Reason
from packhorse.processor.partition import BatchEnded, Ended
from packhorse.processor.record import Delivery
from packhorse.processor.work import (
    Begin,
    CommitTransaction,
    CountDeliveries,
    Decode,
    Failure,
    Known,
    LookUp,
    Member,
    MoveWatermark,
    Ran,
    Request,
    Result,
    RollBack,
    RollBackToSavepoint,
    RunHandler,
    Savepoint,
    SendCopies,
    Work,
    Write,
)

MOST_SAVEPOINTS = 60
"""Members of one transaction with savepoints; Postgres caches 64 subtransactions, beyond that everybody pays."""
MOST_CONFLICTS = 5
"""Times that another owner may be first with a member of one batch before it counts as contention."""

Batch = Generator[Request, Any, BatchEnded]


class Contention(PackhorseError):
    """The transaction lost to another one: a deadlock, a serialization failure, a lock time-out."""

    retryable = True


@dataclass(slots=True, kw_only=True)
class _State:
    """
    How far a batch has come.

    Attributes:
        end: Offset below which every record is durably dealt with, once all copies are confirmed.
        results: What was committed, for the counts.
        duplicates: Deliveries that were dealt with before.
        position: The watermark.
        tried: Offset up to which a handler has run, or a result was found.
    """

    work: Work
    position: int
    leader_epoch: int | None
    end: int = 0
    tried: int = 0
    results: list[Result] = field(default_factory=list)
    duplicates: list[Delivery] = field(default_factory=list)
    copies: list[Delivery] = field(default_factory=list)

    def ended(self, ended: Ended, **more: Any) -> BatchEnded:
        done = [d.record for d in self.work.deliveries if d.record.offset < self.end]
        return BatchEnded(
            ended=ended,
            position=self.position,
            leader_epoch=self.leader_epoch,
            handled=self.end,
            records=len(done),
            size=sum(len(r.key or b"") + len(r.value or b"") for r in done),
            tried=self.tried,
            **more,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """Why a transaction's members end before the batch's: the offset of the first that is left, and what follows."""

    offset: int
    ended: Ended = Ended.WELL
    wait: float = 0.0
    away: str = ""
    error: str = ""


class Stopped(PackhorseError):
    """The process must stop: a handler asked for it, or something happened that has no safe way on."""


class GivenUp(PackhorseError):
    """The time to finish is over: the run in hand was cancelled and has no outcome."""


def run_batch(
    work: Work,
    app: Processor,
    *,
    jitter: Callable[[], float],
    skip_unknown: bool = False,
    report: Callable[[list[Result], int], None] | None = None,
) -> Batch:
    """
    Yield what deals with *work*, and return how it ended; *report* is told what was committed, and how many duplicates.

    Raises nothing but programming errors: what the lane throws in becomes the way the batch ended.
    """
    state = _State(work=work, position=work.position, leader_epoch=work.leader_epoch)
    running: list[Member] = []
    try:
        ended = yield from _deal_with(state, app, jitter, skip_unknown, running)
    except RegistryUnavailable as error:
        ended = state.ended(Ended.AWAY, away="registry", error=str(error))
    except BrokerUnavailable as error:
        ended = state.ended(Ended.AWAY, away="broker", error=str(error))
    except DatabaseUnavailable as error:
        suspect = running[-1].delivery.record.offset if running else None
        ended = state.ended(Ended.AWAY, away="database", suspect=suspect, error=str(error))
    except Contention:
        yield RollBack()
        ended = state.ended(Ended.CONTENTION, alone=len(work.deliveries) == 1)
    except Stopped as stop:
        yield RollBack()
        ended = state.ended(Ended.STOPPED, error=str(stop))
    except GivenUp:
        ended = state.ended(Ended.GIVEN_UP)
    if report is not None:
        report(state.results, len(state.duplicates))
    return ended


def _deal_with(
    state: _State, app: Processor, jitter: Callable[[], float], skip_unknown: bool, running: list[Member]
) -> Batch:
    work = state.work
    old = [d for d in work.deliveries if below_watermark(d, work)]
    todo = [d for d in work.deliveries if not below_watermark(d, work)] if old else work.deliveries
    for _ in range(MOST_CONFLICTS):
        known: Known = yield LookUp([d.id for d in todo])
        if known.position != work.position or not known.same:
            return state.ended(Ended.VOID)
        found = sort(todo, known, work)
        cut = yield from _prepare(found, known, app, work, skip_unknown)
        committed = yield from _transaction(state, found, cut, jitter, running)
        if committed is None:
            continue
        state.duplicates = [*old, *found.duplicates]
        ended = yield from _finish(state, found, committed)
        return ended
    raise Contention("another owner was first again and again")


def _prepare(
    found: Sorted, known: Known, app: Processor, work: Work, skip_unknown: bool
) -> Generator[Request, Any, _Cut]:
    """Decode every member, before a transaction is open; return where the batch ends, which may be before its last."""
    for at, member in enumerate(found.members):
        record = member.delivery.record
        tombstone = record.value is None
        member.handler = app.handler_of(member.delivery.type, tombstone=tombstone)
        member.result = without_running(member, known, work)
        if member.result is not None:
            continue
        if member.handler is None:
            known_type = app.knows(member.delivery.type)
            member.result = without_handler(member, type_known=known_type, skip=skip_unknown)
            continue
        if record.value is None:
            continue
        try:
            decoded = yield Decode(record.value, member.handler.message)
        except RegistryUnavailable as error:
            if at == 0:
                raise
            del found.members[at:]
            return _Cut(offset=record.offset, ended=Ended.AWAY, away="registry", error=str(error))
        if isinstance(decoded, MessageFault):
            member.result = faulty(member, decoded)
        else:
            member.message = decoded
    if found.wait is not None:
        return _Cut(offset=found.end, ended=Ended.NOT_DUE, wait=found.wait)
    return _Cut(offset=found.end)


def _transaction(
    state: _State, found: Sorted, cut: _Cut, jitter: Callable[[], float], running: list[Member]
) -> Generator[Request, Any, _Cut | None]:
    """Run the members in one transaction; return where it ended, or None when another owner was first."""
    members, careful = found.members, False
    while members:
        yield Begin()
        left = yield from _run_members(members, state.work, jitter, running, careful=careful)
        if left == "again":
            yield RollBack()
            careful = True
            continue
        done = members[: left or len(members)]
        results = [_result_of(member, state.work) for member in done]
        written = yield Write(results)
        if not written:
            yield RollBack()
            return None
        running[:] = done if len(done) == 1 else []
        if not (yield from _commit(done, state.work)):
            careful = True
            continue
        running.clear()
        state.results = results
        state.copies = [r.delivery for r in results if r.outcome is Outcome.QUARANTINE]
        return _after(done, members, cut)
    return cut


def _commit(done: list[Member], work: Work) -> Generator[Request, Any, bool]:
    """Commit; return False when the one member must be charged for what keeps its transaction from being committed."""
    try:
        yield CommitTransaction()
    except Contention as error:
        if not work.contended or len(done) > 1 or done[0].result is not None:
            raise
        yield RollBack()
        lost = Ran(Failure.TEMPORARY, Reason.CONTENTION.value, str(error))
        done[0].result = after_run(done[0], lost, jitter=0.0)
        return False
    return True


def _after(done: list[Member], members: list[Member], cut: _Cut) -> _Cut:
    last = done[-1]
    if last.result is not None and last.result.outcome is Outcome.RETRY:
        offset = last.delivery.record.offset
        return _Cut(offset=offset, ended=Ended.NOT_DUE, wait=last.result.delay)
    if len(done) < len(members):
        return _Cut(offset=members[len(done)].delivery.record.offset)
    return cut


def _run_members(
    members: list[Member],
    work: Work,
    jitter: Callable[[], float],
    running: list[Member],
    *,
    careful: bool,
) -> Generator[Request, Any, Any]:
    """Run what is not decided yet; return "again" after a failure that must be rolled back, or how many count."""
    for at, member in enumerate(members):
        if member.result is None:
            if careful:
                if at >= MOST_SAVEPOINTS:
                    return at
                yield Savepoint()
            running[:] = [member]
            ran: Ran = yield RunHandler(member)
            if ran.failure is not None:
                verdict = _judged(member, ran, work, jitter)
                if verdict is None:
                    return (yield from _broken(members, at, ran))
                member.result = verdict
                if ran.touched and not careful:
                    return "again"
                if ran.touched:
                    yield RollBackToSavepoint()
            running.clear()
        if member.result is not None and member.result.outcome is Outcome.RETRY:
            return at + 1
    return None


def _judged(member: Member, ran: Ran, work: Work, jitter: Callable[[], float]) -> Result | None:
    match ran.failure:
        case Failure.CONTENTION if not work.contended:
            raise Contention(ran.error)
        case Failure.CONTENTION:
            charged = ran._replace(failure=Failure.TEMPORARY, reason=Reason.CONTENTION.value)
            return after_run(member, charged, jitter=jitter())
        case Failure.CONNECTION:
            raise DatabaseUnavailable(ran.error)
        case Failure.STOP:
            raise Stopped(ran.error)
        case Failure.GIVEN_UP:
            raise GivenUp(ran.error)
        case Failure.BROKEN:
            return None
        case _:
            return after_run(member, ran, jitter=jitter())


def _broken(members: list[Member], at: int, ran: Ran) -> Generator[Request, Any, Any]:
    """
    Deal with a handler that ended the transaction.

    When it committed, what the members before it did is durable: their results are recorded at once, in a transaction
    that follows. When it rolled back, they run again. The one to blame goes to quarantine either way.
    """
    member = members[at]
    member.result = after_run(member, ran, jitter=0.0)
    if not ran.committed:
        return "again"
    yield RollBack()
    yield Begin()
    return at + 1


def _result_of(member: Member, work: Work) -> Result:
    result = member.result or Result(member.delivery, Outcome.DONE, member.attempt, row=member.row)
    again = member.delivery.record.offset < work.tried_below
    return result._replace(again=True) if again else result


def _finish(state: _State, found: Sorted, cut: _Cut) -> Batch:
    """Send copies, move the watermark behind what is then safe, and say how the batch ended."""
    rows = [d.id for d in found.duplicates if d.record.offset < cut.offset]
    if rows:
        yield CountDeliveries(rows)
    copies = sorted([*found.uncopied, *state.copies], key=lambda delivery: delivery.record.offset)
    copies = [delivery for delivery in copies if delivery.record.offset < cut.offset]
    missing: BrokerUnavailable | None = None
    end = cut.offset
    if copies:
        try:
            yield SendCopies(copies)
        except BrokerUnavailable as error:
            missing, end = error, copies[0].record.offset
    if end > state.position:
        epoch = state.work.deliveries[-1].record.leader_epoch
        if not (yield MoveWatermark(state.position, end, epoch)):
            return state.ended(Ended.VOID)
        state.position, state.leader_epoch = end, epoch
    state.end = max(state.end, end)
    if missing is not None:
        raise missing
    state.tried = end + 1 if cut.ended is Ended.NOT_DUE else end
    return state.ended(cut.ended, wait=cut.wait, away=cut.away, error=cut.error)
