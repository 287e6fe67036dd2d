"""
Work of a run that asks for what it needs: a generator decides, and a shell does it, sync or async.

What a shell meets in doing so is raised in the generator, where the request stands, so both kinds of code read the same.
"""

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from typing import Any, Protocol, TypeVar

from packhorse.core.errors import InfrastructureError
from packhorse.processor.running.endings import Contention
from packhorse.processor.storing.steps import Steps

T = TypeVar("T")

FIRST_PAUSE = 0.1
"""Seconds before a statement is tried again that met trouble; doubles up to `LONGEST_PAUSE`."""
LONGEST_PAUSE = 2.0


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


def patiently(steps: Callable[[], Steps[T]], patience: float) -> Work[T]:
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
    go_on: Callable[[], Request] = partial(next, work)
    while True:
        try:
            request = go_on()
        except StopIteration as end:
            result: T = end.value
            return result
        try:
            go_on = partial(work.send, _done(request, execute, pause))
        except Exception as error:  # noqa: BLE001 raised where the request stands
            go_on = partial(work.throw, error)


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
    go_on: Callable[[], Request] = partial(next, work)
    while True:
        try:
            request = go_on()
        except StopIteration as end:
            result: T = end.value
            return result
        try:
            go_on = partial(work.send, await _adone(request, execute, pause))
        except Exception as error:  # noqa: BLE001 raised where the request stands
            go_on = partial(work.throw, error)


async def _adone(request: Request, execute: AsyncExecute, pause: Callable[[float], Awaitable[object]]) -> Any:
    match request:
        case Store(steps):
            return await execute(steps)
        case Call(function):
            answer = function()
            return await answer if isawaitable(answer) else answer
        case Pause(seconds):
            return await pause(seconds)
