"""How a handler ended in a test, and what is run: one message, or several by a batch handler."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

from packhorse.core import logs
from packhorse.core.errors import UsageError
from packhorse.core.message import TypedMessage
from packhorse.processor import AsyncContext, Context, Later, Outcome, Processor, Quarantine, Retry, Skip
from packhorse.processor.batching import Answer, AsyncBatchContext, Batch, BatchContext
from packhorse.producer import message_context
from packhorse.producer.rows import Draft
from packhorse.testing.deliveries import Prepared, prepared
from packhorse.testing.emitted import Emitted

LOG = logs.logger("testing")
Given = TypedMessage | Draft | tuple[TypedMessage, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """
    How a handler dealt with a message.

    Attributes:
        outcome: done, skipped (Skip), quarantine (Quarantine) or retry (Retry, Later, `item.retry`).
        reason: Reason code of Quarantine.
        emitted: What it emitted, in order; nothing unless it is done.
        after: Of retry the seconds that it asks to wait; None: what the handler's policy says.
        charged: Of retry whether it counts as an attempt; with Later it does not.
        error: What a batch handler gave as `item.retry(error=…)`.
    """

    outcome: Outcome
    reason: str | None = None
    emitted: tuple[Emitted[Any], ...] = ()
    after: float | None = None
    charged: bool = True
    error: Exception | None = None


DONE = Handled(outcome=Outcome.DONE)


def said(end: BaseException) -> Handled | None:
    """Return what *end* means, where the handler said so itself; None for every other error."""
    match end:
        case Skip():
            return Handled(outcome=Outcome.SKIPPED)
        case Quarantine():
            return Handled(outcome=Outcome.QUARANTINE, reason=end.reason)
        case Retry():
            return Handled(outcome=Outcome.RETRY, after=end.after)
        case Later():
            return Handled(outcome=Outcome.RETRY, after=end.after, charged=False)
        case _:
            return None


def answered(answer: Answer) -> Handled:
    """Return what a batch handler's answer for one item means."""
    if answer.error is not None and answer.after is None and (meant := said(answer.error)) is not None:
        return meant
    return Handled(outcome=Outcome.RETRY, after=answer.after, error=answer.error)


class Run(Protocol):
    """One run of a handler."""

    @property
    def name(self) -> str:
        """Return the handler's name."""

    @property
    def is_async(self) -> bool:
        """Return whether it is an `async def`."""

    def __len__(self) -> int: ...

    def call(self, resources: Any) -> None:
        """Run a `def` handler."""

    async def acall(self, resources: Any) -> None:
        """Run an `async def` handler."""

    def ended(self, emitted: Iterable[Emitted[Any]]) -> list[Handled]:
        """Return how it ended for each message, after it has returned."""


class One:
    """One message, also where its handler takes batches."""

    def __init__(self, app: Processor, ready: Prepared, attempt: int) -> None:
        self._app, self._ready, self._attempt = app, ready, attempt
        self.name, self.is_async = ready.handler.name, ready.handler.is_async

    def __len__(self) -> int:
        return 1

    def call(self, resources: Any) -> None:
        """Run a `def` handler."""
        context = Context(self._ready.delivery, resources, **self._more())
        with _around(context):
            self._ready.handler.function(*self._ready.arguments(context))

    async def acall(self, resources: Any) -> None:
        """Run an `async def` handler."""
        context = AsyncContext(self._ready.delivery, resources, **self._more())
        with _around(context):
            await self._ready.handler.function(*self._ready.arguments(context))

    def ended(self, emitted: Iterable[Emitted[Any]]) -> list[Handled]:
        """Return that it is done, with all that was emitted."""
        return [replace(DONE, emitted=tuple(emitted))]

    def _more(self) -> dict[str, Any]:
        return {"group": self._app.group, "attempt": self._attempt, "log": LOG}


class Several:
    """Several messages of one type and their batch handler."""

    def __init__(self, app: Processor, ready: Sequence[Prepared], attempt: int) -> None:
        self._handler = ready[0].handler
        self.name, self.is_async = self._handler.name, self._handler.is_async
        members = [_Member(one, attempt) for one in ready]
        self._batch: Batch[Any] = Batch(members, group=app.group, log=LOG)

    def __len__(self) -> int:
        return len(self._batch)

    def call(self, resources: Any) -> None:
        """Run a `def` handler."""
        context = BatchContext(self._batch.answers, resources, log=LOG)
        try:
            with self._around():
                self._handler.function(self._batch, context)
        finally:
            self._batch.close()
        context.settle()

    async def acall(self, resources: Any) -> None:
        """Run an `async def` handler."""
        context = AsyncBatchContext(self._batch.answers, resources, log=LOG)
        try:
            with self._around():
                await self._handler.function(self._batch, context)
        finally:
            self._batch.close()
        await context.settle()

    def ended(self, emitted: Iterable[Emitted[Any]]) -> list[Handled]:
        """Return how it ended for each item; a follow-up belongs to the item that is its cause."""
        caused: dict[str | None, list[Emitted[Any]]] = {}
        for one in emitted:
            caused.setdefault(one.causation_id, []).append(one)
        given = self._batch.answers.given
        return [
            answered(given[place])
            if place in given
            else replace(DONE, emitted=tuple(caused.get(str(item.id), ())))
            for place, item in enumerate(self._batch)
        ]

    def _around(self) -> AbstractContextManager[object]:
        return _around(self._batch[0]) if len(self._batch) == 1 else nullcontext()


class _Member:
    """One message as a batch takes it."""

    def __init__(self, ready: Prepared, attempt: int) -> None:
        self.delivery, self.message, self.attempt = ready.delivery, ready.message, attempt


def one(app: Processor, message: TypedMessage | Draft, key: str | None, attempt: int) -> Run:
    """Return the run of the handler for *message*."""
    ready = prepared(app, message, key)
    if ready.handler.job is not None:
        raise UsageError(f"{ready.handler.name} is the body of a job; use `run_job`")
    return Several(app, [ready], attempt) if ready.handler.kind == "batch" else One(app, ready, attempt)


def several(app: Processor, messages: Iterable[Given], attempt: int) -> Run:
    """
    Return the run of the batch handler for *messages*.

    Raises:
        UsageError: There are none, they are of several types, or their handler takes one message.
    """
    ready = [prepared(app, *(given if isinstance(given, tuple) else (given, None))) for given in messages]
    if not ready:
        raise UsageError("a batch of no messages is never handed to a handler; pass one at least")
    handler = ready[0].handler
    if other := next((one for one in ready if one.handler is not handler), None):
        raise UsageError(
            f"{handler.type.type} and {other.handler.type.type} never share a batch; run one type after the other"
        )
    if handler.kind != "batch":
        raise UsageError(
            f"handler {handler.name} takes one message; use `run_handler`, or @app.batch_handler"
        )
    return Several(app, ready, attempt)


def _around(context: Any) -> AbstractContextManager[object]:
    return message_context(
        correlation_id=context.correlation_id or str(context.id),
        causation_id=str(context.id),
        actor=context.actor,
        tenant=context.tenant,
    )
