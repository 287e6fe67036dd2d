"""
One transaction of a chunk: its members run one after another, and their results are committed together.

A failing member costs the others one more run: all is rolled back and run again with a savepoint before each member, the
failing one's outcome decided. What comes after it of its key is not run: it goes behind it.
"""

from collections.abc import Generator
from typing import Any

from packhorse.processor.outcomes import Outcome, Reason
from packhorse.processor.running.endings import Contention, Probed
from packhorse.processor.running.judging import after_run, done, parked
from packhorse.processor.running.requests import (
    Begin,
    CommitTransaction,
    Request,
    RollBack,
    RollBackToSavepoint,
    RunHandler,
    Savepoint,
    Write,
)
from packhorse.processor.running.tallying import MOST_FAILED
from packhorse.processor.running.together import run_together
from packhorse.processor.running.verdict import Attempt, judged
from packhorse.processor.running.work import (
    Failure,
    Member,
    Ran,
    Released,
    Result,
)
from packhorse.processor.storing.pipelining.failing import StatementFailed

MOST_SAVEPOINTS = 60
"""Members of one transaction with savepoints; Postgres caches 64 subtransactions, beyond that everybody pays."""


Results = list[Result]


def attempt(members: list[Member], how: Attempt) -> Generator[Request, Any, Results | None]:
    """
    Run *members* in one transaction and commit; return the results, or None when another owner was first.

    Results come in the members' order; when there are fewer, the transaction was cut, and the rest was not run. Members that
    are decided already are recorded without being run.

    Raises:
        Contention, Stopped, GivenUp, Down, Probed, DatabaseUnavailable: Nothing was committed.
    """
    if how.probe and any(m.result is not None and m.result.outcome is Outcome.QUARANTINE for m in members):
        raise Probed(Ran(Failure.PERMANENT))
    while members:
        try:
            results = yield from _once(members, how)
        except StatementFailed as failed:
            yield RollBack()
            if how.sync:
                raise Contention(str(failed)) from failed
            how.sync = how.careful = how.failed = True
            continue
        if results is not _AGAIN:
            return results
    return []


def _once(members: list[Member], how: Attempt) -> Generator[Request, Any, Results | None]:
    """Run *members* in one transaction; return what is recorded, None when another was first, _AGAIN to run them again."""
    yield Begin(how.in_hand)
    count = yield from _run_members(members, how)
    if count is None:
        yield RollBack()
        how.careful = True
        return _AGAIN
    finished = members[:count]
    results = [member.result or done(member) for member in finished]
    if how.again:
        results = [_counted(result, how) for result in results]
    claims = [how.claims[str(result.key)] for result in results] if how.claims else ()
    written: bool | Released = yield Write(results, claims=claims)
    if written is False:
        yield RollBack()
        return None
    if isinstance(written, Released):
        how.released = written
    how.runs(finished if len(finished) == 1 else [])
    if not (yield from _commit(finished, how)):
        how.careful = True
        return _AGAIN
    how.running.clear()
    return results


_AGAIN: Results = []


def _commit(finished: list[Member], how: Attempt) -> Generator[Request, Any, bool]:
    """Commit; return False when the one member must be charged for what keeps its transaction from being committed."""
    try:
        yield CommitTransaction()
    except Contention as error:
        if not how.contended or len(finished) > 1 or finished[0].result is not None:
            raise
        yield RollBack()
        lost = Ran(Failure.TEMPORARY, Reason.CONTENTION.value, str(error))
        finished[0].result = after_run(finished[0], lost, jitter=0.0)
        return False
    return True


def _run_members(members: list[Member], how: Attempt) -> Generator[Request, Any, int | None]:
    """Run what is not decided yet; return how many count, or None when all must be rolled back and run again."""
    handler = next((m.handler for m in members if m.result is None), None)
    if handler is not None and handler.kind == "batch":
        return (yield from run_together(members, how))
    stopped: set[str | None] = set()
    began, failed = how.clock(), 0
    for at, member in enumerate(members):
        if member.key in stopped and member.row is None:
            member.result = parked(member)
        if member.result is None:
            if how.careful and at >= MOST_SAVEPOINTS:
                return at
            again = yield from _run(member, at, members, how)
            if again is not False:
                return again
        if member.result is not None:
            failed += member.result.failed_as is not None
            if member.result.parks:
                stopped.add(member.key)
        most = failed >= MOST_FAILED and 2 * failed > at
        if (most or how.clock() - began > how.time) and at + 1 < len(members):
            return at + 1
    _learn(members, how, took=how.clock() - began)
    return len(members)


def _learn(members: list[Member], how: Attempt, *, took: float) -> None:
    """Remember whose key is slow: of one that runs alone only that is known for sure."""
    if len(members) == 1 and (key := members[0].key) is not None:
        (how.slow if took > how.time else how.quick).append(key)


def _run(
    member: Member, at: int, members: list[Member], how: Attempt
) -> Generator[Request, Any, int | bool | None]:
    """Run one member; return False to go on, None when all must run again, or how many count when it broke the transaction."""
    if how.careful:
        yield Savepoint()
    how.runs([member])
    before = how.clock()
    ran: Ran = yield RunHandler(member, how.sync)
    if ran.failure is None:
        how.ran = ran
        if how.clock() - before > how.time and member.key is not None:
            how.slow.append(member.key)
        how.running.clear()
        return False
    how.failed = how.failed or ran.touched
    verdict = judged(member, ran, how)
    if verdict is None:
        return (yield from _broken(members, at, ran))
    if ran.touched and how.careful:
        # Not decided before: where an earlier member's queued statement turns out to have failed, this one runs again.
        yield RollBackToSavepoint()
    member.result = verdict
    if ran.touched and not how.careful:
        return None
    how.running.clear()
    return False


def _broken(members: list[Member], at: int, ran: Ran) -> Generator[Request, Any, int | None]:
    """
    Deal with a handler that ended the transaction.

    When it committed, what the members before it did is durable: their results are recorded at once, in a transaction
    that follows. When it rolled back, they run again. The one to blame goes to quarantine either way.
    """
    member = members[at]
    member.result = after_run(member, ran, jitter=0.0)
    if not ran.committed:
        return None
    yield RollBack()
    yield Begin()
    return at + 1


def _counted(result: Result, how: Attempt) -> Result:
    return result._replace(again=True) if result.delivery.record.offset in how.again else result
