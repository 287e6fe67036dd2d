"""The processor's tables as steps: statements that a shell executes, sync or async; no I/O here."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from packhorse.core.errors import NotReady
from packhorse.processor.outcomes import Outcome
from packhorse.processor.record import HeaderList, Stream
from packhorse.processor.running.work import InboxRow, Known, Result
from packhorse.processor.storing.rows import headers_of, literal, new_rows, old_rows, quarantine_rows
from packhorse.processor.storing.sql import Queries

T = TypeVar("T")


class Statement(NamedTuple):
    """One statement and its named parameters."""

    text: bytes
    parameters: dict[str, Any]


class Answer(NamedTuple):
    """The rows that a statement returned, and how many it touched."""

    rows: Sequence[tuple[Any, ...]]
    touched: int


Steps = Generator[Statement, Answer, T]
"""Yields statements one after another, is sent their answers, and ends with a result."""


class Quarantined(NamedTuple):
    """One row of quarantined_message, as a copy of it needs it; *attempt* is the last, or of a redrive the next."""

    id: UUID
    topic: str
    topic_id: UUID
    partition: int
    offset: int
    key: bytes | None
    payload: bytes | None
    headers: HeaderList
    reason: str
    error: str | None
    attempt: int
    first_failed_at: datetime


class Place(NamedTuple):
    """Where the broker has put a copy."""

    id: UUID
    partition: int
    offset: int
    attempt: int


class Mark(NamedTuple):
    """
    A partition's watermark as the database has it.

    Attributes:
        offset, leader_epoch: The watermark; None without a row.
        same: This incarnation of the server wrote it.
        elsewhere: Rows of the group for a topic of the same name with another id.
    """

    offset: int | None
    leader_epoch: int | None
    same: bool
    elsewhere: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The tables of one group."""

    queries: Queries
    group: str
    schema: str

    def look_up(self, stream: Stream, partition: int, ids: Sequence[UUID]) -> Steps[Known]:
        """Return what the database knows of the messages *ids* and of the partition's watermark."""
        answer = yield Statement(
            self.queries.look_up,
            {**self._place(stream, partition), "source": stream.source, "ids": literal(ids)},
        )
        if not answer.rows:
            return Known(None, False, None, {})
        position, same, now = answer.rows[0][:3]
        rows = {row[3]: InboxRow(Outcome(row[4]), *row[5:10]) for row in answer.rows if row[3] is not None}
        return Known(position, same, now, rows)

    def write(self, stream: Stream, results: Sequence[Result], xid: str) -> Steps[bool]:
        """
        Record *results* in the open transaction *xid*; return False when another owner was first with one.

        First results are inserted (a unique violation is the driver's to translate), known ones are compare-and-set.
        """
        who = {"group": self.group, "source": stream.source, "xid": xid}
        new = [result for result in results if result.row is None]
        old = [result for result in results if result.row is not None]
        if new:
            answer = yield Statement(self.queries.insert_results, {**who, **new_rows(new)})
            if answer.touched != len(new):
                return False
        if old:
            answer = yield Statement(self.queries.update_results, {**who, **old_rows(old)})
            if answer.touched != len(old):
                return False
        yield from self._failures(stream, [r for r in results if r.failed_as is not None])
        yield from self._quarantine(stream, [r for r in results if r.outcome is Outcome.QUARANTINE])
        return True

    def _failures(self, stream: Stream, failed: Sequence[Result]) -> Steps[None]:
        if failed:
            yield Statement(
                self.queries.insert_failed,
                {
                    "group": self.group,
                    "source": stream.source,
                    "ids": literal(r.delivery.id for r in failed),
                    "attempts": literal(r.attempt for r in failed),
                    "reasons": [r.failed_as for r in failed],
                    "errors": [r.error for r in failed],
                    "delays": literal(r.delay if r.outcome is Outcome.RETRY else None for r in failed),
                },
            )

    def _quarantine(self, stream: Stream, stopped: Sequence[Result]) -> Steps[None]:
        if stopped:
            rows = {"group": self.group, "source": stream.source, **quarantine_rows(stopped)}
            yield Statement(self.queries.upsert_quarantined, rows)

    def count_deliveries(self, stream: Stream, ids: Sequence[UUID]) -> Steps[None]:
        """Count one more delivery for each of *ids*; equal ones count as often as they stand there."""
        yield Statement(
            self.queries.count_deliveries, {"group": self.group, "source": stream.source, "ids": literal(ids)}
        )

    def uncopied(self, source: str, ids: Sequence[UUID]) -> Steps[list[Quarantined]]:
        """Return those of *ids* that are quarantined and whose copy is not known to be confirmed."""
        answer = yield Statement(
            self.queries.uncopied, {"group": self.group, "source": source, "ids": literal(ids)}
        )
        return [_quarantined(row) for row in answer.rows]

    def confirm_copies(self, source: str, places: Sequence[Place]) -> Steps[None]:
        """Record where the broker has put the copies."""
        yield Statement(
            self.queries.confirm_copies,
            {
                "group": self.group,
                "source": source,
                "ids": literal(place.id for place in places),
                "partitions": literal(place.partition for place in places),
                "offsets": literal(place.offset for place in places),
                "attempts": literal(place.attempt for place in places),
            },
        )

    def move_watermark(
        self, stream: Stream, partition: int, *, old: int, new: int, leader_epoch: int | None
    ) -> Steps[bool]:
        """Move the watermark from *old* to *new*; return False when it was not *old*, or another server wrote it."""
        place = self._place(stream, partition)
        answer = yield Statement(
            self.queries.move_watermark, {**place, "old": old, "new": new, "leader_epoch": leader_epoch}
        )
        return answer.touched == 1

    def read_watermark(self, stream: Stream, partition: int) -> Steps[Mark]:
        """Return the partition's watermark."""
        place = {**self._place(stream, partition), "topic": stream.topic}
        answer = yield Statement(self.queries.read_watermark, place)
        offset, leader_epoch, same, elsewhere = answer.rows[0]
        return Mark(offset, leader_epoch, bool(same), elsewhere)

    def first_watermark(self, stream: Stream, partition: int, offset: int) -> Steps[bool]:
        """Write the partition's first watermark; return False when there is one by now."""
        place = {**self._place(stream, partition), "topic": stream.topic, "new": offset}
        answer = yield Statement(self.queries.first_watermark, place)
        return answer.touched == 1

    def adopt_watermark(self, stream: Stream, partition: int, *, old: int, new: int) -> Steps[bool]:
        """Take the watermark over for this server, at *new*; return False when it is not *old* any more."""
        place = {**self._place(stream, partition), "old": old, "new": new}
        answer = yield Statement(self.queries.adopt_watermark, place)
        return answer.touched == 1

    def due_redrives(self, topics: Sequence[str]) -> Steps[list[Quarantined]]:
        """Return redriven messages whose copy is to be sent, locked; others' are passed over."""
        answer = yield Statement(self.queries.due_redrives, {"group": self.group, "topics": list(topics)})
        return [_quarantined(row) for row in answer.rows]

    def redrives_sent(self, topics: Sequence[str], ids: Sequence[UUID]) -> Steps[None]:
        """Record that the copies of *ids* stand in the topic."""
        yield Statement(
            self.queries.redrives_sent, {"group": self.group, "topics": list(topics), "ids": literal(ids)}
        )

    def late_copies(self, topics: Sequence[str]) -> Steps[list[Quarantined]]:
        """Return quarantined messages whose copy is overdue, locked; others' are passed over."""
        answer = yield Statement(self.queries.late_copies, {"group": self.group, "topics": list(topics)})
        return [_quarantined(row) for row in answer.rows]

    def reset_watermark(self, stream: Stream, partition: int, to: int) -> Steps[int | None]:
        """Set the watermark to *to*, whatever it was, and return what it was."""
        place = {**self._place(stream, partition), "topic": stream.topic, "new": to}
        answer = yield Statement(self.queries.reset_watermark, place)
        was: int | None = answer.rows[0][0]
        return was

    def group_standing(self) -> Steps[tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]]:
        """
        Return all watermarks of the group, and how many of its messages wait, by topic and outcome.

        Watermarks: topic, topic id, partition, offset, seconds since it moved. Waiting: topic, outcome, messages, seconds
        until the first is due.
        """
        who = {"group": self.group}
        watermarks = yield Statement(self.queries.watermarks, who)
        waiting = yield Statement(self.queries.open_outcomes, who)
        return list(watermarks.rows), list(waiting.rows)

    def audit(self, *, actor: str, act: str, topic: str, detail: str, why: str) -> Steps[None]:
        """Record what a person did; *detail* is JSON."""
        yield Statement(
            self.queries.audit,
            {"actor": actor, "act": act, "group": self.group, "topic": topic, "detail": detail, "why": why},
        )

    def incarnation(self) -> Steps[str]:
        """Return which server answers: its system identifier and timeline."""
        answer = yield Statement(self.queries.which_server, {})
        return str(answer.rows[0][0])

    def check_ready(self) -> Steps[None]:
        """
        Check that the tables are there and may be used.

        Raises:
            NotReady: Names the table or the right.
        """
        answer = yield Statement(self.queries.ready, {})
        allowed = {name: (may, user) for name, may, user in answer.rows}
        for table in ("inbox", "watermark", "failed_attempt", "quarantined_message"):
            if table not in allowed:
                raise NotReady(
                    f"table {self.schema}.{table} is missing in this database; run `packhorse migrate up`, "
                    "and check PACKHORSE_DATABASE_URL and PACKHORSE_DATABASE_SCHEMA"
                )
            may, user = allowed[table]
            if not may:
                raise NotReady(
                    f"role {user} may not read and write {self.schema}.{table}; "
                    f"`packhorse migrate sql --grants processor={user}` prints the grants"
                )

    def _place(self, stream: Stream, partition: int) -> dict[str, Any]:
        return {"group": self.group, "topic_id": stream.topic_id, "partition": partition}


def _quarantined(row: tuple[Any, ...]) -> Quarantined:
    return Quarantined._make((*row[:7], headers_of(row[7]), *row[8:]))
