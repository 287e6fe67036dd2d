"""The doctor's look at the broker and its topics; every question bounded."""

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]

from packhorse.console.doctor.judge_broker import Broker, Topic
from packhorse.core.errors import BrokerUnavailable
from packhorse.core.kafka_properties import Property

_NO_RIGHT = {KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}


class BrokerCheck:
    """
    Look at one cluster.

    Args:
        properties: The client's, all of them.
        timeout: Seconds for each question.
    """

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, Property], *, timeout: float) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._timeout = timeout
        self._said: list[str] = []
        self._config: dict[str, Any] = {
            **properties,
            "client.id": "packhorse-doctor",
            "error_cb": self._heard,
            "log_level": 0,
        }

    def broker(self) -> Broker:
        """
        Return what the broker says about itself.

        Raises:
            BrokerUnavailable: It does not answer in time, or refuses us.
        """
        try:
            admin = AdminClient(self._config)
            cluster = admin.describe_cluster(request_timeout=self._timeout).result(self._timeout + 1)
            node: Any = cluster.nodes[0].id
            settings = self._settings(admin, [ConfigResource(ResourceType.BROKER, str(node))])
        except (KafkaException, TimeoutError, ValueError) as error:
            raise self._away(error) from error
        return Broker(
            cluster=str(cluster.cluster_id), nodes=len(cluster.nodes), settings=next(iter(settings.values()))
        )

    def names(self) -> frozenset[str]:
        """
        Return the names of all topics.

        Raises:
            BrokerUnavailable: The broker does not answer in time, or refuses us.
        """
        try:
            return frozenset(AdminClient(self._config).list_topics(timeout=self._timeout).topics)
        except (KafkaException, TimeoutError, ValueError) as error:
            raise self._away(error) from error

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """
        Return the topics of *names* that exist, by name.

        Raises:
            BrokerUnavailable: The broker does not answer in time, or refuses us.
        """
        wanted = set(names)
        try:
            admin = AdminClient(self._config)
            known: dict[str, Any] = dict(admin.list_topics(timeout=self._timeout).topics)
            there = [known[name] for name in sorted(wanted & set(known))]
            settings = self._settings(
                admin, [ConfigResource(ResourceType.TOPIC, topic.topic) for topic in there]
            )
        except (KafkaException, TimeoutError, ValueError) as error:
            raise self._away(error) from error
        return {topic.topic: _topic(topic.topic, topic, settings[topic.topic]) for topic in there}

    def _settings(
        self, admin: AdminClient, resources: list[Any]
    ) -> dict[str, Mapping[str, str | None] | None]:
        if not resources:
            return {}
        asked = admin.describe_configs(resources, request_timeout=self._timeout)
        found: dict[str, Mapping[str, str | None] | None] = {}
        for resource, future in asked.items():
            try:
                found[resource.name] = {
                    name: entry.value for name, entry in future.result(self._timeout + 1).items()
                }
            except KafkaException as error:
                if error.args[0].code() not in _NO_RIGHT:
                    raise
                found[resource.name] = None
        return found

    def _heard(self, error: KafkaError) -> None:
        self._said.append(error.str())

    def _away(self, error: Exception) -> BrokerUnavailable:
        first = error.args[0] if error.args else error
        reason = first.str() if isinstance(first, KafkaError) else str(first) or "no answer"
        heard = f" ({self._said[-1]})" if self._said else ""
        return BrokerUnavailable(f"broker {self._bootstrap_servers}: {reason}{heard}")


def _topic(name: str, topic: Any, settings: Mapping[str, str | None] | None) -> Topic:
    return Topic(
        name=name,
        partitions=len(topic.partitions),
        leaderless=sum(partition.leader < 0 for partition in topic.partitions.values()),
        settings=settings,
    )
