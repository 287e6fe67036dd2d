"""Errors of handlers and of the database, classed by whose fault they are; an error's text is kept only where allowed."""

import traceback
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import NamedTuple

from packhorse.core.errors import MessageFault, PackhorseError
from packhorse.core.redaction import without_secrets
from packhorse.core.text import inert
from packhorse.processor.handlers import Handler
from packhorse.processor.outcomes import Quarantine, Reason, Skip
from packhorse.processor.policy import Later, Retry
from packhorse.processor.registering import Errors
from packhorse.processor.running.defaults import ErrorClass, chain, code_of, default_of, least_wait, wrapped
from packhorse.processor.running.work import Failure, Ran

ERROR_MAX = 512
"""Longest error text that is kept, in characters."""


def is_contention(error: BaseException) -> bool:
    """Return whether the transaction lost to another one."""
    return default_of(error) is ErrorClass.CONTENTION


def is_unavailable(error: BaseException) -> bool:
    """Return whether *error* looks like infrastructure; a probe without the message has the last word."""
    return default_of(error) is ErrorClass.INFRASTRUCTURE


def ran_of(error: BaseException, handler: Handler | None, *, touched: bool, alive: bool) -> Ran:
    """
    Return how a run that ended with *error* is judged; *alive* says whether the lane's connection still stands.

    The first of these that holds decides:

    1. SystemExit, KeyboardInterrupt and what else is no Exception stop the process.
    2. The lane's connection is gone: the connection's, whatever was raised.
    3. What the handler raises on purpose: Skip, Quarantine, Retry, Later.
    4. `down=` or `permanent=` name the very class of the error, or of the driver's error that it wraps.
    5. Contention: the transaction must run again.
    6. `down=` names a class that it is of, or that what it was raised from is of; unless `permanent=` names a nearer one.
    7. Infrastructure.
    8. `permanent=` names a class that it, or the driver's error that it wraps, is of.
    9. The defaults, see `defaults`; MemoryError and RecursionError are the message's own.

    An ExceptionGroup is judged by its members: the mildest decides, so one that may pass is never quarantined for another.
    """
    safe = handler.safe if handler is not None else ()
    if not isinstance(error, Exception):
        return Ran(Failure.STOP, "", describe(error, safe), touched)
    if not alive:
        return Ran(Failure.CONNECTION, "", describe(error, safe), touched)
    verdict = min(
        (_judged(one, handler) for one in leaves(error)), key=lambda one: _MILDEST.index(one.failure)
    )
    skipped = verdict.failure is Failure.SKIP
    told = inert(_text(verdict.error), limit=ERROR_MAX) if skipped else describe(verdict.error, safe)
    return Ran(verdict.failure, verdict.reason, told, touched, after=verdict.after, least=verdict.least)


class _Verdict(NamedTuple):
    """What one error says."""

    error: Exception
    failure: Failure
    reason: str = ""
    after: float | None = None
    least: float = 0.0


_MILDEST = (
    Failure.CONNECTION,
    Failure.CONTENTION,
    Failure.DOWN,
    Failure.LATER,
    Failure.TEMPORARY,
    Failure.PERMANENT,
    Failure.SKIP,
)
"""Of several errors in a group the first of these decides."""


def _judged(error: Exception, handler: Handler | None) -> _Verdict:
    return _raised_on_purpose(error) or _declared(error, handler) or _by_default(error)


def _raised_on_purpose(error: Exception) -> _Verdict | None:
    match error:
        case Skip():
            return _Verdict(error, Failure.SKIP)
        case Quarantine() | MessageFault():
            return _Verdict(error, Failure.PERMANENT, error.reason)
        case Retry():
            return _Verdict(error, Failure.TEMPORARY, Reason.FAILED.value, after=error.after)
        case Later():
            return _Verdict(error, Failure.LATER, Reason.LATER.value, after=error.after)
        case _:
            return None


