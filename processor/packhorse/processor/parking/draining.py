"""
Draining: the followers of a parked key are run in order once its head is finished, as a generator that asks its lane for
every effect.

Order of effects, and what a crash between two of them does:

1. `ClaimKey`: a token and a lease in the database. A crash leaves the lease to run out, a lost connection leaves it to the
   renewer; then a redelivered copy, the watchdog's wake-up or whoever finishes a head of the key claims anew.
2. `Begin`, handlers, `Write`, `CommitTransaction` for some followers at a time: before the commit nothing has happened, and
   the next drainer finds the same followers. The last statement of `Write` asks for the token: a drainer that was frozen and
   wakes behind another's claim is refused, whole.
3. `SendKept` for those that failed: a crash before it leaves an attempt whose copy is not known to be confirmed; whoever is
   delivered a copy of the finished head finds the new head and sends it, and so does the watchdog.
4. `ReleaseKeys` when no follower is left: a crash before it leaves a key without followers behind a finished head, which
   the next look lets go. A follower that comes meanwhile is added under the same lock, so it is seen, or finds no key.

No lock is held while a handler runs. The Kafka offset of what led here is committed behind all this, and by others.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from packhorse.core.errors import BrokerUnavailable, RegistryUnavailable
from packhorse.processor.handlers import Handler
from packhorse.processor.outcomes import Outcome
from packhorse.processor.parking.followers import MOST_CONTENTIONS, Followers
from packhorse.processor.running.endings import Contention, Down, GivenUp, Probed, Stopped
from packhorse.processor.running.requests import (
    ClaimKey,
    LeaveKey,
    ReleaseKeys,
    Request,
    RollBack,
    SendKept,
)
from packhorse.processor.running.tallying import Followed
from packhorse.processor.running.work import (
    Claim,
    Claimed,
    Member,
    Released,
    Result,
)

MOST_CONFLICTS = 5
"""Times that nothing can be recorded of the same first follower before it is held to be at fault, or given up."""


class Ending(StrEnum):
    """What draining a key came to."""

    DONE = "done"
    """Nothing is left to do here: the key is let go, waits for another head, is paused, or is not parked."""
    BUSY = "busy"
    """Another drains it: look again after `wait` seconds, and let no offset pass until then."""
    OTHER = "other"
    """The next follower's handler runs in a lane of another kind: drain on there."""
    SHUT = "shut"
    """The next follower's handler is stopped by its brake or breaker: drain on when it takes messages again, or to try it."""
    MORE = "more"
    """As many transactions were made as were asked for, or too much failed that nobody has heard of; followers are left."""
    GAVE_UP = "gave-up"
    """Nothing could be recorded again and again; the watchdog has the key looked at once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """
    How far draining a key has come.

    Attributes:
        ended: What it came to.
        wait: Of `busy` the seconds to wait.
        handler: Of `other` and `shut` what is to run next; None when its type has no handler.
        results: What was committed.
    """

    ended: Ending
    wait: float = 0.0
    handler: Handler | None = None
    results: Sequence[Result] = ()


Drain = Generator[Request, Any, Drained]


@dataclass(slots=True, kw_only=True)
class _State:
    """What a drain remembers between two transactions."""

    key: str
    into: Followed
    start: int = field(init=False)
    held: Claim | None = None
    first: object = None
    conflicts: int = 0
    contentions: int = 0
    marked: bool = False

    def __post_init__(self) -> None:
        self.start = len(self.into.results)

    def ended(self, ending: Ending, **more: Any) -> Drained:
        return Drained(ended=ending, results=self.into.results[self.start :], **more)

    @property
    def is_new(self) -> bool:
        """Return whether nothing was committed yet."""
        return len(self.into.results) == self.start

    def meet(self, member: Member) -> None:
        """Begin counting anew when another follower is the first."""
        if self.first != member.delivery.id:
            self.first, self.conflicts, self.contentions = member.delivery.id, 0, 0

    @property
    def alone(self) -> bool:
        """Whether the first follower is to be tried apart from the rest."""
        return self.conflicts > 1 or self.contentions > 0


def release(keys: Sequence[str]) -> Generator[Request, Any, Released]:
    """
    Let go of those of *keys* whose head is finished and that nobody waits behind; return how the others stand.

    For whoever has finished heads, or was delivered a copy or a wake-up of one that is finished. Heads that keys wait for
    instead get their copy sent, if it is not known to be confirmed.

    Raises:
        DatabaseUnavailable, BrokerUnavailable: What was not done is done by whoever looks next.
    """
    released: Released = yield ReleaseKeys(sorted(set(keys)))
    if released.heads:
        yield SendKept(released.heads)
    return released


def drain(
    key: str,
    followers: Followers,
    *,
    mine: Callable[[Handler | None], bool] = lambda handler: True,  # noqa: ARG005 its name says what it is
    most: int | None = None,
    into: Followed | None = None,
    held: Claim | None = None,
) -> Drain:
    """
    Run the followers of *key* in order, until none is left or one fails, and return what it came to.

    However it is broken off, what is left is a state from which any delivery of a copy, a wake-up or the watchdog goes on.

    Args:
        key: Hash of the key.
        followers: How they are run.
        mine: Whether this lane can run a handler.
        most: Transactions after which to stop; None: drain until the end.
        into: Takes what is committed, as soon as it is: whoever asked must know of it also when the drain breaks off.
        held: A claim of the key that is ours already.

    Raises:
        DatabaseUnavailable, BrokerUnavailable, RegistryUnavailable, Contention, Stopped, GivenUp, Down, Probed: It can't go on
            now; the transaction was rolled back.
    """
    state = _State(key=key, into=into or Followed(), held=held)
    try:
        return (yield from _rounds(state, followers, mine, most))
    except (BrokerUnavailable, RegistryUnavailable, Contention, Stopped, GivenUp, Down, Probed):
        yield RollBack()
        if state.held is not None:
            yield LeaveKey(state.held)
        raise


def _rounds(
    state: _State, followers: Followers, mine: Callable[[Handler | None], bool], most: int | None
) -> Drain:
    made = 0
    while True:
        claimed: Claimed = yield ClaimKey(state.key, state.held)
        if claimed.claim is None:
            return (yield from _not_had(state, claimed))
        state.held = claimed.claim
        if not claimed.followers:
            if (ended := (yield from _let_go(state))) is not None:
                return ended
            continue
        if made == most or state.into.too_many:
            return (yield from _left(state, Ending.MORE))
        members = yield from followers.prepare(claimed.followers, state.key, claimed.now, first=state.is_new)
        some = _together(members, mine, followers)
        if not some:
            handler = members[0].handler
            ending = Ending.SHUT if followers.waits(handler) else Ending.OTHER
            return (yield from _left(state, ending, handler=handler))
        state.meet(some[0])
        results = yield from _run(state, followers, some)
        if results is None:
            if state.conflicts > MOST_CONFLICTS + 1:
                return (yield from _left(state, Ending.GAVE_UP))
            continue
        made += 1
        if (yield from _recorded(state, results)):
            return state.ended(Ending.DONE)


def _not_had(state: _State, claimed: Claimed) -> Drain:
    """The key waits for a head, whose copy must stand; or another drains it; or there is nothing to drain."""
    if claimed.head is not None:
        yield SendKept([claimed.head])
    if claimed.busy > 0:
        return state.ended(Ending.BUSY, wait=claimed.busy)
    return state.ended(Ending.DONE)


def _let_go(state: _State) -> Generator[Request, Any, Drained | None]:
    """Let go of a key without followers; None when there is one after all, or the claim must be had anew."""
    released: Released = yield ReleaseKeys([state.key], [] if state.held is None else [state.held])
    if released.waiting:
        return None
    if released.heads:
        yield SendKept(released.heads)
    if released.busy:
        return state.ended(Ending.BUSY, wait=max(released.busy.values()))
    return state.ended(Ending.DONE)


def _left(state: _State, ending: Ending, **more: Any) -> Drain:
    if state.held is not None:
        yield LeaveKey(state.held)
    return state.ended(ending, **more)


def _together(
    members: list[Member], mine: Callable[[Handler | None], bool], followers: Followers
) -> list[Member]:
    """Return the first members that may share a transaction in this lane; none when the first is another lane's, or waits."""
    some: list[Member] = []
    for member in members:
        handler = member.handler
        alone = (handler is not None and handler.isolation == "message") or followers.tries(handler)
        others = (member.result is None and not mine(handler)) or followers.waits(handler)
        if others or (some and alone):
            break
        some.append(member)
        if alone:
            break
    return some


