"""How bodies of jobs are run: no transaction is open; a run is judged by what it raised and by whether its lease still stands."""

import asyncio
from collections.abc import Callable
from typing import Any

from packhorse.core.errors import OwnershipLost
from packhorse.processor.handlers import Handler
from packhorse.processor.jobs.context import AsyncJobContext, JobCancelled, JobContext
from packhorse.processor.jobs.effects.model import EffectInDoubt
from packhorse.processor.jobs.runs import JobRun
from packhorse.processor.jobs.tools import JobTools
from packhorse.processor.jobs.values import MOST_RESULT, BadValue, json_of
from packhorse.processor.outcomes import Reason
from packhorse.processor.plant import Plant
from packhorse.processor.running.deadlines import Deadline
from packhorse.processor.running.faults import describe, leaves, ran_of
from packhorse.processor.running.judging import outlived
from packhorse.processor.running.lanework import around
from packhorse.processor.running.work import RETURNED, Failure, Member, Ran
from packhorse.processor.signals import Point


def run_body(plant: Plant, deadline: Deadline, member: Member, run: JobRun) -> Ran:
    """Run the `def` body of *member*; return how it ended. Blocks as long as it takes."""
    handler = _begun(plant, member, run)
    context = JobContext(member.delivery, run, _tools(plant), group=plant.app.group, log=plant.log)
    deadline.start(_time_of(run, handler))
    try:
        with around(member, context, plant):
            value = handler.function(member.message, context)
        ran = _returned(run, value)
    except BaseException as error:  # noqa: BLE001 every way a body can end has an outcome
        ran = _raised(run, error, handler)
    finally:
        fired = deadline.stop()
    return _ended(ran, run, handler, fired=fired)


async def arun_body(
    plant: Plant,
    deadline: Deadline,
    member: Member,
    run: JobRun,
    begun: Callable[["asyncio.Future[Any] | None"], None],
) -> Ran:
    """Run the `async def` body of *member*, as `run_body`; *begun* is told the task, so that it can be cancelled, and its end."""
    handler = _begun(plant, member, run)
    context = AsyncJobContext(member.delivery, run, _tools(plant), group=plant.app.group, log=plant.log)
    deadline.start(_time_of(run, handler))

    async def body() -> object:
        with around(member, context, plant):
            return await handler.function(member.message, context)

    task = asyncio.ensure_future(body())
    begun(task)
    try:
        ran = _returned(run, await task)
    except BaseException as error:  # noqa: BLE001 every way a body can end has an outcome
        ran = _raised(run, error, handler)
    finally:
        begun(None)
        fired = deadline.stop_soon()
    return _ended(ran, run, handler, fired=fired)


def _tools(plant: Plant) -> JobTools:
    return JobTools(ledger=plant.ledger, store=plant.store, clock=plant.clock)


def _begun(plant: Plant, member: Member, run: JobRun) -> Handler:
    handler = member.handler
    assert handler is not None
    run.begin_again()
    plant.signal(Point.ATTEMPT)
    return handler


def _returned(run: JobRun, value: object) -> Ran:
    try:
        run.value = json_of(value, what="the result", most=MOST_RESULT)
    except BadValue as error:
        return Ran(Failure.PERMANENT, Reason.BAD_RESULT.value, describe(error))
    return RETURNED


def _raised(run: JobRun, error: BaseException, handler: Handler) -> Ran:
    if isinstance(error, JobCancelled | asyncio.CancelledError):
        return _stopped(run)
    for one in leaves(error) if isinstance(error, Exception) else ():
        if isinstance(one, EffectInDoubt):  # also one of a group: a retry would only meet it again
            return Ran(Failure.PERMANENT, Reason.UNCERTAIN.value, describe(one))
        if isinstance(one, OwnershipLost):
            run.lost = True
    return ran_of(error, handler, touched=False, alive=True)


def _stopped(run: JobRun) -> Ran:
    """Return how a run ended that was asked to stop and did."""
    match run.cancel:
        case "cancelled":
            return Ran(Failure.SKIP, Reason.CANCELLED.value, "it was cancelled and has stopped")
        case "stopping":
            return Ran(Failure.GIVEN_UP, "", "the process ends")
        case _:
            return Ran(Failure.TEMPORARY, Reason.FAILED.value, "its task was cancelled")


_FAILED = frozenset({Failure.TEMPORARY, Failure.LATER, Failure.PERMANENT})


def _time_of(run: JobRun, handler: Handler) -> float | None:
    """Return the seconds that a run may take: its time-out, or what is left until the deadline."""
    return min((one for one in (handler.timeout, run.left) if one is not None), default=None)


def _ended(ran: Ran, run: JobRun, handler: Handler, *, fired: bool) -> Ran:
    """
    Return how a run has ended, once its time is looked at.

    What has succeeded all the same has, and a doubt about an effect stays one. A job that somebody has cancelled is not tried again
    when it fails, nor is anybody called for it.
    """
    if ran.failure is None or ran.reason == Reason.UNCERTAIN.value:
        return ran
    if run.cancel == "cancelled" and ran.failure in _FAILED:
        return ran._replace(failure=Failure.SKIP, reason=Reason.CANCELLED.value)
    if not fired:
        return ran
    if handler.job is not None and run.left is not None and run.left <= (handler.timeout or run.left):
        return outlived(handler.job)
    text = f"it ran longer than its time-out of {handler.timeout:g} s and was asked to stop"
    return Ran(Failure.TEMPORARY, Reason.TIMEOUT.value, text)
