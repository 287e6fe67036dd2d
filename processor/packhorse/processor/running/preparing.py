"""What is decided and decoded of a chunk before anything of it runs: handlers, what needs none, payloads, starts on record."""

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from packhorse.core.errors import MessageFault
from packhorse.processor.jobs.deciding import End
from packhorse.processor.outcomes import Outcome, Reason
from packhorse.processor.record import REPLAY_OF, replay_handler_of
from packhorse.processor.running.judging import (
    crashed,
    ended_before,
    faulty,
    without_handler,
    without_named,
    without_running,
)
from packhorse.processor.running.requests import DecodeAll, MarkStart, Request
from packhorse.processor.running.sorting import Sorted
from packhorse.processor.running.work import Known, Member

if TYPE_CHECKING:
    from packhorse.processor.running.batch import Chunk


def prepare(found: Sorted, known: Known, chunk: "Chunk") -> Generator[Request, Any, None]:
    """Decide what needs no handler and decode the rest, before a transaction is open."""
    for member in found.members:
        if member.result is None:
            _by_handler(member, known, chunk)
    members = [member for member in found.members if member.result is None]
    if are_jobs(members):
        return  # of those a start counts once its lease is had, and the input is in the job's row
    if chunk.work.marked:
        for member in members:
            yield from mark_start(member, chunk.work.most_starts)
    payloads = [(member, member.delivery.record.value) for member in members if member.result is None]
    yield from decode(payloads, chunk.how.in_hand)


def are_jobs(members: Sequence[Member]) -> bool:
    """Return whether *members* of one chunk, which are of one kind as far as they have handlers, are jobs."""
    first = next((member for member in members if member.handler is not None), None)
    return first is not None and first.job is not None


def _by_handler(member: Member, known: Known, chunk: "Chunk") -> None:
    """Find the handler of *member*, and decide what becomes of it where none is to run."""
    delivery, payload, charged = member.delivery, member.delivery.record.value, chunk.work.charged
    named = replay_handler_of(delivery) if chunk.work.stream.carries else None
    handler = (
        chunk.app.handlers.get((delivery.type or "", payload is None))
        if named is None
        else chunk.app.handler_of(delivery.type, tombstone=payload is None, replay=named)
    )
    member.handler = handler
    if handler is not None and handler.ordering == "none":
        member.key = None
    # Of a job its row says whether its time has passed: a body may have ended in time, and its end not be recorded yet.
    if charged is not None or ("expires-at" in delivery.headers and member.job is None):
        member.result = without_running(member, known, charged)
    if member.result is not None:
        return
    if handler is None and named is not None:
        member.result = without_named(member, named)
    elif handler is None:
        type_known = chunk.app.knows(delivery.type)
        member.result = without_handler(member, type_known=type_known, skip=chunk.skip_unknown)
    elif member.job is not None and REPLAY_OF in delivery.headers:
        member.result = ended_before(member, _REPLAYED)


_REPLAYED = End(Outcome.SKIPPED, Reason.JOB_OVER.value, "a job is not replayed; submit another one")


def decode(
    payloads: Sequence[tuple[Member, bytes | None]], in_hand: Sequence[int] = ()
) -> Generator[Request, Any, None]:
    """Decode what each member is to be run with, where it has any: into its message, or the result of one that can't be decoded."""
    some = [
        (member, payload, member.handler.message)
        for member, payload in payloads
        if payload is not None and member.handler is not None
    ]
    if not some:
        return
    found = yield DecodeAll([(payload, message) for _, payload, message in some], in_hand)
    for (member, _, _), decoded in zip(some, found, strict=True):
        if isinstance(decoded, MessageFault):
            member.result = faulty(member, decoded)
        else:
            member.message = decoded


def mark_start(member: Member, most: int) -> Generator[Request, Any, None]:
    """Put on record that a member which may have killed a process starts; one that did so too often is not started."""
    if member.result is None:
        starts: int = yield MarkStart(member.delivery.record.offset)
        if starts > most:
            member.result = crashed(member, most)
