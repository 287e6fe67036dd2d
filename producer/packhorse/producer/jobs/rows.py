"""From a draft to the values that its rows have; every rule of them is checked here, without any I/O."""

import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from packhorse.core.errors import InvalidMessage, UsageError
from packhorse.core.jobs import PRIORITIES, topic_of
from packhorse.core.message import Message, MessageType, checked_payload
from packhorse.core.naming import checked_topic
from packhorse.producer.jobs.drafts import JobDraft
from packhorse.producer.jobs.messages import JobReference
from packhorse.producer.rows import (
    Outgoing,
    Stamp,
    checked_id,
    first_of,
    headers_text,
    kind_of,
    time_text,
    tracestate_of,
    utc_of,
)
from packhorse.schemas.codec import digest_message, encode_message

REFERENCE: Final = JobReference.__packhorse__
MAX_NAME: Final = 200
"""Longest request key or name, in characters."""
EARLIEST: Final = datetime(1, 1, 2, tzinfo=UTC)
LATEST: Final = datetime(9999, 12, 30, tzinfo=UTC)
"""
Bounds of a job's times. The database tells times in its session's zone, up to 16 hours away from UTC, and Python reads the years 1 to
9999 alone: a day nearer to their ends, one job would make every list that it stands in unreadable.
"""
NOBODY: Final = "application"
"""Who submitted a job when neither an actor nor an origin is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """The values of one job's rows, named as their columns; times are texts as headers have them."""

    id: UUID
    type: str
    version: int
    topic: str
    input: bytes
    tenant: str | None
    actor: str | None
    correlation_id: str | None
    causation_id: str | None
    origin: str | None
    traceparent: str | None
    request_key: str | None
    priority: str
    one_waiting: str | None
    one_running: str | None
    not_before: str | None
    expires_at: str | None
    changed_by: str
    aggregatetype: str
    payload: bytes
    tracestate: str | None
    headers: str | None
    digest: str | None

    @property
    def request(self) -> tuple[str, str, str] | None:
        """Return what its request key is unique in; None without one."""
        return None if self.request_key is None else (self.type, self.tenant or "", self.request_key)

    @property
    def name(self) -> tuple[str, str] | None:
        """Return what it waits alone by; None when it does not."""
        return None if self.one_waiting is None else (self.type, self.one_waiting)

    def values(self, *names: str) -> tuple[Any, ...]:
        """Return the values of the columns *names*."""
        return tuple(getattr(self, name) for name in names)


def input_kind(draft: JobDraft[Any]) -> MessageType:
    """
    Return the type of the input of *draft*.

    Raises:
        UsageError: *draft* is no draft, or its input no object of a generated class.
    """
    if not isinstance(draft, JobDraft):
        raise UsageError(f"submit_many was given {type(draft).__name__}; pass JobDraft(input=…)")
    return kind_of(Outgoing(message=draft.input, key=None))


def check(draft: JobDraft[Any], *, now: datetime) -> None:
    """
    Check what needs no encoding.

    Raises:
        InvalidMessage: Names what breaks its rule; never the value of a key or name.
    """
    for what in ("request_key", "one_waiting", "one_running"):
        _check_name(getattr(draft, what), what)
    if draft.priority not in PRIORITIES:
        raise InvalidMessage(f"priority={draft.priority!r} is not allowed: {', '.join(PRIORITIES)}")
    not_before = _readable(draft.not_before, what="not_before")
    expires_at = _readable(draft.expires_at, what="expires_at")
    if expires_at is not None and draft.one_waiting is not None:
        raise InvalidMessage(
            "one_waiting with expires_at is not allowed: whoever is given back a job that then expires has asked for work that is "
            "never done; leave one of them out"
        )
    if expires_at is not None and expires_at <= now:
        raise InvalidMessage(
            f"expires_at {time_text(expires_at)} has passed, it is {time_text(now)}: no run would ever begin"
        )
    if expires_at is not None and not_before is not None and expires_at <= not_before:
        raise InvalidMessage(
            f"expires_at {time_text(expires_at)} does not come after not_before {time_text(not_before)}: no run would ever begin"
        )