def _declared(error: Exception, handler: Handler | None) -> _Verdict | None:
    """Return what the handler declares of *error*, unless a default stands before it."""
    if handler is None or not (handler.down or handler.permanent):
        return None
    down = _Verdict(error, Failure.DOWN, Reason.DOWN.value, least=least_wait(error))
    permanent = _Verdict(error, Failure.PERMANENT, Reason.PERMANENT.value)
    classes = [type(one) for one in wrapped(error)]
    for declared, verdict in ((handler.down, down), (handler.permanent, permanent)):
        if any(cls in declared for cls in classes):
            return verdict
    default = default_of(error)
    if default is ErrorClass.CONTENTION:
        return None
    far_down = _nearness(chain(error), handler.down)
    far_permanent = _nearness(wrapped(error), handler.permanent)
    if far_down is not None and (far_permanent is None or far_down <= far_permanent):
        return down
    return permanent if far_permanent is not None and default is not ErrorClass.INFRASTRUCTURE else None


def _nearness(errors: Iterable[BaseException], declared: Errors) -> tuple[int, int] | None:
    """Return how near the nearest declared class is, first by how deep in the chain, then by the order of inheritance."""
    for depth, error in enumerate(errors):
        if isinstance(error, declared):
            order = type(error).__mro__
            return depth, next((at for at, cls in enumerate(order) if cls in declared), len(order))
    return None


def _by_default(error: Exception) -> _Verdict:
    match default_of(error):
        case ErrorClass.CONTENTION:
            return _Verdict(error, Failure.CONTENTION, Reason.CONTENTION.value)
        case ErrorClass.INFRASTRUCTURE:
            return _Verdict(error, Failure.CONNECTION)
        case ErrorClass.PERMANENT:
            return _Verdict(error, Failure.PERMANENT, Reason.REFUSED.value)
        case _:
            return _Verdict(error, Failure.TEMPORARY, Reason.FAILED.value, least=least_wait(error))


def leaves(error: Exception) -> Iterator[Exception]:
    """Yield the errors of a group, of groups in it too; *error* itself when it is none."""
    if not isinstance(error, ExceptionGroup):
        yield error
        return
    for one in error.exceptions:
        yield from leaves(one)


_MOST_TEXT = 16 * ERROR_MAX
"""Characters of an error's own text that are looked at: somebody may put a whole document into it."""


def describe(error: BaseException, safe: tuple[type[Exception], ...] = ()) -> str:
    """
    Return class, code and place of *error*, and its text only when it is our own or of a class declared *safe*; capped.

    Drivers and libraries quote values in their texts, so those are never kept.
    """
    cls = type(error)
    name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    place = _place(error.__traceback__)
    code = code_of(error)
    told = f"{name}{f' ({code})' if code else ''}{f' at {place}' if place else ''}"
    if isinstance(error, (PackhorseError, *safe)) and (text := _text(error)):
        told = f"{told}: {without_secrets(text[:_MOST_TEXT])}"
    return inert(told, limit=ERROR_MAX)


def _text(error: BaseException) -> str:
    """Return the text of *error*; none when its own `__str__` fails, which must not become the fault of the lane."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 it is the application's code
        return ""


def _place(trace: TracebackType | None) -> str:
    """Return where the application's own code was: the innermost frame outside installed libraries and ourselves."""
    frames = [
        (frame.f_code.co_filename, line, frame.f_code.co_qualname) for frame, line in traceback.walk_tb(trace)
    ]
    own = [frame for frame in frames if not _is_library(frame[0])]
    if not (own or frames):
        return ""
    file, line, function = (own or frames)[-1]
    short = "/".join(file.replace("\\", "/").rsplit("/", 2)[-2:])
    return f"{short}:{line} in {function}"


def _is_library(file: str) -> bool:
    return "site-packages" in file or "/packhorse/processor/" in file or file.startswith("<frozen")
