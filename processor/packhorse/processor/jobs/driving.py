"""
Work of a run that asks for what it needs: a generator decides, and a shell does it, sync or async.

What a shell meets in doing so is raised in the generator, where the request stands, so both kinds of code read the same.
"""

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Protocol, TypeVar

from packhorse.core.errors import InfrastructureError
from packhorse.processor.running.endings import Contention
from packhorse.processor.storing.steps import Steps

T = TypeVar("T")

FIRST_PAUSE = 0.1
"""Seconds before a statement is tried again that met trouble; doubles up to `LONGEST_PAUSE`."""
LONGEST_PAUSE = 2.0
PATIENCE = 30.0
"""
Seconds of pauses for which something is kept in hand while the database is away, as a rule: an answer that is forgotten may cost a
person's time, and a body that has to begin anew all that it has done.
"""


class Execute(Protocol):
    """Execute steps on a connection that nothing else is on, each statement in a transaction of its own."""

    def __call__(self, steps: Steps[T], /) -> T:
        """
        Return what the steps end with, once all of it is committed.

        Raises:
            InfrastructureError, Contention: It is not known whether it was.
        """


class AsyncExecute(Protocol):
    """Be `Execute` for an event loop."""

    def __call__(self, steps: Steps[T], /) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True)
class Store:
    """Execute these steps, each statement committed by itself; is answered what they end with."""

    steps: Steps[Any]


@dataclass(frozen=True, slots=True)
class Call:
    """Call a function of the application's, which may take its time; is answered what it returns."""

    function: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Pause:
    """Let some seconds pass."""

    seconds: float


Request = Store | Call | Pause
Work = Generator[Request, Any, T]
"""Yields requests one after another, is sent their answers, and ends with a result."""


def patiently(steps: Callable[[], Steps[T]], patience: float = PATIENCE) -> Work[T]:
    """
    Store what *steps* makes anew for each try, for *patience* seconds of pauses when the database is away.

    The steps must find what a try before has committed although its answer was lost.

    Raises:
        InfrastructureError, Contention: Of the last try.
    """
    pause, spent = FIRST_PAUSE, 0.0
    while True:
        try:
            result: T = yield Store(steps())
        except (InfrastructureError, Contention):
            if spent + pause > patience:
                raise
        else:
            return result
        yield Pause(pause)
        spent, pause = spent + pause, min(2 * pause, LONGEST_PAUSE)


def drive(work: Work[T], execute: Execute, pause: Callable[[float], object]) -> T:
    """
    Do what *work* asks for until it has ended, and return its result.

    What is no Exception (the process is to end) does not reach *work*: it leaves at once, as a crash would.
    """
    try:
        request = next(work)
        while True:
            try:
                answer = _done(request, execute, pause)
            except Exception as error:  # noqa: BLE001 raised where the request stands
                request = work.throw(error)
            else:
                request = work.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result


def _done(request: Request, execute: Execute, pause: Callable[[float], object]) -> Any:
    match request:
        case Store(steps):
            return execute(steps)
        case Call(function):
            return function()
        case Pause(seconds):
            return pause(seconds)


async def adrive(work: Work[T], execute: AsyncExecute, pause: Callable[[float], Awaitable[object]]) -> T:
    """Do what *work* asks for, as `drive`; functions of the application's may be `def`, and block the loop then."""
    try:
        request = next(work)
        while True:
            try:
                answer = await _adone(request, execute, pause)
            except Exception as error:  # noqa: BLE001 raised where the request stands
                request = work.throw(error)
            else:
                request = work.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result


async def _adone(request: Request, execute: AsyncExecute, pause: Callable[[float], Awaitable[object]]) -> Any:
    match request:
        case Store(steps):
            return await execute(steps)
        case Call(function):
            answer = function()
            return await answer if isawaitable(answer) else answer
        case Pause(seconds):
            return await pause(seconds)
