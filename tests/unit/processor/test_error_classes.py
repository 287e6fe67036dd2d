"""What errors of databases, servers and applications are taken for, declared or not."""

import subprocess
import sys
import urllib.error
from email.message import Message
from typing import Any, ClassVar

import httpx
import psycopg
import pytest
import requests
from psycopg import errors as pg
from sqlalchemy.exc import DataError, IntegrityError, OperationalError
from sqlalchemy.orm.exc import StaleDataError

from packhorse.core.errors import BrokerUnavailable, KeysLocked
from packhorse.core.message import MessageType
from packhorse.processor import Later, Processor, Quarantine, Retry, Skip
from packhorse.processor.handlers import Handler
from packhorse.processor.running.defaults import (
    SQLSTATES,
    STATUSES,
    ErrorClass,
    code_of,
    default_of,
    least_wait,
)
from packhorse.processor.running.faults import describe, ran_of
from packhorse.processor.running.work import Failure, Ran

SENT = "Mon, 30 Nov 2026 08:00:00 GMT"
TOLD = "Mon, 30 Nov 2026 08:02:00 GMT"


class Placed:
    __packhorse__: ClassVar[MessageType] = MessageType(
        type="unit.Placed", version=1, namespace="unit", aggregatetype="orders", schema="{}"
    )


class OfTheApplication(Exception):
    pass


def handler(**more: Any) -> Handler:
    app = Processor("unit")
    app.handler(Placed, **more)(lambda message, ctx: None)
    found = app.handler_of("unit.Placed", tombstone=False)
    assert found is not None
    return found


def judged(error: BaseException, **declared: Any) -> Ran:
    return ran_of(error, handler(**declared), touched=True, alive=True)


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def of_httpx(status: int, **headers: str) -> httpx.HTTPStatusError:
    request = httpx.Request("GET", "http://unit")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.HTTPStatusError("x", request=request, response=httpx.Response(status, headers=named))


def of_requests(status: int, **headers: str) -> requests.HTTPError:
    response = requests.Response()
    response.status_code = status
    response.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    return requests.HTTPError("x", response=response)


def of_urllib(status: int, **headers: str) -> urllib.error.HTTPError:
    message = Message()
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    return urllib.error.HTTPError("http://unit", status, "x", message, None)


def of_aiohttp(status: int, **headers: str) -> Exception:
    """Return an error as aiohttp's are: it is not installed here."""
    kind = type("ClientResponseError", (Exception,), {"__module__": "aiohttp.client_exceptions"})
    error: Any = kind("x")
    error.status, error.headers = status, {name.replace("_", "-"): value for name, value in headers.items()}
    return error  # type: ignore[no-any-return]


class OfPsycopg2(Exception):
    pgcode = "40001"


