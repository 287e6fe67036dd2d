"""Put rows into the real tables as relay and processor would, to stage what the console is to see; and read values."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK

_OUTBOX = """
INSERT INTO packhorse.outbox (id, aggregatetype, aggregateid, type, schema_version, payload)
VALUES (%(id)s, %(aggregatetype)s, %(key)s, %(type)s, '1', %(payload)s) RETURNING created_at AT TIME ZONE 'UTC'
"""
_INBOX = """
INSERT INTO packhorse.inbox
    (group_id, topic, message_id, outcome, attempt, deliveries, partition, "offset", type, reason, error, due_at)
VALUES (%(group)s, %(topic)s, %(id)s, %(outcome)s, %(attempt)s, %(deliveries)s, %(partition)s, %(offset)s, %(type)s,
        %(reason)s, %(error)s, %(due_at)s)
"""
_QUARANTINED = """
INSERT INTO packhorse.quarantined_message
    (group_id, topic, message_id, topic_id, partition, "offset", key, payload, headers, type, tenant, reason, error,
     attempts, first_failed_at, quarantined_at)
VALUES (%(group)s, %(topic)s, %(id)s, %(topic_id)s, %(partition)s, %(offset)s, %(key)s, %(payload)s, %(headers)s,
        %(type)s, %(tenant)s, %(reason)s, %(error)s, %(attempt)s, clock_timestamp(),
        coalesce(%(quarantined_at)s, clock_timestamp()))
"""
_DEFAULTS: dict[str, Any] = {
    "group": "figures",
    "topic": "airline.aircraft",
    "aggregatetype": "aircraft",
    "key": b"N14228",
    "type": "airline.FlightDeparted",
    "payload": b"\x00\x00\x00\x00\x01x",
    "outcome": "done",
    "attempt": 1,
    "deliveries": 1,
    "partition": 2,
    "offset": 1234,
    "reason": None,
    "error": None,
    "due_at": None,
    "tenant": None,
    "quarantined_at": None,
}


def new_id() -> UUID:
    """Return a message id of now."""
    return SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now())


def recorded(connection: psycopg.Connection[Any], *, key: str | None = "N14228", **given: Any) -> UUID:
    """Insert an outbox row and return its id; the caller commits."""
    values = {**_DEFAULTS, "id": new_id(), **given, "key": key}
    connection.execute(_OUTBOX, values)
    found: UUID = values["id"]
    return found


def handled(connection: psycopg.Connection[Any], message_id: UUID | None = None, **given: Any) -> UUID:
    """Insert an inbox row and return the message's id."""
    values = {**_DEFAULTS, "id": message_id or new_id(), **given}
    connection.execute(_INBOX, values)
    found: UUID = values["id"]
    return found


def rested(
    connection: psycopg.Connection[Any],
    message_id: UUID | None = None,
    *,
    headers: Sequence[Sequence[str | None]] = (),
    quarantined_at: datetime | None = None,
    **given: Any,
) -> UUID:
    """Insert a message in quarantine, with its inbox row, and return its id."""
    values = {
        **_DEFAULTS,
        "id": message_id or new_id(),
        "attempt": 5,
        "reason": "attempts-exhausted",
        "error": "ValueError at handlers.py:12",
        "outcome": "quarantine",
        "quarantined_at": quarantined_at,
        **given,
    }
    held = {**values, "topic_id": SYSTEM_CHANCE.token(), "headers": Jsonb(list(headers), dumps=json.dumps)}
    connection.execute(_INBOX, values)
    connection.execute(_QUARANTINED, held)
    found: UUID = values["id"]
    return found


def horizon_past_all(connection: psycopg.Connection[Any]) -> None:
    """Let the relay have published everything that is committed."""
    connection.execute(
        "UPDATE packhorse.relay SET epoch = 1, target = NULL, horizon = (SELECT pg_current_snapshot()) WHERE shard = 0"
    )


def one(connection: psycopg.Connection[Any], query: str, *values: object) -> Any:
    """Return the first value of *query*; None where it finds no row."""
    row = connection.execute(query, values).fetchone()
    return None if row is None else row[0]
