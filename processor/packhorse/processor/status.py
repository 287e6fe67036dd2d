"""How a group stands: its members, its watermarks against the topics' ends, what waits, and what people have paused."""

from dataclasses import asdict, dataclass
from typing import Any

from packhorse.core.errors import UsageError
from packhorse.processor.clients import admin_properties
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.processor.settings import StatusSettings
from packhorse.processor.storing import postgres
from packhorse.processor.storing.sql import queries_for
from packhorse.processor.storing.store import Store
from packhorse.processor.watching.telling import Inside, inside_lines, read_inside


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """
    How far one partition is.

    Attributes:
        lag: Offsets from the watermark to the end of the topic.
        still: Seconds since the watermark moved.
        earlier: The row belongs to a topic of that name that is no more.
    """

    topic: str
    partition: int
    watermark: int
    committed: int | None
    end: int
    lag: int
    still: float
    earlier: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How many messages of a topic have an outcome that is not the last word."""

    topic: str
    outcome: str
    messages: int
    due_in: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """All of it."""

    group: str
    state: str
    members: int
    partitions: list[PartitionStatus]
    waiting: list[Waiting]
    inside: Inside

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        found = asdict(self)
        return {**{name: value for name, value in found.items() if name != "inside"}, **self.inside.as_dict()}

    def lines(self) -> list[str]:
        """Return it for people."""
        found = [f"group {self.group}: {self.state}, {self.members} members"]
        for one in self.partitions:
            earlier = "  (an earlier topic of this name)" if one.earlier else ""
            found.append(
                f"  {one.topic}[{one.partition}]  watermark {one.watermark}  end {one.end}  lag {one.lag}"
                f"  moved {one.still:.0f} s ago{earlier}"
            )
        for waits in self.waiting:
            due = "" if waits.due_in is None else f", the first due in {max(0.0, waits.due_in):.0f} s"
            found.append(f"  {waits.topic}  {waits.outcome}: {waits.messages}{due}")
        return [*found, *inside_lines(self.inside, joined=self.members)]


def read_status(settings: StatusSettings, group: str) -> GroupStatus:
    """
    Ask database and broker how *group* stands.

    Raises:
        UsageError: Neither knows the group.
        DatabaseUnavailable, BrokerUnavailable, NotReady: Either does not answer, or something is missing.
    """
    store = Store(queries=queries_for(settings.database_schema), group=group, schema=settings.database_schema)
    url = settings.database_url.get_secret_value()
    connection = postgres.connect(postgres.settings_of(url, idle_ms=60_000, lock_ms=10_000))
    try:
        watermarks, waiting = postgres.run(connection, store.group_standing())
        inside = read_inside(connection, store)
    finally:
        connection.end()
    broker = BrokerQuestions(admin_properties(settings))
    state, members = broker.group_state(group)
    if not watermarks and state == "unknown" and not inside.known:
        raise UsageError(f"group {group!r} is known neither to this database nor to the broker")
    there = broker.topics(sorted({row[0] for row in watermarks}))
    ids = {name: broker.topic_id(name) for name in there}
    partitions = []
    for topic, topic_id, partition, offset, still in watermarks:
        current = ids.get(topic) == topic_id
        ends = broker.log_ends(group, topic, partition) if current else None
        partitions.append(
            PartitionStatus(
                topic=topic,
                partition=partition,
                watermark=offset,
                committed=ends.committed if ends else None,
                end=ends.high if ends else offset,
                lag=max(0, ends.high - offset) if ends else 0,
                still=still,
                earlier=not current,
            )
        )
    return GroupStatus(
        group=group,
        state=state,
        members=members,
        partitions=partitions,
        waiting=[Waiting(topic=t, outcome=o, messages=n, due_in=d) for t, o, n, d in waiting],
        inside=inside,
    )
