"""Show where a group stands, and reset a stopped one: for one person."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.core.acts import checked_why
from packhorse.core.errors import OwnershipLost, SettingsError, UsageError
from packhorse.core.text import counted
from packhorse.processor.offsets.resetting import Move, Reset, Standing, moves


class OffsetsBroker(Protocol):
    """Ask the broker, and set offsets; raises BrokerUnavailable, NotReady."""

    def topic(self, topic: str) -> tuple[UUID, int]:
        """Return Kafka's id of *topic*, and its number of partitions."""

    def standings(
        self, group: str, topic: str, count: int, at: datetime | None
    ) -> list[tuple[int, int, int | None, int | None]]:
        """Return of each partition the first and the next offset, the committed one, and the first at or after *at*."""

    def members(self, group: str) -> tuple[str, int]:
        """Return the group's state, and how many members it has."""

    def set(self, group: str, topic: str, positions: dict[int, int]) -> None:
        """Set the committed offsets of a stopped group."""


class OffsetsSource(Protocol):
    """The watermarks of one database; raises Forbidden, DatabaseUnavailable, NotReady."""

    def watermarks(
        self, person: Person, group: str, topic: str, topic_id: UUID, count: int
    ) -> list[int | None]:
        """Return the group's watermark in each partition."""

    def reset(self, person: Person, group: str, planned: Sequence[Move], *, why: str) -> str:
        """Set the watermarks and put that on the record, in one transaction; return who is on record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a reset would do: exactly this is done, or nothing."""

    group: str
    topic: str
    moves: tuple[Move, ...]


class Offsets:
    """The offsets of groups, as one person sees them."""

    def __init__(
        self, tables: OffsetsSource, person: Person, *, broker: Callable[[], OffsetsBroker] | None
    ) -> None:
        self._tables = tables
        self._person = person
        self._broker = broker

    def show(self, group: str, topic: str) -> list[Standing]:
        """
        Return where *group* stands in each partition of *topic*.

        Raises:
            NotReady: The topic or a table is missing.
            SettingsError, BrokerUnavailable, DatabaseUnavailable: Broker or database can't be asked.
        """
        return self._standings(self._asked(), group, topic, None)

    def preview(self, group: str, topic: str, wanted: Reset) -> Preview:
        """
        Return what *wanted* would set.

        Raises:
            OwnershipLost: Somebody runs the group.
            UsageError: Nothing would change, a partition does not exist, or an offset is not in the topic.
            NotReady, SettingsError, BrokerUnavailable, DatabaseUnavailable: As `show`.
        """
        broker = self._asked()
        _check_stopped(broker, group)
        planned = moves(self._standings(broker, group, topic, wanted.moment), wanted)
        if not planned:
            raise UsageError("nothing to do: watermark and committed offset are there already")
        return Preview(group=group, topic=topic, moves=tuple(planned))

    def previewed(
        self, group: str, topic: str, wanted: Sequence[tuple[int, int | None, int | None, int]]
    ) -> Preview:
        """
        Return the preview that *wanted* was taken from: partition, watermark, committed offset, and where it goes.

        Raises:
            OwnershipLost: A partition stands elsewhere by now.
            UsageError: An offset is not in the topic.
            NotReady, SettingsError, BrokerUnavailable, DatabaseUnavailable: As `show`.
        """
        now = {one.partition: one for one in self.show(group, topic)}
        found = []
        for partition, watermark, committed, to in wanted:
            one = now.get(partition)
            if one is None or (one.watermark, one.committed) != (watermark, committed):
                raise OwnershipLost(
                    f"{topic}[{partition}] of group {group} has moved since the preview; nothing was done, preview it again"
                )
            if not one.low <= to <= one.high:
                raise UsageError(
                    f"offset {to} is not in {topic}[{partition}]: {one.low} to {one.high} are allowed"
                )
            found.append(Move(one, to))
        return Preview(group=group, topic=topic, moves=tuple(found))

    def reset(self, preview: Preview, *, why: str) -> str:
        """
        Set watermarks and committed offsets as previewed, on the record; return who is on record.

        Watermarks and the audit row are one transaction; the coordinator follows. A crash in between leaves the watermark,
        which counts; repeat the command to finish.

        Raises:
            Forbidden: The person may not administer; nothing was done.
            OwnershipLost: Somebody runs the group by now, or a watermark is elsewhere than previewed; nothing was done.
            BrokerUnavailable: The watermarks are set, and the coordinator refused.
        """
        broker = self._asked()
        _check_stopped(broker, preview.group)
        actor = self._tables.reset(self._person, preview.group, preview.moves, why=checked_why(why))
        broker.set(preview.group, preview.topic, {move.standing.partition: move.to for move in preview.moves})
        return actor

    def _standings(
        self, broker: OffsetsBroker, group: str, topic: str, at: datetime | None
    ) -> list[Standing]:
        topic_id, count = broker.topic(topic)
        marks = self._tables.watermarks(self._person, group, topic, topic_id, count)
        ends = broker.standings(group, topic, count, at)
        return [
            Standing(topic, topic_id, partition, mark, committed, low, high, first)
            for partition, (mark, (low, high, committed, first)) in enumerate(zip(marks, ends, strict=True))
        ]

    def _asked(self) -> OffsetsBroker:
        if self._broker is None:
            raise SettingsError("PACKHORSE_KAFKA_BOOTSTRAP_SERVERS is not set; offsets are the broker's too")
        return self._broker()


def _check_stopped(broker: OffsetsBroker, group: str) -> None:
    state, members = broker.members(group)
    if members:
        raise OwnershipLost(
            f"group {group} has {counted(members, 'member')} and is {state}; stop its processors, then reset its offsets"
        )
