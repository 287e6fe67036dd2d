"""The processor as an application declares it: a group, and one handler for each type of message."""

import inspect
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, get_type_hints, overload

from packhorse.core.errors import UsageError
from packhorse.core.message import MessageType, TypedMessage
from packhorse.core.naming import checked_topic, quarantine_topic, retry_topic
from packhorse.processor.context import AsyncContext, Context
from packhorse.processor.policy import Retry
from packhorse.processor.tiers.ladder import tiers_of

M = TypeVar("M", bound=TypedMessage)
Errors = tuple[type[Exception], ...]

SyncFunction = Callable[[M, Context], None]
AsyncFunction = Callable[[M, AsyncContext], Coroutine[Any, Any, None]]
SyncTombstone = Callable[[Context], None]
AsyncTombstone = Callable[[AsyncContext], Coroutine[Any, Any, None]]


class Registers(Protocol[M]):
    """Take a handler and give it back unchanged, so that it can still be called."""

    @overload
    def __call__(self, function: AsyncFunction[M], /) -> AsyncFunction[M]: ...
    @overload
    def __call__(self, function: SyncFunction[M], /) -> SyncFunction[M]: ...


class RegistersTombstone(Protocol):
    """Take a handler of tombstones and give it back unchanged."""

    @overload
    def __call__(self, function: AsyncTombstone, /) -> AsyncTombstone: ...
    @overload
    def __call__(self, function: SyncTombstone, /) -> SyncTombstone: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """
    What runs for messages of one type.

    Attributes:
        message: The message class.
        function: Takes the message and a context, or for tombstones the context alone.
        is_async: It is an `async def`.
        tombstones: It takes the messages without payload, and no others.
        retry: How often and for how long a failing message is tried.
        permanent: Errors after which the message goes to quarantine at once.
        safe: Errors whose text holds no personal data, so that it may be kept and shown.
    """

    message: type[TypedMessage]
    function: Callable[..., Any]
    is_async: bool
    tombstones: bool
    retry: Retry
    permanent: Errors
    safe: Errors

    @property
    def type(self) -> MessageType:
        """Return the type on the wire."""
        return self.message.__packhorse__

    @property
    def name(self) -> str:
        """Return where the function stands, for people."""
        return f"{self.function.__module__}.{self.function.__qualname__}"


