"""Ask what groups have committed, without being a member."""

import threading
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from packhorse.core.kafka_properties import Property
from packhorse.processor.kafka.errors import asked, made


class CommittedOffsets:
    """
    Ask the coordinators of groups for committed offsets; safe to share between threads.

    One client a group, made at its first question; it never subscribes, so it joins nothing. The admin client has such a
    question too, but an answer that the coordinator has moved, or is lost with the connection, ends the whole process in there
    (a null pointer, an assertion), which no caller can catch.
    """

    def __init__(self, properties: Mapping[str, Property]) -> None:
        self._properties = dict(properties)
        self._clients: dict[str, Consumer] = {}
        self._making = threading.Lock()

    def of(self, group: str, topic: str, partition: int, *, timeout: float) -> int | None:
        """
        Return the offset that *group* has committed; None when there is none.

        Raises:
            BrokerUnavailable: The coordinator does not answer within *timeout* seconds.
            NotReady: This client may not see the group.
        """
        try:
            found = self._client(group).committed([TopicPartition(topic, partition)], timeout=timeout)[0]
        except KafkaException as error:
            raise asked(error, f"group {group}") from error
        if found.error is not None:
            raise asked(KafkaException(found.error), f"group {group}")
        return found.offset if found.offset >= 0 else None

    def _client(self, group: str) -> Consumer:
        with self._making:
            if group not in self._clients:
                self._clients[group] = made(
                    lambda: Consumer({**self._properties, "group.id": group, "enable.auto.commit": False})
                )
            return self._clients[group]
