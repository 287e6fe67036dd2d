"""Which topics there must be and with which settings, and what stands between that and what there is; decided purely."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from packhorse.core.errors import UsageError
from packhorse.core.naming import checked_topic, quarantine_topic, retry_topic
from packhorse.processor.app import Processor
from packhorse.processor.tiers.ladder import AT_ONCE, in_order, tiers_there

MARGIN_BYTES = 64 * 1024
"""What a copy's own headers may add to a record."""

SOURCE_CONFIG: Mapping[str, str] = {"message.timestamp.type": "LogAppendTime"}
"""A late backlog must not be deleted on arrival, so the broker's time counts, not the writer's."""
GROUP_CONFIG: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
}
"""What waits for a person, or to be run again, is never deleted by time or size, nor compacted away."""
SEGMENT_BYTES = 64 * 1024 * 1024
"""A tier is trimmed behind what is done, and the broker frees whole segments only: its own default holds 1 GiB a partition."""
LARGEST_SEGMENT = 2**31 - 1
"""What Kafka takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic as the broker has it; *config* holds all values, defaults included."""

    name: str
    partitions: int
    replication: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Make a topic; a *replication* of -1 is the broker's default."""

    topic: str
    partitions: int
    replication: int
    config: Mapping[str, str]

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in sorted(self.config.items()))
        copies = "the broker's default" if self.replication < 0 else str(self.replication)
        return f"create {self.topic}: partitions {self.partitions}, replication {copies}, {settings}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Change one setting of a topic."""

    topic: str
    name: str
    was: str | None
    to: str

    def __str__(self) -> str:
        return f"change {self.topic}: {self.name} from {self.was or 'unset'} to {self.to}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Something that is not as it must be and can't be changed in place; *text* names the way."""

    topic: str
    text: str

    def __str__(self) -> str:
        return f"refuse {self.topic}: {self.text}"


Step = Create | Change | Refusal


class Reader(NamedTuple):
    """A group that reads a source, and the tiers of its ladders there, by delay."""

    source: str
    group: str
    tiers: tuple[str, ...] = (AT_ONCE,)

    @property
    def retries(self) -> tuple[str, ...]:
        """Return the topics of the tiers."""
        return tuple(retry_topic(self.source, self.group, tier) for tier in self.tiers)

    @property
    def quarantine(self) -> str:
        """Return the topic of its quarantine."""
        return quarantine_topic(self.source, self.group)


