"""Reads ranges of a topic with a consumer of its own, which joins no group and commits nothing."""

from collections.abc import Sequence
from datetime import datetime
from operator import methodcaller
from uuid import UUID

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from packhorse.console.replaying.reading import Batch, Bounds, OutOfRange
from packhorse.core.errors import BrokerUnavailable
from packhorse.core.kafka_properties import Property
from packhorse.processor.clients import admin_properties
from packhorse.processor.kafka.admin import ASK_TIMEOUT, BrokerQuestions
from packhorse.processor.kafka.errors import OUT_OF_RANGE, asked, made, told
from packhorse.processor.record import Record, made_record
from packhorse.schemas.systems import KafkaSettings

NOBODY = "packhorse-replay-reads-only"
"""Stands where the client wants the name of a group: it subscribes to nothing and commits nothing."""
_OURS: dict[str, Property] = {
    "group.id": NOBODY,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "allow.auto.create.topics": False,
}
_headers = methodcaller("headers")


class KafkaRanges:
    """Be the `Ranges` of one broker."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._properties = admin_properties(settings)
        self._broker = BrokerQuestions(self._properties)

    def topic(self, topic: str) -> tuple[UUID, int]:
        """Return Kafka's id of *topic*, and its number of partitions."""
        topic_id, count = self._broker.describe([topic])[topic]
        return topic_id, count

    def bounds(self, topic: str, count: int, since: datetime | None, until: datetime | None) -> list[Bounds]:
        """Return where each partition's log begins and ends, and the first offsets at or after the times."""
        ends = [self._broker.log_ends(NOBODY, topic, partition) for partition in range(count)]
        starts, stops = self.firsts_at(topic, count, since), self.firsts_at(topic, count, until)
        return [
            Bounds(
                partition=partition,
                low=end.low,
                high=end.high,
                since=None if since is None else starts.get(partition, end.high),
                until=None if until is None else stops.get(partition, end.high),
            )
            for partition, end in enumerate(ends)
        ]

    def firsts_at(self, topic: str, count: int, moment: datetime | None) -> dict[int, int]:
        """Return by partition the first offset at or after *moment*; none where no record is so young."""
        if moment is None:
            return {}
        wanted = [TopicPartition(topic, each, int(moment.timestamp() * 1000)) for each in range(count)]
        consumer = made(lambda: Consumer({**self._properties, **_OURS}))
        try:
            found: list[TopicPartition] = consumer.offsets_for_times(wanted, timeout=ASK_TIMEOUT)
        except KafkaException as error:
            raise asked(error, f"topic {topic}") from error
        finally:
            consumer.close()
        if wrong := [one.error for one in found if one.error is not None]:
            raise asked(KafkaException(wrong[0]), f"topic {topic}")
        return {one.partition: one.offset for one in found if one.offset >= 0}

    def reader(self, topic: str) -> "KafkaReader":
        """Return a reader of *topic*; whoever takes it closes it."""
        return KafkaReader(self._properties, topic)


class KafkaReader:
    """Read one partition at a time, forwards."""

    def __init__(self, properties: dict[str, Property], topic: str) -> None:
        self._down = ""
        given = {
            **properties,
            "queued.min.messages": 50_000,
            "fetch.queue.backoff.ms": 20,
            **_OURS,
            "error_cb": self._on_error,
        }
        self._consumer = made(lambda: Consumer(given))
        self._topic = topic
        self._partition = -1

    def begin(self, partition: int, offset: int) -> None:
        """Read *partition* from *offset* on."""
        self._partition, self._down = partition, ""
        self._consumer.assign([TopicPartition(self._topic, partition, offset)])

    def batch(self, most: int, wait: float) -> Batch:
        """Return the next records, waiting up to *wait* seconds for the first."""
        records: list[Record] = []
        end: int | None = None
        for message in self._consumer.consume(most, wait):
            error = message.error()
            if error is None:
                records.append(_record(message))
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 the client has no public name for it
                end = message.offset() or 0
            elif error.code() in OUT_OF_RANGE:
                raise OutOfRange(f"{self._topic}[{self._partition}]: {told(error)}")
            elif not records:
                raise BrokerUnavailable(f"{self._topic}[{self._partition}]: {told(error)}; is the broker up?")
        if not records and end is None and self._down:
            text, self._down = self._down, ""
            raise BrokerUnavailable(f"{self._topic}[{self._partition}]: {text}; is the broker up?")
        return Batch(records, end)

    def close(self) -> None:
        """Close the client; never raises."""
        self._consumer.close()

    def _on_error(self, error: KafkaError) -> None:
        self._down = told(error)


def _record(message: Message) -> Record:
    try:
        headers: Sequence[tuple[str, bytes | None]] | None = _headers(message)
    except (SystemError, UnicodeDecodeError):
        headers = None  # as the group takes them: absent
    return made_record(
        (
            message.topic(),
            message.partition(),
            message.offset(),
            message.leader_epoch(),
            message.timestamp()[1],
            message.key(),
            message.value(),
            tuple(headers) if headers else (),
        )
    )
