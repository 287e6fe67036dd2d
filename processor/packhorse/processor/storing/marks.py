"""Watermarks as steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from packhorse.processor.record import Stream
from packhorse.processor.storing.rows import literal
from packhorse.processor.storing.steps import Statement, Steps, Tables


class Mark(NamedTuple):
    """
    A partition's watermark as the database has it.

    Attributes:
        offset, leader_epoch: The watermark; None without a row.
        same: This incarnation of the server wrote it.
        elsewhere: Rows of the group for a topic of the same name with another id.
        topic_age: How many other ids of a topic of that name the group knows.
    """

    offset: int | None
    leader_epoch: int | None
    same: bool
    elsewhere: int
    topic_age: int = 0


class Move(NamedTuple):
    """A watermark that is to move from *old* to *new*."""

    topic_id: UUID
    partition: int
    old: int
    new: int
    epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkSteps(Tables):
    """What is done with watermarks."""

    def move_watermark(
        self, stream: Stream, partition: int, *, old: int, new: int, leader_epoch: int | None
    ) -> Steps[bool]:
        """Move the watermark from *old* to *new*; return False when it was not *old*, or another server wrote it."""
        place = self._place(stream, partition)
        answer = yield Statement(
            self.queries.move_watermark, {**place, "old": old, "new": new, "leader_epoch": leader_epoch}
        )
        return answer.touched == 1

    def move_watermarks(self, moves: Sequence[Move]) -> Steps[set[tuple[UUID, int]]]:
        """
        Move many watermarks in one durable statement; return the topic ids and partitions of those that moved.

        What did not move was not at its old value any more, or another server wrote it. Each partition at most once.
        """
        if not moves:
            return set()
        answer = yield Statement(
            self.queries.move_watermarks,
            {
                "group": self.group,
                "topic_ids": literal(move.topic_id for move in moves),
                "partitions": literal(move.partition for move in moves),
                "olds": literal(move.old for move in moves),
                "news": literal(move.new for move in moves),
                "epochs": literal(move.epoch for move in moves),
            },
        )
        return {(topic_id, partition) for topic_id, partition in answer.rows}

    def read_watermark(self, stream: Stream, partition: int) -> Steps[Mark]:
        """Return the partition's watermark."""
        place = {**self._place(stream, partition), "topic": stream.topic}
        answer = yield Statement(self.queries.read_watermark, place)
        offset, leader_epoch, same, elsewhere, topic_age = answer.rows[0]
        return Mark(offset, leader_epoch, bool(same), elsewhere, topic_age)

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

    def reset_watermark(self, stream: Stream, partition: int, to: int) -> Steps[int | None]:
        """Set the watermark to *to*, whatever it was, and return what it was."""
        place = {**self._place(stream, partition), "topic": stream.topic, "new": to}
        answer = yield Statement(self.queries.reset_watermark, place)
        was: int | None = answer.rows[0][0]
        return was

    def incarnation(self) -> Steps[str]:
        """Return which server answers: its system identifier and timeline."""
        answer = yield Statement(self.queries.which_server, {})
        return str(answer.rows[0][0])
