"""Asks the broker for the times of a group, as they really are."""

from collections.abc import Mapping

from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource, ConfigSource
from confluent_kafka.admin._resource import ResourceType

from packhorse.core.kafka_properties import Property
from packhorse.processor.kafka.errors import made
from packhorse.processor.takeover import GroupTimes, classic_times, consumer_times

ASK_TIMEOUT = 5.0
"""Seconds for one question."""
_SESSION = "consumer.session.timeout.ms"
_OF_GROUP = int(ConfigSource.GROUP_CONFIG.value)


class GroupQuestions:
    """Ask about groups; what may not be asked is assumed, and nothing here raises because of the broker."""

    def __init__(self, properties: Mapping[str, Property]) -> None:
        self._admin: AdminClient = made(lambda: AdminClient(dict(properties)))

    def times(self, group: str, consumer: Mapping[str, Property]) -> GroupTimes:
        """Return the times of *group* for a member with the properties *consumer*."""
        if consumer.get("group.protocol", "classic") == "classic":
            return classic_times(consumer)
        of_group = self._settings(ResourceType.GROUP, group)
        if of_group:
            own = of_group.get(_SESSION, ("", 0))[1] == _OF_GROUP
            return consumer_times(_named(of_group, "consumer."), whose="group" if own else "brokers")
        of_broker = self._settings(ResourceType.BROKER, self._broker())
        return consumer_times(
            _named(of_broker, "group.consumer."), whose="brokers" if of_broker else "assumed"
        )

    def is_classic(self, group: str) -> bool:
        """Return whether the group stands at its coordinator as a classic one; False when there is none."""
        future = self._admin.describe_consumer_groups([group], request_timeout=ASK_TIMEOUT)[group]
        try:
            found = future.result()
            classic: bool = found.type == ConsumerGroupType.CLASSIC and found.state != ConsumerGroupState.DEAD
            return classic
        except KafkaException:
            return False

    def _broker(self) -> str:
        try:
            return str(next(iter(self._admin.list_topics(timeout=ASK_TIMEOUT).brokers), 1))
        except KafkaException:
            return "1"

    def _settings(self, kind: ResourceType, name: str) -> Mapping[str, tuple[str, int]]:
        """Return values and where each comes from; none without the right, or while the broker is away."""
        futures = self._admin.describe_configs([ConfigResource(kind, name)], request_timeout=ASK_TIMEOUT)
        try:
            entries = next(iter(futures.values())).result()
        except KafkaException:
            return {}
        return {
            name: (entry.value, int(entry.source))
            for name, entry in entries.items()
            if entry.value is not None
        }


def _named(settings: Mapping[str, tuple[str, int]], prefix: str) -> Mapping[str, str]:
    return {
        name.removeprefix(prefix): value for name, (value, _) in settings.items() if name.startswith(prefix)
    }
