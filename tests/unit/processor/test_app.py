"""Declaring handlers: what is wrong is said where it is written."""

from typing import Any, ClassVar

import pytest

from packhorse.core.errors import SettingsError, UsageError
from packhorse.core.message import MessageType
from packhorse.processor import AsyncContext, Context, Processor, Quarantine


class Placed:
    __packhorse__: ClassVar[MessageType] = MessageType(
        type="unit.Placed", version=1, namespace="unit", aggregatetype="orders", schema="{}"
    )


class Sent:
    __packhorse__: ClassVar[MessageType] = MessageType(
        type="unit.Sent", version=1, namespace="unit", aggregatetype="parcels", schema="{}"
    )


def test_a_handler_is_found_by_type_and_by_whether_there_is_a_payload() -> None:
    app = Processor("unit")

    @app.handler(Placed)
    def placed(message: Placed, ctx: Context) -> None: ...

    @app.tombstone_handler(Placed)
    def gone(ctx: Context) -> None: ...

    @app.handler(Sent)
    async def sent(message: Sent, ctx: AsyncContext) -> None: ...

    first = app.handler_of("unit.Placed", tombstone=False)
    second = app.handler_of("unit.Placed", tombstone=True)
    third = app.handler_of("unit.Sent", tombstone=False)
    assert first is not None
    assert second is not None
    assert third is not None
    assert (first.function, second.function, third.is_async) == (placed, gone, True)
    assert app.handler_of("unit.Sent", tombstone=True) is None
    assert app.knows("unit.Sent")
    assert not app.knows("unit.Other")
    assert not app.knows(None)
    assert app.topics == ("unit.orders", "unit.parcels")
    assert app.retry_topic("unit.orders") == "unit.orders.unit.retry.0s"
    assert app.quarantine_topic("unit.orders") == "unit.orders.unit.quarantine"
    app.check()


def one(message: Any) -> None: ...
def three(a: Any, b: Any, c: Any) -> None: ...
def keywords(*, message: Any, ctx: Any) -> None: ...
def yields(message: Any, ctx: Any) -> Any:
    yield 1


async def asks_sync(message: Any, ctx: Context) -> None: ...
def asks_async(message: Any, ctx: AsyncContext) -> None: ...
def asks_other(message: Sent, ctx: Context) -> None: ...


@pytest.mark.parametrize(
    ("function", "about"),
    [
        (one, r"is called with \(message, ctx\); let it take 2 positional arguments"),
        (three, r"is called with \(message, ctx\)"),
        (keywords, r"is called with \(message, ctx\)"),
        (yields, "is no function: write a def or async def"),
        ("text", "is no function"),
        (asks_sync, "is async def and asks for Context; it gets AsyncContext"),
        (asks_async, "is def and asks for AsyncContext; it gets Context"),
        (asks_other, "is registered for Placed and asks for Sent"),
    ],
)
def test_a_function_of_another_shape_is_refused_by_name(function: Any, about: str) -> None:
    with pytest.raises(UsageError, match=about):
        Processor("unit").handler(Placed)(function)


def test_two_handlers_for_one_type_are_refused_by_name() -> None:
    app = Processor("unit")
    app.handler(Placed)(lambda message, ctx: None)

    def second(message: Placed, ctx: Context) -> None: ...

    with pytest.raises(
        UsageError, match=r"unit\.Placed has the handler .*<lambda> [^;]*; .*second can't be a second one"
    ):
        app.handler(Placed)(second)


@pytest.mark.parametrize("given", [int, "Placed", Placed()])
def test_what_is_no_message_class_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="is no message class"):
        Processor("unit").handler(given)(lambda message, ctx: None)


def test_a_decorator_without_its_class_is_refused_where_it_stands() -> None:
    """Fails when `@app.job` for `@app.job(Class)` registers nothing, in silence, and its messages end in quarantine."""

    def function(message: Placed, ctx: Context) -> None: ...

    given: Any = function
    app = Processor("unit")
    for decorator in (app.job, app.handler, app.batch_handler, app.tombstone_handler):
        with pytest.raises(UsageError, match=r"^.*function.* is no message class"):
            decorator(given)


def test_a_processor_without_handlers_is_refused() -> None:
    with pytest.raises(UsageError, match="has no handler"):
        Processor("unit").check()


def test_a_group_that_makes_no_topic_is_refused() -> None:
    with pytest.raises(SettingsError, match="not legal"):
        Processor("my group")
    app = Processor("g" * 240)
    app.handler(Placed)(lambda message, ctx: None)
    with pytest.raises(SettingsError, match="not legal"):
        app.check()


@pytest.mark.parametrize("reason", ["", "No Such", "a--b", "x" * 65, "ü"])
def test_a_reason_is_a_code(reason: str) -> None:
    with pytest.raises(UsageError, match="is no reason code"):
        Quarantine(reason)
