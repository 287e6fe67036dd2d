"""The processor as an application declares it: a group, and one handler for each type of message."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar, Unpack, cast

from packhorse.core.errors import UsageError
from packhorse.core.jobs import topic_of
from packhorse.core.message import TypedMessage
from packhorse.core.naming import checked_topic, quarantine_topic, retry_topic
from packhorse.processor.declaring import checked_choice, checked_class, checked_count
from packhorse.processor.erasing import Eraser, checked_eraser
from packhorse.processor.handlers import AFTER_QUARANTINES, ORDERINGS, Handler, declared, declared_job
from packhorse.processor.registering import (
    AfterQuarantine,
    JobOptions,
    Kind,
    Options,
    Ordering,
    Registers,
    RegistersBatch,
    RegistersJob,
    RegistersTombstone,
)
from packhorse.processor.tiers.ladder import tiers_of

__all__ = ["Options", "Processor"]

M = TypeVar("M", bound=TypedMessage)
E = TypeVar("E", bound=Eraser)


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
        ordering: "key": of one key one message at a time and in order, different keys side by side; messages without a key
            are free. "none": all are. A handler may differ.
        concurrency: How many messages or batches run at once in one process; None: what the settings say.
        after_quarantine: What becomes of the later messages of a key while one is in quarantine, under ordering="key": "park":
            they wait until a person redrives or discards it; "continue": they go on. A handler may differ.

    Raises:
        SettingsError: *group* makes no legal name of a topic.
        UsageError: Something else is not allowed.
    """

    def __init__(
        self,
        group: str,
        *,
        ordering: Ordering = "key",
        concurrency: int | None = None,
        after_quarantine: AfterQuarantine = "park",
    ) -> None:
        self.group = checked_topic(group)
        what = f"Processor({group!r}): "
        self.ordering: Ordering = checked_choice(ordering, ORDERINGS, what=f"{what}ordering")
        self.concurrency = checked_count(concurrency, what=f"{what}concurrency")
        self.after_quarantine: AfterQuarantine = checked_choice(
            after_quarantine, AFTER_QUARANTINES, what=f"{what}after_quarantine"
        )
        self._handlers: dict[tuple[str, bool], Handler] = {}
        self._replays: dict[tuple[str, bool, str], Handler] = {}
        self._erasers: list[Eraser] = []

    def __repr__(self) -> str:
        return f"Processor({self.group!r}, {len(self._handlers)} handlers)"

    def handler(self, message: type[M], **options: Unpack[Options]) -> Registers[M]:
        """
        Run the decorated function for every message of the class *message*.

        A `def` takes (message, Context) and runs in a thread, an `async def` takes (message, AsyncContext) and runs in one
        event loop. What it writes through the context's connection or session, what it emits, and the fact that the
        message is done are one transaction.

        Args:
            message: A class that `packhorse schemas generate` wrote.
            options: See `Options`.

        Raises:
            UsageError: *message* is no message class, the type has a handler already, the function has another shape, or an
                option is not allowed.
            SettingsError: *retry* is no policy.
        """
        return cast("Registers[M]", self._registers(message, options))

    def tombstone_handler(
        self, message: type[TypedMessage], **options: Unpack[Options]
    ) -> RegistersTombstone:
        """
        Run the decorated function, which takes a context alone, for every message of the type that has no payload.

        The key that is deleted is `ctx.key`. Without such a handler a tombstone goes to quarantine with the reason
        `no-tombstone-handler`. Arguments and errors are those of `handler`.
        """
        return cast("RegistersTombstone", self._registers(message, options, tombstones=True))

    def batch_handler(self, message: type[M], **options: Unpack[Options]) -> RegistersBatch[M]:
        """
        Run the decorated function for several messages of the class *message* at once, in one transaction.

        A `def` takes (Batch[message], BatchContext), an `async def` (Batch[message], AsyncBatchContext). It answers for each
        item, and what it does not answer is done. An error rolls everything back, and the messages are run again in batches
        of one, so that only the one at fault is charged. Arguments and errors are those of `handler`; isolation="message" is
        refused.
        """
        return cast("RegistersBatch[M]", self._registers(message, options, kind="batch"))

    def job(self, message: type[M], **options: Unpack[JobOptions]) -> RegistersJob[M]:
        """
        Run the decorated function as the body of the jobs of the class *message*, which `outbox.submit` accepts.

        A `def` takes (message, JobContext) and runs in a thread, an `async def` (message, AsyncJobContext). No transaction is
        open while it runs: a lease says that the job is this worker's. What it returns, JSON or None, is the job's result; it
        is recorded in one transaction with the job's end and with what the context was given to write.

        Args:
            message: A class that `packhorse schemas generate` wrote.
            options: See `JobOptions`.

        Raises:
            UsageError, SettingsError: As `handler` does.
        """
        checked = checked_class(message)  # here, or a decorator without its class registers nothing

        def register(function: Any) -> Any:
            self._add(declared_job(checked, function, options))
            return function

        return cast("RegistersJob[M]", register)

    def eraser(self, function: E) -> E:
        """
        Have the decorated function erase a person's data from the application's own tables, when `packhorse purge` is given this app.

        It takes (connection, Subject): a connection of psycopg in an open transaction, which it must not end, and whose data goes.
        It returns how many rows that were, and may be called again for the same subject.

        Raises:
            UsageError: The function has another shape.
        """
        self._erasers.append(checked_eraser(function))
        return function

    @property
    def erasers(self) -> tuple[Eraser, ...]:
        """Return what erases a person's data, in the order of declaration."""
        return tuple(self._erasers)

    @property
    def handlers(self) -> Mapping[tuple[str, bool], Handler]:
        """Return the handlers of live traffic, by type name and whether they take tombstones."""
        return MappingProxyType(self._handlers)

    @property
    def all_handlers(self) -> tuple[Handler, ...]:
        """Return all handlers, those for replays too."""
        return (*self._handlers.values(), *self._replays.values())

    @property
    def jobs(self) -> tuple[Handler, ...]:
        """Return the handlers that are bodies of jobs."""
        return tuple(handler for handler in self._handlers.values() if handler.job is not None)

    @property
    def replay_handlers(self) -> tuple[str, ...]:
        """Return the names by which replays may ask for handlers, sorted."""
        return tuple(sorted({name for _, _, name in self._replays}))

    def handler_of(
        self, type_name: str | None, *, tombstone: bool, replay: str | None = None
    ) -> Handler | None:
        """Return the handler for a type name as the header has it, if there is one; *replay*: the one of that name."""
        if type_name is None:
            return None
        if replay is not None:
            return self._replays.get((type_name, tombstone, replay))
        return self._handlers.get((type_name, tombstone))

    def contact_of(self, type_name: str | None) -> str | None:
        """Return who is told when messages of a type need a person, if one of its handlers names somebody."""
        handlers = [self.handler_of(type_name, tombstone=tombstone) for tombstone in (False, True)]
        return next((one.contact for one in handlers if one is not None and one.contact is not None), None)

    def knows(self, type_name: str | None) -> bool:
        """Return whether the type has a handler of either kind."""
        return type_name is not None and (
            (type_name, False) in self._handlers or (type_name, True) in self._handlers
        )

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the source topics, sorted."""
        return tuple(sorted({topic for handler in self.all_handlers for topic in handler.topics}))

    @property
    def ranks(self) -> Mapping[str, int]:
        """Return how urgent what comes from a source is, by topic: below 0 comes first, above 0 last; of others 0."""
        rank = {"high": -1, "low": 1}
        return {
            topic_of(handler.type.topic, one): rank.get(one, 0)
            for handler in self.jobs
            for one in (handler.job.priorities if handler.job is not None else ())
        }

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
        if not self.all_handlers:
            raise UsageError(
                f"processor {self.group!r} has no handler; add one with @app.handler(MessageClass), or @app.job(MessageClass)"
            )
        for source in self.topics:
            for topic in self.retry_topics(source):
                checked_topic(topic)
            checked_topic(self.quarantine_topic(source))

    def _registers(
        self, message: object, options: Options, *, tombstones: bool = False, kind: Kind = "one"
    ) -> Callable[[Any], Any]:
        made = partial(
            declared,
            tombstones=tombstones,
            kind=kind,
            ordering=self.ordering,
            after_quarantine=self.after_quarantine,
        )

        checked = checked_class(message)  # here, or a decorator without its class registers nothing

        def register(function: Any) -> Any:
            self._add(made(checked, function, options))
            return function

        return register

    def _add(self, handler: Handler) -> None:
        name, tombstones = handler.type.type, handler.tombstones
        if handler.replay is not None:
            self._add_replay(handler, handler.replay)
            return
        if (first := self._handlers.get((name, tombstones))) is not None:
            raise UsageError(
                f"{name} has the handler {first.name} in group {self.group!r} already; {handler.name} can't be a "
                "second one: call both from one function, or use another group"
            )
        self._handlers[name, tombstones] = handler

    def _add_replay(self, handler: Handler, named: str) -> None:
        place = handler.type.type, handler.tombstones, named
        if (first := self._replays.get(place)) is not None:
            raise UsageError(
                f"{handler.type.type} has the handler {first.name} for replays named {named!r} in group {self.group!r} already; "
                f"give {handler.name} another name"
            )
        self._replays[place] = handler
