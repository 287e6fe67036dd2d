"""What lanes of both kinds do alike: decoding, copies, contexts, how a run is judged, driving a batch."""

import asyncio
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import Any, TypeVar

from packhorse.core.errors import MessageFault, PackhorseError
from packhorse.core.telemetry import NO_TELEMETRY
from packhorse.processor.copies import CopiesMissed, circling, copy_of, where_read
from packhorse.processor.handlers import Handler
from packhorse.processor.member.fence import Fence
from packhorse.processor.metadata import Metadata
from packhorse.processor.outcomes import Reason, SwallowedError
from packhorse.processor.partition.events import ChunkEnded
from packhorse.processor.plant import Plant
from packhorse.processor.record import Delivery, trace_of
from packhorse.processor.running.faults import describe, ran_of
from packhorse.processor.running.requests import (
    Decode,
    DecodeAll,
    Request,
)
from packhorse.processor.running.work import (
    RETURNED,
    RETURNED_UNTOUCHED,
    Failure,
    Member,
    Ran,
    Work,
)
from packhorse.processor.signals import Point
from packhorse.processor.storing import postgres
from packhorse.processor.storing.store import Place, Quarantined, Steps
from packhorse.producer.context import LazyContext, MessageContext

T = TypeVar("T")
Chunks = Generator[Request, Any, ChunkEnded]


def forgotten(plant: Plant, work: Work) -> Steps[None]:
    """
    Take back that messages were begun: this process has lived through it, however it ended.

    Only for what this run has marked: one that only waited for another drainer has lived through nothing. It is owed until the
    statements are done.
    """
    spot, offsets = (work.stream.topic_id, work.partition), [one.record.offset for one in work.deliveries]
    plant.starts.owe(spot, offsets)

    def steps() -> Steps[None]:
        yield from plant.store.clear_starts(spot, offsets)
        plant.starts.paid(spot, offsets)

    return steps()


def left_by(lane: object, plant: Plant) -> Steps[None] | None:
    """
    Return what ends the claims of *lane*, which does not come back; None when it has none.

    Renewed on, its keys would be drained by nobody until the process ends.
    """
    held = plant.claims.forget(lane)
    return plant.store.leave_all(held) if held else None


def decoded(request: Decode, plant: Plant) -> object:
    """Return the message, or the MessageFault; RegistryUnavailable passes through."""
    try:
        return plant.decoder.decode(request.payload, request.message)
    except MessageFault as fault:
        return fault


def all_decoded(request: DecodeAll, plant: Plant) -> list[object]:
    """Return the messages, or their MessageFaults; RegistryUnavailable passes through."""
    decode, found = plant.decoder.decode, list[object]()
    for payload, cls in request.payloads:
        try:
            found.append(decode(payload, cls))
        except MessageFault as fault:
            found.append(fault)
    return found


def copies_sent(uncopied: Sequence[Quarantined], plant: Plant) -> list[Place]:
    """
    Produce the copies of *uncopied*, to tiers and quarantine, and return where they stand; blocks.

    Raises:
        CopiesMissed: It says where those stand that are confirmed: one that the broker never takes must not have the others
            sent again and again.
    """
    plant.signal(Point.BEFORE_COPY)
    places = produced(uncopied, plant)
    plant.signal(Point.AFTER_COPY)
    return places


def produced(messages: Sequence[Quarantined], plant: Plant) -> list[Place]:
    """Produce the copies of *messages*, as `copies_sent`."""
    group = plant.app.group
    messages = [where_read(message, group, plant.sources) for message in messages]
    try:
        places = plant.copies.send([copy_of(message, group, plant.partitions) for message in messages])
    except CopiesMissed as missed:
        stand = {at: one._replace(tier=messages[at].tier) for at, one in missed.places.items()}
        raise CopiesMissed(str(missed), stand, missed.refused) from missed
    return [one._replace(tier=message.tier) for one, message in zip(places, messages, strict=True)]


def round_sent(deliveries: Sequence[Delivery], plant: Plant, work: Work) -> None:
    """Produce *deliveries* once more, to the longest tier of their source; blocks."""
    longest = plant.app.tiers(work.stream.source)[-1]
    plant.copies.send([circling(delivery, plant.app.group, longest) for delivery in deliveries])


@contextmanager
def together(members: Sequence[Member], plant: Plant) -> Iterator[None]:
    """Run the block as the handling of *members* by their batch handler, seen by whoever watches."""
    first, hands = members[0], plant.board.hands
    record = first.delivery.record
    task = asyncio.current_task() if first.handler is not None and first.handler.is_async else None
    number = hands.take(record.topic, record.partition, record.offset, first.delivery.type, task)
    try:
        with _batch_span(members, plant):
            yield
    finally:
        hands.drop(number)


