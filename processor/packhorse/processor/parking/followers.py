"""
Followers of one key as members of a transaction: made ready, run in order up to the first that fails, recorded together.

All are of one key, so what comes behind one that failed must not run: no savepoint is needed. The transaction is rolled back,
those before it run once more, and its outcome is recorded with theirs. It alone is charged, and not run again.
"""

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from packhorse.core.errors import MessageFault, RegistryUnavailable
from packhorse.processor.app import Processor
from packhorse.processor.handlers import Handler
from packhorse.processor.outcomes import Outcome, Reason
from packhorse.processor.record import Delivery, replay_handler_of
from packhorse.processor.running.endings import Contention, Probed
from packhorse.processor.running.judging import (
    after_run,
    crashed,
    done,
    faulty,
    sent_on,
    without_handler,
    without_named,
    without_running,
)
from packhorse.processor.running.requests import (
    Begin,
    CommitTransaction,
    Decode,
    MarkStart,
    Request,
    RollBack,
    RunHandler,
    Write,
)
from packhorse.processor.running.verdict import Attempt, judged
from packhorse.processor.running.work import (
    Claim,
    Failure,
    InboxRow,
    Known,
    Member,
    Ran,
    Result,
)

MOST_CONTENTIONS = 5
"""Times that a follower, alone in its transaction, may lose to others before it is charged."""
_BLAMED = "the handler ended the transaction that it was given, and began another"

