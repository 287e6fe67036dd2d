"""A bounded look into a topic for one message id: joins no group, commits nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from packhorse.console.facts import Place
from packhorse.console.finding.model import AtPlace
from packhorse.console.truth.status import Search
from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.core.kafka_properties import Property, merged
from packhorse.core.partitions import partition_of
from packhorse.core.text import counted

CLOCKS_APART = timedelta(seconds=5)
"""The search starts so long before the row was written: topics carry the broker's clock, rows the database's."""
_BATCH = 500

_OURS: Mapping[str, Property] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one search reads at most, and how long one question to the broker may take, in seconds."""

    records: int = 10_000
    seconds: float = 5.0
    timeout: float = 5.0


class KafkaTopics:
    """
    Be the `Topics` of one broker.

    Args:
        properties: A user's librdkafka properties.
        clock: Bounds the search.

    Raises:
        SettingsError: A property would break the search; named.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        properties: Mapping[str, Property],
        sasl_password: str | None,
        limits: Limits,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        config = merged(
            {"client.id": "packhorse-console", **properties},
            {**_OURS, "group.id": "packhorse-console-reads-only"},
            bootstrap_servers=bootstrap_servers,
            sasl_password=sasl_password,
            part="console",
        )
        self._config: dict[str, Property] = {**config, "log_level": 0}
        self._limits = limits
        self._clock = clock

    def look(self, topic: str, *, key: str | None, message_id: UUID, since: datetime) -> Search:
        """Search the partition of *key* (every partition without one) for *message_id*, within the limits."""
        consumer = Consumer(self._config)
        try:
            return self._look(consumer, topic, key=key, message_id=message_id, since=since)
        except KafkaException as error:
            return Search(
                said=f"not searched: {_reason(error.args[0])}; is the broker up and the topic there?"
            )
        finally:
            consumer.close()

    def at(self, place: Place) -> AtPlace:
        """Return which message stands at *place*, from one record; it is named by the `id` header that ours have."""
        consumer = Consumer(self._config)
        try:
            return self._at(consumer, place)
        except KafkaException as error:
            return AtPlace(
                id=None, said=f"not looked: {_reason(error.args[0])}; is the broker up and the topic there?"
            )
        finally:
            consumer.close()

    def _at(self, consumer: Consumer, place: Place) -> AtPlace:
        where = TopicPartition(place.topic, place.partition, place.offset)
        known = consumer.list_topics(place.topic, timeout=self._limits.timeout).topics[place.topic].partitions
        if place.partition not in (known or {}):
            return AtPlace(id=None, said="there is no such topic, or it has no such partition")
        low, high = consumer.get_watermark_offsets(where, timeout=self._limits.timeout)
        if not low <= place.offset < high:
            return AtPlace(id=None, said=f"the partition has records from {low} on, before {high}")
        consumer.assign([where])
        deadline = self._clock.monotonic() + self._limits.seconds
        while self._clock.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error() is not None and not _ended(message):
                continue
            if message.error() is not None or message.offset() != place.offset:
                return AtPlace(
                    id=None, said="no record stands there any more, or it is a mark of a transaction"
                )
            return _named(message)
        return AtPlace(id=None, said="the broker did not hand the record over in time")

    def _look(
        self, consumer: Consumer, topic: str, *, key: str | None, message_id: UUID, since: datetime
    ) -> Search:
        deadline = self._clock.monotonic() + self._limits.seconds
        partitions = self._partitions(consumer, topic, key)
        if not partitions:
            return Search(said=f"not searched: topic {topic} does not exist; see packhorse topics plan")
        start_ms = int((since - CLOCKS_APART).timestamp() * 1000)
        asked = [TopicPartition(topic, partition, start_ms) for partition in partitions]
        starts = consumer.offsets_for_times(asked, timeout=self._limits.timeout)
        wanted = [start for start in starts if start.offset >= 0]  # -1: nothing so young
        if not wanted:
            return Search(said=f"searched {_names(topic, partitions)}: no record since {_time(since)}")
        consumer.assign(wanted)
        read, open_partitions = 0, {start.partition for start in wanted}
        while open_partitions and read < self._limits.records and self._clock.monotonic() < deadline:
            for message in consumer.consume(min(_BATCH, self._limits.records - read), timeout=0.2):
                if (place := _place_if(message, message_id)) is not None:
                    return Search(place=place, said=f"found after {counted(read + 1, 'record')}")
                read += message.error() is None
                open_partitions -= _ended(message)
        bound = (
            "to the end" if not open_partitions else "then the search ended, the message may stand further on"
        )
        return Search(
            said=f"searched {_names(topic, partitions)} since {_time(since)}: {counted(read, 'record')} read, not there, {bound}"
        )

    def _partitions(self, consumer: Consumer, topic: str, key: str | None) -> list[int]:
        found = consumer.list_topics(topic, timeout=self._limits.timeout).topics[topic]
        if found.error is not None and found.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise KafkaException(found.error)
        if not found.partitions:
            return []
        return (
            sorted(found.partitions) if key is None else [partition_of(key.encode(), len(found.partitions))]
        )


def _place_if(message: Message, message_id: UUID) -> Place | None:
    if message.error() is not None:
        return None
    if ("id", str(message_id).encode()) not in (message.headers() or []):
        return None
    return Place(
        topic=message.topic() or "", partition=message.partition() or 0, offset=message.offset() or 0
    )


def _named(message: Message) -> AtPlace:
    header = dict(message.headers() or []).get("id")
    try:
        return AtPlace(id=UUID((header or b"").decode("ascii")), said="found, by the record's header")  # type: ignore[union-attr]
    except (ValueError, UnicodeDecodeError):
        return AtPlace(id=None, said="the record there has no id of a message in its headers")


def _ended(message: Message) -> set[int]:
    error = message.error()
    if error is None:
        return set()
    if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 the client has no public name for it
        return {message.partition() or 0}
    raise KafkaException(error)


def _names(topic: str, partitions: list[int]) -> str:
    return f"{topic}/{partitions[0]}" if len(partitions) == 1 else f"{topic}, {len(partitions)} partitions"


def _time(at: datetime) -> str:
    return at.isoformat(sep=" ", timespec="seconds")


def _reason(error: object) -> str:
    return error.str() if isinstance(error, KafkaError) else str(error)
