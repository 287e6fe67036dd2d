"""Checks of a handler where it is declared: each names the handler, the value, and what is allowed."""

import inspect
import re
from collections.abc import Sequence
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from packhorse.core.errors import SettingsError, UsageError
from packhorse.core.message import MessageType, TypedMessage
from packhorse.processor.durations import Duration, seconds_of

C = TypeVar("C", bound=str)
_CONTACT = re.compile(r"[a-z0-9-]{1,63}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def name_of(function: Any) -> str:
    """Return where *function* stands, for people."""
    name = getattr(function, "__qualname__", None)
    return f"{function.__module__}.{name}" if name else repr(function)


def checked_class(given: object) -> type[TypedMessage]:
    """
    Return *given*, a message class.

    Raises:
        UsageError: It is something else.
    """
    if isinstance(given, type) and isinstance(getattr(given, "__packhorse__", None), MessageType):
        return given
    told = given.__name__ if isinstance(given, type) else repr(given)
    raise UsageError(f"{told} is no message class; pass a class that `packhorse schemas generate` wrote")


def checked_choice(value: object, allowed: Sequence[C], *, what: str) -> C:
    """
    Return *value*, one of *allowed*.

    >>> checked_choice("key", ("key", "none"), what="ordering")
    'key'

    Raises:
        UsageError: It is another.
    """
    for one in allowed:
        if one == value:
            return one
    raise UsageError(f"{what}={value!r} is not allowed: {' or '.join(repr(one) for one in allowed)}")


def checked_count(value: object, *, what: str) -> int | None:
    """
    Return *value*, a whole number from 1, or None.

    Raises:
        UsageError: It is something else.
    """
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise UsageError(f"{what}={value!r} is not allowed: a whole number from 1, or None")


def checked_name(value: object, *, what: str) -> str | None:
    """
    Return *value*, a name, or None.

    >>> checked_name("rebuild-2", what="replay")
    'rebuild-2'

    Raises:
        UsageError: It is something else.
    """
    if value is None or (isinstance(value, str) and _NAME.fullmatch(value)):
        return value
    raise UsageError(f"{what}={value!r} is not allowed: 1 to 80 letters, digits, and . _ - between them")


def checked_timeout(value: Duration | None, *, what: str, name: str = "timeout") -> float | None:
    """
    Return *value*, given as the option *name* of *what*, in seconds, more than none; None stays None.

    Raises:
        UsageError: It is no duration, or zero.
    """
    if value is None:
        return None
    try:
        seconds = seconds_of(value, what=name)
    except SettingsError as error:
        raise UsageError(f"{what}: {error}") from None
    if seconds <= 0:
        raise UsageError(f"{what}: {name}={value!r} is not allowed: more than zero, or None for no limit")
    return seconds


def checked_contact(value: object, *, what: str) -> str | None:
    """
    Return *value*, the name of a contact, or None.

    >>> checked_contact("payments-oncall", what="handler x")
    'payments-oncall'

    Raises:
        UsageError: It is no such name.
    """
    if value is None or (isinstance(value, str) and _CONTACT.fullmatch(value)):
        return value
    raise UsageError(
        f"{what}: contact={value!r} is not allowed: 1 to 63 of a-z, 0-9 and '-', such as 'payments-oncall'"
    )


def checked_errors(value: object, *, what: str) -> tuple[type[Exception], ...]:
    """
    Return *value*, a tuple of exception classes; one class alone is taken as a tuple of one.

    Raises:
        UsageError: Something in it is no exception class, or one of those that end the process.
    """
    given = value if isinstance(value, tuple | list | set | frozenset) else (value,)
    for one in given:
        if not isinstance(one, type) or not issubclass(one, Exception):
            raise UsageError(
                f"{what}: {one!r} is not allowed: classes of Exception, such as (KeyError, OSError)"
            )
    return tuple(given)


def check_apart(permanent: Sequence[type], down: Sequence[type], *, what: str) -> None:
    """
    Check that no class is both the message's fault and the sign of a system that is down.

    Raises:
        UsageError: One is.
    """
    for one in permanent:
        if one in down:
            raise UsageError(
                f"{what}: {one.__name__} can't be in permanent= (the message's fault) and in down= (nobody's fault)"
            )


def check_function(
    function: Any, takes: Sequence[str], *, message: type, context: type, others: Sequence[type], batch: bool
) -> None:
    """
    Check that *function* can be called with what *takes* names, and asks for nothing that it would not get.

    Args:
        function: What was decorated.
        takes: What it is called with; "ctx" is the last.
        message: The class that it is registered for.
        context: The class of the context that it gets.
        others: Classes of contexts that it would not get.
        batch: It gets a Batch of the class.

    Raises:
        UsageError: It is no function, takes something else, or its annotations say so.
    """
    wanted = f"({', '.join(takes)})"
    if (
        not callable(function)
        or inspect.isgeneratorfunction(function)
        or inspect.isasyncgenfunction(function)
    ):
        raise UsageError(f"handler {function!r} is no function: write a def or async def that takes {wanted}")
    signature = inspect.signature(function)
    try:
        signature.bind(*takes)
    except TypeError:
        raise UsageError(
            f"handler {name_of(function)}{signature} is called with {wanted}; "
            f"let it take {len(takes)} positional argument{'s'[: len(takes) - 1]}"
        ) from None
    hints = _hints_of(function)
    asked = [hints.get(name) for name in signature.parameters][: len(takes)]
    asked += [None] * (len(takes) - len(asked))
    _check_context(function, asked[-1], context, others)
    if len(takes) > 1:
        _check_message(function, asked[0], message, batch=batch)


def _hints_of(function: Any) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except (NameError, TypeError, AttributeError):
        return {}


def _check_context(function: Any, asked: Any, context: type, others: Sequence[type]) -> None:
    """Refuse an `async def` that asks for a Context, and the like: the connection would be of the other kind."""
    if asked in others:
        kind = "async def" if inspect.iscoroutinefunction(function) else "def"
        raise UsageError(
            f"handler {name_of(function)} is {kind} and asks for {asked.__name__}; it gets {context.__name__}"
        )


def _check_message(function: Any, asked: Any, message: type, *, batch: bool) -> None:
    from packhorse.processor.batching import Batch

    if (get_origin(asked) or asked) is Batch:
        if not batch:
            raise UsageError(
                f"handler {name_of(function)} asks for a Batch and gets one message: register it with @app.batch_handler"
            )
        asked = next(iter(get_args(asked)), None)
    elif batch and isinstance(asked, type) and asked not in (object, Any):
        raise UsageError(
            f"batch handler {name_of(function)} asks for {asked.__name__}; it gets Batch[{message.__name__}]"
        )
    if isinstance(asked, type) and asked not in (object, Any) and not issubclass(message, asked):
        raise UsageError(
            f"handler {name_of(function)} is registered for {message.__name__} and asks for {asked.__name__}"
        )
