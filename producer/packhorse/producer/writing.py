"""The pure middle of the outbox: from drafts to statements, in the order that the promises need."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from packhorse.core.clock import Chance, Clock
from packhorse.core.errors import InvalidMessage, KeysLocked
from packhorse.core.telemetry import Metric, Telemetry
from packhorse.producer.context import current_context
from packhorse.producer.rows import Draft, Outgoing, Row, Stamp, kind_of, row_of
from packhorse.producer.schema_ids import SchemaIds
from packhorse.producer.slots import slots_of
from packhorse.producer.sql import Queries
from packhorse.producer.statements import Statement, Steps, insert


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """What an `Outbox` decides with; no connection in sight."""

    origin: str | None
    max_payload_bytes: int
    telemetry: Telemetry
    clock: Clock
    chance: Chance
    queries: Queries
    schema_ids: SchemaIds

    def written(self, database: str, drafts: Sequence[Draft], *, lock_key: bool) -> Steps[list[UUID]]:
        """
        Yield what writes *drafts* and return their ids.

        First everything is checked and encoded, then keys are locked, then rows are inserted: an error in a value
        leaves neither a lock nor a row, and a sequence value is drawn only under the lock.
        """
        kinds = [kind_of(draft) for draft in drafts]
        slots = slots_of(draft.key for draft in drafts) if lock_key else []
        yield from self.schema_ids.prepare(database)
        with_values = (kind for kind, draft in zip(kinds, drafts, strict=True) if isinstance(draft, Outgoing))
        schema_ids = yield from self.schema_ids.of(database, with_values)
        rows = self._rows(drafts, [schema_ids.get((kind.subject, kind.version)) for kind in kinds])
        if slots:
            yield from self._lock(slots)
        yield from insert(rows, self.queries)
        for name, count in Counter(kind.type for kind in kinds).items():
            self.telemetry.record(Metric.OUTBOX_EMITTED, count, {"type": name})
        return [row[0] for row in rows]

    def locked(self, database: str, slots: Sequence[int]) -> Steps[None]:
        """Yield what locks *slots*, or raise KeysLocked."""
        yield from self.schema_ids.prepare(database)
        yield from self._lock(slots)

    @contextmanager
    def span(self, drafts: Sequence[Draft]) -> Iterator[None]:
        """Run the block in the span that the messages' consumers have as parent."""
        name = f"emit {kind_of(drafts[0]).type}"
        with self.telemetry.span(name, attributes={"packhorse.messages": len(drafts)}):
            yield

    def stamp(self) -> Stamp:
        """Return what all rows of a call that is made now have in common."""
        return Stamp(
            origin=self.origin,
            context=current_context(),
            trace=self.telemetry.current(),
            max_payload_bytes=self.max_payload_bytes,
        )

    def _rows(self, drafts: Sequence[Draft], schema_ids: Sequence[int | None]) -> list[Row]:
        stamp = self.stamp()
        now = self.clock.now()
        rows = [
            row_of(draft, schema_id, draft.id or self.chance.message_id(now), stamp)
            for draft, schema_id in zip(drafts, schema_ids, strict=True)
        ]
        if any(draft.id for draft in drafts):
            check_distinct([row[0] for row in rows])
        return rows

    def _lock(self, slots: Sequence[int]) -> Steps[None]:
        answer = yield Statement(self.queries.lock_slots, (list(slots),), returns=True)
        busy = answer[0][0]
        if busy:
            raise KeysLocked(
                f"{len(busy)} of {len(slots)} key slots are held by another transaction, and this one has locked keys "
                "before, so waiting could deadlock: roll back, try again, and call lock_keys(connection, all keys) once "
                "at the start"
            )


def check_distinct(ids: Sequence[UUID]) -> None:
    """Raise InvalidMessage when *ids* holds one twice."""
    twice = next((one for one, count in Counter(ids).items() if count > 1), None)
    if twice is not None:
        raise InvalidMessage(
            f"id {twice} is given to two messages of one call; consumers would drop the second as a duplicate"
        )