def job_row(draft: JobDraft[Any], job_id: UUID, stamp: Stamp, *, schema_id: int, reference_id: int) -> JobRow:
    """
    Return the rows of *draft*; *schema_id* is its input's, *reference_id* that of the reference in its message.

    Raises:
        InvalidMessage: A text, the id or the headers break their rule; ValueMismatch and PayloadTooLarge for the input.
    """
    kind = input_kind(draft)
    given = checked_payload(  # it stays in the job's row, so no topic bounds it
        encode_message(draft.input, schema_id), limit=stamp.max_payload_bytes, what="input", bound=""
    )
    assert given is not None
    reference = JobReference(id=str(checked_id(job_id)), type=kind.type, version=kind.version)
    message = _message(draft, job_id, topic_of(kind.aggregatetype, draft.priority), kind, stamp)
    expires_at = time_text(utc_of(draft.expires_at, what="expires_at"))
    return JobRow(
        id=job_id,
        type=kind.type,
        version=kind.version,
        topic=checked_topic(topic_of(kind.topic, draft.priority)),
        input=given,
        tenant=message.tenant,
        actor=message.actor,
        correlation_id=message.correlation_id,
        causation_id=message.causation_id,
        origin=message.origin,
        traceparent=message.traceparent,
        request_key=draft.request_key,
        priority=draft.priority,
        one_waiting=draft.one_waiting,
        one_running=draft.one_running,
        not_before=time_text(utc_of(draft.not_before, what="not_before")),
        expires_at=expires_at,
        changed_by=message.actor or message.origin or NOBODY,
        aggregatetype=message.aggregatetype,
        payload=encode_message(reference, reference_id),
        tracestate=message.tracestate,
        headers=headers_text(draft.headers),
        digest=None if draft.request_key is None else digest_message(draft.input),
    )


def _message(
    draft: JobDraft[Any], job_id: UUID, aggregatetype: str, kind: MessageType, stamp: Stamp
) -> Message:
    context, trace = stamp.context, stamp.trace
    return Message(
        id=job_id,
        aggregatetype=aggregatetype,
        aggregateid=None,
        type=kind.type,
        schema_version=str(kind.version),
        payload=None,
        traceparent=trace.traceparent if trace else None,
        tracestate=tracestate_of(trace),
        correlation_id=first_of(draft.correlation_id, context.correlation_id),
        causation_id=first_of(draft.causation_id, context.causation_id),
        origin=stamp.origin,
        actor=first_of(draft.actor, context.actor),
        tenant=first_of(draft.tenant, context.tenant),
    )


def _readable(given: datetime | None, *, what: str) -> datetime | None:
    """Return a time in UTC that can be read back in every zone; raise InvalidMessage for another."""
    utc = utc_of(given, what=what)
    if utc is not None and not EARLIEST <= utc <= LATEST:
        raise InvalidMessage(
            f"{what} {time_text(utc)} is not allowed: from {EARLIEST.date()} to {LATEST.date()}, so that it can be read in every time "
            "zone; leave it out for no bound"
        )
    return utc


def _check_name(value: object, what: str) -> None:
    if value is None:
        return
    if not isinstance(value, str):
        raise InvalidMessage(f"{what} is {type(value).__name__}; pass text")
    if not 1 <= len(value) <= MAX_NAME:
        raise InvalidMessage(f"{what} of {len(value)} characters is not allowed: 1 to {MAX_NAME}")
    at = next((n for n, one in enumerate(value) if unicodedata.category(one) in {"Cc", "Cs"}), None)
    if at is not None:
        raise InvalidMessage(
            f"{what} holds U+{ord(value[at]):04X} at position {at}: control characters and halves of surrogate pairs are not "
            "allowed"
        )
