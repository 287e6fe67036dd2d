"""Judge the broker and the topics. Pure: no I/O, no clock."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from packhorse.console.doctor.findings import Finding, failed, ok, skipped, warning
from packhorse.core.naming import quarantine_topic, retry_topic
from packhorse.core.text import counted
from packhorse.processor.tiers.ladder import AT_ONCE, in_order, tiers_there

OLD_SETTING = "zookeeper.connect"
"""Every broker before Kafka 4.0 knows this setting, and none since: the protocol does not tell the version."""
SMALLEST_MESSAGE = 1_000_000
RUNBOOK = "docs/runbooks/broker-trouble.md"
FOREVER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """
    The broker that answered.

    Attributes:
        cluster: The cluster's id.
        nodes: Brokers in the cluster.
        settings: The settings of one broker; None when we have no right to read them.
    """

    cluster: str
    nodes: int
    settings: Mapping[str, str | None] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One topic; `settings` are None when we have no right to read them."""

    name: str
    partitions: int
    leaderless: int
    settings: Mapping[str, str | None] | None


def judge_broker(broker: Broker) -> Iterator[Finding]:
    """Yield what is to be said about *broker*."""
    yield ok("broker", f"cluster {broker.cluster} answers, {broker.nodes} brokers")
    if broker.settings is None:
        yield skipped("broker version", "the right to read the broker's settings is missing")
        return
    if OLD_SETTING in broker.settings:
        yield failed(
            "broker version",
            "older than Kafka 4.0",
            cause="Packhorse needs 4.0 or later (KRaft, topic ids)",
            next_step="upgrade the brokers",
        )
    else:
        yield ok("broker version", "Kafka 4.0 or later")
    if broker.settings.get("auto.create.topics.enable") == "true":
        yield warning(
            "auto create",
            "auto.create.topics.enable is true",
            cause="a mistyped topic is made with the broker's defaults by whoever asks for it",
            next_step="set auto.create.topics.enable=false; packhorse topics apply makes ours",
        )


def topics_of(
    sources: list[str], groups: list[tuple[str, str, int]], existing: Iterable[str] = ()
) -> set[str]:
    """Return the names of all topics that `judge_topics` looks at, the tiers among *existing* topics included."""
    there = set(existing)
    own = {name for group, source, _ in groups for name in _companions(source, group, there)}
    return {*sources, *(source for _, source, _ in groups), *own}


def _companions(source: str, group: str, existing: Iterable[str]) -> list[str]:
    """Return the topics of a group that must be there, and the further tiers that are."""
    tiers = in_order({AT_ONCE, *tiers_there(source, group, existing)})
    return [*(retry_topic(source, group, tier) for tier in tiers), quarantine_topic(source, group)]


def judge_topics(
    sources: list[str], groups: list[tuple[str, str, int]], topics: Mapping[str, Topic]
) -> Iterator[Finding]:
    """
    Yield what is to be said about the topics that the database knows of.

    Args:
        sources: Topics of registered schemas.
        groups: Group, source topic, and how many of its partitions have a watermark.
        topics: What the broker has, by name.
    """
    if not sources and not groups:
        yield skipped(
            "topics", "no schema is registered and no group reads", next_step="packhorse topics plan"
        )
    for name in sorted({*sources, *(topic for _, topic, _ in groups)}):
        yield _source(name, topics.get(name))
    for group, source, _ in sorted(set(groups)):
        found = topics.get(source)
        if found is not None:
            for name in _companions(source, group, topics):
                yield _companion(name, topics.get(name), found)


def judge_plan(target: str, topics: int, steps: list[str]) -> Iterator[Finding]:
    """Yield what is to be said about the *steps* that would make the topics of the application *target* as they must be."""
    if not steps:
        yield ok("application", f"the {topics} topics of {target} are as they must be")
    for step in steps:
        yield failed(
            "application",
            f"its topics are not as they must be: {step}",
            cause="topics were not applied, or were changed by hand",
            next_step=f"packhorse topics apply {target}",
        )


def _source(name: str, topic: Topic | None) -> Finding:
    check = f"topic {name}"
    if topic is None:
        return failed(
            check,
            "does not exist",
            cause="nothing is created by accident: a relay that runs holds its rows until it is there, one that is started refuses",
            next_step=f"packhorse topics plan, then packhorse topics apply; see {RUNBOOK}",
        )
    if topic.leaderless:
        return failed(
            check,
            f"{topic.leaderless} of {topic.partitions} partitions have no leader",
            cause="brokers are down; the relay holds these partitions until they are back, all others flow",
            next_step=f"start the brokers that hold its replicas; see {RUNBOOK}",
        )
    settings = topic.settings
    if settings is not None and settings.get("message.timestamp.type") == "CreateTime":
        return warning(
            check,
            "message.timestamp.type is CreateTime",
            cause="a backlog that is published late may be old enough to be deleted on arrival",
            next_step="set message.timestamp.type=LogAppendTime on the topic",
        )
    if settings is not None and int(settings.get("max.message.bytes") or SMALLEST_MESSAGE) < SMALLEST_MESSAGE:
        return warning(
            check,
            f"max.message.bytes is {settings['max.message.bytes']}",
            cause="a payload that the outbox takes (up to 900 KiB) may not fit",
            next_step=f"raise it to {SMALLEST_MESSAGE} or more, or lower the outbox's limit",
        )
    return ok(check, counted(topic.partitions, "partition"))


def _companion(name: str, topic: Topic | None, source: Topic) -> Finding:
    check = f"topic {name}"
    if topic is None:
        return failed(
            check,
            "does not exist",
            cause=f"the group reads {source.name} and has nowhere to put what fails",
            next_step="packhorse topics apply",
        )
    if topic.partitions != source.partitions:
        return failed(
            check,
            f"{counted(topic.partitions, 'partition')}, its source has {source.partitions}",
            cause="partitions were added in place, or the topic was made by hand",
            next_step="packhorse topics plan names the way",
        )
    settings = topic.settings or {}
    kept = {name: settings.get(name) for name in ("retention.ms", "retention.bytes")}
    if settings and (
        any(int(value or FOREVER) != FOREVER for value in kept.values()) or _compacted(settings)
    ):
        return failed(
            check,
            f"cleanup.policy {settings.get('cleanup.policy')}, retention.ms {kept['retention.ms']}, "
            f"retention.bytes {kept['retention.bytes']}",
            cause="what waits there for a person would be deleted",
            next_step="packhorse topics plan, then packhorse topics apply",
        )
    return ok(check, f"{counted(topic.partitions, 'partition')}, kept until a person decides")


def _compacted(settings: Mapping[str, str | None]) -> bool:
    return "compact" in (settings.get("cleanup.policy") or "")
