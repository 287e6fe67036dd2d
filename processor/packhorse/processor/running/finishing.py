"""After the commit of a chunk: copies, heads that are finished, and what is then settled."""

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from packhorse.core.errors import BrokerUnavailable
from packhorse.processor.outcomes import Outcome
from packhorse.processor.parking.draining import Drained, Ending, drain, release
from packhorse.processor.parking.followers import Followers
from packhorse.processor.partition.events import ChunkEnded, Ended
from packhorse.processor.record import Delivery
from packhorse.processor.running.judging import parks_after
from packhorse.processor.running.requests import (
    CountDeliveries,
    Request,
    SendKept,
    SendRound,
)
from packhorse.processor.running.sorting import Sorted
from packhorse.processor.running.work import Member, Result

if TYPE_CHECKING:
    from packhorse.processor.running.batch import Chunk

LOOK_AGAIN = 1.0
"""
Seconds after which a key that another drains is looked at again. Its lease runs for longer, but the drain ends before it as a
rule, and a new head of the key may stand behind the one that waits here.
"""
_LET_GO = Drained(ended=Ending.DONE)
_COPIED = frozenset({Outcome.RETRY, Outcome.QUARANTINE})


def finish(
    chunk: "Chunk", found: Sorted, results: list[Result], old: list[Delivery]
) -> Generator[Request, Any, ChunkEnded]:
    """
    Send the copies that are owed, let keys go whose head is finished, and say what is settled and how the chunk ended.

    Nothing is settled before its copy is confirmed, and no head before what waits behind it was run: whoever comes after a
    crash meets it again.
    """
    members = found.members[: len(results)]
    yield from _count(found)
    chunk.settled |= {delivery.record.offset for delivery in old}
    owed = [*found.uncopied, *(r.delivery for r in results if r.outcome in _COPIED)]
    unsent = {delivery.record.offset for delivery in (*owed, *found.circling)}
    heads = dict(found.heads) | _finished(members, results)
    dealt = {d.record.offset for d in found.duplicates} | {r.delivery.record.offset for r in results}
    chunk.tried |= dealt
    chunk.settled |= dealt - unsent - heads.keys()
    missing: BrokerUnavailable | None = None
    if unsent:
        try:
            if found.circling:
                yield SendRound(found.circling)
            if owed:
                yield SendKept([delivery.id for delivery in owed])
            chunk.settled |= unsent - heads.keys()
        except BrokerUnavailable as error:
            missing = error
    if heads:
        yield from _let_go(chunk, heads, unsent if missing is not None else frozenset())
    if missing is not None:
        raise missing
    # What was cut off is due: it must not wait with the rest for the first that is not.
    if found.wait is not None and len(results) == len(found.members):
        return chunk.ended(Ended.NOT_DUE, wait=found.wait)
    return chunk.ended(Ended.WELL)


def _count(found: Sorted) -> Generator[Request, Any, None]:
    if found.duplicates:
        yield CountDeliveries([delivery.id for delivery in found.duplicates])


def _finished(members: list[Member], results: list[Result]) -> dict[int, str]:
    """Return the keys, by offset, whose head this chunk has finished."""
    heads: dict[int, str] = {}
    for member, result in zip(members, results, strict=True):
        if not member.head or member.key is None:
            continue
        passes = result.outcome is Outcome.QUARANTINE and not parks_after(member)
        if passes or result.outcome in {Outcome.DONE, Outcome.SKIPPED}:
            heads[member.delivery.record.offset] = member.key
    return heads


def _let_go(
    chunk: "Chunk", heads: dict[int, str], unsent: frozenset[int] | set[int]
) -> Generator[Request, Any, None]:
    """Release the keys of *heads*; those behind which something waits are drained, one after another."""
    released = yield from release(list(heads.values()))
    found = {key: Drained(ended=Ending.BUSY, wait=wait) for key, wait in released.busy.items()}
    for key in released.waiting:
        if chunk.drained.too_many:
            found[key] = Drained(ended=Ending.MORE)
            continue
        offset = next(offset for offset, of in heads.items() if of == key)
        found[key] = yield from drain(key, _followers(chunk, offset), mine=chunk.runs, into=chunk.drained)
    for offset, key in heads.items():
        _settle(chunk, offset, found.get(key, _LET_GO), sent=offset not in unsent)


def _settle(chunk: "Chunk", offset: int, drained: Drained, *, sent: bool) -> None:
    """Say what becomes of the head at *offset*, behind which *drained* was found; of MORE it is left, to come again at once."""
    match drained.ended:
        case Ending.BUSY:
            chunk.held[offset] = min(drained.wait, LOOK_AGAIN)
        case Ending.OTHER:
            chunk.others.add(offset)
        case Ending.SHUT if drained.handler is not None:
            chunk.gated[offset] = drained.handler.name
        case Ending.DONE | Ending.GAVE_UP if sent:
            chunk.settled.add(offset)


def _followers(chunk: "Chunk", offset: int) -> Followers:
    """
    Return how the followers behind the head at *offset* are run.

    Where that delivery comes alone, because a process or a connection was lost over it, its handler is not the one to blame
    unless it ran now: the first follower is.
    """
    work = chunk.work
    ran = any(result.delivery.record.offset == offset for result in chunk.results)
    return Followers(
        app=chunk.app,
        jitter=chunk.how.jitter,
        skip_unknown=chunk.skip_unknown,
        running=chunk.how.running,
        behind=next(delivery for delivery in work.deliveries if delivery.record.offset == offset),
        alone=work.suspected,
        charged=None if ran else work.charged,
        contended=work.contended and not ran,
        most_starts=work.most_starts if work.marked and not ran else None,
        shut=work.shut,
        probing=chunk.how if work.probe else None,
    )