def _batch_span(members: Sequence[Member], plant: Plant) -> AbstractContextManager[None]:
    if plant.telemetry is NO_TELEMETRY:
        return _NO_SPAN
    record = members[0].delivery.record
    return plant.telemetry.span(
        f"process {members[0].delivery.type or ''}",
        parent=None,
        attributes={
            "messaging.system": "kafka",
            "messaging.operation.type": "process",
            "messaging.destination.name": record.topic,
            "messaging.consumer.group.name": plant.app.group,
            "messaging.destination.partition.id": str(record.partition),
            "messaging.batch.message_count": len(members),
        },
    )


class around(LazyContext):  # noqa: N801 it stands in a `with`, as functions of contextlib do
    """
    Run the block as the handling of *member*: in a span below its writer's, with its context for what is emitted, and seen
    by whoever watches.
    """

    __slots__ = ("_context", "_member", "_number", "_plant", "_within")

    def __init__(self, member: Member, context: Metadata, plant: Plant) -> None:
        super().__init__()
        self._member = member
        self._context = context
        self._plant = plant

    def __enter__(self) -> None:
        member, plant = self._member, self._plant
        record, handler = member.delivery.record, member.handler
        task = asyncio.current_task() if handler is not None and handler.is_async else None
        self._number = plant.board.hands.take(
            record.topic, record.partition, record.offset, member.delivery.type, task
        )
        self.enter()
        self._within = None
        if plant.telemetry is not NO_TELEMETRY:
            self._within = _span(member, self._context, plant)
            self._within.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._within is not None:
            self._within.__exit__(kind, error, trace)
        self.leave()
        self._plant.board.hands.drop(self._number)

    def make(self) -> MessageContext:
        """Return what follow-ups of the message take over."""
        context, own = self._context, str(self._context.id)
        return MessageContext(
            correlation_id=context.correlation_id or own,
            causation_id=own,
            actor=context.actor,
            tenant=context.tenant,
        )


def _span(member: Member, context: Metadata, plant: Plant) -> AbstractContextManager[None]:
    return plant.telemetry.span(
        f"process {member.delivery.type or ''}",
        parent=trace_of(member.delivery),
        attributes={
            "messaging.system": "kafka",
            "messaging.operation.type": "process",
            "messaging.destination.name": context.topic,
            "messaging.consumer.group.name": plant.app.group,
            "messaging.destination.partition.id": str(context.partition),
            "messaging.kafka.offset": context.offset,
            "packhorse.message.id": str(context.id),
            "packhorse.attempt": context.attempt,
        },
    )


_NO_SPAN = nullcontext()


def ended_at(connection: postgres.Guarded, member: Member, *, touched: bool) -> Ran | None:
    """Return how a run that returned is judged by where its transaction stands; None when the handler ended that."""
    if not touched:
        return RETURNED_UNTOUCHED
    match postgres.standing(connection):
        case "open":
            return RETURNED
        case "failed":
            swallowed = SwallowedError(
                "the handler returned although the database had refused one of its statements; let the error out, or "
                "wrap the statement in `with ctx.connection.transaction():`"
            )
            return ran_of(swallowed, member.handler, touched=True, alive=True)
        case "none":
            return None
        case _:
            return Ran(Failure.CONNECTION, "", "the connection was lost")


def failed_at(
    connection: postgres.Guarded, error: BaseException, member: Member, *, touched: bool, fence: Fence
) -> Ran | None:
    """Return how a run that ended with *error* is judged; None when the handler had ended its transaction."""
    if fence.up:
        return Ran(Failure.GIVEN_UP, "", "cancelled")
    if isinstance(error, asyncio.CancelledError):
        return Ran(Failure.TEMPORARY, Reason.FAILED.value, describe(error), touched)
    stands = postgres.standing(connection)
    if stands == "none":
        return None
    return ran_of(error, member.handler, touched=touched, alive=stands != "lost")


def timed_out(handler: Handler) -> Ran:
    """Return the end of a run that has outlasted its time-out, whatever it returned or raised then."""
    text = f"it ran longer than its time-out of {handler.timeout:g} s; its query was cancelled"
    return Ran(Failure.TEMPORARY, Reason.TIMEOUT.value, text)


def wrote(ran: Ran | None, handler: Handler, *, fired: bool) -> Ran:
    """Return how what a job wants written with its success has ended; None: it had ended the transaction."""
    if ran is not None and ran.failure is Failure.CONNECTION:
        return ran
    if fired:
        return timed_out(handler)
    return broken(False) if ran is None else ran


def broken(committed: bool) -> Ran:
    """Return the end of a run whose handler ended the transaction that it was given."""
    reason = Reason.BROKEN_TRANSACTION.value
    return Ran(
        Failure.BROKEN, reason, "the handler ended the transaction that it was given", committed=committed
    )


def drive(batch: Chunks, execute: Callable[[Request], object]) -> ChunkEnded:
    """Let *execute* do what *batch* asks for; errors of our own tree go back into it."""
    try:
        request = next(batch)
        while True:
            try:
                answer = execute(request)
            except PackhorseError as error:
                request = batch.throw(error)
            else:
                request = batch.send(answer)
    except StopIteration as done:
        ended: ChunkEnded = done.value
        return ended
