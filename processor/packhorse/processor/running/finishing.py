"""After the commit of a chunk: copies, heads that are finished, and what is then settled."""

from collections.abc import Generator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from packhorse.core.errors import BrokerUnavailable, RegistryUnavailable
from packhorse.processor.outcomes import Outcome
from packhorse.processor.parking.draining import Drained, Ending, drain
from packhorse.processor.parking.followers import Followers
from packhorse.processor.parking.many import Many, drain_many
from packhorse.processor.partition.events import ChunkEnded, Ended
from packhorse.processor.record import Delivery
from packhorse.processor.running.endings import Contention, Down, GivenUp, Probed, Stopped
from packhorse.processor.running.judging import parks_after
from packhorse.processor.running.requests import (
    CountDeliveries,
    LeaveKeys,
    Request,
    SendKept,
    SendRound,
)
from packhorse.processor.running.sorting import Sorted
from packhorse.processor.running.work import Claim, Member, Result

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
    heads = _finished(members, results)
    dealt = {d.record.offset for d in found.duplicates} | {r.delivery.record.offset for r in results}
    chunk.tried |= dealt
    keys = found.heads | heads
    chunk.settled |= dealt - unsent - keys.keys()
    missing: BrokerUnavailable | None = None
    if unsent:
        try:
            if found.circling:
                yield SendRound(found.circling)
            if owed:
                yield SendKept([delivery.id for delivery in owed])
            chunk.settled |= unsent - keys.keys()
        except BrokerUnavailable as error:
            missing = error
    if keys:
        yield from _let_go(chunk, heads, found.heads, unsent if missing is not None else frozenset())
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
    chunk: "Chunk",
    heads: dict[int, str],
    woken: dict[int, str],
    unsent: frozenset[int] | set[int],
) -> Generator[Request, Any, None]:
    """
    Release the keys of *heads*, and of those that were *woken*; where something waits it is run, of many keys together, and what
    is left key by key.
    """
    offsets = {key: offset for offset, key in reversed((woken | heads).items())}
    many = _many(chunk, offsets)
    found = yield from drain_many(list(heads.values()), list(woken.values()), many)
    chunk.how.failed = chunk.how.failed or many.how.failed
    found |= yield from _one_by_one(chunk, many)
    for offset, key in (woken | heads).items():
        _settle(chunk, offset, found.get(key, _LET_GO), sent=offset not in unsent)


def _one_by_one(chunk: "Chunk", many: Many) -> Generator[Request, Any, dict[str, Drained]]:
    """Drain what is left, each key by itself, under its claim where it is had; however that ends, no claim is kept."""
    found: dict[str, Drained] = {}
    keys = many.each
    try:
        while keys and not chunk.drained.too_many:
            key = next(iter(keys))
            held, followers = keys.pop(key), many.followers(key)
            found[key] = yield from drain(key, followers, mine=chunk.runs, into=chunk.drained, held=held)
    except (BrokerUnavailable, RegistryUnavailable, Contention, Stopped, GivenUp, Down, Probed):
        yield from _left(keys)
        raise
    yield from _left(keys)
    return found | dict.fromkeys(keys, Drained(ended=Ending.MORE))


def _left(keys: dict[str, Claim | None]) -> Generator[Request, Any, None]:
    if claims := [claim for claim in keys.values() if claim is not None]:
        yield LeaveKeys(claims)


def _many(chunk: "Chunk", offsets: dict[str, int]) -> Many:
    """Return how followers of many keys are run together: as the chunk's own members."""
    at = {delivery.record.offset: delivery for delivery in chunk.work.deliveries}
    ran = {result.delivery.record.offset for result in chunk.results}
    how = replace(
        chunk.how,
        careful=chunk.how.careful or chunk.how.failed,
        contended=False,
        again=frozenset(),
        most=None,
    )
    return Many(
        followers=cache(lambda key: _followers(chunk, at[offsets[key]], has_run=offsets[key] in ran)),
        mine=chunk.runs,
        how=how,
        into=chunk.drained,
        apart=chunk.work.suspected or chunk.work.probe is not None,
    )


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


def _followers(chunk: "Chunk", behind: Delivery, *, has_run: bool) -> Followers:
    """
    Return how the followers behind the head that was delivered as *behind* are run.

    Where that comes alone, because a process or a connection was lost over it, its handler is not the one to blame unless it has
    run now: the first follower is.
    """
    work = chunk.work
    return Followers(
        app=chunk.app,
        jitter=chunk.how.jitter,
        skip_unknown=chunk.skip_unknown,
        running=chunk.how.running,
        behind=behind,
        alone=work.suspected,
        charged=None if has_run else work.charged,
        contended=work.contended and not has_run,
        most_starts=work.most_starts if work.marked and not has_run else None,
        shut=work.shut,
        probing=chunk.how if work.probe else None,
    )
