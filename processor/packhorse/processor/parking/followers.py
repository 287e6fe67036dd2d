"""
Followers of one key as members of a transaction: made ready, run in order up to the first that fails, recorded together.

All are of one key, so what comes behind one that failed must not run: no savepoint is needed. The transaction is rolled back,
those before it run once more, and its outcome is recorded with theirs. It alone is charged, and not run again.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from packhorse.core.errors import DatabaseUnavailable, MessageFault
from packhorse.processor.app import Handler, Processor
from packhorse.processor.outcomes import Outcome, Reason
from packhorse.processor.record import Delivery, digest_of, time_of_header
from packhorse.processor.running.endings import Contention, Down, GivenUp, Stopped
from packhorse.processor.running.judging import after_run, faulty, without_handler
from packhorse.processor.running.work import (
    Begin,
    Claim,
    CommitTransaction,
    Decode,
    Failure,
    InboxRow,
    Member,
    Ran,
    Request,
    Result,
    RollBack,
    RunHandler,
    Write,
)

MOST_CONTENTIONS = 5
"""Times that a follower, alone in its transaction, may lose to others before it is charged."""
_BLAMED = "the handler ended the transaction that it was given, and began another"


@dataclass(frozen=True, slots=True, kw_only=True)
class Followers:
    """
    How a processor runs followers.

    Attributes:
        app: The processor.
        jitter: Draws from [0, 1).
        skip_unknown: A type without handler is skipped instead of quarantined.
        running: Holds the follower that runs, for whoever looks when the connection ends.
    """

    app: Processor
    jitter: Callable[[], float]
    skip_unknown: bool
    running: list[Member]

    def prepare(
        self, followers: Sequence[tuple[Delivery, InboxRow]], now: datetime | None
    ) -> Generator[Request, Any, list[Member]]:
        """
        Return the followers as members, decoded and with their handlers, before a transaction is open.

        Raises:
            RegistryUnavailable: Of the first; where a later one can't be decoded now, those before it are returned.
        """
        members: list[Member] = []
        for delivery, row in followers:
            member = Member(delivery=delivery, row=row)
            member.handler = self.app.handler_of(delivery.type, tombstone=delivery.record.value is None)
            member.result = self._without_running(member, now)
            if member.result is None and delivery.record.value is not None and member.handler is not None:
                try:
                    decoded = yield Decode(delivery.record.value, member.handler.message)
                except Exception:
                    if members:
                        return members
                    raise
                if isinstance(decoded, MessageFault):
                    member.result = faulty(member, decoded)
                else:
                    member.message = decoded
            members.append(member)
        return members

    def _without_running(self, member: Member, now: datetime | None) -> Result | None:
        expires = time_of_header(member.delivery.headers.get("expires-at"))
        if expires is not None and now is not None and expires <= now:
            attempt = 0 if member.row is None else member.row.attempt - 1
            return Result(
                member.delivery, Outcome.SKIPPED, attempt, reason=Reason.EXPIRED.value, row=member.row
            )
        if member.handler is None:
            known = self.app.knows(member.delivery.type)
            return without_handler(member, type_known=known, skip=self.skip_unknown)
        return None

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
            Contention, DatabaseUnavailable, Stopped, GivenUp: Nothing was committed; the transaction is still to be ended.
        """
        if blamed and members[0].result is None:
            ran = Ran(Failure.BROKEN, Reason.BROKEN_TRANSACTION.value, _BLAMED)
            members[0].result = after_run(members[0], ran, jitter=0.0)
        while True:
            yield Begin()
            done, whole = yield from self._in_order(members, contended=contended)
            if not whole:
                yield RollBack()
                members = done
                continue
            results = [self._recorded(member, claim) for member in done]
            if not (yield Write(results, claim)):
                yield RollBack()
                return None
            self.running[:] = done if len(done) == 1 else []
            if (yield from self._committed(done, contended=contended)):
                return results

    def _committed(self, done: list[Member], *, contended: bool) -> Generator[Request, Any, bool]:
        """Commit; False when the one member is charged now for what keeps its transaction from being committed."""
        try:
            yield CommitTransaction()
        except Contention as error:
            if not contended or done[0].result is not None:
                raise
            yield RollBack()
            lost = Ran(Failure.TEMPORARY, Reason.CONTENTION.value, str(error))
            done[0].result = after_run(done[0], lost, jitter=self.jitter())
            return False
        self.running.clear()
        return True

    def _in_order(
        self, members: list[Member], *, contended: bool
    ) -> Generator[Request, Any, tuple[list[Member], bool]]:
        """
        Run what is not decided, up to the first that fails; return those that count, and whether they stand in the open
        transaction: if not, it is to be rolled back and they are to run again, the last one's result decided.
        """
        for at, member in enumerate(members):
            if member.result is None:
                self.running[:] = [member]
                ran: Ran = yield RunHandler(member)
                self.running.clear()
                if ran.failure is not None:
                    member.result = self._judged(member, ran, contended=contended)
                    if ran.failure is Failure.BROKEN and ran.committed:
                        # What those before it did is durable; it is recorded at once, in a transaction that follows.
                        yield RollBack()
                        yield Begin()
                        return members[: at + 1], True
                    if ran.touched:
                        return members[: at + 1], False
            if member.result is not None and self._recorded(member, None).parks:
                return members[: at + 1], True
        return members, True

    def _judged(self, member: Member, ran: Ran, *, contended: bool) -> Result:
        match ran.failure:
            case Failure.CONTENTION if not contended:
                raise Contention(ran.error)
            case Failure.CONTENTION:
                charged = ran._replace(failure=Failure.TEMPORARY, reason=Reason.CONTENTION.value)
                return after_run(member, charged, jitter=self.jitter())
            case Failure.CONNECTION:
                raise DatabaseUnavailable(ran.error)
            case Failure.DOWN:
                raise Down("" if member.handler is None else member.handler.name, ran.error)
            case Failure.STOP:
                raise Stopped(ran.error)
            case Failure.GIVEN_UP:
                raise GivenUp(ran.error)
            case _:
                return after_run(member, ran, jitter=self.jitter())

    def _recorded(self, member: Member, claim: Claim | None) -> Result:
        """Return the member's result with what its key has to do with it: one that waits becomes the head."""
        result = member.result or Result(member.delivery, Outcome.DONE, member.attempt, row=member.row)
        waits = result.outcome is Outcome.RETRY or (
            result.outcome is Outcome.QUARANTINE and self._parks(member.handler)
        )
        return result._replace(
            key=None if claim is None else claim.key,
            parks=waits,
            digest=result.digest or digest_of(member.delivery.record.value),
        )

    def _parks(self, handler: Handler | None) -> bool:
        return (self.app.after_quarantine if handler is None else handler.after_quarantine) == "park"
