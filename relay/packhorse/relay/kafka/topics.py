"""What the broker says about topics: limits, leaders, replicas, rights."""

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
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
_RIGHTS_WITHIN = 1.0
"""Seconds for the answer about rights, which only the broker that the client takes for the controller may give."""


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

        Everything is asked of a broker that has just answered: the client would wait for the one that it takes for the controller,
        and that may be the one that is away.

        Raises:
            BrokerUnavailable: No answer.
        """
        return {name: self._described(name) for name in names}

    def _described(self, name: str) -> Topic | Refused:
        try:
            cluster = self._admin.list_topics(name, timeout=_ASK_WITHIN)
            if (error := cluster.topics[name].error) is not None:
                return _refused(name, error)
            rights = self._admin.describe_topics(
                TopicCollection([name]), include_authorized_operations=True, request_timeout=_RIGHTS_WITHIN
            )[name]
            resource = ConfigResource(ResourceType.TOPIC, name)
            config = self._admin.describe_configs(
                [resource], request_timeout=_ASK_WITHIN, broker=_answering(cluster)
            )[resource].result(_ASK_WITHIN + 1)
        except KafkaException as error:
            return _refused(name, error.args[0])
        except TimeoutError as error:
            raise BrokerUnavailable(
                f"the broker does not describe topic {name} within {_ASK_WITHIN:g} s"
            ) from error
        if not _may_write(rights):
            return Refused(FORBIDDEN, "no right to write")
        return Topic(
            name,
            limit=int(config["max.message.bytes"].value),
            least=int(config["min.insync.replicas"].value),
            in_sync={
                number: (len(each.isrs) if each.leader >= 0 else 0, len(each.replicas))
                for number, each in cluster.topics[name].partitions.items()
            },
        )


def _answering(cluster: Any) -> int:
    """Return the broker that answered; where the client does not know its number yet, one that the answer names."""
    return int(cluster.orig_broker_id if cluster.orig_broker_id >= 0 else min(cluster.brokers))


def _refused(name: str, error: KafkaError) -> Refused:
    if (refusal := judged(error.name())).blame is Blame.TOPIC:
        return Refused(refusal, error.name())
    raise BrokerUnavailable(f"the broker does not describe topic {name}: {error.str()}")


def _may_write(described: "Future[Any]") -> bool:
    """Tell whether the topic may be written to; True when nobody says: the broker refuses rows in any case."""
    try:
        operations = described.result(_RIGHTS_WITHIN + 1).authorized_operations
    except (KafkaException, TimeoutError):
        return True
    return not operations or AclOperation.WRITE in operations
