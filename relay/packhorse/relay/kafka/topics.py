"""What the broker says about topics: limits, leaders, replicas, rights."""

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported at run time
    AclOperation,
    ConfigResource,
    ResourceType,
)

from packhorse.core.errors import BrokerUnavailable
from packhorse.core.kafka_properties import Property
from packhorse.relay.kafka import clients
from packhorse.relay.refusals import FORBIDDEN, Blame, Refusal, judged

_ASK_WITHIN = 5.0
"""Seconds for an answer."""


class Topic(NamedTuple):
    """
    A topic as the broker describes it.

    Attributes:
        name: Its name.
        limit: Its max.message.bytes.
        least: Its min.insync.replicas.
        in_sync: For each partition the number of replicas in sync, 0 where no broker leads it, and of all replicas.
    """

    name: str
    limit: int
    least: int
    in_sync: Mapping[int, tuple[int, int]]

    def trouble(self, partition: int) -> str | None:
        """Say why nothing can be written to *partition*; None: nothing that the broker tells."""
        if partition not in self.in_sync:
            return f"partition {partition} is gone: the topic has {len(self.in_sync)}; release the hold once they are there again"
        in_sync, replicas = self.in_sync[partition]
        if not in_sync:
            return f"partition {partition} has no leader; see to the brokers that hold it: the relay goes on by itself"
        if in_sync < min(self.least, replicas):  # a broker asks for no more replicas than there are
            return (
                f"partition {partition} has {in_sync} replicas in sync, and the topic's min.insync.replicas is {self.least}; "
                "see to the brokers that hold the others: the relay goes on by itself"
            )
        return None


class Refused(NamedTuple):
    """Why a topic can't be written to."""

    refusal: Refusal
    said: str


class Topics:
    """Ask about topics, through a client apart from the one that sends."""

    def __init__(self, properties: Mapping[str, Property]) -> None:
        """Make the client, with *properties*."""
        self._admin = clients.admin(properties)

    def missing(self, topics: Iterable[str]) -> list[str]:
        """
        Return those of *topics* that the broker does not have, or does not let this client see.

        Raises:
            BrokerUnavailable: No answer.
        """
        try:
            there = self._admin.list_topics(timeout=_ASK_WITHIN).topics
        except KafkaException as error:
            raise BrokerUnavailable(f"the broker does not list its topics: {error.args[0].str()}") from error
        return [topic for topic in topics if topic not in there]

    def described(self, names: Collection[str]) -> dict[str, Topic | Refused]:
        """
        Return what the broker says about each of *names*; blocks for some seconds at most.

        Raises:
            BrokerUnavailable: No answer.
        """
        resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in names}
        try:
            topics = self._admin.describe_topics(
                TopicCollection(list(names)), include_authorized_operations=True, request_timeout=_ASK_WITHIN
            )
            limits = self._admin.describe_configs(list(resources.values()), request_timeout=_ASK_WITHIN)
        except KafkaException as error:
            raise BrokerUnavailable(f"the broker describes no topic: {error.args[0].str()}") from error
        return {name: _topic(name, topics[name], limits[resources[name]]) for name in names}


def _topic(name: str, described: "Future[Any]", limits: "Future[Any]") -> Topic | Refused:
    try:
        topic, config = described.result(_ASK_WITHIN + 1), limits.result(_ASK_WITHIN + 1)
    except KafkaException as error:
        cause = error.args[0]
        if (refusal := judged(cause.name())).blame is Blame.TOPIC:
            return Refused(refusal, cause.name())
        raise BrokerUnavailable(f"the broker does not describe topic {name}: {cause.str()}") from error
    except TimeoutError as error:
        raise BrokerUnavailable(
            f"the broker does not describe topic {name} within {_ASK_WITHIN:g} s"
        ) from error
    if topic.authorized_operations and AclOperation.WRITE not in topic.authorized_operations:
        return Refused(FORBIDDEN, "no right to write")
    return Topic(
        name,
        limit=int(config["max.message.bytes"].value),
        least=int(config["min.insync.replicas"].value),
        in_sync={
            each.id: (len(each.isr) if each.leader is not None else 0, len(each.replicas))
            for each in topic.partitions
        },
    )
