"""Messages that wait in the tables: in quarantine, or behind parked keys; each of a key of its own."""

import time
from collections.abc import Iterable, Mapping
from uuid import UUID

import psycopg
from bench.processor.ground import Place
from bench.processor.messages import record

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.processor.record import key_hash
from packhorse.processor.storing.rows import headers_text

INBOX = """
COPY packhorse.inbox (group_id, topic, message_id, outcome, attempt, partition, "offset", type, reason, first_failed_at) FROM STDIN"""
QUARANTINED = """
COPY packhorse.quarantined_message (group_id, topic, message_id, topic_id, partition, "offset", key, payload, headers,
    type, reason, attempts, first_failed_at, copy_partition, copy_offset, key_hash) FROM STDIN"""
PARKED_KEY = (
    "COPY packhorse.parked_key (group_id, topic, key_hash, key, partition, head_id, wake_at) FROM STDIN"
)
PARKED_MESSAGE = """
COPY packhorse.parked_message (group_id, topic, message_id, key_hash, topic_age, topic_id, partition, "offset", timestamp_ms, key,
    payload, headers, type) FROM STDIN"""
ANALYZE = (
    "ANALYZE packhorse.inbox, packhorse.quarantined_message, packhorse.parked_key, packhorse.parked_message"
)


def _rows(place: Place, messages: int) -> list[tuple[UUID, int, bytes, bytes, str]]:
    """Return messages: id, partition, key, payload, headers."""
    found = []
    for n in range(messages):
        made = record("avro", place.namespace, place.filled.schema_id, n + 1_000_000, 0)
        message_id = SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now())
        headers = headers_text((("id", str(message_id).encode()), *made["headers"][1:]))
        found.append((message_id, n % 6, b"waits-%d" % n, made["value"], headers))
    return found


def quarantine(place: Place, topic_id: UUID, messages: int) -> None:
    """Put messages into quarantine, each the head of its key, their copies confirmed."""
    who, rows, at = (place.group, place.topic), _rows(place, messages), SYSTEM_CLOCK.now()
    kind = "bench.OrderPlaced"
    _copy(
        place,
        {
            INBOX: ((*who, i, "quarantine", 1, p, 0, kind, "permanent-error", at) for i, p, _, _, _ in rows),
            QUARANTINED: (
                (
                    *who,
                    i,
                    topic_id,
                    p,
                    0,
                    key,
                    value,
                    headers,
                    kind,
                    "permanent-error",
                    1,
                    at,
                    p,
                    0,
                    key_hash(key),
                )
                for i, p, key, value, headers in rows
            ),
            PARKED_KEY: ((*who, key_hash(key), key, p, i, None) for i, p, key, _, _ in rows),
        },
    )


def park(place: Place, topic_id: UUID, messages: int) -> None:
    """Park keys without a head, each with one follower; nobody is to look at them yet."""
    who, rows, later = (place.group, place.topic), _rows(place, messages), "2100-01-01"
    kind, now = "bench.OrderPlaced", int(time.time() * 1000)
    _copy(
        place,
        {
            INBOX: ((*who, i, "parked", 1, p, 0, kind, None, None) for i, p, _, _, _ in rows),
            PARKED_MESSAGE: (
                (*who, i, key_hash(key), 0, topic_id, p, 0, now, key, value, headers, kind)
                for i, p, key, value, headers in rows
            ),
            PARKED_KEY: ((*who, key_hash(key), key, p, None, later) for _, p, key, _, _ in rows),
        },
    )


def _copy(place: Place, tables: Mapping[str, Iterable[tuple[object, ...]]]) -> None:
    with psycopg.connect(place.database) as connection:
        for text, rows in tables.items():
            with connection.cursor().copy(text.encode()) as copy:
                for row in rows:
                    copy.write_row(row)
    with psycopg.connect(place.database, autocommit=True) as connection:
        connection.execute(ANALYZE)
