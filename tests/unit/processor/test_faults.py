"""Whose fault an error is, and how much of its text is kept."""

from typing import Any, ClassVar

import psycopg
import pytest
from psycopg import errors as pg
from sqlalchemy.exc import OperationalError

from packhorse.core.errors import KeysLocked, RegistryUnavailable, Undecodable
from packhorse.core.message import MessageType
from packhorse.processor import Processor, Quarantine, Skip
from packhorse.processor.app import Handler
from packhorse.processor.faults import ERROR_MAX, describe, ran_of
from packhorse.processor.work import Failure


class Placed:
    __packhorse__: ClassVar[MessageType] = MessageType(
        type="unit.Placed", version=1, namespace="unit", aggregatetype="orders", schema="{}"
    )


class Declared(Exception):
    pass


def handler(**more: Any) -> Handler:
    app = Processor("unit")
    app.handler(Placed, **more)(lambda message, ctx: None)
    found = app.handler_of("unit.Placed", tombstone=False)
    assert found is not None
    return found


def thrown(error: Exception) -> Exception:
    """Return *error* as it is after it was raised here."""
    with pytest.raises(type(error)) as raised:
        raise error
    return raised.value


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "failure", "reason"),
    [
        (ValueError("x"), Failure.TEMPORARY, "failed"),
        (MemoryError(), Failure.TEMPORARY, "failed"),
        (RecursionError(), Failure.TEMPORARY, "failed"),
        (pg.UniqueViolation(), Failure.TEMPORARY, "failed"),
        (Declared(), Failure.PERMANENT, "permanent"),
        (Quarantine("no-such-airport"), Failure.PERMANENT, "no-such-airport"),
        (Undecodable("x"), Failure.PERMANENT, "undecodable"),
        (Skip("x"), Failure.SKIP, ""),
        (pg.SerializationFailure(), Failure.CONTENTION, "contention"),
        (pg.DeadlockDetected(), Failure.CONTENTION, "contention"),
        (pg.LockNotAvailable(), Failure.CONTENTION, "contention"),
        (KeysLocked("x"), Failure.CONTENTION, "contention"),
        (OperationalError("s", {}, pg.DeadlockDetected()), Failure.CONTENTION, "contention"),
        (caused(ValueError(), pg.SerializationFailure()), Failure.CONTENTION, "contention"),
        (pg.AdminShutdown(), Failure.CONNECTION, ""),
        (pg.TooManyConnections(), Failure.CONNECTION, ""),
        (pg.ReadOnlySqlTransaction(), Failure.CONNECTION, ""),
        (RegistryUnavailable("x"), Failure.CONNECTION, ""),
        (SystemExit(1), Failure.STOP, ""),
        (KeyboardInterrupt(), Failure.STOP, ""),
    ],
)
def test_an_error_is_classed_by_whose_fault_it_is(
    error: BaseException, failure: Failure, reason: str
) -> None:
    ran = ran_of(error, handler(permanent=(Declared,)), touched=True, alive=True)
    assert (ran.failure, ran.reason) == (failure, reason)


def test_on_a_connection_that_is_gone_any_error_is_suspected_to_be_the_connections() -> None:
    assert ran_of(ValueError(), handler(), touched=True, alive=False).failure is Failure.CONNECTION
    assert ran_of(Skip("x"), handler(), touched=True, alive=False).failure is Failure.CONNECTION


@pytest.mark.case("X-07")
@pytest.mark.case("T-13")
def test_only_class_and_place_are_kept_of_other_peoples_errors() -> None:
    """Drivers quote values in their texts."""
    secret = "ada@example.org"
    for error in (ValueError(secret), pg.UniqueViolation(f"Key (email)=({secret})"), psycopg.Error(secret)):
        told = describe(thrown(error))
        assert secret not in told
        assert "test_faults.py:" in told
        assert "in thrown" in told
    assert describe(Declared("text"), (Declared,)).endswith("Declared: text")
    assert describe(Quarantine("a", "our own text")).endswith(": our own text")
    assert "\x1b" not in describe(Declared("\x1b[2J\0"), (Declared,))
    assert len(describe(Declared("x" * 10_000), (Declared,))) <= ERROR_MAX
