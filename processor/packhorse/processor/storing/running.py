"""What lanes have in hand, what was begun one by one, and what people paused, as steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from packhorse.processor.storing.rows import literal
from packhorse.processor.storing.steps import Statement, Steps, Tables

Spot = tuple[UUID, int]
"""A topic id and a partition."""


class InHand(NamedTuple):
    """
    What a lane was last seen to have in hand.

    Attributes:
        alone: They were run one by one.
        age: Seconds since it took them, by the database's clock.
    """

    lane: UUID
    topic_id: UUID
    partition: int
    offsets: Sequence[int]
    alone: bool
    member: UUID
    age: float


class Pause(NamedTuple):
    """What a person paused: the group where the topic is empty, a topic where the partition is -1, or one partition."""

    topic: str
    partition: int
    paused_by: str
    why: str | None
    paused_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSteps(Tables):
    """What is known of running and standing still."""

    def take_in_hand(
        self, lane: UUID, member: UUID, spot: Spot, offsets: Sequence[int], *, alone: bool = False
    ) -> Steps[None]:
        """Record what *lane* has in hand, in place of what it had; its commit waits for no disk."""
        yield Statement(
            self.queries.take_in_hand,
            {
                "group": self.group,
                "lane": lane,
                "member": member,
                "topic_id": spot[0],
                "partition": spot[1],
                "offsets": literal(offsets),
                "alone": alone,
            },
        )

    def empty_hands(self, lanes: Sequence[UUID]) -> Steps[None]:
        """Record that *lanes* have nothing in hand."""
        yield Statement(self.queries.empty_hands, {"group": self.group, "lanes": literal(lanes)})

    def look_in_hands(self, spots: Sequence[Spot]) -> Steps[list[InHand]]:
        """Return what lanes of any member have in hand of these partitions, or had when they died."""
        answer = yield Statement(
            self.queries.look_in_hands,
            {
                "group": self.group,
                "topic_ids": literal(topic_id for topic_id, _ in spots),
                "partitions": literal(partition for _, partition in spots),
            },
        )
        return [InHand._make(row) for row in answer.rows]

    def mark_start(self, spot: Spot, offset: int, *, lived: bool = False) -> Steps[int]:
        """
        Record that a message is begun, and return how often it was by now; durable when it returns.

        When *lived*, the start that is on record is one that somebody has lived through: this one takes its place.
        """
        where = {
            "group": self.group,
            "topic_id": spot[0],
            "partition": spot[1],
            "offset": offset,
            "lived": lived,
        }
        answer = yield Statement(self.queries.mark_start, where)
        return int(answer.rows[0][0])

    def read_starts(self, spot: Spot, offsets: Sequence[int]) -> Steps[dict[int, int]]:
        """Return how often those of *offsets* that were begun were."""
        answer = yield Statement(self.queries.read_starts, self._at(spot, offsets))
        return dict(answer.rows)

    def clear_starts(self, spot: Spot, offsets: Sequence[int]) -> Steps[None]:
        """Forget the starts of *offsets*."""
        yield Statement(self.queries.clear_starts, self._at(spot, offsets))

    def read_pauses(self) -> Steps[list[Pause]]:
        """Return what is paused; keys are not among it."""
        answer = yield Statement(self.queries.read_pauses, {"group": self.group})
        return [Pause._make(row) for row in answer.rows]

    def pause(self, actor: str, why: str | None, *, topic: str = "", partition: int = -1) -> Steps[bool]:
        """Pause the group, a topic of it or one partition; return False when it was."""
        what = {"topic": topic, "partition": partition, "actor": actor, "why": why}
        answer = yield Statement(self.queries.pause, {"group": self.group, **what})
        return answer.touched == 1

    def resume(self, *, topic: str = "", partition: int = -1) -> Steps[bool]:
        """Let the group, a topic of it or one partition go on; return False when just that was not paused."""
        what = {"group": self.group, "topic": topic, "partition": partition}
        answer = yield Statement(self.queries.resume, what)
        return answer.touched == 1

    def _at(self, spot: Spot, offsets: Sequence[int]) -> dict[str, object]:
        return {
            "group": self.group,
            "topic_id": spot[0],
            "partition": spot[1],
            "offsets": literal(offsets),
        }
