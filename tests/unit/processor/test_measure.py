"""What is said about a batch: who watches the process alone sees what fails."""

import logging
from uuid import UUID

import pytest

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.logs import Log
from packhorse.core.telemetry import NO_TELEMETRY
from packhorse.processor.outcomes import Outcome
from packhorse.processor.record import Record, Stream, delivery_of
from packhorse.processor.running.measure import Measure
from packhorse.processor.running.work import Result, Work

STREAM = Stream(topic="shop.orders", topic_id=UUID(int=1), source="shop.orders")


def result(outcome: Outcome, **more: object) -> Result:
    record = Record("shop.orders", 2, 7, 0, 0, b"the key", b"the payload", (("type", b"shop.Placed"),))
    return Result(delivery_of(record, STREAM), outcome, 1, **more)  # type: ignore[arg-type]


def test_what_fails_is_logged_and_what_ends_well_is_not(caplog: pytest.LogCaptureFixture) -> None:
    """Fails when `Measure._tell` is not called, or says key or payload."""
    measure = Measure(NO_TELEMETRY, SYSTEM_CLOCK, "billing", log=Log(logging.getLogger("said")))
    again = result(Outcome.RETRY, error="ValueError at app.py:3 in f", failed_as="failed", delay=1.25)
    stopped = result(Outcome.QUARANTINE, reason="no-account", error="Quarantine at app.py:4 in f")
    work = Work(stream=STREAM, partition=2, deliveries=[again.delivery], position=7, leader_epoch=0)
    with caplog.at_level(logging.INFO, logger="said"):
        measure.batch(work)([result(Outcome.DONE), again, stopped], 0)
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert told == [("WARNING", "attempt failed"), ("WARNING", "message in quarantine")]
    first, second = (vars(record)["packhorse_fields"] for record in caplog.records)
    assert (first["again_in"], first["error"], first["offset"]) == ("1.2 s", "ValueError at app.py:3 in f", 7)
    assert second["next"] == f"packhorse quarantine show {stopped.delivery.id}"
    assert not {"the key", "the payload"} & {str(value) for value in (*first.values(), *second.values())}
