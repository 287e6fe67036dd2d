"""Makers of the console's facts, so that a test names only what it is about."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from packhorse.console.facts import (
    Act,
    Facts,
    Hold,
    InboxRow,
    OutboxRow,
    Outcome,
    QuarantinedMessage,
    State,
)
from packhorse.console.truth.jobs import Job
from packhorse.core.jobs import JobState

ID = UUID("019b76da-a800-7000-8000-000000000000")
NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)


def outbox_row(**given: Any) -> OutboxRow:
    """Return a row that no relay has published yet."""
    values: dict[str, Any] = {
        "id": ID,
        "aggregatetype": "aircraft",
        "key": "N14228",
        "type": "airline.FlightDeparted",
        "schema_version": "1",
        "payload_bytes": 20,
        "created_at": NOON,
        "correlation_id": None,
        "causation_id": None,
        "origin": "ops",
        "tenant": None,
        "traceparent": None,
        "expires_at": None,
        "published": False,
        "relay_ran": True,
    }
    return OutboxRow(**{**values, **given})


def hold(**given: Any) -> Hold:
    """Return a hold of the row's key that waits for a person."""
    values: dict[str, Any] = {
        "id": 12,
        "scope": "key",
        "partition": None,
        "partitions": None,
        "code": "too_large",
        "reason": "20560 bytes",
        "heals": False,
        "state": "held",
        "asked": False,
        "since": NOON,
    }
    return Hold(**{**values, **given})


def inbox_row(**given: Any) -> InboxRow:
    """Return the row of a message that is done."""
    values: dict[str, Any] = {
        "group": "figures",
        "topic": "airline.aircraft",
        "outcome": Outcome.DONE,
        "attempt": 1,
        "deliveries": 1,
        "partition": 2,
        "offset": 1234,
        "type": "airline.FlightDeparted",
        "due_at": None,
        "first_failed_at": None,
        "reason": None,
        "error": None,
        "recorded_at": NOON,
        "changed_at": NOON,
    }
    return InboxRow(**{**values, **given})


def quarantined(**given: Any) -> QuarantinedMessage:
    """Return a message that waits for a person."""
    values: dict[str, Any] = {
        "id": ID,
        "group": "figures",
        "topic": "airline.aircraft",
        "partition": 2,
        "offset": 1234,
        "key": b"N14228",
        "payload_bytes": 20,
        "type": "airline.FlightDeparted",
        "tenant": None,
        "reason": "attempts-exhausted",
        "error": "ValueError at handlers.py:12",
        "attempts": 5,
        "first_failed_at": NOON,
        "quarantined_at": NOON,
        "state": State.QUARANTINED,
        "copy_partition": 2,
        "copy_offset": 7,
        "redrives": 0,
        "redrive_sent_at": None,
    }
    return QuarantinedMessage(**{**values, **given})


def act(**given: Any) -> Act:
    """Return the record of a redrive."""
    values: dict[str, Any] = {
        "at": NOON,
        "actor": "ann (role ops)",
        "act": "redrive",
        "group": "figures",
        "topic": "airline.aircraft",
        "why": "fixed",
        "detail": {},
    }
    return Act(**{**values, **given})


def job(**given: Any) -> Job:
    """Return a job that was accepted at noon, and nothing more."""
    values: dict[str, Any] = dict.fromkeys(Job.__slots__)
    values |= {
        "id": ID,
        "type": "reports.ReportRequest",
        "version": 1,
        "topic": "reports.requests",
        "group": "reports",
        "state": "accepted",
        "attempt": 0,
        "priority": "normal",
        "accepted_at": NOON,
        "changed_at": NOON,
        "changed_by": "app",
        "input_bytes": 20,
        **given,
    }
    return Job(**{**values, "state": JobState(values["state"])})


def facts(**given: Any) -> Facts:
    """Return what a database knows; nothing but for what is given."""
    return Facts(**{"id": ID, "schema": "packhorse", **given})
