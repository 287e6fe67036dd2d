"""What a batch handler gets: the list of messages, an answer for each, and the transaction that they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar, cast, overload
from uuid import UUID

from packhorse.core.errors import UsageError
from packhorse.core.logs import Log
from packhorse.core.message import TypedMessage
from packhorse.processor.durations import Duration, seconds_of
from packhorse.processor.metadata import MessageClass, Metadata
from packhorse.processor.outcomes import Quarantine, Skip
from packhorse.processor.record import Delivery

if TYPE_CHECKING:
    from packhorse.processor.context import AsyncResources, Resources
    from packhorse.processor.storing.pipelining.lent import AsyncPipeline, Pipeline
    from packhorse.processor.storing.postgres import AsyncConnection, Connection
    from packhorse.processor.storing.sqlalchemy import AsyncSession, Session
    from packhorse.producer import Outgoing, Tombstone

M = TypeVar("M", bound=TypedMessage)
M_co = TypeVar("M_co", bound=TypedMessage, covariant=True)


class Given(Protocol):
    """One member as the lane has it."""

    @property
    def delivery(self) -> Delivery: ...
    @property
    def message(self) -> TypedMessage | None: ...
    @property
    def attempt(self) -> int: ...


class Answer(NamedTuple):
    """
    What a batch handler said of one item that is not done.

    Attributes:
        error: Skip, Quarantine, or the error that the item is tried again for; None when none was given.
        after: Seconds that the handler wants to wait before the next attempt.
    """

    error: Exception | None
    after: float | None = None


class Answers:
    """The answers of one batch by their place in it; open while its handler runs."""

    __slots__ = ("given", "is_open")

    def __init__(self) -> None:
        self.given: dict[int, Answer] = {}
        self.is_open = True


class Item(Metadata, Generic[M_co]):
    """
    One message of a batch: who it is, and the handler's answer for it. What is not answered is done.

    Attributes:
        message: The message.
        attempt: Number of this run of the handler for this message, from 1.
    """

    __slots__ = ("_answers", "_place", "message")

    message: M_co

    def __init__(self, given: Given, place: int, answers: Answers, group: str, log: Log) -> None:
        self._delivery = (
            given.delivery
        )  # what Metadata.__init__ does; a call of it for each item costs as much again
        self._group = group
        self._ordinal = 0
        self._log = log
        self.attempt = given.attempt
        self.touched = False
        self.message = cast("M_co", given.message)
        self._place = place
        self._answers = answers

    def __repr__(self) -> str:
        return f"Item({self.id}, attempt {self.attempt})"

    @property
    def is_answered(self) -> bool:
        """Return whether an answer was given: without one the item will be done."""
        return self._place in self._answers.given

    def retry(self, after: Duration | None = None, *, error: Exception | None = None) -> None:
        """
        Answer that this item failed and is tried again; it counts as an attempt.

        Args:
            after: How long to wait; None: what the handler's policy says.
            error: Why; its class decides as if the handler had raised it for this message alone.

        Raises:
            UsageError: It has an answer already, the handler has returned, a follow-up was emitted for it, or *error* is no
                exception.
            SettingsError: *after* is no duration.
        """
        if error is not None and not isinstance(error, Exception):
            raise UsageError(
                f"item.retry(error=…) got {type(error).__name__}; give it the exception that says why, such as ValueError(…), or "
                "none"
            )
        seconds = None if after is None else seconds_of(after, what="item.retry(after=…)")
        self._answer("retry", Answer(error, seconds))

    def quarantine(self, reason: str, text: str = "") -> None:
        """
        Answer that this item goes to quarantine at once, with a reason code.

        Raises:
            UsageError: *reason* is no reason code, or as `retry`.
        """
        self._answer("quarantine", Answer(Quarantine(reason, text)))

    def skip(self, text: str = "") -> None:
        """Answer that this item ends without effect: outcome `skipped`. Raises UsageError as `retry`."""
        self._answer("skip", Answer(Skip(text)))

    def _answer(self, what: str, answer: Answer) -> None:
        answers = self._answers
        if not answers.is_open:
            raise UsageError(
                f"item.{what}() for message {self.id} came after the batch handler had returned; answer before it does"
            )
        if self._place in answers.given:
            raise UsageError(f"item.{what}() for message {self.id}: it has an answer already; answer once")
        if self._ordinal:
            raise UsageError(
                f"item.{what}() for message {self.id}: {self._ordinal} follow-up(s) were emitted for it; emit only for "
                "items that are done"
            )
        answers.given[self._place] = answer


class Batch(Generic[M_co]):
    """
    Messages of one type in the order of their offsets; each item is answered, and what is not answered is done.

        @app.batch_handler(FlightDeparted)
        def departed(batch: Batch[FlightDeparted], ctx: BatchContext) -> None:
            for item in batch:
                if item.message.gate == "":
                    item.quarantine("no-gate")
    """

    __slots__ = ("answers", "items")

    def __init__(self, members: Sequence[Given], *, group: str, log: Log) -> None:
        answers = self.answers = Answers()
        self.items: list[Item[M_co]] = [
            Item(member, place, answers, group, log) for place, member in enumerate(members)
        ]

    def __repr__(self) -> str:
        return f"Batch({len(self.items)} items)"

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Item[M_co]]:
        return iter(self.items)

    @overload
    def __getitem__(self, place: int, /) -> Item[M_co]: ...
    @overload
    def __getitem__(self, place: slice, /) -> list[Item[M_co]]: ...
    def __getitem__(self, place: int | slice, /) -> Item[M_co] | list[Item[M_co]]:
        return self.items[place]

    @property
    def messages(self) -> list[M_co]:
        """Return the messages alone, in order."""
        return [item.message for item in self.items]

    def close(self) -> None:
        """Take no more answers; the lane calls it when the handler has returned."""
        self.answers.is_open = False


class _Shared:
    """
    What contexts of batches of both kinds keep.

    Attributes:
        log: Writes log records with named fields; an item's own log names the message.
        touched: Whether the handler has asked for the transaction, so that a failure must roll it back.
        drafts: Follow-ups, in the order in which they were emitted; written when the handler has returned.
    """

    __slots__ = ("_answers", "drafts", "log", "touched")

    def __init__(self, answers: Answers, *, log: Log) -> None:
        self._answers = answers
        self.log = log
        self.touched = False
        self.drafts: list[Outgoing | Tombstone] = []

    def _emit(self, item: Item[TypedMessage], draft: Outgoing | Tombstone) -> UUID:
        self.touched = True
        self.drafts.append(draft)
        return draft.id or item.id

    def _check(self, item: Item[TypedMessage]) -> None:
        if item._answers is not self._answers:  # noqa: SLF001 the two are made together
            raise UsageError(f"message {item.id} is no item of this batch; emit for the items in hand")
        if not self._answers.is_open:
            raise UsageError(f"a follow-up of message {item.id} came after the batch handler had returned")
        if item.is_answered:
            raise UsageError(
                f"message {item.id} was answered with retry, quarantine or skip; emit only for items that are done"
            )


class BatchContext(_Shared):
    """What a `def` batch handler gets beside the batch: the transaction that all its items share."""

    __slots__ = ("_resources",)

    def __init__(self, answers: Answers, resources: Resources, *, log: Log) -> None:
        super().__init__(answers, log=log)
        self._resources = resources

    @property
    def connection(self) -> Connection:
        """Return the psycopg connection of the transaction, as `Context.connection`."""
        self.touched = True
        return self._resources.connection

    @property
    def session(self) -> Session:
        """Return a SQLAlchemy session on the same physical connection, as `Context.session`."""
        self.touched = True
        return self._resources.session

    @property
    def pipeline(self) -> Pipeline:
        """Return the queue of statements whose result is not read, as `Context.pipeline`."""
        return self._resources.pipeline

    def emit(
        self,
        item: Item[TypedMessage],
        message: TypedMessage,
        *,
        key: str | None,
        headers: Mapping[str, str] | None = None,
        expires_at: datetime | None = None,
    ) -> UUID:
        """
        Write a follow-up of *item* to the outbox, in the same transaction, and return its id.

        The id is derived from the item's id, the group and how many follow-ups that item had before. All follow-ups of a
        batch are written together when the handler has returned; one that can't be written fails the batch.

        Raises:
            UsageError: *item* is of another batch or was answered, or the handler has returned.
        """
        self._check(item)
        return self._emit(item, item._follow_up(message, key, headers, expires_at))  # noqa: SLF001

    def emit_tombstone(self, item: Item[TypedMessage], of: MessageClass, *, key: str) -> UUID:
        """Write a follow-up without payload, so that *key* is deleted from the topic of the class *of*; as `emit`."""
        self._check(item)
        return self._emit(item, item._tombstone(of, key))  # noqa: SLF001

    def settle(self) -> None:
        """Write the follow-ups; the lane calls it when the handler has returned."""
        if self.drafts:
            self._resources.emit(self.drafts)


class AsyncBatchContext(_Shared):
    """What an `async def` batch handler gets beside the batch; attributes and promises are those of `BatchContext`."""

    __slots__ = ("_resources",)

    def __init__(self, answers: Answers, resources: AsyncResources, *, log: Log) -> None:
        super().__init__(answers, log=log)
        self._resources = resources

    @property
    def connection(self) -> AsyncConnection:
        """Return the psycopg connection of the transaction, as `Context.connection`."""
        self.touched = True
        return self._resources.connection

    @property
    def session(self) -> AsyncSession:
        """Return a SQLAlchemy session on the same physical connection, as `Context.session`."""
        self.touched = True
        return self._resources.session

    @property
    def pipeline(self) -> AsyncPipeline:
        """Return the queue of statements whose result is not read, as `Context.pipeline`."""
        return self._resources.pipeline

    async def emit(
        self,
        item: Item[TypedMessage],
        message: TypedMessage,
        *,
        key: str | None,
        headers: Mapping[str, str] | None = None,
        expires_at: datetime | None = None,
    ) -> UUID:
        """Write a follow-up of *item*, as `BatchContext.emit`."""
        self._check(item)
        return self._emit(item, item._follow_up(message, key, headers, expires_at))  # noqa: SLF001

    async def emit_tombstone(self, item: Item[TypedMessage], of: MessageClass, *, key: str) -> UUID:
        """Write a follow-up without payload, as `BatchContext.emit_tombstone`."""
        self._check(item)
        return self._emit(item, item._tombstone(of, key))  # noqa: SLF001

    async def settle(self) -> None:
        """Write the follow-ups; the lane calls it when the handler has returned."""
        if self.drafts:
            await self._resources.emit(self.drafts)
