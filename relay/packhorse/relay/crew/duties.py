"""
Which shards a process runs: `duties(roster, running, owned) -> Duties`, no I/O.

The roster only spreads the work: it may be old or differ from what others see. That a shard has one owner is its lease's doing.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSeen:
    """
    One shard, as the table says.

    Attributes:
        leased: Somebody's lease runs.
        takeable: It may be taken: not while the shards change and nothing is left to finish.
    """

    shard: int
    leased: bool
    takeable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """The shards, and how many processes live, this one included."""

    shards: tuple[ShardSeen, ...]
    members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Duties:
    """Shards to begin with, and shards to drain and give back."""

    start: tuple[int, ...] = ()
    stop: tuple[int, ...] = ()


def duties(roster: Roster, *, running: AbstractSet[int], owned: AbstractSet[int]) -> Duties:
    """
    Return what changes for a process that runs *running* and owns *owned* of them.

    A lone shard is run by every process: all but the owner stand by. Several are shared evenly: a process takes free ones up
    to its share, gives back what is beyond it, and lets go of those that somebody else has taken.

    >>> seen = tuple(ShardSeen(shard=n, leased=n < 2) for n in range(4))
    >>> duties(Roster(shards=seen, members=2), running={0, 1}, owned={0, 1})
    Duties(start=(), stop=())
    >>> duties(Roster(shards=seen, members=2), running=set(), owned=set())
    Duties(start=(2, 3), stop=())
    >>> duties(Roster(shards=seen, members=4), running={0, 1}, owned={0, 1})
    Duties(start=(), stop=(1,))
    """
    known = {seen.shard: seen for seen in roster.shards}
    gone = sorted(running - known.keys())
    if len(known) <= 1:
        return Duties(start=tuple(sorted(known.keys() - running)), stop=tuple(gone))
    share = -(-len(known) // max(roster.members, 1))
    elsewhere = [
        shard for shard in sorted(running & known.keys()) if shard not in owned and known[shard].leased
    ]
    kept = sorted((running & known.keys()) - set(elsewhere), key=lambda shard: (shard not in owned, shard))
    beyond = kept[share:]
    room = share - len(kept[:share])
    free = [
        seen.shard
        for seen in roster.shards
        if seen.takeable and not seen.leased and seen.shard not in running
    ]
    return Duties(start=tuple(free[: max(room, 0)]), stop=(*gone, *elsewhere, *beyond))
