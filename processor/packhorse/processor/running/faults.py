"""Errors of handlers and of the database, classed by whose fault they are; an error's text is kept only where allowed."""

import traceback
from collections.abc import Iterator
from types import TracebackType

from packhorse.core.errors import InfrastructureError, KeysLocked, MessageFault, PackhorseError
from packhorse.core.redaction import without_secrets
from packhorse.core.text import inert
from packhorse.processor.app import Handler
from packhorse.processor.outcomes import Quarantine, Reason, Skip
from packhorse.processor.running.work import Failure, Ran

ERROR_MAX = 512
"""Longest error text that is kept, in characters."""

CONTENTION = frozenset({"40001", "40P01", "55P03"})
"""serialization_failure, deadlock_detected, lock_not_available."""
UNAVAILABLE_CLASSES = ("08", "53", "57P", "58")
"""Connection exceptions, too many connections or no space, shutdowns, the server's own input and output."""
UNAVAILABLE = frozenset({"25006", "25P03", "25P04"})
"""read_only_sql_transaction: a standby answers; idle_in_transaction_session_timeout and transaction_timeout."""


def sqlstate_of(error: BaseException) -> str | None:
    """Return the SQLSTATE of *error* or of the driver's error that it wraps or was raised from."""
    for one in _chain(error):
        state = getattr(one, "sqlstate", None)
        if isinstance(state, str):
            return state
    return None


def is_contention(error: BaseException) -> bool:
    """Return whether the transaction lost to another one."""
    return isinstance(error, KeysLocked) or sqlstate_of(error) in CONTENTION


def is_unavailable(error: BaseException) -> bool:
    """Return whether *error* looks like infrastructure; a probe without the message has the last word."""
    if any(isinstance(one, InfrastructureError) for one in _chain(error)):
        return True
    state = sqlstate_of(error)
    return state is not None and (state in UNAVAILABLE or state.startswith(UNAVAILABLE_CLASSES))


def ran_of(error: BaseException, handler: Handler | None, *, touched: bool, alive: bool) -> Ran:
    """
    Return how a run that ended with *error* is judged; *alive* says whether the lane's connection still stands.

    SystemExit, KeyboardInterrupt and what else is no Exception stop the process. MemoryError and RecursionError are the
    message's own, as any Exception is that nobody declares otherwise.
    """
    told = describe(error, handler.safe if handler is not None else ())
    if not isinstance(error, Exception):
        return Ran(Failure.STOP, "", told, touched)
    if isinstance(error, Skip) and alive:
        return Ran(Failure.SKIP, "", inert(_text(error), limit=ERROR_MAX), touched)
    failure, reason = _class_of(error, handler) if alive else (Failure.CONNECTION, "")
    return Ran(failure, reason, told, touched)


def _class_of(error: Exception, handler: Handler | None) -> tuple[Failure, str]:
    if isinstance(error, Quarantine | MessageFault):
        return Failure.PERMANENT, error.reason
    if is_contention(error):
        return Failure.CONTENTION, Reason.CONTENTION.value
    if is_unavailable(error):
        return Failure.CONNECTION, ""
    if handler is not None and isinstance(error, handler.permanent):
        return Failure.PERMANENT, Reason.PERMANENT.value
    return Failure.TEMPORARY, Reason.FAILED.value


def describe(error: BaseException, safe: tuple[type[Exception], ...] = ()) -> str:
    """
    Return class and place of *error*, and its text only when it is our own or of a class declared *safe*; capped.

    Drivers and libraries quote values in their texts, so those are never kept.
    """
    cls = type(error)
    name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    place = _place(error.__traceback__)
    told = f"{name} at {place}" if place else name
    if isinstance(error, (PackhorseError, *safe)) and (text := _text(error)):
        told = f"{told}: {without_secrets(text)}"
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


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield *error*, what it wraps (SQLAlchemy's `orig`) and what it was raised from, each once."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        wrapped = getattr(current, "orig", None)
        current = wrapped if isinstance(wrapped, BaseException) else current.__cause__
