"""
The chunk: from deliveries to durable results, as a generator that asks its lane for every effect.

Order of effects, and what a crash between two of them does:

1. `LookUp`, then `Decode`: nothing was done.
2. `Begin`, handlers, `Write`, `CommitTransaction`: before the commit nothing has happened; after it a redelivery finds
   the inbox rows. What failed is recorded with its bytes, the attempt to come and its key, parked.
3. `SendKept`: a redelivery finds a retry or quarantine without a confirmed copy and sends it again; the handler is not run.
4. `ReleaseKeys`, and the drain of what waits behind heads that are finished: a redelivery of the head finds it finished and
   goes on; so does the watchdog.
5. The watermark and the Kafka commit are the partition's business and come after this generator has ended.

The lane throws infrastructure errors into the generator.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from packhorse.core.errors import (
    BrokerUnavailable,
    DatabaseUnavailable,
    RegistryUnavailable,
)
from packhorse.processor.app import Processor
from packhorse.processor.breaking.brake import Seen
from packhorse.processor.handlers import Handler
from packhorse.processor.outcomes import Reason
from packhorse.processor.partition.events import ChunkEnded, Ended
from packhorse.processor.record import Delivery
from packhorse.processor.running.attempting import attempt
from packhorse.processor.running.endings import Contention, Down, GivenUp, Probed, Stopped
from packhorse.processor.running.finishing import finish
from packhorse.processor.running.hands import FULL_HANDS, Hands
from packhorse.processor.running.jobwork import run_jobs
from packhorse.processor.running.judging import (
    after_run,
)
from packhorse.processor.running.preparing import are_jobs, prepare
from packhorse.processor.running.requests import (
    LookUp,
    Request,
    RollBack,
)
from packhorse.processor.running.sorting import Sorted, below_watermark, sort
from packhorse.processor.running.tallying import Followed, summed, tallies, tallies_of_followers
from packhorse.processor.running.verdict import Attempt
from packhorse.processor.running.work import (
    Failure,
    Known,
    Member,
    Ran,
    Result,
    Work,
)

MOST_CONFLICTS = 5
"""Times that another owner may be first with a member of one chunk before it counts as contention."""

Batch = Generator[Request, Any, ChunkEnded]
Report = Callable[[list[Result], int], None]


@dataclass(slots=True, kw_only=True)
class Chunk:
    """
    How far a chunk has come.

    Attributes:
        work: What it is.
        app: The processor.
        how: How its members are run.
        settled: Offsets that are durably dealt with, copies confirmed.
        tried: Offsets for which a handler has run or a result was found.
        held: Offsets that wait alone, and for how many seconds.
        gated: Offsets of finished heads behind which a follower of a stopped handler is next, and that handler.
        others: Offsets of finished heads behind which a handler of a lane of the other kind is next.
        drained: What was committed of followers, also of those after whose commit the chunk broke off.
        members, results: What was committed, for the counts.
        duplicates: Deliveries that were dealt with before.
    """

    work: Work
    app: Processor
    how: Attempt
    skip_unknown: bool
    settled: set[int] = field(default_factory=set)
    tried: set[int] = field(default_factory=set)
    held: dict[int, float] = field(default_factory=dict)
    gated: dict[int, str] = field(default_factory=dict)
    others: set[int] = field(default_factory=set)
    drained: Followed = field(default_factory=Followed)
    members: list[Member] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    duplicates: list[Delivery] = field(default_factory=list)

    def runs(self, handler: Handler | None) -> bool:
        """Return whether this lane can run *handler*."""
        return handler is None or handler.is_async == self.work.is_async

    def _tallies(self) -> dict[str, Seen]:
        found = tallies(self.members, self.results)
        behind = self.drained.results
        return summed(found, tallies_of_followers(behind, self.app)) if behind else found

    def ended(self, ended: Ended, **more: Any) -> ChunkEnded:
        """Return how the chunk ended: what is not settled is left."""
        offsets = [delivery.record.offset for delivery in self.work.deliveries]
        left = tuple(offset for offset in offsets if offset not in self.settled)
        how = self.how
        return ChunkEnded(
            ended=ended,
            done=len(offsets) - len(left),
            left=left,
            tried=frozenset(self.tried.intersection(left)) if left else frozenset(),
            held=self.held,
            gated=self.gated,
            others=frozenset(self.others),
            alone=len(offsets) == 1,
            slow=tuple(how.slow),
            quick=tuple(how.quick),
            failed=how.failed,
            tallies={} if self.work.probe else self._tallies(),
            took=how.took,
            **({"ran": how.ran} | more),
        )


def run_batch(
    work: Work,
    app: Processor,
    *,
    jitter: Callable[[], float],
    clock: Callable[[], float],
    skip_unknown: bool = False,
    report: Report | None = None,
    hands: Hands = FULL_HANDS,
) -> Batch:
    """
    Yield what deals with *work*, and return how it ended; *report* is told what was committed, and how many duplicates; jobs
    that are not quick share *hands*.

    However it breaks off, its transaction is rolled back first: left open it would hold its locks against the next owner.
    Raises nothing but programming errors: what the lane throws in becomes the way the chunk ended.
    """
    how = Attempt(
        jitter=jitter,
        clock=clock,
        time=work.time,
        contended=work.contended,
        careful=work.careful,
        in_hand=[delivery.record.offset for delivery in work.deliveries],
        again=work.tried,
        probe=work.probe,
        hands=hands if work.paced else FULL_HANDS,
        together=work.paced,
    )
    chunk = Chunk(work=work, app=app, how=how, skip_unknown=skip_unknown)
    try:
        ended = yield from _deal_with(chunk)
    except RegistryUnavailable as error:
        ended = chunk.ended(Ended.AWAY, away="registry", error=str(error))
    except BrokerUnavailable as error:
        ended = chunk.ended(Ended.AWAY, away="broker", error=str(error))
    except DatabaseUnavailable as error:
        yield RollBack()
        suspect = how.running[-1].delivery.record.offset if how.running else None
        ended = chunk.ended(Ended.AWAY, away="database", suspect=suspect, error=str(error))
    except Contention:
        yield RollBack()
        ended = chunk.ended(Ended.CONTENTION)
    except Down as down:
        yield RollBack()
        suspect = how.running[0].delivery.record.offset if len(how.running) == 1 else None
        ended = chunk.ended(Ended.WELL, down=down.gate, suspect=suspect, error=str(down))
    except Probed as probed:
        yield RollBack()
        ended = chunk.ended(Ended.WELL, ran=probed.ran)
    except Stopped as stop:
        yield RollBack()
        ended = chunk.ended(Ended.STOPPED, error=str(stop))
    except GivenUp:
        yield RollBack()
        ended = chunk.ended(Ended.GIVEN_UP)
    if report is not None:
        report([*chunk.results, *chunk.drained.results], len(chunk.duplicates))
    return ended


def _deal_with(chunk: Chunk) -> Batch:
    work = chunk.work
    each = [(delivery, work.key_of(at)) for at, delivery in enumerate(work.deliveries)]
    old = [delivery for delivery, _ in each if below_watermark(delivery, work)]
    if old:
        each = [one for one in each if not below_watermark(one[0], work)]
    before: object = None
    for _ in range(MOST_CONFLICTS):
        each = [one for one in each if chunk.how.hands.has(one[0].record.offset)]
        ids = [delivery.id for delivery, _ in each]
        keys = list({key: None for _, key in each if key is not None})
        known: Known = yield LookUp(ids, keys)
        if known.position is None or not known.same or known.position < work.position:
            return chunk.ended(Ended.VOID)
        found = sort(each, known, work)
        yield from _drop_known_others(found)
        yield from prepare(found, known, chunk)
        of_jobs = are_jobs(found.members)
        stands = {key: (row.outcome, row.attempt) for key, row in known.rows.items()}, dict(known.parked)
        if before == (before := stands) and not of_jobs:
            _blame(found.members)
        results = yield from _jobs(found, chunk) if of_jobs else attempt(found.members, chunk.how)
        if results is None:
            continue
        chunk.members, chunk.results = found.members, results
        chunk.duplicates = [*old, *found.duplicates]
        return (yield from finish(chunk, found, results, old))
    raise Contention("another owner was first again and again")


def _jobs(found: Sorted, chunk: Chunk) -> Generator[Request, Any, list[Result] | None]:
    """Run the members of *found* as jobs; what waits for another's lease is left, to be looked at again."""
    work = chunk.work
    marked = work.most_starts if work.marked else None
    ended = yield from run_jobs(found.members, chunk.how, chunk.app.group, marked=marked)
    if ended is None:
        return None
    if len(ended.members) + len(ended.held) < len(found.members):
        found.wait = None  # what was cut off is due
    found.members = ended.members
    chunk.held.update(ended.held)
    return ended.results


def _drop_known_others(found: Sorted) -> Generator[Request, Any, None]:
    """Take out messages under an id of their own, since theirs was used before, that were dealt with before."""
    decided = [member for member in found.members if member.result is not None]
    others = [member for member in decided if _is_other(member)]
    if not others:
        return
    known: Known = yield LookUp([member.delivery.id for member in others], [])
    for member in others:
        if (row := known.rows.get(member.delivery.id)) is not None:
            found.members.remove(member)
            found.duplicates.append(member.delivery)
            if not row.copied:
                found.uncopied.append(member.delivery)


def _is_other(member: Member) -> bool:
    return member.result is not None and member.result.reason == Reason.ID_REUSED.value


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
