"""Options of handlers: what is not allowed names the handler, the value and what is; what is not said is the processor's."""

from datetime import timedelta
from typing import Any

import pytest
from tests.unit.processor.test_app import Placed, Sent

from packhorse.core.errors import SettingsError, UsageError
from packhorse.processor import AsyncBatchContext, Batch, BatchContext, Context, Processor, Retry


def handle(message: Any, ctx: Any) -> None: ...
def handle_batch(batch: Any, ctx: Any) -> None: ...


def test_what_a_handler_does_not_say_is_the_processors() -> None:
    app = Processor("unit", ordering="none", after_quarantine="continue", concurrency=3)
    app.handler(Placed)(handle)
    app.handler(
        Sent,
        ordering="key",
        after_quarantine="park",
        isolation="message",
        timeout="30s",
        down=(OSError,),
        permanent=KeyError,  # type: ignore[arg-type]  # one class alone is taken as well
    )(handle)
    first, second = app.handlers["unit.Placed", False], app.handlers["unit.Sent", False]
    assert (app.ordering, app.after_quarantine, app.concurrency) == ("none", "continue", 3)
    assert (first.ordering, first.after_quarantine, first.isolation, first.timeout, first.down) == (
        "none",
        "continue",
        "group",
        None,
        (),
    )
    assert (second.ordering, second.after_quarantine, second.isolation) == ("key", "park", "message")
    assert (second.timeout, second.down, second.permanent, second.kind) == (
        30.0,
        (OSError,),
        (KeyError,),
        "one",
    )
    assert Processor("unit").ordering == "key"


@pytest.mark.parametrize(
    ("option", "about"),
    [
        ({"ordering": "partition"}, r"ordering='partition' is not allowed: 'key' or 'none'"),
        ({"after_quarantine": True}, r"after_quarantine=True is not allowed: 'park' or 'continue'"),
        ({"isolation": "serializable"}, r"isolation='serializable' is not allowed: 'group' or 'message'"),
        ({"timeout": 0}, r"timeout=0 is not allowed: more than zero"),
        ({"timeout": "soon"}, r"timeout 'soon' is no duration"),
        ({"timeout": timedelta(seconds=-1)}, "is no duration"),
        ({"down": (KeyError, "OSError")}, r"down: 'OSError' is not allowed: classes of Exception"),
        ({"permanent": KeyboardInterrupt}, r"permanent: <class 'KeyboardInterrupt'> is not allowed"),
        ({"safe": [ValueError("x")]}, r"safe: ValueError\('x'\) is not allowed"),
        (
            {"permanent": (KeyError, OSError), "down": (OSError,)},
            r"OSError can't be in permanent= .* and in down=",
        ),
        (
            {"retries": 3},
            r"retries= is no option: after_quarantine, contact, down, isolation, ordering, permanent",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["handler", "tombstone_handler", "batch_handler"])
def test_an_option_that_is_not_allowed_names_the_handler(
    kind: str, option: dict[str, Any], about: str
) -> None:
    function: Any = (lambda ctx: None) if kind == "tombstone_handler" else handle
    with pytest.raises(UsageError, match=rf"^handler tests\.unit\.processor\.test_declaring\..*: .*{about}"):
        getattr(Processor("unit"), kind)(Placed, **option)(function)


@pytest.mark.parametrize(
    ("option", "about"),
    [
        ({"ordering": "none "}, r"Processor\('unit'\): ordering='none ' is not allowed"),
        ({"after_quarantine": None}, "after_quarantine=None is not allowed"),
        ({"concurrency": 0}, "concurrency=0 is not allowed: a whole number from 1, or None"),
        ({"concurrency": True}, "concurrency=True is not allowed"),
        ({"concurrency": "4"}, "concurrency='4' is not allowed"),
    ],
)
def test_an_option_of_the_processor_that_is_not_allowed_names_it(option: dict[str, Any], about: str) -> None:
    with pytest.raises(UsageError, match=about):
        Processor("unit", **option)


def test_what_can_only_be_raised_is_no_policy() -> None:
    with pytest.raises(SettingsError, match="is no policy"):
        Processor("unit").handler(Placed, retry=Retry(after="5m"))(handle)


def test_a_batch_handler_is_one_of_its_kind_and_never_alone() -> None:
    app = Processor("unit")

    @app.batch_handler(Placed, timeout=5)
    def placed(batch: Batch[Placed], ctx: BatchContext) -> None: ...

    @app.batch_handler(Sent)
    async def sent(batch: Batch[Sent], ctx: AsyncBatchContext) -> None: ...

    first, second = app.handlers["unit.Placed", False], app.handlers["unit.Sent", False]
    assert (first.kind, first.is_async, first.timeout) == ("batch", False, 5.0)
    assert (second.kind, second.is_async) == ("batch", True)
    with pytest.raises(UsageError, match="isolation='message' is not allowed for a batch handler"):
        Processor("unit").batch_handler(Placed, isolation="message")(handle_batch)
    with pytest.raises(UsageError, match=r"unit\.Placed has the handler"):
        app.handler(Placed)(handle)


def asks_batch(message: Batch[Placed], ctx: Context) -> None: ...
def asks_batch_context(message: Placed, ctx: BatchContext) -> None: ...
def asks_message(batch: Placed, ctx: BatchContext) -> None: ...
def asks_context(batch: Batch[Placed], ctx: Context) -> None: ...
def asks_async(batch: Batch[Placed], ctx: AsyncBatchContext) -> None: ...
def asks_other(batch: Batch[Sent], ctx: BatchContext) -> None: ...
async def asks_sync(batch: Batch[Placed], ctx: BatchContext) -> None: ...
def takes_one(batch: Batch[Placed]) -> None: ...
def plain(batch: Batch, ctx: BatchContext) -> None: ...  # type: ignore[type-arg]


@pytest.mark.parametrize(
    ("kind", "function", "about"),
    [
        ("handler", asks_batch, "asks for a Batch and gets one message: register it with @app.batch_handler"),
        ("handler", asks_batch_context, "asks for BatchContext; it gets Context"),
        ("batch_handler", asks_message, r"asks for Placed; it gets Batch\[Placed\]"),
        ("batch_handler", asks_context, "asks for Context; it gets BatchContext"),
        ("batch_handler", asks_async, "is def and asks for AsyncBatchContext; it gets BatchContext"),
        ("batch_handler", asks_sync, "is async def and asks for BatchContext; it gets AsyncBatchContext"),
        ("batch_handler", asks_other, "is registered for Placed and asks for Sent"),
        ("batch_handler", takes_one, r"is called with \(batch, ctx\); let it take 2"),
    ],
)
def test_a_batch_handler_and_a_handler_are_not_mixed_up(kind: str, function: Any, about: str) -> None:
    with pytest.raises(UsageError, match=about):
        getattr(Processor("unit"), kind)(Placed)(function)


def test_a_batch_that_says_nothing_of_its_messages_is_taken() -> None:
    Processor("unit").batch_handler(Placed)(plain)
