"""Copies of messages for the group's own topics: the bytes as they were, and where they come from."""

from dataclasses import dataclass
from datetime import UTC, datetime

from packhorse.core.naming import quarantine_topic, retry_topic
from packhorse.processor.record import HeaderList
from packhorse.processor.storing.store import Quarantined


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One record to produce; the partition is the original's."""

    of: Quarantined
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: HeaderList


def to_quarantine(message: Quarantined, group: str) -> Copy:
    """Return the copy that rests in the quarantine topic."""
    return _copy(message, group, quarantine_topic(message.topic, group), due_at=None)


def to_retry(message: Quarantined, group: str, now: datetime) -> Copy:
    """Return the copy that brings a redriven message back, due at once."""
    return _copy(message, group, retry_topic(message.topic, group, "0s"), due_at=now)


def _copy(message: Quarantined, group: str, topic: str, *, due_at: datetime | None) -> Copy:
    told = (
        ("attempt", str(message.attempt)),
        ("first-failed-at", _iso(message.first_failed_at)),
        ("due-at", None if due_at is None else _iso(due_at)),
        ("reason", message.reason),
        ("error", message.error),
        ("source-topic", message.topic),
        ("source-topic-id", str(message.topic_id)),
        ("source-partition", str(message.partition)),
        ("source-offset", str(message.offset)),
        ("group", group),
    )
    return Copy(
        of=message,
        topic=topic,
        partition=message.partition,
        key=message.key,
        value=message.payload,
        headers=(*message.headers, *((name, text.encode()) for name, text in told if text is not None)),
    )


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
