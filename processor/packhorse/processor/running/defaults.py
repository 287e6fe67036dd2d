"""
What an error is taken for when its handler declares nothing: by SQLSTATE, by HTTP status, by class.

No library is imported for it: a class is known by the names of its module and its own, a SQLSTATE or a status by the
attribute that the library's errors have. What is not named here is temporary: that costs at most some attempts, while
`permanent` sends to quarantine at once what would have gone well a minute later. So an error is permanent by default only
where the database or the server refuses the values themselves, whatever anybody else does meanwhile.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import NamedTuple

from packhorse.core.errors import InfrastructureError, KeysLocked


class ErrorClass(StrEnum):
    """Whose fault an error is taken for."""

    TEMPORARY = "temporary"
    PERMANENT = "permanent"
    CONTENTION = "contention"
    INFRASTRUCTURE = "infrastructure"


class Rule(NamedTuple):
    """
    A row of a table of defaults.

    Attributes:
        known_by: What the error is known by: the start of a SQLSTATE, an HTTP status, or a class.
        means: Its class.
        why: What it says and why it is taken so, for people.
    """

    known_by: str
    means: ErrorClass
    why: str


_T, _P = ErrorClass.TEMPORARY, ErrorClass.PERMANENT
_C, _I = ErrorClass.CONTENTION, ErrorClass.INFRASTRUCTURE

SQLSTATES: tuple[Rule, ...] = (
    Rule("08", _I, "the connection broke or was refused"),
    Rule("22", _P, "the value does not fit: too long, out of range, no such date, a NUL in a text"),
    Rule("22012", _T, "division by zero: the divisor often stands in another row"),
    Rule("2200H", _T, "a sequence is at its end; somebody raises it"),
    Rule("23", _T, "a constraint: the row that is missing or in the way may come or go with another message"),
    Rule("25006", _I, "read-only: a standby answers"),
    Rule("25P03", _I, "the transaction was idle for too long and was ended"),
    Rule("25P04", _I, "the transaction took too long and was ended"),
    Rule("28", _T, "a password or role is refused; somebody mends it"),
    Rule("3D", _T, "a database is missing; somebody makes it"),
    Rule("40001", _C, "serialization failure: another transaction was first"),
    Rule("40P01", _C, "deadlock"),
    Rule(
        "42",
        _T,
        "a table, column, function or right is missing, or a query is wrong: a migration or deploy mends it",
    ),
    Rule("53", _I, "no connection, memory or space left"),
    Rule("54", _P, "a limit of the database: too large for an index, nested too deeply"),
    Rule("55P03", _C, "the lock was not to be had in time"),
    Rule("57014", _T, "the query was cancelled, by a time-out or a person"),
    Rule("57P", _I, "the server shuts down, starts, or one of its processes crashed"),
    Rule("58", _I, "the server's own input and output"),
)
"""By SQLSTATE; the longest start decides. psycopg, asyncpg and psycopg2, and what SQLAlchemy wraps."""

STATUSES: tuple[Rule, ...] = (
    Rule("400", _P, "bad request: the content is refused"),
    Rule("410", _P, "gone for good"),
    Rule("413", _P, "the content is too large"),
    Rule("414", _P, "the address is too long"),
    Rule("422", _P, "the content is refused"),
    Rule("431", _P, "the headers are too large"),
    Rule("451", _P, "refused for legal reasons"),
    Rule("401, 403, 407", _T, "a credential or right is missing; somebody mends it"),
    Rule("404, 409, 412, 423, 424", _T, "what is missing or in the way may come or go with another message"),
    Rule("408, 425, 429, 5xx", _T, "the server can't now; `Retry-After` is honoured, up to an hour"),
    Rule("any other", _T, "a wrong address or method: a deploy mends it"),
)
"""By HTTP status: httpx, requests, aiohttp and urllib."""

CLASSES: tuple[Rule, ...] = (
    Rule("packhorse.core.errors.InfrastructureError", _I, "database, broker or registry of ours is away"),
    Rule("packhorse.core.errors.KeysLocked", _C, "another transaction holds a key of the outbox"),
    Rule(
        "psycopg.DataError",
        _P,
        "without SQLSTATE: psycopg itself finds that a value can't be sent, such as a NUL",
    ),
    Rule(
        "sqlalchemy.orm.exc.StaleDataError", _C, "a version counter says that another transaction was first"
    ),
    Rule(
        "OSError", _T, "files, sockets, names, time-outs: connection errors of httpx and requests are like it"
    ),
    Rule("MemoryError, RecursionError", _T, "the message's own: too large or too deep for this process"),
    Rule("any other", _T, "a bug, or something that nobody foresaw: a deploy may mend it"),
)
"""By class."""

RETRY_AFTER_MAX = 3600.0
"""Longest wait that a server is granted by `Retry-After`, in seconds."""

_BY_SQLSTATE = {rule.known_by: rule.means for rule in SQLSTATES}
_REFUSED = frozenset(int(rule.known_by) for rule in STATUSES if rule.means is _P)
_SQLSTATE = re.compile(r"[0-9A-Z]{5}")
_HTTP = frozenset({"httpx", "httpx2", "requests", "aiohttp", "urllib"})


def default_of(error: BaseException) -> ErrorClass:
    """
    Return what *error* is taken for; what it wraps or was raised from may decide as well.

    Contention and infrastructure are told wherever they stand in the chain of causes, since the transaction is lost with
    them. Permanent is only what *error* says itself, or the driver's error that it wraps: an application that raises an
    error of its own from such a one has thought about it.
    """
    for one in chain(error):
        if (means := _told_by(one)) in {_C, _I}:
            return means
    return _P if any(_told_by(one) is _P for one in wrapped(error)) else _T


def least_wait(error: BaseException) -> float:
    """
    Return how many seconds the server whose answer *error* tells of wants its callers to wait; 0 when it says nothing.

    A date is compared with the answer's own `Date`, so that no clock of ours is asked.
    """
    for one in chain(error):
        if status_of(one) is not None:
            return min(_retry_after(_headers_of(one)), RETRY_AFTER_MAX)
    return 0.0


def code_of(error: BaseException) -> str:
    """Return SQLSTATE or HTTP status of *error* or of the driver's error that it wraps, for people; "" without one."""
    for one in wrapped(error):
        if code := _sqlstate(one) or status_of(one):
            return str(code)
    return ""


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of *error*, when it is an answer's and its library is one that we know."""
    if not any(str(cls.__module__).partition(".")[0] in _HTTP for cls in type(error).__mro__):
        return None
    found = (
        _attribute(_attribute(error, "response"), "status_code"),
        *(_attribute(error, n) for n in ("status", "code")),
    )
    return next((value for value in found if type(value) is int and 100 <= value <= 599), None)


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield *error*, what it wraps (SQLAlchemy's `orig`) and what it was raised from, each once."""
    return _walk(error, causes=True)


def wrapped(error: BaseException) -> Iterator[BaseException]:
    """Yield *error* and the driver's error that it wraps."""
    return _walk(error, causes=False)


def _walk(error: BaseException, *, causes: bool) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        inner = _attribute(current, "orig")
        cause = current.__cause__ if causes else None
        current = inner if isinstance(inner, BaseException) else cause


def _told_by(error: BaseException) -> ErrorClass | None:
    """Return what *error* alone says; None when no rule names it."""
    if isinstance(error, InfrastructureError):
        return _I
    if isinstance(error, KeysLocked) or _is_a(error, "sqlalchemy.orm.exc", "StaleDataError"):
        return _C
    if (state := _sqlstate(error)) is not None:
        return next((_BY_SQLSTATE[state[:n]] for n in range(5, 1, -1) if state[:n] in _BY_SQLSTATE), None)
    if _is_a(error, "psycopg", "DataError") or status_of(error) in _REFUSED:
        return _P
    return None


def _sqlstate(error: BaseException) -> str | None:
    state = _attribute(error, "sqlstate") or _attribute(error, "pgcode")
    return state if isinstance(state, str) and _SQLSTATE.fullmatch(state) else None


def _is_a(error: BaseException, module: str, name: str) -> bool:
    return any(cls.__module__ == module and cls.__qualname__ == name for cls in type(error).__mro__)


def _headers_of(error: BaseException) -> Mapping[str, str]:
    found = _attribute(_attribute(error, "response"), "headers") or _attribute(error, "headers")
    return found if hasattr(found, "get") else {}  # type: ignore[return-value]


def _retry_after(headers: Mapping[str, str]) -> float:
    try:
        told = headers.get("Retry-After")
        if told is None:
            return 0.0
        if (text := str(told).strip()).isdecimal():
            return float(text[:12])
        return max((_moment(text) - _moment(str(headers.get("Date")))).total_seconds(), 0.0)
    except Exception:  # noqa: BLE001 a server, a proxy or a test double wrote it
        return 0.0


def _moment(text: str) -> datetime:
    return parsedate_to_datetime(text)


def _attribute(of: object, name: str) -> object:
    """Return an attribute of somebody else's object; None when it has none, or fails when it is asked."""
    try:
        return getattr(of, name, None)
    except Exception:  # noqa: BLE001 a property of httpx raises when the response is not set
        return None
