"""
One transaction of a batch: its members run one after another, and their results are committed together.

A failing member costs the others one more run: all is rolled back and run again with a savepoint before each member, the
failing one's outcome decided.
"""

from collections.abc import Callable, Generator
from typing import Any

from packhorse.core.errors import DatabaseUnavailable
from packhorse.processor.outcomes import Outcome, Reason
from packhorse.processor.partition.events import Ended
from packhorse.processor.running.endings import Contention, Cut, GivenUp, Stopped
from packhorse.processor.running.judging import after_run
from packhorse.processor.running.work import (
    Begin,
    CommitTransaction,
    Failure,
    Member,
    Ran,
    Request,
    Result,
    RollBack,
    RollBackToSavepoint,
    RunHandler,
    Savepoint,
    Work,
    Write,
)

MOST_SAVEPOINTS = 60
"""Members of one transaction with savepoints; Postgres caches 64 subtransactions, beyond that everybody pays."""


def attempt(
    members: list[Member], cut: Cut, work: Work, jitter: Callable[[], float], running: list[Member]
) -> Generator[Request, Any, tuple[Cut, list[Result]] | None]:
    """
    Run *members* in one transaction; return where that ended and its results, or None when another owner was first.

    Args:
        members: In order; those that are decided already are recorded without being run.
        cut: Where the batch ends if all goes well.
        work: The batch.
        jitter: Draws from [0, 1).
        running: Holds the member that runs, or is being committed alone, for whoever looks when the connection ends.

    Raises:
        Contention, Stopped, GivenUp, DatabaseUnavailable: Nothing was committed.
    """
    careful = False
    while members:
        yield Begin()
        left = yield from _run_members(members, work, jitter, running, careful=careful)
        if left == "again":
            yield RollBack()
            careful = True
            continue
        done = members[: left or len(members)]
        results = [_result_of(member, work) for member in done]
        written = yield Write(results)
        if not written:
            yield RollBack()
            return None
        running[:] = done if len(done) == 1 else []
        if not (yield from _commit(done, work)):
            careful = True
            continue
        running.clear()
        return _after(done, members, cut), results
    return cut, []


def _commit(done: list[Member], work: Work) -> Generator[Request, Any, bool]:
    """Commit; return False when the one member must be charged for what keeps its transaction from being committed."""
    try:
        yield CommitTransaction()
    except Contention as error:
        if not work.contended or len(done) > 1 or done[0].result is not None:
            raise
        yield RollBack()
        lost = Ran(Failure.TEMPORARY, Reason.CONTENTION.value, str(error))
        done[0].result = after_run(done[0], lost, jitter=0.0)
        return False
    return True


def _after(done: list[Member], members: list[Member], cut: Cut) -> Cut:
    last = done[-1]
    if last.result is not None and last.result.outcome is Outcome.RETRY:
        offset = last.delivery.record.offset
        return Cut(offset=offset, ended=Ended.NOT_DUE, wait=last.result.delay)
    if len(done) < len(members):
        return Cut(offset=members[len(done)].delivery.record.offset)
    return cut


def _run_members(
    members: list[Member],
    work: Work,
    jitter: Callable[[], float],
    running: list[Member],
    *,
    careful: bool,
) -> Generator[Request, Any, Any]:
    """Run what is not decided yet; return "again" after a failure that must be rolled back, or how many count."""
    for at, member in enumerate(members):
        if member.result is None:
            if careful:
                if at >= MOST_SAVEPOINTS:
                    return at
                yield Savepoint()
            running[:] = [member]
            ran: Ran = yield RunHandler(member)
            if ran.failure is not None:
                verdict = _judged(member, ran, work, jitter)
                if verdict is None:
                    return (yield from _broken(members, at, ran))
                member.result = verdict
                if ran.touched and not careful:
                    return "again"
                if ran.touched:
                    yield RollBackToSavepoint()
            running.clear()
        if member.result is not None and member.result.outcome is Outcome.RETRY:
            return at + 1
    return None


def _judged(member: Member, ran: Ran, work: Work, jitter: Callable[[], float]) -> Result | None:
    match ran.failure:
        case Failure.CONTENTION if not work.contended:
            raise Contention(ran.error)
        case Failure.CONTENTION:
            charged = ran._replace(failure=Failure.TEMPORARY, reason=Reason.CONTENTION.value)
            return after_run(member, charged, jitter=jitter())
        case Failure.CONNECTION:
            raise DatabaseUnavailable(ran.error)
        case Failure.STOP:
            raise Stopped(ran.error)
        case Failure.GIVEN_UP:
            raise GivenUp(ran.error)
        case Failure.BROKEN:
            return None
        case _:
            return after_run(member, ran, jitter=jitter())


def _broken(members: list[Member], at: int, ran: Ran) -> Generator[Request, Any, Any]:
    """
    Deal with a handler that ended the transaction.

    When it committed, what the members before it did is durable: their results are recorded at once, in a transaction
    that follows. When it rolled back, they run again. The one to blame goes to quarantine either way.
    """
    member = members[at]
    member.result = after_run(member, ran, jitter=0.0)
    if not ran.committed:
        return "again"
    yield RollBack()
    yield Begin()
    return at + 1


def _result_of(member: Member, work: Work) -> Result:
    result = member.result or Result(member.delivery, Outcome.DONE, member.attempt, row=member.row)
    again = member.delivery.record.offset < work.tried_below
    return result._replace(again=True) if again else result
