"""What is sent, and what handling it comes to: handlers of every kind, whose deeds are scripted."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar
from uuid import UUID

import psycopg
from tests.simulation.processor.hub import current

from packhorse.core.errors import RegistryUnavailable, Undecodable
from packhorse.core.message import MessageType
from packhorse.processor import Context, Later, Processor, Quarantine, Retry, Skip
from packhorse.processor.batching import Batch, BatchContext
from packhorse.processor.handlers import Handler

GROUP, NAMESPACE, SOURCE = "g", "sim", "sim.orders"
ATTEMPTS = 3
DELAYS = ["500ms", "5s"]


class Unreachable(Exception):
    """What a handler calls does not answer."""


class Deed(StrEnum):
    """What a run of the handler comes to, each time while it lasts."""

    WELL = "well"
    FAILS = "fails"
    LATER = "later"
    SLOW = "slow"
    SKIPS = "skips"
    STOPS = "stops"
    CONTENDS = "contends"
    CUTS = "cuts"
    KILLS = "kills"
    DOWN = "down"
    JUNK = "junk"
    REGISTRY = "registry"


@dataclass(slots=True)
class Script:
    """What is left of one message's deed."""

    deed: Deed = Deed.WELL
    times: int = 0

    def next(self) -> Deed:
        if self.times <= 0:
            return Deed.WELL
        self.times -= 1
        return self.deed

    def peek(self) -> Deed:
        return self.deed if self.times > 0 else Deed.WELL


@dataclass(frozen=True, slots=True)
class _Message:
    id: UUID


def _class(name: str) -> Any:
    kind = MessageType(
        type=f"sim.{name}", version=1, namespace=NAMESPACE, aggregatetype="orders", schema="{}"
    )
    return type(name, (), {"__packhorse__": kind, "__module__": __name__})


class Placed:
    """For a plain handler."""

    __packhorse__: ClassVar[MessageType] = _class("Placed").__packhorse__


class Called:
    """For an `async def` handler."""

    __packhorse__: ClassVar[MessageType] = _class("Called").__packhorse__


class Counted:
    """For a batch handler."""

    __packhorse__: ClassVar[MessageType] = _class("Counted").__packhorse__


class Alone:
    """For a handler whose messages share no transaction."""

    __packhorse__: ClassVar[MessageType] = _class("Alone").__packhorse__


class Passed:
    """For a handler behind whose quarantine later messages go on."""

    __packhorse__: ClassVar[MessageType] = _class("Passed").__packhorse__


class Free:
    """For a handler that takes no order."""

    __packhorse__: ClassVar[MessageType] = _class("Free").__packhorse__


TYPES: tuple[Any, ...] = (Placed, Called, Counted, Alone, Passed, Free)


def make_app() -> Processor:
    """Return the processor under test."""
    app, retry = Processor(GROUP), Retry(attempts=ATTEMPTS, delays=DELAYS, budget="1h")
    down = (Unreachable,)

    @app.handler(Placed, retry=retry, down=down)
    def placed(message: Placed, ctx: Context) -> None:
        handle(message, ctx)

    @app.handler(Called, retry=retry, down=down)
    def called(message: Called, ctx: Context) -> None:
        handle(message, ctx)

    @app.batch_handler(Counted, retry=retry, down=down)
    def counted(batch: Batch[Counted], ctx: BatchContext) -> None:
        for item in batch:
            answer(item, ctx)

    @app.handler(Alone, retry=retry, down=down, isolation="message")
    def alone(message: Alone, ctx: Context) -> None:
        handle(message, ctx)

    @app.handler(Passed, retry=retry, down=down, after_quarantine="continue")
    def passed(message: Passed, ctx: Context) -> None:
        handle(message, ctx)

    @app.handler(Free, retry=retry, down=down, ordering="none")
    def free(message: Free, ctx: Context) -> None:
        handle(message, ctx)

    _make_async(app, Called)
    return app


def _make_async(app: Processor, cls: Any) -> None:
    """Let the handler count as `async def`, so that it is run in the lanes for those."""
    from dataclasses import replace

    name = cls.__packhorse__.type, False
    handler: Handler = app.handlers[name]
    app._handlers[name] = replace(handler, is_async=True)


class Decoder:
    """Payloads are ids."""

    def decode(self, payload: bytes, cls: Any) -> Any:
        del cls
        one = UUID(bytes=payload)
        script = _world().script(one)
        match script.peek():
            case Deed.JUNK:
                raise Undecodable("junk")
            case Deed.REGISTRY:
                script.next()
                raise RegistryUnavailable("away")
        return _Message(one)


def _world() -> Any:
    return current().world


def handle(message: Any, ctx: Any) -> None:
    """Write the effect of *message*, and do what is scripted."""
    world, connection = _world(), ctx.connection
    with world.checks.running(message.id, connection):
        _do(world.script(message.id).next(), message.id, connection)


def answer(item: Any, ctx: Any) -> None:
    """Answer for one item of a batch, or end with an error as a whole."""
    world, one = _world(), item.message.id
    deed = world.script(one).next()
    with world.checks.running(one, ctx.connection):
        match deed:
            case Deed.FAILS:
                item.retry()
            case Deed.LATER:
                item.retry(error=Later(after="2s"))
            case Deed.STOPS:
                item.quarantine("permanent")
            case Deed.SKIPS:
                item.skip()
            case _:
                _do(deed, one, ctx.connection)


def _do(deed: Deed, one: UUID, connection: Any) -> None:
    world = _world()
    connection.nap(0.0)
    connection.effect(one)
    acts: dict[Deed, Callable[[], object]] = {
        Deed.SLOW: lambda: connection.nap(world.random.choice([0.3, 3.0, 15.0])),
        Deed.CUTS: connection.lose,
        Deed.KILLS: world.kill_mine,
    }
    if deed in acts:
        acts[deed]()
    match deed:
        case Deed.FAILS:
            raise ValueError("fails")
        case Deed.DOWN:
            raise Unreachable
        case Deed.LATER:
            raise Later(after="2s")
        case Deed.STOPS:
            raise Quarantine("permanent")
        case Deed.SKIPS:
            raise Skip("skips")
        case Deed.CONTENDS:
            raise psycopg.errors.SerializationFailure("contends")
        case Deed.CUTS:
            raise psycopg.OperationalError("cut")
