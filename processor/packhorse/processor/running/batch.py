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
    RegistryUnavailable,
)
from packhorse.processor.app import Processor
from packhorse.processor.member.buffer import bytes_of
from packhorse.processor.outcomes import Outcome, Reason
from packhorse.processor.partition.events import (
    BatchEnded,
    Ended,
)
from packhorse.processor.record import Delivery
from packhorse.processor.running.attempting import attempt
from packhorse.processor.running.endings import Contention, Cut, GivenUp, Stopped
from packhorse.processor.running.judging import (
    Sorted,
    after_run,
    below_watermark,
    faulty,
    sort,
    without_handler,
    without_running,
)
from packhorse.processor.running.work import (
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
    SendCopies,
    Work,
)

MOST_CONFLICTS = 5
"""Times that another owner may be first with a member of one batch before it counts as contention."""

Batch = Generator[Request, Any, BatchEnded]


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

    def ended(self, ended: Ended, **more: Any) -> BatchEnded:
        done = [d.record for d in self.work.deliveries if d.record.offset < self.end]
        return BatchEnded(
            ended=ended,
            position=self.position,
            leader_epoch=self.leader_epoch,
            handled=self.end,
            records=len(done),
            size=bytes_of(done),
            tried=self.tried,
            **more,
        )


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

    However it breaks off, its transaction is rolled back first: left open it would hold its locks against the next owner.
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
        yield RollBack()
        suspect = running[-1].delivery.record.offset if running else None
        ended = state.ended(Ended.AWAY, away="database", suspect=suspect, error=str(error))
    except Contention:
        yield RollBack()
        ended = state.ended(Ended.CONTENTION, alone=len(work.deliveries) == 1)
    except Stopped as stop:
        yield RollBack()
        ended = state.ended(Ended.STOPPED, error=str(stop))
    except GivenUp:
        yield RollBack()
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
    before: object = None
    for _ in range(MOST_CONFLICTS):
        known: Known = yield LookUp([d.id for d in todo])
        if known.position != work.position or not known.same:
            return state.ended(Ended.VOID)
        found = sort(todo, known, work)
        cut = yield from _prepare(found, known, app, work, skip_unknown)
        if before == (before := {key: (row.outcome, row.attempt) for key, row in known.rows.items()}):
            _blame(found.members)
        committed = yield from attempt(found.members, cut, work, jitter, running)
        if committed is None:
            continue
        cut, state.results = committed
        state.duplicates = [*old, *found.duplicates]
        return (yield from _finish(state, found, cut))
    raise Contention("another owner was first again and again")


def _blame(members: list[Member]) -> None:
    """
    Stop the one member whose results could not be recorded although nobody was first with it: its handler ended the
    transaction and began another, which the lane did not see. Of several it is looked for by running fewer.
    """
    if len(members) > 1:
        raise Contention("a handler has ended the transaction and begun another")
    text = "the handler ended the transaction that it was given, and began another"
    for member in members:
        if member.result is None:
            ran = Ran(Failure.BROKEN, Reason.BROKEN_TRANSACTION.value, text)
            member.result = after_run(member, ran, jitter=0.0)


def _prepare(
    found: Sorted, known: Known, app: Processor, work: Work, skip_unknown: bool
) -> Generator[Request, Any, Cut]:
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
            return Cut(offset=record.offset, ended=Ended.AWAY, away="registry", error=str(error))
        if isinstance(decoded, MessageFault):
            member.result = faulty(member, decoded)
        else:
            member.message = decoded
    if found.wait is not None:
        return Cut(offset=found.end, ended=Ended.NOT_DUE, wait=found.wait)
    return Cut(offset=found.end)


def _finish(state: _State, found: Sorted, cut: Cut) -> Batch:
    """Send copies, move the watermark behind what is then safe, and say how the batch ended."""
    rows = [d.id for d in found.duplicates if d.record.offset < cut.offset]
    if rows:
        yield CountDeliveries(rows)
    stopped = [r.delivery for r in state.results if r.outcome is Outcome.QUARANTINE]
    copies = sorted([*found.uncopied, *stopped], key=lambda delivery: delivery.record.offset)
    copies = [delivery for delivery in copies if delivery.record.offset < cut.offset]
    missing: BrokerUnavailable | None = None
    end = cut.offset
    if copies:
        try:
            yield SendCopies(copies)
        except BrokerUnavailable as error:
            missing, end = error, copies[0].record.offset
    if end > state.position:
        epoch = _epoch_below(end, state)
        if not (yield MoveWatermark(state.position, end, epoch)):
            return state.ended(Ended.VOID)
        state.position, state.leader_epoch = end, epoch
    state.end = max(state.end, end)
    if missing is not None:
        raise missing
    state.tried = end + 1 if cut.ended is Ended.NOT_DUE else end
    return state.ended(cut.ended, wait=cut.wait, away=cut.away, error=cut.error)


def _epoch_below(end: int, state: _State) -> int | None:
    """
    Return the leader epoch of the last record below *end*; what lies behind it may be of a later leader.

    Only a higher epoch shows that the log was cut below the watermark and written anew.
    """
    epochs = [d.record.leader_epoch for d in state.work.deliveries if d.record.offset < end]
    return epochs[-1] if epochs else state.leader_epoch
