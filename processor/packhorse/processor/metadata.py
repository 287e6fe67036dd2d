"""Who the message in hand is, read from its headers when asked; and a log that says so with each line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from packhorse.core.ids import derived_id
from packhorse.core.logs import Log, Value
from packhorse.core.message import TypedMessage
from packhorse.processor.record import Delivery, text_of

MessageClass = type[TypedMessage]

if TYPE_CHECKING:
    from packhorse.producer import Outgoing, Tombstone


class MessageLog:
    """Write log records that name the message's topic, partition, offset and id; give it no payload and no key."""

    __slots__ = ("_delivery", "_log")

    def __init__(self, log: Log, delivery: Delivery) -> None:
        self._log = log
        self._delivery = delivery

    def debug(self, event: str, **fields: Value) -> None:
        """Write what only matters while looking for a fault."""
        self._log.debug(event, **self._where(), **fields)

    def info(self, event: str, **fields: Value) -> None:
        """Write what an operator wants to read the next day."""
        self._log.info(event, **self._where(), **fields)

    def warning(self, event: str, **fields: Value) -> None:
        """Write that something waits or was tried again."""
        self._log.warning(event, **self._where(), **fields)

    def error(self, event: str, **fields: Value) -> None:
        """Write that somebody should look."""
        self._log.error(event, **self._where(), **fields)

    def _where(self) -> dict[str, Value]:
        origin = self._delivery.origin
        return {
            "topic": origin.topic,
            "partition": origin.partition,
            "offset": origin.offset,
            "message_id": str(self._delivery.id),
        }


class Metadata:
    """Who the message in hand is; read from its headers when asked."""

    __slots__ = ("_delivery", "_group", "_log", "_ordinal", "attempt", "touched")

    def __init__(self, delivery: Delivery, *, group: str, attempt: int, log: Log) -> None:
        self._delivery = delivery
        self._group = group
        self._ordinal = 0
        self.attempt = attempt
        self._log = log
        self.touched = False

    @property
    def log(self) -> MessageLog:
        """Return what writes log records that name the message; give it no payload and no key."""
        return MessageLog(self._log, self._delivery)

    @property
    def id(self) -> UUID:
        """Return the message's id: unique for all time, the same at each delivery."""
        return self._delivery.id

    @property
    def type(self) -> str | None:
        """Return the full name of the message's Avro record, as its header has it."""
        return self._delivery.type

    @property
    def key(self) -> str | None:
        """Return the key as text; None when it has none or its bytes are no UTF-8 (see `raw_key`)."""
        try:
            return None if self.raw_key is None else self.raw_key.decode()
        except UnicodeDecodeError:
            return None

    @property
    def raw_key(self) -> bytes | None:
        """Return the key's bytes."""
        return self._delivery.record.key

    @property
    def topic(self) -> str:
        """Return the topic that the message first stood in."""
        return self._delivery.origin.topic

    @property
    def partition(self) -> int:
        """Return the partition that the message first stood in."""
        return self._delivery.origin.partition

    @property
    def offset(self) -> int:
        """Return the offset that the message first had."""
        return self._delivery.origin.offset

    @property
    def timestamp(self) -> datetime:
        """Return the record's timestamp, aware, UTC, to the millisecond."""
        return datetime.fromtimestamp(self._delivery.record.timestamp_ms / 1000, UTC)

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the writer's own headers (those of the one header `headers`); empty when they are no JSON of texts."""
        value = self._delivery.headers.get("headers")
        if value is None:
            return {}
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return {}
        if not isinstance(found, dict):
            return {}
        return {name: text for name, text in found.items() if isinstance(text, str)}

    @property
    def raw_headers(self) -> Mapping[str, bytes | None]:
        """Return all of the record's headers as they arrived; of equal names the last."""
        return self._delivery.headers

    @property
    def correlation_id(self) -> str | None:
        """Return what the message belongs to."""
        return self._text("correlation-id")

    @property
    def causation_id(self) -> str | None:
        """Return the id of what caused the message."""
        return self._text("causation-id")

    @property
    def tenant(self) -> str | None:
        """Return for whom the message is."""
        return self._text("tenant")

    @property
    def actor(self) -> str | None:
        """Return who caused the message."""
        return self._text("actor")

    def _text(self, header: str) -> str | None:
        return text_of(self._delivery.headers.get(header))

    def _follow_up(
        self,
        message: TypedMessage,
        key: str | None,
        headers: Mapping[str, str] | None,
        expires_at: datetime | None,
    ) -> Outgoing:
        from packhorse.producer import Outgoing

        return Outgoing(
            message=message,
            key=key,
            headers=headers,
            expires_at=expires_at,
            id=self._next_id(),
            correlation_id=self.correlation_id or str(self.id),
            causation_id=str(self.id),
            tenant=self.tenant,
            actor=self.actor,
        )

    def _tombstone(self, of: MessageClass, key: str) -> Tombstone:
        from packhorse.producer import Tombstone

        return Tombstone(
            of=of,
            key=key,
            id=self._next_id(),
            correlation_id=self.correlation_id or str(self.id),
            causation_id=str(self.id),
            tenant=self.tenant,
            actor=self.actor,
        )

    def _next_id(self) -> UUID:
        self.touched = True
        follow_up = derived_id(self.id, self._group, self._ordinal)
        self._ordinal += 1
        return follow_up
