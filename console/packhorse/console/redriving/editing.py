"""
Send an edited copy of a quarantined message: a new message that names its parent and takes its place at the head of its key.

The parent's bytes stay as they are, discarded and pointing to the copy. Pure: what the tables do stands in `edits`.
"""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from packhorse.console.quarantine.redrive import Order
from packhorse.core.errors import InvalidMessage, UsageError
from packhorse.processor.record import digest_of, key_hash
from packhorse.schemas.decode import Decoder, Plain
from packhorse.schemas.plain import changed_fields, encode_plain
from packhorse.schemas.redaction import shown

MOST_BYTES = 900 * 1024
"""Bytes of an edited payload: as many as the producer lets a message have by default."""
Headers = Sequence[tuple[str, str | None]]
"""As the tables keep them: names and values in base64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """
    The quarantined message that is to be edited, as it was looked at.

    Attributes:
        head: Of its key, where that is parked.
    """

    id: UUID
    group: str
    topic: str
    type: str | None
    payload: bytes | None = field(repr=False)
    headers: Headers = field(repr=False)
    key_hash: str | None
    redrives: int
    quarantined_at: datetime
    attempt: int
    head: UUID | None

    @property
    def order(self) -> Order:
        """Return how it was looked at, as a redrive or a discard names it."""
        return Order(
            id=self.id,
            group=self.group,
            topic=self.topic,
            attempt=self.attempt,
            redrives=self.redrives,
            quarantined_at=self.quarantined_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """
    An edited copy that can be sent.

    Attributes:
        changed: Paths of the fields that differ; never their values.
        hash: The key under which it is drained; its parent's, or one of its own where order does not bind it.
        own_key: What that own key is made of; None where it is the parent's.
    """

    parent: Parent
    id: UUID
    payload: bytes = field(repr=False)
    headers: Headers = field(repr=False)
    digest: str
    changed: tuple[str, ...]
    hash: str
    own_key: bytes | None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what speaks against it."""
        found = ["the parent is discarded for it, and can't be redriven any more"]
        if self.parent.key_hash is not None and self.parent.head not in {None, self.parent.id}:
            found.append(f"its key waits behind message {self.parent.head}: the copy runs after that one")
        if self.parent.key_hash is None:
            found.append("order does not bind it: it runs beside other messages of its key")
        return tuple(found)


def edited(parent: Parent, value: Any, decoder: Decoder, *, copy_id: UUID) -> Edit:
    """
    Return the copy of *parent* that *value*, JSON-able values as `quarantine show --payload` prints them, makes.

    It is encoded by the schema that the parent was written with.

    Raises:
        UsageError: The parent is a tombstone, or nothing differs.
        Undecodable, UnknownSchema, RegistryUnavailable: The parent can't be decoded, so it can't be edited.
        ValueMismatch: A value does not fit the schema; names the field.
        InvalidMessage: The payload is too large.
    """
    if parent.payload is None:
        raise UsageError(
            f"message {parent.id} is a tombstone: it has no payload to edit; redrive or discard it"
        )
    before = decoder.plain(parent.payload)
    payload = encode_plain(value, before.schema, before.schema_id, what=parent.type or "the message")
    if len(payload) > MOST_BYTES:
        raise InvalidMessage(f"the edited payload has {len(payload)} bytes; at most {MOST_BYTES} are allowed")
    changed = _changed(before, decoder.plain(payload))
    if not changed:
        raise UsageError(f"nothing differs from message {parent.id}; to send it as it is, redrive it")
    own = None if parent.key_hash is not None else b"packhorse edited copy " + copy_id.bytes
    return Edit(
        parent=parent,
        id=copy_id,
        payload=payload,
        headers=_headers(parent, copy_id),
        digest=digest_of(payload),
        changed=tuple(changed),
        hash=parent.key_hash or key_hash(own or b""),
        own_key=own,
    )


def _changed(before: Plain, after: Plain) -> list[str]:
    return changed_fields(shown(before.value), shown(after.value))


def _headers(parent: Parent, copy_id: UUID) -> list[tuple[str, str | None]]:
    """Return the parent's headers with the copy's id and the parent as what has caused it; the trace goes on."""
    told = {"id": _base64(copy_id), "causation-id": _base64(parent.id)}
    there = {name for name, _ in parent.headers}
    return [
        *((name, value) for name, value in told.items() if name not in there),
        *((name, told.get(name, value)) for name, value in parent.headers),
    ]


def _base64(message_id: UUID) -> str:
    return b64encode(str(message_id).encode()).decode()