@pytest.mark.parametrize(
    ("error", "means"),
    [
        (pg.StringDataRightTruncation(), ErrorClass.PERMANENT),
        (pg.DivisionByZero(), ErrorClass.TEMPORARY),
        (psycopg.DataError("a text can't contain NUL"), ErrorClass.PERMANENT),
        (DataError("s", {}, pg.NumericValueOutOfRange()), ErrorClass.PERMANENT),
        (caused(OfTheApplication(), pg.NumericValueOutOfRange()), ErrorClass.TEMPORARY),
        (pg.ForeignKeyViolation(), ErrorClass.TEMPORARY),
        (IntegrityError("s", {}, pg.UniqueViolation()), ErrorClass.TEMPORARY),
        (pg.CheckViolation(), ErrorClass.TEMPORARY),
        (pg.UndefinedColumn(), ErrorClass.TEMPORARY),
        (pg.InvalidPassword(), ErrorClass.TEMPORARY),
        (pg.QueryCanceled(), ErrorClass.TEMPORARY),
        (pg.RaiseException(), ErrorClass.TEMPORARY),
        (pg.ProgramLimitExceeded(), ErrorClass.PERMANENT),
        (pg.DiskFull(), ErrorClass.INFRASTRUCTURE),
        (pg.AdminShutdown(), ErrorClass.INFRASTRUCTURE),
        (pg.ReadOnlySqlTransaction(), ErrorClass.INFRASTRUCTURE),
        (pg.InFailedSqlTransaction(), ErrorClass.TEMPORARY),
        (OperationalError("s", {}, pg.DeadlockDetected()), ErrorClass.CONTENTION),
        (OfPsycopg2(), ErrorClass.CONTENTION),
        (StaleDataError(), ErrorClass.CONTENTION),
        (caused(OfTheApplication(), KeysLocked("x")), ErrorClass.CONTENTION),
        (BrokerUnavailable("x"), ErrorClass.INFRASTRUCTURE),
        (psycopg.OperationalError("the handler's other database"), ErrorClass.TEMPORARY),
        (httpx.ConnectError("x"), ErrorClass.TEMPORARY),
        (httpx.ReadTimeout("x"), ErrorClass.TEMPORARY),
        (requests.ConnectionError(), ErrorClass.TEMPORARY),
        (requests.HTTPError("without a response"), ErrorClass.TEMPORARY),
        (OSError(28, "x"), ErrorClass.TEMPORARY),
        (TimeoutError(), ErrorClass.TEMPORARY),
        (MemoryError(), ErrorClass.TEMPORARY),
        (RecursionError(), ErrorClass.TEMPORARY),
    ],
    ids=lambda value: type(value).__qualname__,
)
def test_defaults(error: Exception, means: ErrorClass) -> None:
    """Fails when a SQLSTATE's class changes, or `permanent` is taken from the cause of an application's own error."""
    assert default_of(error) is means


@pytest.mark.parametrize("make", [of_httpx, of_requests, of_urllib, of_aiohttp])
def test_answers_of_servers(make: Any) -> None:
    """Fails when a library's errors are not known by where they keep status and headers."""
    for status in (400, 410, 413, 422):
        assert default_of(make(status)) is ErrorClass.PERMANENT
    for status in (401, 403, 404, 408, 409, 429, 500, 503):
        assert default_of(make(status)) is ErrorClass.TEMPORARY
    assert code_of(make(503)) == "503"
    assert least_wait(make(429, Retry_After="120")) == 120
    assert least_wait(make(503, Retry_After=TOLD, Date=SENT)) == 120
    assert least_wait(make(503, Retry_After=TOLD)) == 0
    assert least_wait(make(503, Retry_After=SENT, Date=TOLD)) == 0
    assert least_wait(make(429, Retry_After="9" * 400)) == 3600
    assert least_wait(make(429, Retry_After="soon")) == 0
    assert least_wait(make(429)) == 0
    assert least_wait(caused(OfTheApplication(), make(429, Retry_After="120"))) == 120
    ran = judged(make(429, Retry_After="120"))
    assert (ran.failure, ran.least, ran.after) == (Failure.TEMPORARY, 120, None)


class Odd(httpx.HTTPError):
    @property
    def response(self) -> httpx.Response:
        raise RuntimeError("not set")

    @property
    def orig(self) -> Exception:
        raise RuntimeError("not set")

    sqlstate = "no code, a password"


def test_an_error_that_fails_when_it_is_asked_is_judged_like_any_other() -> None:
    """Fails when attributes of other people's errors are read without care."""
    assert default_of(Odd("x")) is ErrorClass.TEMPORARY
    assert least_wait(Odd("x")) == 0
    assert "password" not in describe(Odd("x"))


def test_tables_have_no_two_rows_for_one_thing() -> None:
    for table in (SQLSTATES, STATUSES):
        names = [rule.known_by for rule in table]
        assert len(set(names)) == len(names)


class Nearer(ConnectionError):
    pass


