"""The member of the group against a real broker: cut off and fenced, and come back, under both group protocols."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported at run time
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from tests.support.stack import PrivateBroker
from tests.support.topics import make_topic
from tests.support.wait import eventually

from packhorse.core.logs import logger
from packhorse.local.settings import Endpoints
from packhorse.processor.clients import consumer_properties
from packhorse.processor.kafka.consumer import Assignment, CommitReport, GroupConsumer
from packhorse.processor.kafka.group_times import GroupQuestions
from packhorse.processor.settings import ProcessorSettings

PROTOCOLS = ("consumer", "classic")
QUICK = {"reconnect.backoff.max.ms": 500}


class Member:
    """A member that attaches what it is given, and what has happened to it."""

    def __init__(self, kafka: str, topic: str, protocol: str) -> None:
        given = {**QUICK, "session.timeout.ms": 6_000} if protocol == "classic" else QUICK
        environ = {
            "PACKHORSE_KAFKA_BOOTSTRAP_SERVERS": kafka,
            "PACKHORSE_DATABASE_URL": "postgresql://nobody@localhost/none",
            "PACKHORSE_REGISTRY_URL": "http://localhost",
        }
        settings = ProcessorSettings.load(
            {"group_protocol": protocol, "kafka_properties": given}, environ=environ
        )
        self.topic = topic
        self.mine: set[tuple[str, int]] = set()
        self.lost_once: set[tuple[str, int]] = set()
        self.commits: list[CommitReport] = []
        self.read: list[tuple[int, int]] = []
        self._new: Assignment = []
        properties = consumer_properties(settings, f"{topic}.{protocol}")
        self.consumer = GroupConsumer(properties, [topic], self, logger("processor"))

    def assigned(self, partitions: Assignment) -> None:
        self._new += partitions

    def revoked(self, partitions: Assignment) -> None:
        self.mine -= set(partitions)

    def lost(self, partitions: Assignment) -> None:
        self.mine -= set(partitions)
        self.lost_once |= set(partitions)

    def turn(self) -> None:
        polled = self.consumer.poll(0.05, 100)
        for place in self._new:
            self.consumer.attach(*place, 0)
            self.mine.add(place)
        self._new = []
        self.commits += polled.commits
        self.read += [(one.partition, one.offset) for each in polled.records.values() for one in each]


@contextmanager
def joined(members: Sequence[Member]) -> Iterator[None]:
    with ExitStack() as closing:
        for member in members:
            member.consumer.join()
            closing.callback(member.consumer.close, 30)
        yield


def until(members: Sequence[Member], fact: str, ready: Callable[[Member], bool]) -> None:
    """Let all members poll until *ready* holds for each."""

    def turned() -> bool:
        for member in members:
            member.turn()
        return all(ready(member) for member in members)

    eventually(turned, what=fact, timeout=60)


@pytest.mark.case("P-10")
@pytest.mark.case("P-27")
def test_a_member_that_was_cut_off_forgets_is_refused_and_comes_back(
    private_kafka: PrivateBroker, topic_prefix: str
) -> None:
    """Fails when lost partitions stay attached, a refusal is taken for an outage, or the member does not join again."""
    topic = f"{topic_prefix}.notes"
    make_topic(private_kafka.direct_bootstrap, topic, partitions=2)
    first = [Member(private_kafka.bootstrap, topic, protocol) for protocol in PROTOCOLS]
    with joined(first):
        until(first, "the first have all", lambda member: len(member.mine) == 2)
        private_kafka.proxy.cut()
        second = [Member(private_kafka.direct_bootstrap, topic, protocol) for protocol in PROTOCOLS]
        with joined(second):
            until(
                [*first, *second], "others take over", lambda member: member in first or len(member.mine) == 2
            )
            for member in first:
                if member.mine:
                    member.consumer.commit(topic, 0, 1, None)
            private_kafka.proxy.resume()
            until(
                [*first, *second],
                "partitions were lost, and are shared",
                lambda member: len(member.mine) == 1,
            )
        assert all(member.lost_once == {(topic, 0), (topic, 1)} for member in first)
        until(first, "the first have all again", lambda member: len(member.mine) == 2)
        producer = Producer({"bootstrap.servers": private_kafka.direct_bootstrap})
        for partition in (0, 1):
            producer.produce(topic, b"v", partition=partition)
        assert producer.flush(10) == 0
        until(first, "records come", lambda member: {(0, 0), (1, 0)} <= set(member.read))
    late = [report for member in first for report in member.commits]
    assert late
    assert all(report.ended == "refused" for report in late), late


def test_a_groups_times_are_those_that_the_broker_goes_by(stack: Endpoints, topic_prefix: str) -> None:
    """Fails when Kafka's defaults, or the client's own session time-out, are taken for a KIP-848 group."""
    admin = AdminClient({"bootstrap.servers": stack.kafka_bootstrap})
    broker = GroupQuestions({"bootstrap.servers": stack.kafka_bootstrap})
    own, others = f"{topic_prefix}.own", f"{topic_prefix}.others"
    entry = ConfigEntry("consumer.session.timeout.ms", "9000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, own, incremental_configs=[entry])
    next(iter(admin.incremental_alter_configs([resource]).values())).result(10)
    newer = {"group.protocol": "consumer"}
    eventually(lambda: broker.times(own, newer).whose == "group", what="the group's setting shows")
    assert broker.times(own, newer).session == 9.0
    assert broker.times(others, newer).whose == "brokers"
    assert broker.times(others, {"group.protocol": "classic"}).session == 45.0
    assert not broker.is_classic(others)
