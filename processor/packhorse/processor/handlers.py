"""One handler as it is declared: what runs for messages of one type, and the checks of all that can be said of it."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from packhorse.core.errors import UsageError
from packhorse.core.jobs import topic_of
from packhorse.core.message import MessageType, TypedMessage
from packhorse.processor.batching import AsyncBatchContext, BatchContext
from packhorse.processor.context import AsyncContext, Context
from packhorse.processor.declaring import (
    check_apart,
    check_function,
    checked_choice,
    checked_contact,
    checked_errors,
    checked_name,
    checked_timeout,
    name_of,
)
from packhorse.processor.jobs.context import AsyncJobContext, JobContext
from packhorse.processor.jobs.spec import JobSpec
from packhorse.processor.policy import Retry, policy_of
from packhorse.processor.registering import (
    AfterQuarantine,
    Errors,
    Isolation,
    JobOptions,
    Kind,
    Options,
    Ordering,
)

ORDERINGS: Final[tuple[Ordering, ...]] = ("key", "none")
AFTER_QUARANTINES: Final[tuple[AfterQuarantine, ...]] = ("park", "continue")
_ISOLATION: Final[tuple[Isolation, ...]] = ("group", "message")


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
        down: Errors that mean that a system behind the handler is down: nothing is charged, reading pauses.
        ordering: "key": of one key one message at a time, in order; "none": each is free.
        after_quarantine: "park": later messages of the key of one in quarantine wait; "continue": they go on.
        isolation: "group": several share a transaction; "message": each has one of its own.
        timeout: Seconds that one run may take; None: no limit.
        contact: Who is told when messages of the type need a person; None: nobody is named.
        kind: "one": it takes one message; "batch": it takes a Batch of them; "job": it is the body of a job.
        replay: The name by which a replay asks for it; None: it is for live traffic.
        job: What is declared of a type of jobs; None of other handlers.
    """

    message: type[TypedMessage]
    function: Callable[..., Any]
    is_async: bool
    tombstones: bool
    retry: Retry
    permanent: Errors
    safe: Errors
    down: Errors = ()
    ordering: Ordering = "key"
    after_quarantine: AfterQuarantine = "park"
    isolation: Isolation = "group"
    timeout: float | None = None
    contact: str | None = None
    kind: Kind = "one"
    replay: str | None = None
    job: JobSpec | None = None

    @property
    def type(self) -> MessageType:
        """Return the type on the wire."""
        return self.message.__packhorse__

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the topics that its messages come from: its type's, and of jobs one for each priority."""
        topic = self.type.topic
        return (topic,) if self.job is None else tuple(topic_of(topic, one) for one in self.job.priorities)

    @property
    def name(self) -> str:
        """Return where the function stands, for people."""
        return name_of(self.function)


_GIVEN: Final[dict[tuple[Kind, bool], type]] = {
    ("one", False): Context,
    ("one", True): AsyncContext,
    ("batch", False): BatchContext,
    ("batch", True): AsyncBatchContext,
    ("job", False): JobContext,
    ("job", True): AsyncJobContext,
}
"""Which context a handler gets, by its kind and whether it is async."""


def declared(
    message: type[TypedMessage],
    function: Any,
    options: Options,
    *,
    tombstones: bool,
    kind: Kind,
    ordering: Ordering,
    after_quarantine: AfterQuarantine,
) -> Handler:
    """
    Return the checked declaration of *function*; *ordering* and *after_quarantine* count where its options don't say.

    Raises:
        UsageError: The function has another shape, or an option is not allowed.
        SettingsError: What is given as `retry` is no policy.
    """
    is_async = inspect.iscoroutinefunction(function)
    context = _GIVEN[kind, is_async]
    check_function(
        function,
        ("ctx",) if tombstones else ("batch" if kind == "batch" else "message", "ctx"),
        message=message,
        context=context,
        others=[other for other in _GIVEN.values() if other is not context],
        batch=kind == "batch",
    )
    what = f"handler {name_of(function)}"
    if unknown := sorted(set(options) - Options.__optional_keys__):
        raise UsageError(
            f"{what}: {unknown[0]}= is no option: {', '.join(sorted(Options.__optional_keys__))}"
        )
    own, after = options.get("ordering"), options.get("after_quarantine")
    isolation = checked_choice(options.get("isolation", "group"), _ISOLATION, what=f"{what}: isolation")
    if kind == "batch" and isolation == "message":
        raise UsageError(f"{what}: isolation='message' is not allowed for a batch handler; use @app.handler")
    permanent = checked_errors(options.get("permanent", ()), what=f"{what}: permanent")
    down = checked_errors(options.get("down", ()), what=f"{what}: down")
    check_apart(permanent, down, what=what)
    return Handler(
        message=message,
        function=function,
        is_async=is_async,
        tombstones=tombstones,
        retry=policy_of(options.get("retry")),
        permanent=permanent,
        safe=checked_errors(options.get("safe", ()), what=f"{what}: safe"),
        down=down,
        ordering=ordering if own is None else checked_choice(own, ORDERINGS, what=f"{what}: ordering"),
        after_quarantine=after_quarantine
        if after is None
        else checked_choice(after, AFTER_QUARANTINES, what=f"{what}: after_quarantine"),
        isolation=isolation,
        timeout=checked_timeout(options.get("timeout"), what=what),
        contact=checked_contact(options.get("contact"), what=what),
        kind=kind,
        replay=checked_name(options.get("replay"), what=f"{what}: replay"),
    )


def declared_job(message: type[TypedMessage], function: Any, options: JobOptions) -> Handler:
    """
    Return the checked declaration of *function*, the body of the jobs of a type.

    Raises:
        UsageError: The function has another shape, or an option is not allowed.
        SettingsError: What is given as `retry` is no policy.
    """
    is_async = inspect.iscoroutinefunction(function)
    context = _GIVEN["job", is_async]
    others = [other for other in _GIVEN.values() if other is not context]
    check_function(function, ("message", "ctx"), message=message, context=context, others=others, batch=False)
    what = f"job {name_of(function)}"
    if unknown := sorted(set(options) - JobOptions.__optional_keys__):
        raise UsageError(
            f"{what}: {unknown[0]}= is no option: {', '.join(sorted(JobOptions.__optional_keys__))}"
        )
    permanent = checked_errors(options.get("permanent", ()), what=f"{what}: permanent")
    down = checked_errors(options.get("down", ()), what=f"{what}: down")
    check_apart(permanent, down, what=what)
    retry = policy_of(options.get("retry"))
    if retry.budget_seconds <= 0:
        raise UsageError(f"{what}: a retry budget of {retry.budget!r} is not allowed: more than zero")
    return Handler(
        message=message,
        function=function,
        is_async=is_async,
        tombstones=False,
        retry=retry,
        permanent=permanent,
        safe=checked_errors(options.get("safe", ()), what=f"{what}: safe"),
        down=down,
        ordering="none",
        after_quarantine="continue",
        isolation="group" if options.get("quick") else "message",
        timeout=checked_timeout(options.get("timeout"), what=what),
        contact=checked_contact(options.get("contact"), what=what),
        kind="job",
        job=JobSpec.declared(options, what=what),
    )