@pytest.mark.parametrize(
    ("error", "declared", "failure", "reason"),
    [
        # 3: on purpose, before anything that is declared
        (Quarantine("no-such-airport"), {"down": (Exception,)}, Failure.PERMANENT, "no-such-airport"),
        (Skip("x"), {"permanent": (Exception,)}, Failure.SKIP, ""),
        (Retry(after="5m"), {"permanent": (Exception,)}, Failure.TEMPORARY, "failed"),
        (Later(after="5m"), {"permanent": (Exception,)}, Failure.LATER, "later"),
        # 4: the very class, also before contention
        (ConnectionError(), {"down": (ConnectionError,)}, Failure.DOWN, "down"),
        (pg.LockNotAvailable(), {"permanent": (pg.LockNotAvailable,)}, Failure.PERMANENT, "permanent"),
        (
            IntegrityError("s", {}, pg.UniqueViolation()),
            {"permanent": (pg.UniqueViolation,)},
            Failure.PERMANENT,
            "permanent",
        ),
        # 5: contention before a class further up
        (pg.DeadlockDetected(), {"permanent": (psycopg.Error,)}, Failure.CONTENTION, "contention"),
        (pg.DeadlockDetected(), {"down": (psycopg.OperationalError,)}, Failure.CONTENTION, "contention"),
        # 6: down, also by what it was raised from and before infrastructure
        (
            caused(OfTheApplication(), ConnectionError()),
            {"down": (ConnectionError,)},
            Failure.DOWN,
            "down",
        ),
        (pg.CannotConnectNow(), {"down": (psycopg.OperationalError,)}, Failure.DOWN, "down"),
        (Nearer(), {"down": (OSError,), "permanent": (ConnectionError,)}, Failure.PERMANENT, "permanent"),
        (Nearer(), {"down": (ConnectionError,), "permanent": (OSError,)}, Failure.DOWN, "down"),
        # 7: infrastructure before permanent
        (pg.DiskFull(), {"permanent": (psycopg.Error,)}, Failure.CONNECTION, ""),
        # 8: permanent, not by what it was raised from
        (KeyError(), {"permanent": (LookupError,)}, Failure.PERMANENT, "permanent"),
        (caused(OfTheApplication(), KeyError()), {"permanent": (KeyError,)}, Failure.TEMPORARY, "failed"),
        # 9: the defaults
        (pg.StringDataRightTruncation(), {}, Failure.PERMANENT, "refused"),
        (ValueError(), {"down": (OSError,), "permanent": (KeyError,)}, Failure.TEMPORARY, "failed"),
    ],
)
def test_what_is_declared_wins_in_the_stated_order(
    error: Exception, declared: dict[str, Any], failure: Failure, reason: str
) -> None:
    """Fails when two rules of `ran_of` are swapped."""
    ran = judged(error, **declared)
    assert (ran.failure, ran.reason) == (failure, reason)


def test_what_a_handler_asks_for_is_handed_on() -> None:
    assert judged(Retry("why", after="5m")).after == 300
    assert judged(Retry()).after is None
    assert judged(Retry("why", after="5m")).error.endswith("Retry: why")
    assert judged(Later(after="2h")).after == 7200


@pytest.mark.parametrize(
    ("members", "failure"),
    [
        ([Quarantine("a")], Failure.PERMANENT),
        ([ExceptionGroup("inner", [Skip("x")])], Failure.SKIP),
        ([Quarantine("a"), ConnectionError()], Failure.TEMPORARY),
        ([ValueError(), pg.DeadlockDetected()], Failure.CONTENTION),
        ([ValueError(), Later(after="1m")], Failure.LATER),
    ],
)
def test_of_a_group_the_mildest_decides(members: list[Exception], failure: Failure) -> None:
    """Fails when a group is taken as one unknown error: what a task of a TaskGroup raises on purpose would be lost."""
    ran = judged(ExceptionGroup("tasks", members))
    assert ran.failure is failure
    assert "ExceptionGroup" not in ran.error


def test_no_library_is_imported_for_its_errors() -> None:
    """Fails when defaults import what the application does not use."""
    code = (
        "import sys; import packhorse.processor.running.faults; "
        "print([m for m in ('httpx', 'requests', 'sqlalchemy', 'psycopg', 'aiohttp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