def _run(
    state: _State, followers: Followers, members: list[Member]
) -> Generator[Request, Any, list[Result] | None]:
    """Run *members*; None when nothing was recorded and they are to be claimed again."""
    claim = state.held
    assert claim is not None
    if members[0].result is None and not state.marked:
        # Not before: where a lane of the other kind goes on, this one runs nothing and has nothing to live through.
        state.marked = True
        yield from followers.mark(members[0])
    some = members[:1] if state.alone or followers.alone else members
    contended = state.contentions >= MOST_CONTENTIONS or (followers.contended and state.is_new)
    try:
        results = yield from followers.run(
            some, claim, contended=contended, blamed=state.conflicts > MOST_CONFLICTS
        )
    except Contention:
        yield RollBack()
        state.contentions += 1
        if state.contentions > 2 * MOST_CONTENTIONS:
            raise
        return None
    if results is None:
        state.conflicts += 1
    return results


def _recorded(state: _State, results: list[Result]) -> Generator[Request, Any, bool]:
    """See that copies of what failed stand; return whether the key waits for a new head."""
    state.into.add(results)
    failed = [r.delivery.id for r in results if r.outcome in {Outcome.RETRY, Outcome.QUARANTINE}]
    if failed:
        yield SendKept(failed)
    return results[-1].parks