class Processor:
    """
    A consumer group and its handlers, one for each type of message.

        app = Processor("figures")

        @app.handler(FlightDeparted, retry=Retry(attempts=5, delays=["1s", "5s"], budget="15m"))
        def departed(message: FlightDeparted, ctx: Context) -> None:
            ctx.connection.execute("UPDATE …")

    It does nothing by itself: `packhorse processor run module:app` runs it.

    Args:
        group: Name of the consumer group; part of the names of its quarantine and retry topics.

    Raises:
        SettingsError: *group* makes no legal name of a topic.
    """

    def __init__(self, group: str) -> None:
        self.group = checked_topic(group)
        self._handlers: dict[tuple[str, bool], Handler] = {}

    def __repr__(self) -> str:
        return f"Processor({self.group!r}, {len(self._handlers)} handlers)"

    def handler(
        self, message: type[M], *, retry: Retry | None = None, permanent: Errors = (), safe: Errors = ()
    ) -> Registers[M]:
        """
        Run the decorated function for every message of the class *message*.

        A `def` takes (message, Context) and runs in a thread, an `async def` takes (message, AsyncContext) and runs in one
        event loop. What it writes through the context's connection or session, what it emits, and the fact that the
        message is done are one transaction.

        Args:
            message: A class that `packhorse schemas generate` wrote.
            retry: How often and for how long a failing message is tried, see `Retry`.
            permanent: Errors after which the message goes to quarantine at once.
            safe: Errors whose text holds no personal data; of all others only class and place are kept.

        Raises:
            UsageError: *message* is no message class, the type has a handler already, or the function has another shape.
        """

        def register(function: Any) -> Any:
            self._add(message, function, tombstones=False, retry=retry, permanent=permanent, safe=safe)
            return function

        return register

    def tombstone_handler(
        self,
        message: type[TypedMessage],
        *,
        retry: Retry | None = None,
        permanent: Errors = (),
        safe: Errors = (),
    ) -> RegistersTombstone:
        """
        Run the decorated function, which takes a context alone, for every message of the type that has no payload.

        The key that is deleted is `ctx.key`. Without such a handler a tombstone goes to quarantine with the reason
        `no-tombstone-handler`. Arguments and errors are those of `handler`.
        """

        def register(function: Any) -> Any:
            self._add(message, function, tombstones=True, retry=retry, permanent=permanent, safe=safe)
            return function

        return register

    @property
    def handlers(self) -> Mapping[tuple[str, bool], Handler]:
        """Return the handlers by type name and whether they take tombstones."""
        return MappingProxyType(self._handlers)

    def handler_of(self, type_name: str | None, *, tombstone: bool) -> Handler | None:
        """Return the handler for a type name as the header has it, if there is one."""
        return None if type_name is None else self._handlers.get((type_name, tombstone))

    def knows(self, type_name: str | None) -> bool:
        """Return whether the type has a handler of either kind."""
        return type_name is not None and (
            (type_name, False) in self._handlers or (type_name, True) in self._handlers
        )

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the source topics, sorted."""
        return tuple(sorted({handler.type.topic for handler in self._handlers.values()}))

    def tiers(self, source: str) -> tuple[str, ...]:
        """Return the tiers of the ladders of this source's handlers, by delay; "0s" is always the first."""
        return tiers_of(self, source)

    def tier_topic(self, source: str, tier: str) -> str:
        """Return the topic that carries one tier of a source."""
        return retry_topic(source, self.group, tier)

    def retry_topics(self, source: str) -> tuple[str, ...]:
        """Return the topics of all tiers of a source, by delay."""
        return tuple(self.tier_topic(source, tier) for tier in self.tiers(source))

    def retry_topic(self, source: str) -> str:
        """Return the topic that carries what is sent back to this group at once."""
        return self.tier_topic(source, "0s")

    def quarantine_topic(self, source: str) -> str:
        """Return the topic with the copies of this group's quarantined messages."""
        return quarantine_topic(source, self.group)

    def check(self) -> None:
        """
        Check what can only be known when all handlers are there.

        Raises:
            UsageError: There is none.
        """
        if not self._handlers:
            raise UsageError(
                f"processor {self.group!r} has no handler; add one with @app.handler(MessageClass)"
            )
        for source in self.topics:
            for topic in self.retry_topics(source):
                checked_topic(topic)
            checked_topic(self.quarantine_topic(source))

    def _add(
        self,
        message: type[TypedMessage],
        function: Any,
        *,
        tombstones: bool,
        retry: Retry | None,
        permanent: Errors,
        safe: Errors,
    ) -> None:
        kind = getattr(message, "__packhorse__", None)
        if not isinstance(message, type) or not isinstance(kind, MessageType):
            given = message.__name__ if isinstance(message, type) else repr(message)
            raise UsageError(
                f"{given} is no message class; pass a class that `packhorse schemas generate` wrote"
            )
        handler = Handler(
            message=message,
            function=function,
            is_async=inspect.iscoroutinefunction(function),
            tombstones=tombstones,
            retry=retry or Retry(),
            permanent=permanent,
            safe=safe,
        )
        _check_shape(handler)
        if (first := self._handlers.get((kind.type, tombstones))) is not None:
            raise UsageError(
                f"{kind.type} has the handler {first.name} in group {self.group!r} already; {handler.name} can't be a "
                "second one: call both from one function, or use another group"
            )
        self._handlers[kind.type, tombstones] = handler


def _check_shape(handler: Handler) -> None:
    wanted = "(ctx)" if handler.tombstones else "(message, ctx)"
    function = handler.function
    if (
        not callable(function)
        or inspect.isgeneratorfunction(function)
        or inspect.isasyncgenfunction(function)
    ):
        raise UsageError(f"handler {function!r} is no function: write a def or async def that takes {wanted}")
    arguments: list[object] = [None] if handler.tombstones else [None, None]
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        raise UsageError(
            f"handler {handler.name}{inspect.signature(function)} is called with {wanted}; "
            f"let it take {len(arguments)} positional argument{'s'[: len(arguments) - 1]}"
        ) from None
    _check_context(handler)


def _check_context(handler: Handler) -> None:
    """Refuse an `async def` that asks for a Context, and the reverse: the connection would be of the other kind."""
    try:
        hints = get_type_hints(handler.function)
    except (NameError, TypeError, AttributeError):
        return
    names = list(inspect.signature(handler.function).parameters)
    position = 0 if handler.tombstones else 1
    given = hints.get(names[position]) if len(names) > position else None
    wanted, other = (AsyncContext, Context) if handler.is_async else (Context, AsyncContext)
    if given is other:
        kind = "async def" if handler.is_async else "def"
        raise UsageError(
            f"handler {handler.name} is {kind} and asks for {other.__name__}; it gets {wanted.__name__}"
        )
    message = hints.get(names[0]) if not handler.tombstones else None
    if (
        isinstance(message, type)
        and message not in (object, Any)
        and not issubclass(handler.message, message)
    ):
        raise UsageError(
            f"handler {handler.name} is registered for {handler.message.__name__} and asks for {message.__name__}"
        )
