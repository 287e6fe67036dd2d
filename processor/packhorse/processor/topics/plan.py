"""Which topics there must be and with which settings, and what stands between that and what there is; decided purely."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from packhorse.core.naming import checked_topic, quarantine_topic, retry_topic
from packhorse.processor.app import Processor

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """
    What there must be.

    Attributes:
        sources: Source topics.
        groups: Source topic and group, for each pair whose retry and quarantine topics are needed.
        partitions: Partitions of a source topic that is made; of those that exist, checked only when *insist*.
        replication: Replication of a source topic that is made; -1: the broker's default.
        insist: The partition count was asked for and is not a default.
    """

    sources: Sequence[str]
    groups: Sequence[tuple[str, str]] = ()
    partitions: int = 6
    replication: int = -1
    insist: bool = False
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = [checked_topic(source) for source in self.sources]
        for source, group in self.groups:
            names += [retry_topic(source, group, "0s"), quarantine_topic(source, group)]
        object.__setattr__(self, "names", tuple(names))


def wanted_by(
    apps: Iterable[Processor], sources: Iterable[str], *, partitions: int | None, replication: int
) -> Wanted:
    """Return what *apps*, and producers of *sources*, need."""
    pairs = sorted({(source, app.group) for app in apps for source in app.topics})
    named = sorted({*sources, *(source for source, _ in pairs)})
    return Wanted(
        sources=named,
        groups=pairs,
        partitions=6 if partitions is None else partitions,
        replication=replication,
        insist=partitions is not None,
    )


def plan(wanted: Wanted, there: Mapping[str, Topic], *, default_max_bytes: int) -> list[Step]:
    """
    Return the steps from what is *there* to what is *wanted*; none: all is as it must be.

    Args:
        wanted: What there must be.
        there: The topics that exist, by name.
        default_max_bytes: `max.message.bytes` of a topic that is made without saying so.
    """
    steps: list[Step] = []
    for source in wanted.sources:
        steps += _source(source, wanted, there.get(source))
    for source, group in wanted.groups:
        found = there.get(source)
        partitions = wanted.partitions if found is None else found.partitions
        replication = wanted.replication if found is None else found.replication
        largest = default_max_bytes if found is None else int(found.config["max.message.bytes"])
        config = {**GROUP_CONFIG, "max.message.bytes": str(largest + MARGIN_BYTES)}
        for name in (retry_topic(source, group, "0s"), quarantine_topic(source, group)):
            steps += _group(name, source, partitions, replication, config, there.get(name))
    return steps


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


def _group(
    name: str,
    source: str,
    partitions: int,
    replication: int,
    config: Mapping[str, str],
    found: Topic | None,
) -> list[Step]:
    if found is None:
        return [Create(topic=name, partitions=partitions, replication=replication, config=config)]
    steps: list[Step] = []
    if found.partitions != partitions:
        steps.append(
            Refusal(
                topic=name,
                text=f"it has {found.partitions} partitions and {source} has {partitions}; a copy keeps its partition, so "
                "they must be equal: drain and delete this topic, then apply again",
            )
        )
    return [*steps, *_changes(name, found, config)]


def _changes(name: str, found: Topic, config: Mapping[str, str]) -> list[Step]:
    return [
        Change(topic=name, name=setting, was=found.config.get(setting), to=value)
        for setting, value in sorted(config.items())
        if found.config.get(setting) != value
    ]
