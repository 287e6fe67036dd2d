"""What stands in for psycopg, threads and the event loop under the product's own lanes, opener, marker and watchdog."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from tests.simulation.processor.database import Session
from tests.simulation.processor.hub import SimQueue, SimThreading, current
from tests.simulation.processor.statements import STATEMENTS

from packhorse.processor.running import handling, lane, lanes, lanework, marker, opener, seats
from packhorse.processor.storing import marks, parking, postgres, rows, running, steps, store, writing
from packhorse.processor.storing.sql import queries_for
from packhorse.processor.storing.steps import Answer, Steps
from packhorse.processor.watching import renewer, watchdog

PORTION = 2
"""Copies that the watchdog sends at a time, so that portions are full here too."""
QUERIES = queries_for("packhorse")
_NAMES = {getattr(QUERIES, one.name): one.name for one in fields(QUERIES)}


def run(connection: Session, asked: Steps[Any]) -> Any:
    """Execute what is *asked*, as `postgres.run`."""
    answer: Answer | None = None
    while True:
        try:
            statement = next(asked) if answer is None else asked.send(answer)
        except StopIteration as done:
            return done.value
        name = _NAMES.get(statement.text)
        if name is None:
            connection.say("BEGIN" if statement.text.startswith(b"BEGIN") else "COMMIT")
            answer = Answer((), 0)
            continue
        found, touched = connection.execute(STATEMENTS[name], name, statement.parameters)
        answer = Answer(found, touched)


def begin(connection: Session) -> str:
    connection.say("BEGIN")
    return connection.xid


def command(connection: Session, text: bytes) -> None:
    connection.say(text.decode())


def standing(connection: Session) -> str:
    return connection.state


def savepoint(connection: Session) -> None:
    connection.say("SAVEPOINT")


def undo(connection: Session) -> None:
    connection.say("ROLLBACK TO SAVEPOINT")


def nothing(connection: Session) -> None:
    """Nothing is ever queued here."""


class Lent:
    """What a handler gets: the connection."""

    is_exposed = True

    def __init__(self, connection: Session, *more: Any, **named: Any) -> None:
        del more, named
        self.connection = connection

    def settle(self, **named: Any) -> None:
        del named

    def drop(self) -> None:
        """Take nothing back."""


class Deadlines:
    """Be the time-outs of handlers, none of which has one; also the slot of a lane."""

    def slot(self, *more: Any, **named: Any) -> "Deadlines":
        del more, named
        return self

    def start(self, seconds: float | None) -> None:
        assert seconds is None

    def stop(self) -> bool:
        return False

    def stop_soon(self) -> bool:
        return False

    def forget(self, slot: Any) -> None:
        del slot


class PlainLane(lane.Lane):
    """The product's lane, which tells the scheduler what it works for."""

    def run(self, batch: Any, work: Any, fence: Any) -> Any:
        turn = current().turn
        assert turn is not None
        turn.fence, turn.place = fence, (work.stream.topic, work.partition)
        return super().run(batch, work, fence)


class AsyncLane(PlainLane):
    """The lane for `async def` handlers: they are run like the others, one step after another."""

    def __init__(self, plant: Any, loop: Any, *more: Any) -> None:
        del loop
        super().__init__(plant, *more)


def connect(conninfo: str) -> Session:
    del conninfo
    made: Session = current().world.connect()
    return made


_ASYNCIO = SimpleNamespace(current_task=lambda: None, CancelledError=asyncio.CancelledError)


def _small_portions(stack: ExitStack) -> None:
    for module in (parking, steps, store, watchdog):
        stack.enter_context(patch.object(module, "PORTION", PORTION))


@contextmanager
def adapted() -> Iterator[None]:
    """Let the product's shells work on simulated connections, in simulated threads."""
    with ExitStack() as stack:
        mine = (connect, run, begin, command, standing, savepoint, undo)
        for call in mine:
            if hasattr(postgres, call.__name__):
                stack.enter_context(patch.object(postgres, call.__name__, call))
        for name in ("sync", "abandon"):
            if hasattr(postgres, name):
                stack.enter_context(patch.object(postgres, name, nothing))
        for module in (rows, parking, store, writing, marks, running):
            for name in ("literal", "uuids"):
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, list))
        for module in (lanes, opener, marker):
            stack.enter_context(patch.object(module, "SimpleQueue", SimQueue))
            stack.enter_context(patch.object(module, "threading", SimThreading))
        for module in (watchdog, renewer):
            stack.enter_context(patch.object(module, "threading", SimThreading))
        _small_portions(stack)
        stack.enter_context(patch.object(seats, "Lane", PlainLane))
        stack.enter_context(patch.object(seats, "AsyncLane", AsyncLane))
        stack.enter_context(patch.object(lanes, "EventLoop", lambda: None))
        stack.enter_context(patch.object(handling, "Lent", Lent))
        stack.enter_context(patch.object(lanework, "asyncio", _ASYNCIO))
        yield
