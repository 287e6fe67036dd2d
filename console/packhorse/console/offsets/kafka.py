"""What the broker knows of a group's offsets."""

from datetime import datetime
from uuid import UUID

from packhorse.console.replaying.kafka import KafkaRanges
from packhorse.processor.clients import admin_properties
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.schemas.systems import KafkaSettings


class GroupOffsets:
    """Be the `OffsetsBroker` of one broker."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._questions = BrokerQuestions(admin_properties(settings))
        self._ranges = KafkaRanges(settings)

    def topic(self, topic: str) -> tuple[UUID, int]:
        """Return Kafka's id of *topic*, and its number of partitions."""
        return self._ranges.topic(topic)

    def standings(
        self, group: str, topic: str, count: int, at: datetime | None
    ) -> list[tuple[int, int, int | None, int | None]]:
        """Return of each partition the first and the next offset, the committed one, and the first at or after *at*."""
        firsts = self._ranges.firsts_at(topic, count, at)
        found = []
        for partition in range(count):
            ends = self._questions.log_ends(group, topic, partition)
            found.append((ends.low, ends.high, ends.committed, firsts.get(partition)))
        return found

    def members(self, group: str) -> tuple[str, int]:
        """Return the group's state, and how many members it has."""
        return self._questions.group_state(group)

    def set(self, group: str, topic: str, positions: dict[int, int]) -> None:
        """Set the committed offsets of a stopped group."""
        self._questions.set_offsets(group, topic, positions)
