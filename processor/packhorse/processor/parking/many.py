"""
Draining many keys together: the first follower of each runs in one transaction with those of the others, round after round.

For keys behind which little waits: one by one each of them takes a claim, a transaction and a release of its own, some four
commits. What is not plain (a follower that needs no handler, that must run alone, whose handler is stopped or of another kind of
lane) is left to `draining`, which also goes on where a round comes to nothing. The order of effects is the one of `draining`, and
so is what a crash between two of them leaves; `Write` asks for the tokens of all keys, and is refused, whole, when one has moved.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from packhorse.core.errors import BrokerUnavailable, RegistryUnavailable
from packhorse.processor.handlers import Handler
from packhorse.processor.outcomes import Outcome
from packhorse.processor.parking.draining import Drained, Ending, release
from packhorse.processor.parking.followers import Followers
from packhorse.processor.running.attempting import attempt
from packhorse.processor.running.endings import Contention, Down, GivenUp, Stopped
from packhorse.processor.running.requests import (
    ClaimKeys,
    GetFirstFollowers,
    LeaveKeys,
    ReleaseKeys,
    Request,
    RollBack,
    SendKept,
)
from packhorse.processor.running.tallying import Followed
from packhorse.processor.running.verdict import Attempt
from packhorse.processor.running.work import (
    Claim,
    ClaimedKeys,
    FirstFollowers,
    Member,
    Released,
)

FEW = 2
"""Keys from which on they are drained together."""
_COPIED = frozenset({Outcome.RETRY, Outcome.QUARANTINE})


@dataclass(slots=True, kw_only=True)
class Many:
    """
    Keys that are drained together, and how far that has come.

    Attributes:
        followers: How the followers of a key are run.
        mine: Whether this lane can run a handler.
        how: How a transaction of them is run.
        into: Takes what is committed, as soon as it is.
        apart: Each key is drained by itself: something is known against a follower, or one is to try its handler.
        held: Claims under which they are drained on, by key.
        ready: Their first followers, as far as they are not run yet.
        each: Keys that are to be drained by themselves, with their claims where they are had.
    """

    followers: Callable[[str], Followers]
    mine: Callable[[Handler | None], bool]
    how: Attempt
    into: Followed
    apart: bool = False
    held: dict[str, Claim] = field(default_factory=dict)
    ready: list[Member] = field(default_factory=list)
    each: dict[str, Claim | None] = field(default_factory=dict)

    def fits(self, member: Member, key: str) -> bool:
        """Return whether *member*, of the key *key*, is plain enough to share a transaction with followers of other keys."""
        handler, followers = member.handler, self.followers(key)
        return (
            member.key is not None
            and member.result is None
            and handler is not None
            and handler.isolation != "message"
            and self.mine(handler)
            and not followers.waits(handler)
            and not followers.tries(handler)
        )

    def alone(self, key: str) -> None:
        """Let *key* be drained by itself."""
        self.each[key] = self.held.pop(key)


def drain_many(
    keys: Sequence[str], woken: Sequence[str], many: Many
) -> Generator[Request, Any, dict[str, Drained]]:
    """
    Let go of *keys*, and run the first followers of keys behind which some wait until few such keys are left.

    Returns what was found of keys that another drains, or that are not let go and left to nobody; *many* says which are left to be
    drained by themselves.

    Args:
        keys: Their heads were finished here; behind most of them nothing waits, as a rule.
        woken: Their heads were finished before, and somebody asks for them to be drained.
        many: Takes what becomes of them.

    Raises:
        DatabaseUnavailable, BrokerUnavailable, RegistryUnavailable, Stopped, GivenUp: It can't go on now; the transaction was
            rolled back, and what was claimed is left.
    """
    found: dict[str, Drained] = {}
    try:
        if len(woken) >= FEW and not many.apart:
            yield from _claim(woken, many)
        if rest := [key for key in (*keys, *woken) if key not in many.held]:
            released = yield from release(rest)
            found = {key: Drained(ended=Ending.BUSY, wait=wait) for key, wait in released.busy.items()}
            many.each = dict.fromkeys(released.waiting)
        if many.each and len(many.each) + len(many.held) >= FEW and not many.apart:
            yield from _claim(list(many.each), many)
        while len(many.held) >= FEW and not many.into.too_many and (yield from _round(many)):
            pass
    except (Contention, Down):
        # Of whom is not sure: each is tried by itself.
        yield RollBack()
    except (BrokerUnavailable, RegistryUnavailable, Stopped, GivenUp):
        yield RollBack()
        yield LeaveKeys([*many.held.values(), *filter(None, many.each.values())])
        raise
    for key in list(many.held):
        many.alone(key)
    return found


def _claim(keys: Sequence[str], many: Many) -> Generator[Request, Any, None]:
    claimed: ClaimedKeys = yield ClaimKeys(keys)
    many.held.update({claim.key: claim for claim in claimed.claims})
    for claim in claimed.claims:
        many.each.pop(claim.key, None)


def _round(many: Many) -> Generator[Request, Any, bool]:
    """Run one follower of each key, and let go of those behind which nothing waits any more; return whether it came to anything."""
    if not many.ready:
        yield from _make_ready(many)
    members = [member for member in many.ready if _go_together(member.handler, many.ready[0].handler)]
    if not members:
        return False
    how = many.how
    how.claims = many.held
    how.behind = {member.delivery.id: _behind(many, member) for member in members}
    results = yield from attempt(members, how)
    if not results:
        return False
    many.into.add(results)
    run = {result.key for result in results}
    many.ready = [member for member in many.ready if member.key not in run]
    for key in run.difference(how.released.waiting):
        del many.held[str(key)]
    if copied := [r.delivery.id for r in results if r.outcome in _COPIED]:
        yield SendKept(copied)
    return True


def _make_ready(many: Many) -> Generator[Request, Any, None]:
    """Ask for the first follower of each key; one that may share no transaction is left to be drained alone, one without any let go."""
    firsts: FirstFollowers = yield GetFirstFollowers(list(many.held))
    for key, found in firsts.found.items():
        prepared = yield from many.followers(key).prepare([found], key, firsts.now, first=True)
        if many.fits(prepared[0], key):
            many.ready.append(prepared[0])
        else:
            many.alone(key)
    if without := [key for key in many.held if key not in firsts.found]:
        released: Released = yield ReleaseKeys(without, [many.held[key] for key in without])
        for key in set(without).difference(released.waiting):
            del many.held[key]


def _go_together(one: Handler | None, other: Handler | None) -> bool:
    """Return whether two handlers' messages may share a transaction: those of a batch handler are among themselves."""
    assert one is not None
    assert other is not None
    return one is other or (one.kind == "one" and other.kind == "one")


def _behind(many: Many, member: Member) -> Member:
    behind = many.followers(str(member.key)).behind
    return member if behind is None else Member(delivery=behind)
