"""How members are run, and what a failed run means."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from packhorse.core.errors import DatabaseUnavailable
from packhorse.processor.partition.events import NO_TIME, Took
from packhorse.processor.running.endings import Contention, Down, GivenUp, Probed, Stopped
from packhorse.processor.running.hands import FULL_HANDS, Hands
from packhorse.processor.running.judging import after_run
from packhorse.processor.running.work import (
    Claim,
    Failure,
    Member,
    Ran,
    Released,
    Result,
)


@dataclass(slots=True, kw_only=True)
class Attempt:
    """
    How members are run, and what was seen of it.

    Attributes:
        jitter: Draws from [0, 1).
        clock: Monotonic seconds.
        time: Seconds after which the transaction is cut behind the member that runs.
        contended: The one member may not end in contention, or by saying that a system is down, once more: then it is
            charged.
        careful: Savepoints from the start.
        in_hand: Offsets that are put on record before the transaction begins; none for members that are no records in hand.
        claims: Under which followers are run, by key; one of each key.
        released: Of followers how their keys stand now.
        behind: Of followers the deliveries that led to them: those stand for them where a connection is lost over one.
        again: Offsets that were counted before.
        running: The member that runs, or is being committed alone, for whoever looks when the connection ends.
        slow, quick: Hashes of keys whose member alone took longer than the time, and of those that did not.
        failed: A member failed, and what it did had to be undone.
        sync: What a member queues is waited for before the next one runs: a queued statement has failed, of whom is not sure.
        probe: The handler of which one message tries whether it may go on; None when none does.
        ran: How that ended.
        most: Members that a batch handler is given at once, after it failed with more.
        hands: Which jobs of the chunk are still the lane's.
        together: Jobs are claimed all at once, as they were counted out.
        took: How long bodies of jobs took.
    """

    jitter: Callable[[], float]
    clock: Callable[[], float]
    time: float
    contended: bool = False
    careful: bool = False
    in_hand: list[int] = field(default_factory=list)
    claims: Mapping[str, Claim] = field(default_factory=dict)
    released: Released = field(default_factory=Released)
    behind: Mapping[UUID, Member] = field(default_factory=dict)
    again: frozenset[int] = frozenset()
    running: list[Member] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    quick: list[str] = field(default_factory=list)
    failed: bool = False
    sync: bool = False
    probe: str | None = None
    ran: Ran | None = None
    most: int | None = None
    hands: Hands = FULL_HANDS
    together: bool = False
    took: Took = NO_TIME

    def runs(self, members: Sequence[Member]) -> None:
        """Remember who runs, or what stands for it."""
        self.running[:] = [self.behind.get(m.delivery.id, m) for m in members] if self.behind else members


_NOBODYS = {Failure.CONTENTION, Failure.DOWN}
_CHARGED = {Failure.TEMPORARY, Failure.PERMANENT, Failure.BROKEN}


def judged(member: Member, ran: Ran, how: Attempt) -> Result | None:
    """
    Return the result that a failed run means; None when the handler ended the transaction.

    Raises:
        Contention, DatabaseUnavailable, Stopped, GivenUp, Down, Probed: It is not the member's fault alone, or nobody's.
    """
    if how.probe:
        how.ran = ran
        if ran.failure in _CHARGED:
            raise Probed(ran)
    if how.contended and not how.probe and ran.failure in _NOBODYS:
        return after_run(member, ran._replace(failure=Failure.TEMPORARY), jitter=how.jitter())
    match ran.failure:
        case Failure.CONTENTION:
            raise Contention(ran.error)
        case Failure.DOWN:
            raise Down("" if member.handler is None else member.handler.name, ran.error)
        case Failure.CONNECTION:
            raise DatabaseUnavailable(ran.error)
        case Failure.STOP:
            raise Stopped(ran.error)
        case Failure.GIVEN_UP:
            raise GivenUp(ran.error)
        case Failure.BROKEN:
            return None
        case _:
            return after_run(member, ran, jitter=how.jitter())
