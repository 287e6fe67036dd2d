"""Whose fault an error is, and how much of its text is kept."""

from typing import Any, ClassVar
from uuid import UUID

import psycopg
import pytest
from psycopg import errors as pg
from sqlalchemy.exc import OperationalError

from packhorse.core.errors import KeysLocked, RegistryUnavailable, Undecodable
from packhorse.core.message import MessageType
from packhorse.processor import Processor, Quarantine, Skip
from packhorse.processor.handlers import Handler
from packhorse.processor.member.queue import bytes_of
from packhorse.processor.record import Record, Stream, delivery_of
from packhorse.processor.running.faults import ERROR_MAX, describe, ran_of
from packhorse.processor.running.judging import faulty
from packhorse.processor.running.work import Failure, Member


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


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("an error in the error")


@pytest.mark.case("P-29")
def test_an_error_that_cant_say_its_text_is_judged_like_any_other() -> None:
    """Fails when `str` is asked without care: the lane would break and the process end at that message at each start."""
    ran = ran_of(thrown(Mute()), handler(safe=(Mute,)), touched=True, alive=True)
    assert (ran.failure, ran.reason) == (Failure.TEMPORARY, "failed")
    assert "Mute" in ran.error
    assert "an error in the error" not in ran.error


@pytest.mark.case("T-13")
def test_the_text_of_a_fault_is_capped_like_any_other() -> None:
    """Fails when what the decoder says goes into header and table at whatever length."""
    record = Record("unit.orders", 0, 0, 0, 0, None, b"x", (("type", b"unit.Placed"),))
    delivery = delivery_of(record, Stream(topic="unit.orders", topic_id=UUID(int=1), source="unit.orders"))
    error = faulty(Member(delivery=delivery), Undecodable("long\0" * 10_000)).error
    assert error is not None
    assert "\0" not in error
    assert len(error) <= 4 * ERROR_MAX


def test_what_is_read_ahead_is_measured_with_its_headers() -> None:
    """Fails when headers count for nothing: small messages with large ones would fill the memory."""
    record = Record("unit.orders", 0, 0, 0, 0, b"k", None, (("name", b"x" * 1_000_000), ("null", None)))
    assert bytes_of(record) == 1_000_009
