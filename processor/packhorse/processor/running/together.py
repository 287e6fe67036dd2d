"""Members that one batch handler takes together: run at once, answered one by one."""

from collections.abc import Generator
from typing import Any

from packhorse.processor.running.judging import after_run, parked
from packhorse.processor.running.requests import Request, RunBatch
from packhorse.processor.running.verdict import Attempt, judged
from packhorse.processor.running.work import (
    Failure,
    Member,
    Ran,
)


def run_together(members: list[Member], how: Attempt) -> Generator[Request, Any, int | None]:
    """
    Run what is not decided yet with its batch handler; return how many members count, or None when all must run again.

    A message whose key stops at an earlier one of the batch must not take effect: then the transaction is run again without
    both. A handler that fails as a whole is run for half of them, and so on, until one alone is to blame.
    """
    _park_behind(members)
    todo = [member for member in members if member.result is None]
    half = how.most if how.most is not None else len(todo)
    todo = todo[:half]
    if not todo:
        return len(members)
    how.runs(todo)
    answer: list[Ran] | Ran = yield RunBatch(todo)
    if isinstance(answer, Ran):
        return _failed_whole(todo, answer, how)
    how.most = None
    stopped: set[str] = set()
    again = False
    for member, ran in zip(todo, answer, strict=True):
        if member.key is not None and member.key in stopped:
            again = again or ran.failure is None
            member.result = parked(member)
            continue
        if ran.failure is None:
            how.ran = ran
        else:
            how.runs([member])
            member.result = judged(member, ran, how) or after_run(member, ran, jitter=0.0)
            if member.result.parks and member.key is not None:
                stopped.add(member.key)
    how.running.clear()
    if again:
        return None
    last = todo[-1]
    return next(at for at, member in enumerate(members) if member is last) + 1


def _park_behind(members: list[Member]) -> None:
    """Let go behind those that are decided and park their key, a payload that can't be decoded say, what comes after them of it."""
    stopped: set[str] = set()
    for member in members:
        if member.key is None:
            continue
        if member.result is None and member.row is None and member.key in stopped:
            member.result = parked(member)
        elif member.result is not None and member.result.parks:
            stopped.add(member.key)


def _failed_whole(todo: list[Member], ran: Ran, how: Attempt) -> int | None:
    if len(todo) > 1 and ran.failure not in {Failure.STOP, Failure.GIVEN_UP, Failure.DOWN}:
        how.most = len(todo) // 2
        return None
    verdict = judged(todo[0], ran, how)
    todo[0].result = verdict if verdict is not None else after_run(todo[0], ran, jitter=0.0)
    return None
