"""What stands around one quarantined message, and what of it is shown to whom. Pure: no I/O, no clock."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from packhorse.console.quarantine.groups.model import Known
from packhorse.core.ids import derived_id
from packhorse.schemas.redaction import MASK

FIRST_FOLLOWERS = 20
FIRST_CAUSED = 32
"""Follow-ups of one handler's run that are looked for; who writes more is told that there may be more."""

HeaderList = tuple[tuple[str, bytes | None], ...]
_PLAIN = frozenset(
    (
        *(
            "id",
            "type",
            "schema-version",
            "traceparent",
            "tracestate",
            "correlation-id",
            "causation-id",
            "origin",
        ),
        *("tenant", "expires-at", "attempt", "first-failed-at", "due-at", "reason", "error", "source-topic"),
        *("source-topic-id", "source-partition", "source-offset", "group"),
    )
)
"""Headers whose values say nothing about a person; of all others a value may: `actor`, the long tail, and what is foreign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """
    A message as it arrived.

    Attributes:
        erased_at: When key, payload and headers were erased; None: they were not, and no payload is a tombstone.
    """

    payload: bytes | None
    headers: HeaderList
    erased_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caused:
    """A message that the handler wrote while it handled this one, as the outbox still has it."""

    id: UUID
    type: str
    aggregatetype: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class InRedrive:
    """A redrive of a set that the message was a member of, and what became of it there."""

    redrive: int
    state: str
    stage: int | None
    asked_at: datetime | None
    said: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """
    What stands around one quarantined message.

    Attributes:
        behind: Messages that wait behind it; `followers` names the first of them, in order.
        caused: What its handler wrote under ids derived from its own; `caused_said` says how far that is known.
        failure, known: The group of failures that it belongs to, and what people know of it.
    """

    behind: int
    followers: tuple[UUID, ...]
    caused: tuple[Caused, ...]
    caused_said: str
    redrives: tuple[InRedrive, ...]
    failure: str
    known: Known


def follow_ups(message_id: UUID, group: str) -> list[UUID]:
    """Return the ids that the first follow-ups have which *group* writes while it handles *message_id*."""
    return [derived_id(message_id, group, ordinal) for ordinal in range(FIRST_CAUSED)]


def caused_said(found: int) -> str:
    """
    Say how far it is known what a message has caused.

    >>> caused_said(0)
    'nothing in the outbox under an id derived from it; what a handler writes elsewhere, and rows that are gone, are not known'
    """
    if found == FIRST_CAUSED:
        return f"the first {FIRST_CAUSED}; there may be more"
    if found:
        return "all that the outbox still has under ids derived from it; what a handler writes elsewhere is not known"
    return (
        "nothing in the outbox under an id derived from it; what a handler writes elsewhere, and rows that are gone, are not "
        "known"
    )


def hidden(headers: Iterable[tuple[str, bytes | None]]) -> HeaderList:
    """
    Return *headers* with every value masked that may say who somebody is.

    >>> hidden([("type", b"shop.OrderPlaced"), ("actor", b"ann"), ("headers", None)])
    (('type', b'shop.OrderPlaced'), ('actor', b'***'), ('headers', None))
    """
    return tuple(
        (name, value if name in _PLAIN or value is None else MASK.encode()) for name, value in headers
    )
