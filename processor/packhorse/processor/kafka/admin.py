"""Questions to the broker about topics and groups, and orders that change them."""

import threading
from collections.abc import Mapping, Sequence
from uuid import UUID

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._metadata import ClusterMetadata
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from packhorse.core.errors import BrokerUnavailable, NotReady
from packhorse.core.kafka_properties import Property
from packhorse.processor.kafka.errors import MISSING, asked, made, told
from packhorse.processor.kafka.offsets import Offsets
from packhorse.processor.offsets.starting import LogEnds
from packhorse.processor.topics.plan import Change, Create, Step, Topic, Wanted
from packhorse.processor.topics.watching import Standing

ASK_TIMEOUT = 10.0
"""Seconds for one question."""
LOOK_AGAIN = 0.1
"""Seconds between two looks at what was just made."""
DEFAULT_MAX_MESSAGE_BYTES = 1_048_588
"""Kafka's own default."""
_MASK = (1 << 64) - 1


class BrokerQuestions:
    """Ask the broker; safe to share between threads."""

    def __init__(self, properties: Mapping[str, Property]) -> None:
        self._admin: AdminClient = made(lambda: AdminClient(dict(properties)))
        self._offsets = Offsets(properties)

    def topic_id(self, topic: str) -> UUID:
        """Return Kafka's id of *topic*."""
        return self.describe([topic])[topic][0]

    def describe(self, topics: Sequence[str]) -> dict[str, Standing]:
        """
        Return id and partition count of each of *topics*.

        Raises:
            NotReady: One does not exist, or may not be seen.
            BrokerUnavailable: The broker does not answer.
        """
        found = self.identities(topics)
        for topic in topics:
            if topic not in found:
                raise NotReady(f"topic {topic} does not exist; `packhorse topics plan` says what is missing")
        return found

    def identities(self, topics: Sequence[str]) -> dict[str, Standing]:
        """Return those of *topics* that exist. Raises BrokerUnavailable, or NotReady without the right."""
        found = {}
        futures = self._admin.describe_topics(TopicCollection(list(topics)), request_timeout=ASK_TIMEOUT)
        for topic, future in futures.items():
            try:
                description = future.result()
            except KafkaException as error:
                if error.args[0].code() in MISSING:
                    continue
                raise asked(error, f"topic {topic}") from error
            bits = description.topic_id
            high, low = bits.get_most_significant_bits(), bits.get_least_significant_bits()
            topic_id = UUID(int=(high & _MASK) << 64 | (low & _MASK))
            found[topic] = Standing(topic_id, len(description.partitions))
        return found

    def log_ends(self, group: str, topic: str, partition: int) -> LogEnds:
        """Return first offset, next offset and the group's committed offset."""
        place = topic, partition
        low = self._known(self._offsets.firsts([place], timeout=ASK_TIMEOUT), place)
        high = self._known(self._offsets.nexts([place], timeout=ASK_TIMEOUT), place)
        return LogEnds(low, high, self._offsets.committed(group, topic, partition, timeout=ASK_TIMEOUT))

    def ends(self, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int | str]:
        """Return the next offset of each of *places*, or what the broker said instead; in one question."""
        found = self._offsets.nexts(places, timeout=ASK_TIMEOUT) if places else {}
        return {place: one if isinstance(one, int) else told(one) for place, one in found.items()}

    def _known(self, found: Mapping[tuple[str, int], int | KafkaError], place: tuple[str, int]) -> int:
        one = found[place]
        if isinstance(one, int):
            return one
        self.describe([place[0]])  # one that does not exist is told so
        raise asked(KafkaException(one), f"{place[0]}[{place[1]}]")

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        """Return those of *names* that exist, with their settings. Raises BrokerUnavailable, or NotReady without the right."""
        there: dict[str, tuple[int, int]] = {}
        futures = self._admin.describe_topics(TopicCollection(list(names)), request_timeout=ASK_TIMEOUT)
        for name, future in futures.items():
            try:
                found = future.result()
            except KafkaException as error:
                if error.args[0].code() in MISSING:
                    continue
                raise asked(error, f"topic {name}") from error
            there[name] = len(found.partitions), len(found.partitions[0].replicas)
        configs = self._configs([ConfigResource(ResourceType.TOPIC, name) for name in there])
        return {
            name: Topic(name=name, partitions=count, replication=replicas, config=configs[name])
            for name, (count, replicas) in there.items()
        }

    def topic_names(self) -> frozenset[str]:
        """Return the names of all topics that this client may see."""
        return frozenset(self._metadata().topics)

    def standing(self, wanted: Wanted) -> dict[str, Topic]:
        """Return those topics that `plan` decides by: the wanted ones that exist, and tiers that no ladder has any more."""
        existing = self.topic_names()
        names = [*wanted.names, *(left.topic for left in wanted.leftovers(existing))]
        return self.topics([name for name in names if name in existing])

    def waiting(self, group: str, topic: str, partitions: int) -> int:
        """Return how many records of *topic* stand at or above the group's committed offsets."""
        found = [self.log_ends(group, topic, partition) for partition in range(partitions)]
        return sum(ends.high - max(ends.low, ends.committed or 0) for ends in found)

    def default_max_message_bytes(self) -> int:
        """Return `max.message.bytes` of a topic that does not set it."""
        nodes = self._metadata().brokers
        broker = str(next(iter(nodes)))
        config = self._configs([ConfigResource(ResourceType.BROKER, broker)])[broker]
        return int(config.get("message.max.bytes", DEFAULT_MAX_MESSAGE_BYTES))

    def apply(self, steps: Sequence[Step]) -> None:
        """
        Make and change topics as *steps* say, in their order; returns once the broker shows them.

        Raises:
            BrokerUnavailable, NotReady: One was not done; those before it were, and the whole can be repeated.
        """
        for step in steps:
            if isinstance(step, Create):
                self._create(step)
            elif isinstance(step, Change):
                self._change(step)
        self._await([step.topic for step in steps if isinstance(step, Create)])

    def _await(self, made_now: Sequence[str]) -> None:
        """Wait until the broker that answers knows what the controller has made; a moment, more when it is busy."""
        pause = threading.Event()
        for _ in range(int(ASK_TIMEOUT / LOOK_AGAIN)):
            shown = self.topics(made_now) if made_now else {}
            missing = [name for name in made_now if name not in shown]
            if not missing:
                return
            pause.wait(LOOK_AGAIN)
        raise BrokerUnavailable(
            f"topic {missing[0]} was made, and the broker does not show it after {ASK_TIMEOUT:g} s; run the command again"
        )

    def _create(self, step: Create) -> None:
        new = NewTopic(
            step.topic,
            num_partitions=step.partitions,
            replication_factor=step.replication,
            config=dict(step.config),
        )
        try:
            self._admin.create_topics([new], request_timeout=ASK_TIMEOUT)[step.topic].result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise asked(error, f"topic {step.topic}") from error

    def _change(self, step: Change) -> None:
        entry = ConfigEntry(step.name, step.to, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, step.topic, incremental_configs=[entry])
        future = next(
            iter(self._admin.incremental_alter_configs([resource], request_timeout=ASK_TIMEOUT).values())
        )
        try:
            future.result()
        except KafkaException as error:
            raise asked(error, f"topic {step.topic}") from error

    def group_state(self, group: str) -> tuple[str, int]:
        """Return the group's state, in lower case, and how many members it has; "unknown" when the broker has no such group."""
        future = self._admin.describe_consumer_groups([group], request_timeout=ASK_TIMEOUT)[group]
        try:
            found = future.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return "unknown", 0
            raise asked(error, f"group {group}") from error
        state = found.state.name.lower()
        return ("unknown" if state == "dead" else state), len(found.members)

    def set_offsets(self, group: str, topic: str, positions: Mapping[int, int]) -> None:
        """Set a stopped group's committed offsets. Raises BrokerUnavailable, also when the group has members."""
        places = [TopicPartition(topic, partition, at) for partition, at in positions.items()]
        request = [ConsumerGroupTopicPartitions(group, places)]
        try:
            answer = self._admin.alter_consumer_group_offsets(request, request_timeout=ASK_TIMEOUT)
            done = answer[group].result().topic_partitions
        except KafkaException as error:
            raise asked(error, f"group {group}") from error
        for place in done:
            if place.error is not None:
                raise asked(KafkaException(place.error), f"group {group}")

    def _metadata(self) -> ClusterMetadata:
        try:
            return self._admin.list_topics(timeout=ASK_TIMEOUT)
        except KafkaException as error:
            raise asked(error, "the broker") from error

    def _configs(self, resources: list[ConfigResource]) -> dict[str, dict[str, str]]:
        if not resources:
            return {}
        found: dict[str, dict[str, str]] = {}
        futures = self._admin.describe_configs(resources, request_timeout=ASK_TIMEOUT)
        for resource, future in futures.items():
            try:
                entries = future.result()
            except KafkaException as error:
                raise asked(error, f"settings of {resource.name}") from error
            found[resource.name] = {
                name: entry.value for name, entry in entries.items() if entry.value is not None
            }
        return found
