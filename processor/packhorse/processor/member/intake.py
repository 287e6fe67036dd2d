"""From a record to what the queue holds: who it is, what binds it, and with what it may share a chunk."""

from packhorse.processor.app import Handler, Processor
from packhorse.processor.member.queue import PLAIN, Kind, Waiting, bytes_of
from packhorse.processor.record import Record, Stream, delivery_of, key_hash

MOST_HASHES = 50_000
"""Hashes of keys that are remembered: a hash takes a microsecond, a look a tenth of that."""


class Intake:
    """Sort records; for one thread."""

    def __init__(self, app: Processor) -> None:
        self._app = app
        self._sorts = {id(handler): (_kind_of(handler), handler.name) for handler in app.handlers.values()}
        self._hashes: dict[bytes, str] = {}

    def __call__(self, record: Record, stream: Stream) -> Waiting:
        """Return *record*, read from *stream*, as the queue holds it."""
        delivery = delivery_of(record, stream)
        handler = self._app.handler_of(delivery.type, tombstone=record.value is None)
        ordering = self._app.ordering if handler is None else handler.ordering
        bound = record.key is not None and ordering == "key"
        return Waiting(
            delivery,
            self._hash(record.key) if bound and record.key is not None else None,
            *(_NOBODYS if handler is None else self._sorts[id(handler)]),
            bytes_of(record),
        )

    def _hash(self, key: bytes) -> str:
        found = self._hashes.get(key)
        if found is None:
            if len(self._hashes) >= MOST_HASHES:
                self._hashes.clear()
            found = self._hashes[key] = key_hash(key)
        return found


_NOBODYS: tuple[Kind, str | None] = (PLAIN, None)


def _kind_of(handler: Handler) -> Kind:
    batch = handler.name if handler.kind == "batch" else None
    alone = handler.isolation == "message"
    if not handler.is_async and batch is None and not alone:
        return PLAIN
    return Kind(is_async=handler.is_async, batch=batch, alone=alone)