Found = Sequence[tuple[Delivery, InboxRow]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Followers:
    """
    How a processor runs followers.

    Attributes:
        app: The processor.
        jitter: Draws from [0, 1).
        skip_unknown: A type without handler is skipped instead of quarantined.
        running: Holds what is suspected while a follower runs, for whoever looks when the connection ends.
        behind: The delivery that led here. It stands for its followers where a process, a connection or a time-out is lost
            over one of them: when it comes again, alone, the first follower that is left is the one.
        alone: One follower a transaction, so that it is known which one it is.
        charged: Why the first is charged a failed attempt instead of being run.
        contended: The first has lost to others, or found its system down while it answered others, so often that it is charged
            when it does so once more.
        most_starts: Processes that may die over the first before it is stopped: its start is put on record, under the offset of
            what led here. None: it is not.
        shut: Names of handlers that are stopped: followers of theirs wait.
        probing: How the chunk is run when it tries whether a stopped handler may go on: the first follower of that handler is
            what tries it, unless something has by then. Its failure is not charged.
    """

    app: Processor
    jitter: Callable[[], float]
    skip_unknown: bool
    running: list[Member]
    behind: Delivery | None = None
    alone: bool = False
    charged: Reason | None = None
    contended: bool = False
    most_starts: int | None = None
    shut: Collection[str] = frozenset()
    probing: Attempt | None = None

    def waits(self, handler: Handler | None) -> bool:
        """Return whether followers of *handler* are not run now."""
        return handler is not None and handler.name in self.shut and not self.tries(handler)

    def tries(self, handler: Handler | None) -> bool:
        """Return whether the next follower of *handler* is the one that tries it."""
        probing = self.probing
        return (
            probing is not None
            and probing.ran is None
            and handler is not None
            and handler.name == probing.probe
        )

    def prepare(
        self, followers: Found, key: str, now: datetime | None, *, first: bool
    ) -> Generator[Request, Any, list[Member]]:
        """
        Return the followers as members, decoded and with their handlers, before a transaction is open.

        One that no order binds (it has no key, or its handler takes none) is not the head when it fails: those behind it go on.

        Args:
            followers: What the claim has brought.
            key: Hash of their key.
            now: The database's clock.
            first: The first of them is the first of the whole drain: what is charged is charged to it.

        Raises:
            RegistryUnavailable: Of the first; where a later one can't be decoded now, those before it are returned.
        """
        known, members = Known(None, False, now, {}), list[Member]()
        for delivery, row in followers:
            handler = self.app.handler_of(
                delivery.type, tombstone=delivery.record.value is None, replay=replay_handler_of(delivery)
            )
            free = delivery.record.key is None or (handler is not None and handler.ordering == "none")
            member = Member(delivery=delivery, key=None if free else key, row=row, handler=handler)
            member.result = self._without_running(member, known, charge=first and not members)
            if member.result is None and member.handler is not None and delivery.record.value is not None:
                try:
                    decoded = yield Decode(delivery.record.value, member.handler.message)
                except RegistryUnavailable:
                    if not members:
                        raise
                    break
                if isinstance(decoded, MessageFault):
                    member.result = faulty(member, decoded)
                else:
                    member.message = decoded
            members.append(member)
        return members

    def _without_running(self, member: Member, known: Known, *, charge: bool) -> Result | None:
        if member.handler is None and (named := replay_handler_of(member.delivery)) is not None:
            return without_named(member, named)
        if member.handler is None:
            type_known = self.app.knows(member.delivery.type)
            return without_handler(member, type_known=type_known, skip=self.skip_unknown)
        if member.handler.job is not None:
            return sent_on(member)
        return without_running(member, known, self.charged if charge else None)

    def mark(self, member: Member) -> Generator[Request, Any, None]:
        """Put on record that *member* is about to start, and decide on it instead when too many processes died of that."""
        if self.most_starts is None or self.behind is None:
            return
        starts: int = yield MarkStart(self.behind.record.offset)
        if starts >= self.most_starts:
            member.result = crashed(member, starts)

    def run(
        self, members: list[Member], claim: Claim, *, contended: bool, blamed: bool
    ) -> Generator[Request, Any, list[Result] | None]:
        """
        Run *members* in one transaction, up to the first that fails; return what was recorded.

        None when another was first with one of them, or the claim is another's by now: nothing was done.

        Args:
            members: At least one, prepared.
            claim: Under which they are recorded.
            contended: The one member has lost to others so often that it is charged now.
            blamed: Nothing could be recorded again and again although nobody was first: the one member is at fault.

        Raises:
            Contention, DatabaseUnavailable, Stopped, GivenUp, Down, Probed: Nothing was committed; the transaction is still to be
                ended.
        """
        if blamed and members[0].result is None:
            ran = Ran(Failure.BROKEN, Reason.BROKEN_TRANSACTION.value, _BLAMED)
            members[0].result = after_run(members[0], ran, jitter=0.0)
        decided = members[0].result
        if decided is not None and decided.outcome is Outcome.QUARANTINE and self.tries(members[0].handler):
            raise Probed(Ran(Failure.PERMANENT))
        while True:
            yield Begin(() if self.behind is None else [self.behind.record.offset])
            count, whole = yield from self._in_order(members, contended=contended)
            members = members[:count]
            if not whole:
                yield RollBack()
                continue
            results = [self._recorded(member, claim) for member in members]
            if not (yield Write(results, claim)):
                yield RollBack()
                return None
            self.running[:] = [self._suspect(members[0])] if count == 1 else []
            if (yield from self._committed(members, contended=contended)):
                return results

    def _committed(self, members: list[Member], *, contended: bool) -> Generator[Request, Any, bool]:
        """Commit; False when the one member is charged now for what keeps its transaction from being committed."""
        try:
            yield CommitTransaction()
        except Contention as error:
            if not contended or members[0].result is not None:
                raise
            yield RollBack()
            lost = Ran(Failure.TEMPORARY, Reason.CONTENTION.value, str(error))
            members[0].result = after_run(members[0], lost, jitter=self.jitter())
            return False
        self.running.clear()
        return True

    def _in_order(
        self, members: list[Member], *, contended: bool
    ) -> Generator[Request, Any, tuple[int, bool]]:
        """
        Run what is not decided, up to the first that fails; return how many count, and whether they stand in the open
        transaction: if not, it is to be rolled back and they are to run again, the last one's result decided.
        """
        for at, member in enumerate(members):
            if member.result is None:
                self.running[:] = [self._suspect(member)]
                ran: Ran = yield RunHandler(member, sync=True)
                how = self._how(member, ran, contended=contended)
                if ran.failure is not None:
                    member.result = judged(member, ran, how) or after_run(member, ran, jitter=0.0)
                    if ran.failure is Failure.BROKEN and ran.committed:
                        # What those before it did is durable; it is recorded at once, in a transaction that follows.
                        yield RollBack()
                        yield Begin()
                        return at + 1, True
                    if ran.touched:
                        return at + 1, False
                self.running.clear()
            if member.result is not None and member.result.parks:
                return at + 1, True
        return len(members), True

    def _how(self, member: Member, ran: Ran, *, contended: bool) -> Attempt:
        """Return how *member* was run: as any, or as the one that tries its handler, which is told then."""
        if self.probing is None or not self.tries(member.handler):
            return Attempt(jitter=self.jitter, clock=lambda: 0.0, time=0.0, contended=contended)
        self.probing.ran = ran
        return self.probing

    def _suspect(self, member: Member) -> Member:
        return member if self.behind is None else Member(delivery=self.behind)

    def _recorded(self, member: Member, claim: Claim) -> Result:
        return (member.result or done(member))._replace(key=None if member.key is None else claim.key)
