"""The types of handlers as an application writes them, and of what can be said of one where it is registered."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, Protocol, TypedDict, TypeVar, overload

from packhorse.core.jobs import Priority
from packhorse.core.message import TypedMessage
from packhorse.processor.batching import AsyncBatchContext, Batch, BatchContext
from packhorse.processor.context import AsyncContext, Context
from packhorse.processor.durations import Duration
from packhorse.processor.jobs.context import AsyncJobContext, JobContext
from packhorse.processor.policy import Retry

M = TypeVar("M", bound=TypedMessage)
Errors = tuple[type[Exception], ...]
Ordering = Literal["key", "none"]
AfterQuarantine = Literal["park", "continue"]
Isolation = Literal["group", "message"]
Kind = Literal["one", "batch", "job"]
AfterDeadline = Literal["quarantine", "expire"]

SyncFunction = Callable[[M, Context], None]
AsyncFunction = Callable[[M, AsyncContext], Coroutine[Any, Any, None]]
SyncTombstone = Callable[[Context], None]
AsyncTombstone = Callable[[AsyncContext], Coroutine[Any, Any, None]]
SyncBatch = Callable[[Batch[M], BatchContext], None]
AsyncBatch = Callable[[Batch[M], AsyncBatchContext], Coroutine[Any, Any, None]]


class Options(TypedDict, total=False):
    """
    What can be said of any handler.

    Attributes:
        retry: How often and for how long a failing message is tried, see `Retry`.
        permanent: Errors after which the message goes to quarantine at once.
        safe: Errors whose text holds no personal data; of all others only class and place are kept.
        down: Errors that mean that a system behind the handler is down: reading its partitions pauses, one message at a
            time is tried, nothing is charged.
        ordering, after_quarantine: As `Processor` has them, for this handler; None: as the processor.
        isolation: "group": several messages share a transaction, so a handler may run twice for one message. "message":
            each has a transaction of its own, for code with effects outside the database.
        timeout: How long one run may take; then its query is cancelled and the attempt has failed. None: no limit.
        contact: Who is told when messages of the type need a person: a name of 1 to 63 of a-z, 0-9 and "-", for which the
            notices' settings have a webhook. None: the log alone tells.
        replay: A name by which a replay may ask for the handler (`packhorse replay plan --handler NAME`). It then gets what such a
            replay brings, and nothing of live traffic, which goes to the type's other handler. None: it is for live traffic.
    """

    retry: Retry | None
    permanent: Errors
    safe: Errors
    down: Errors
    ordering: Ordering | None
    after_quarantine: AfterQuarantine | None
    isolation: Isolation
    timeout: Duration | None
    contact: str | None
    replay: str | None


class JobOptions(TypedDict, total=False):
    """
    What can be said of a type of jobs.

    Attributes:
        retry, permanent, safe, down, contact: As `Options` has them.
        timeout: How long one run may take; then the body is asked to stop, and the attempt has failed. None: no limit.
        deadline: How long after it was accepted, or due, a job may take in all, waits and runs together. None: no limit.
        after_deadline: What becomes of one that takes longer: "quarantine", with the reason `deadline`, or "expire".
        priorities: Those of `outbox.submit` that the workers read, each a topic of its own: "high" (`<topic>.high`), "normal" (the
            topic) and "low" (`<topic>.low`). Lanes that are free look at high ones first, and at every eighth turn at low ones.
        quick: Its runs take milliseconds: several share a claim and a transaction for their ends, from the first one on. One that
            takes long then keeps those that were claimed with it waiting. Of a type that does not say it as many share as are seen to
            be quick, and none waits for long.
        lanes: Most of them that run at once in a process. None: together with other types that say nothing all but one where there
            is short work (handlers of messages, quick jobs), else all but one where there are other types.
        keep_result, keep: How long after its end a job's result, and its row with its history, are kept. None: as set.
    """

    retry: Retry | None
    permanent: Errors
    safe: Errors
    down: Errors
    timeout: Duration | None
    deadline: Duration | None
    after_deadline: AfterDeadline
    contact: str | None
    priorities: Sequence[Priority]
    quick: bool
    lanes: int | None
    keep_result: Duration | None
    keep: Duration | None


SyncJob = Callable[[M, JobContext], object]
AsyncJob = Callable[[M, AsyncJobContext], Coroutine[Any, Any, object]]


class RegistersJob(Protocol[M]):
    """Take the body of a job and give it back unchanged."""

    @overload
    def __call__(self, function: AsyncJob[M], /) -> AsyncJob[M]: ...
    @overload
    def __call__(self, function: SyncJob[M], /) -> SyncJob[M]: ...


class Registers(Protocol[M]):
    """Take a handler and give it back unchanged, so that it can still be called."""

    @overload
    def __call__(self, function: AsyncFunction[M], /) -> AsyncFunction[M]: ...
    @overload
    def __call__(self, function: SyncFunction[M], /) -> SyncFunction[M]: ...


class RegistersBatch(Protocol[M]):
    """Take a batch handler and give it back unchanged."""

    @overload
    def __call__(self, function: AsyncBatch[M], /) -> AsyncBatch[M]: ...
    @overload
    def __call__(self, function: SyncBatch[M], /) -> SyncBatch[M]: ...


class RegistersTombstone(Protocol):
    """Take a handler of tombstones and give it back unchanged."""

    @overload
    def __call__(self, function: AsyncTombstone, /) -> AsyncTombstone: ...
    @overload
    def __call__(self, function: SyncTombstone, /) -> SyncTombstone: ...