class Leftover(NamedTuple):
    """A tier that exists and is in no ladder any more."""

    topic: str
    source: str
    group: str

    def told(self, waiting: int) -> str:
        """Return what is to be said about it, when *waiting* records are not dealt with."""
        fate = (
            f"{waiting} records wait in it and are still handled; keep it until none does"
            if waiting
            else "none waits in it: delete it once no process with the earlier ladder runs, then restart the processors"
        )
        return (
            f"left over {self.topic}: no ladder of {self.source} in group {self.group} has this tier; {fate}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """
    What there must be.

    Attributes:
        sources: Source topics.
        readers: Those whose tiers and quarantine are needed.
        partitions: Partitions of a source topic that is made; of those that exist, checked only when *insist*.
        replication: Replication of a source topic that is made; -1: the broker's default.
        insist: The partition count was asked for and is not a default.

    Raises:
        UsageError: Two readers would share a topic.
    """

    sources: Sequence[str]
    readers: Sequence[Reader] = ()
    partitions: int = 6
    replication: int = -1
    insist: bool = False
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = [checked_topic(source) for source in self.sources]
        for reader in self.readers:
            names += [*reader.retries, reader.quarantine]
        object.__setattr__(self, "names", tuple(names))
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            whose = "; ".join(
                f"group {reader.group} of {reader.source}"
                for reader in self.readers
                if twice in {*reader.retries, reader.quarantine, reader.source}
            )
            raise UsageError(f"topic {twice} would be shared by {whose}; rename a group")

    def leftovers(self, existing: Iterable[str]) -> list[Leftover]:
        """Return the tiers among *existing* topics that no ladder has any more; what waits in them is still handled."""
        there = set(existing)
        return [
            Leftover(topic, reader.source, reader.group)
            for reader in self.readers
            for tier in tiers_there(reader.source, reader.group, there)
            if (topic := retry_topic(reader.source, reader.group, tier)) not in self.names
        ]


def wanted_by(
    apps: Iterable[Processor], sources: Iterable[str], *, partitions: int | None, replication: int
) -> Wanted:
    """Return what *apps*, and producers of *sources*, need."""
    readers: dict[tuple[str, str], set[str]] = {}
    for app in apps:
        for source in app.topics:
            readers.setdefault((source, app.group), set()).update(app.tiers(source))
    return Wanted(
        sources=sorted({*sources, *(source for source, _ in readers)}),
        readers=[Reader(*pair, in_order(tiers)) for pair, tiers in sorted(readers.items())],
        partitions=6 if partitions is None else partitions,
        replication=replication,
        insist=partitions is not None,
    )


def plan(wanted: Wanted, there: Mapping[str, Topic], *, default_max_bytes: int) -> list[Step]:
    """
    Return the steps from what is *there* to what is *wanted*; none: all is as it must be.

    A tier that is there and in no ladder any more must be as all others, since what waits in it is still read.

    Args:
        wanted: What there must be.
        there: The topics that exist, by name; those of `wanted.names` and of `wanted.leftovers`.
        default_max_bytes: `max.message.bytes` of a topic that is made without saying so.
    """
    steps: list[Step] = []
    for source in wanted.sources:
        steps += _source(source, wanted, there.get(source))
    leftovers = wanted.leftovers(there)
    for reader in wanted.readers:
        found = there.get(reader.source)
        like = found or Topic(
            name=reader.source,
            partitions=wanted.partitions,
            replication=wanted.replication,
            config={"max.message.bytes": str(default_max_bytes)},
        )
        mine = [left.topic for left in leftovers if left[1:] == reader[:2]]
        for name in (*reader.retries, *mine):
            steps += _group(name, like, _config(like, tier=True), there.get(name))
        steps += _group(reader.quarantine, like, _config(like, tier=False), there.get(reader.quarantine))
    return steps


def _config(source: Topic, *, tier: bool) -> Mapping[str, str]:
    largest = int(source.config["max.message.bytes"]) + MARGIN_BYTES
    config = {**GROUP_CONFIG, "max.message.bytes": str(largest)}
    segment = min(max(SEGMENT_BYTES, 2 * largest), LARGEST_SEGMENT)
    return {**config, "segment.bytes": str(segment)} if tier else config


def _source(name: str, wanted: Wanted, found: Topic | None) -> list[Step]:
    if found is None:
        return [
            Create(
                topic=name,
                partitions=wanted.partitions,
                replication=wanted.replication,
                config=SOURCE_CONFIG,
            )
        ]
    steps: list[Step] = []
    if wanted.insist and found.partitions != wanted.partitions:
        steps.append(
            Refusal(
                topic=name,
                text=f"it has {found.partitions} partitions, not {wanted.partitions}; partitions are never added in place, "
                "since keys would move and lose their order: make a new topic, write to both, and cut over",
            )
        )
    return [*steps, *_changes(name, found, SOURCE_CONFIG)]


def _group(name: str, source: Topic, config: Mapping[str, str], found: Topic | None) -> list[Step]:
    if found is None:
        return [
            Create(topic=name, partitions=source.partitions, replication=source.replication, config=config)
        ]
    steps: list[Step] = []
    if found.partitions != source.partitions:
        steps.append(
            Refusal(
                topic=name,
                text=f"it has {found.partitions} partitions and {source.name} has {source.partitions}; a copy keeps its "
                "partition, so they must be equal: let it run empty, delete this topic, then apply again; see "
                "docs/runbooks/topics-changed.md",
            )
        )
    return [*steps, *_changes(name, found, config)]


def _changes(name: str, found: Topic, config: Mapping[str, str]) -> list[Step]:
    return [
        Change(topic=name, name=setting, was=found.config.get(setting), to=value)
        for setting, value in sorted(config.items())
        if found.config.get(setting) != value
    ]
