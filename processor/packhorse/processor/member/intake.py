"""From a record to what the queue holds: who it is, what binds it, and with what it may share a chunk."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from packhorse.processor.app import Processor
from packhorse.processor.handlers import Handler
from packhorse.processor.member.queue import PLAIN, Kind, Waiting, bytes_of
from packhorse.processor.record import (
    REPLAY_HANDLER,
    Record,
    Stream,
    copy_delivery,
    first_delivery,
    key_hash,
    text_of,
)

MOST_HASHES, LONGEST = 50_000, 200
"""Hashes of keys that are remembered, and the longest key or type of which anything is: a look takes a tenth of a hash."""
MOST_TYPES = 1_000
"""Values of the header `type` that are remembered, if they are as short as keys: whoever invents more pays for each."""


class _Bound(NamedTuple):
    """What a record's type decides of it: its text, with what it shares a chunk, its gate, whether its key binds it."""

    type: str | None
    kind: Kind
    gate: str | None
    ordered: bool


_waiting: Callable[[tuple[Any, ...]], Waiting] = partial(tuple.__new__, Waiting)
"""What `Waiting(…)` does, without a call in Python."""


class Intake:
    """Sort records; for one thread."""

    def __init__(self, app: Processor) -> None:
        self._app = app
        self._bounds: dict[tuple[bytes | None, bool, bytes | None], _Bound] = {}
        self._hashes: dict[bytes, str] = {}

    def __call__(self, records: Iterable[Record], stream: Stream) -> list[Waiting]:
        """Return *records*, read from *stream*, as the queue holds them."""
        found, bounds, hashes, carries = [], self._bounds, self._hashes, stream.carries
        make = copy_delivery if carries else first_delivery
        for record in records:
            headers, key, value = dict(record.headers), record.key, record.value
            kind = headers.get("type"), value is None, headers.get(REPLAY_HANDLER) if carries else None
            bound = bounds.get(kind)
            if bound is None:
                bound = self._bind(text_of(kind[0]), kind)
            delivery = make(record, headers, bound.type, stream)
            hashed = None
            # A wake-up is about a parked key, whatever order messages without a type have, or its handler takes by now.
            if key is not None and (bound.ordered or (carries and delivery.wakes)):
                hashed = hashes.get(key)
                if hashed is None:
                    hashed = self._hash(key)
            found.append(_waiting((delivery, hashed, bound.kind, bound.gate, bytes_of(record))))
        return found

    def _bind(self, type_name: str | None, kind: tuple[bytes | None, bool, bytes | None]) -> _Bound:
        named = None if kind[2] is None else text_of(kind[2]) or ""
        handler = self._app.handler_of(type_name, tombstone=kind[1], replay=named)
        ordering = self._app.ordering if handler is None else handler.ordering
        gate = None if handler is None else handler.name
        made = _Bound(type_name, PLAIN if handler is None else _kind_of(handler), gate, ordering == "key")
        if len(self._bounds) < MOST_TYPES and len(kind[0] or b"") + len(kind[2] or b"") <= LONGEST:
            self._bounds[kind] = made
        return made

    def _hash(self, key: bytes) -> str:
        hashed = key_hash(key)
        if len(key) <= LONGEST:
            if len(self._hashes) >= MOST_HASHES:
                self._hashes.clear()
            self._hashes[key] = hashed
        return hashed


def _kind_of(handler: Handler) -> Kind:
    batch = handler.name if handler.kind == "batch" else None
    alone = handler.isolation == "message"
    if handler.job is not None:
        return Kind(is_async=handler.is_async, job=True, paced=handler.name if alone else None)
    if not handler.is_async and batch is None and not alone:
        return PLAIN
    return Kind(is_async=handler.is_async, batch=batch, alone=alone)
