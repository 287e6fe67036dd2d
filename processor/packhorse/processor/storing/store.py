"""The processor's tables as steps: statements that a shell executes, sync or async; no I/O here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from packhorse.core.errors import NotReady
from packhorse.core.text import inert
from packhorse.processor.outcomes import Outcome
from packhorse.processor.record import Stream
from packhorse.processor.running.work import InboxRow, Known
from packhorse.processor.storing.jobs import JobSteps
from packhorse.processor.storing.marks import Mark, MarkSteps, Move
from packhorse.processor.storing.parking import HeldKey, ParkingSteps, Wake
from packhorse.processor.storing.rows import key_number, literal, span, uuids
from packhorse.processor.storing.running import InHand, Pause, RunningSteps
from packhorse.processor.storing.steps import (
    PORTION,
    After,
    Answer,
    Place,
    Quarantined,
    Statement,
    Steps,
    behind,
    kept,
)
from packhorse.processor.storing.writing import WritingSteps

__all__ = [
    "PORTION",
    "After",
    "Answer",
    "HeldKey",
    "InHand",
    "Mark",
    "Move",
    "Pause",
    "Place",
    "Quarantined",
    "Statement",
    "Steps",
    "Store",
    "Wake",
    "behind",
]

FIRST = After()

_TABLES = (
    "inbox",
    "watermark",
    "failed_attempt",
    "quarantined_message",
    "retry_message",
    "parked_key",
    "parked_message",
    "in_hand",
    "started",
)
_JOB_TABLES = ("job", "job_due", "job_effect", "job_policy", "job_running", "job_step", "job_waiting")


@dataclass(frozen=True, slots=True, kw_only=True)
class Store(JobSteps, MarkSteps, ParkingSteps, RunningSteps, WritingSteps):
    """The tables of one group."""

    def look_up(
        self, stream: Stream, partition: int, ids: Sequence[UUID], keys: Sequence[str] = ()
    ) -> Steps[Known]:
        """
        Return what the database knows of the messages *ids*, of the partition's watermark, and which of *keys* are parked.

        The keys, as hashes, are looked for only where any key of the topic is parked.
        """
        which = {**self._place(stream, partition), "source": stream.source, "ids": uuids(ids), **span(ids)}
        query = self.queries.look_up_one if len(ids) == 1 else self.queries.look_up
        answer = yield Statement(query, which)
        if not answer.rows:
            return Known(None, False, None, {})
        position, same, now = answer.rows[0][:3]
        rows = {row[3]: InboxRow(Outcome(row[4]), *row[5:13]) for row in answer.rows if row[3] is not None}
        if not (keys and answer.rows[0][13]):
            return Known(position, same, now, rows)
        asked = {"group": self.group, "source": stream.source, "numbers": literal(map(key_number, keys))}
        parked = yield Statement(self.queries.parked_keys, asked)
        return Known(position, same, now, rows, dict(parked.rows))

    def count_deliveries(self, stream: Stream, ids: Sequence[UUID]) -> Steps[None]:
        """Count one more delivery for each of *ids*; equal ones count as often as they stand there."""
        yield Statement(
            self.queries.count_deliveries,
            {"group": self.group, "source": stream.source, "ids": uuids(ids), **span(ids)},
        )

    def uncopied(self, source: str, ids: Sequence[UUID]) -> Steps[list[Quarantined]]:
        """Return those of *ids* that are to be tried again, or quarantined, and whose copy is not known to be confirmed."""
        answer = yield Statement(
            self.queries.uncopied, {"group": self.group, "source": source, "ids": literal(ids)}
        )
        return [kept(row) for row in answer.rows]

    def confirm_copies(self, source: str, places: Sequence[Place]) -> Steps[None]:
        """Record where the broker has put the copies, each for the attempt that it tells of."""
        for stopped in (True, False):
            some = [place for place in places if (place.tier is None) is stopped]
            if some:
                text = self.queries.confirm_copies if stopped else self.queries.confirm_retries
                yield Statement(text, self._places(source, some))

    def refuse_redrives(self, source: str, said: Mapping[UUID, str]) -> Steps[None]:
        """Record why the broker does not take the copies of redriven messages; they stay owed."""
        which = {
            "group": self.group,
            "source": source,
            "ids": literal(said),
            "texts": [inert(text, limit=500) for text in said.values()],
        }
        yield Statement(self.queries.refuse_redrives, which)

    def _places(self, source: str, places: Sequence[Place]) -> dict[str, Any]:
        return {
            "group": self.group,
            "source": source,
            "ids": literal(place.id for place in places),
            "partitions": literal(place.partition for place in places),
            "offsets": literal(place.offset for place in places),
            "attempts": literal(place.attempt for place in places),
        }

    def due_redrives(self, topics: Sequence[str], after: After = FIRST) -> Steps[list[Quarantined]]:
        """Return redriven messages *after* one whose copy was never sent, locked, a portion; others' are passed over."""
        answer = yield Statement(self.queries.due_redrives, self._portion(topics, after))
        return [kept(row) for row in answer.rows]

    def lost_redrives(self, topics: Sequence[str], after: After = FIRST) -> Steps[list[Quarantined]]:
        """Return redriven messages *after* one whose copy may be lost, locked, a portion; others' are passed over."""
        answer = yield Statement(self.queries.lost_redrives, self._portion(topics, after))
        return [kept(row) for row in answer.rows]

    def late_copies(self, topics: Sequence[str], after: After = FIRST) -> Steps[list[Quarantined]]:
        """Return quarantined messages *after* one whose copy is overdue, locked, a portion; others' are passed over."""
        answer = yield Statement(self.queries.late_copies, self._portion(topics, after))
        return [kept(row) for row in answer.rows]

    def _portion(self, topics: Sequence[str], after: After) -> dict[str, Any]:
        return {
            "group": self.group,
            "topics": list(topics),
            "after_topic": after.topic,
            "after_partition": after.partition,
            "after_offset": after.offset,
            "after_id": after.id,
            "most": PORTION,
        }

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

    def check_ready(self, *, jobs: bool = False) -> Steps[None]:
        """
        Check that the tables are there and may be used, with *jobs* those of jobs too.

        Raises:
            NotReady: Names the table or the right.
        """
        tables = [*_TABLES, *(_JOB_TABLES if jobs else ())]
        answer = yield Statement(self.queries.ready, {"tables": tables})
        allowed = {name: (may, user) for name, may, user in answer.rows}
        for table in tables:
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
