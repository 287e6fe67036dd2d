"""The topics' side of the comparison: the port `Topics`. Joins no group, commits nothing."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Self
from uuid import UUID

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported at run time
    AdminClient,
    ConfigResource,
    ResourceType,
)

from packhorse.core.clock import Clock
from packhorse.core.errors import BrokerUnavailable
from packhorse.core.kafka_properties import Property, merged
from packhorse.relay.verify.model import Stretch, Topic
from packhorse.relay.verify.ports import Seen

_SILENCE = 30.0
_BATCH = 10_000
_OURS: Mapping[str, Property] = {
    "group.id": "packhorse-verify-reads-only",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
}
_DEFAULTS: Mapping[str, Property] = {"client.id": "packhorse-verify", "queued.max.messages.kbytes": 32_768}


class KafkaTopics:
    """Be the port `Topics` of one broker."""

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        properties: Mapping[str, Property],
        sasl_password: str | None,
        clock: Clock,
        ask_within: float = 10.0,
    ) -> None:
        config = merged(
            {**_DEFAULTS, **properties}, _OURS, bootstrap_servers=bootstrap_servers, sasl_password=sasl_password,
            part="relay",
        )  # fmt: skip
        self._clock = clock
        self._within = ask_within
        self._consumer = Consumer({**config, "log_level": 0})
        asking = {name: value for name, value in config.items() if name not in {*_OURS, *_DEFAULTS}}
        self._admin = AdminClient({**asking, "log_level": 0})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def describe(self, name: str) -> Topic:
        try:
            found = self._consumer.list_topics(name, timeout=self._within).topics[name]
            if found.partitions:
                return Topic(name=name, partitions=len(found.partitions), compacted=self._compacted(name))
        except KafkaException as error:
            raise _away(f"topic {name} can't be looked at", error.args[0]) from error
        if found.error is not None and found.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise _away(f"topic {name} can't be looked at", found.error)
        return Topic(name=name, partitions=0)

    def _compacted(self, name: str) -> bool:
        resource = ConfigResource(ResourceType.TOPIC, name)
        (asked,) = self._admin.describe_configs([resource], request_timeout=self._within).values()
        return "compact" in str(asked.result()["cleanup.policy"].value)

    def stretches(self, topic: Topic, since: datetime) -> list[Stretch]:
        try:
            return [self._stretch(topic.name, number, since) for number in range(topic.partitions)]
        except KafkaException as error:
            raise _away(f"topic {topic.name} can't be read", error.args[0]) from error

    def _stretch(self, topic: str, partition: int, since: datetime) -> Stretch:
        low, end = self._consumer.get_watermark_offsets(
            TopicPartition(topic, partition), timeout=self._within
        )
        asked = [TopicPartition(topic, partition, max(int(since.timestamp() * 1000), 0))]
        (found,) = self._consumer.offsets_for_times(asked, timeout=self._within)
        if found.error is not None:
            raise KafkaException(found.error)
        start = end if found.offset < 0 else max(found.offset, low)  # -1: no record so young
        return Stretch(topic=topic, partition=partition, low=low, start=min(start, end), end=end)

    def read(self, stretches: Sequence[Stretch]) -> Iterator[list[Seen]]:
        open_ = {(one.topic, one.partition): one.end for one in stretches}
        self._consumer.assign([TopicPartition(one.topic, one.partition, one.start) for one in stretches])
        heard = self._clock.monotonic()
        while open_:
            messages = self._consumer.consume(_BATCH, 0.5)
            if messages:
                heard = self._clock.monotonic()
            elif self._clock.monotonic() - heard > _SILENCE:
                raise BrokerUnavailable(
                    f"no record of {len(open_)} partitions came for {_SILENCE:g} s; is the broker up? Nothing was changed"
                )
            batch = [seen for message in messages if (seen := _taken(message, open_)) is not None]
            if batch:
                yield batch
        self._consumer.unassign()


def _taken(message: Message, open_: dict[tuple[str, int], int]) -> Seen | None:
    """Return what *message* shows when it belongs to an open stretch; close the stretch behind its last record."""
    topic, partition, offset = message.topic() or "", message.partition() or 0, message.offset() or 0
    place = topic, partition
    end = open_.get(place)
    if (error := message.error()) is not None:
        if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 the client has no public name for it
            raise BrokerUnavailable(f"topic {topic} can't be read on: {error.str()}")
        # Before the end an open transaction holds back what stands behind it; it ends within seconds.
        if end is not None and offset >= end:
            del open_[place]
        return None
    if end is None:
        return None
    if offset >= end - 1:
        del open_[place]
    if offset >= end:
        return None
    return Seen(
        topic, partition, offset, datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC), _id_of(message)
    )


def _id_of(message: Message) -> UUID | None:
    headers: Sequence[tuple[str, str | bytes | None]] = message.headers() or ()  # type: ignore[assignment]  # a list here
    for name, value in headers:
        if name == "id" and value is not None:
            try:
                return UUID(value.decode() if isinstance(value, bytes) else value)
            except ValueError:
                return None
    return None


def _away(what: str, reason: object) -> BrokerUnavailable:
    return BrokerUnavailable(f"{what}: {reason.str() if isinstance(reason, KafkaError) else reason}")
