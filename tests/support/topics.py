"""Make topics and read them back, by a plain client and around all of Packhorse's own code."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported at run time
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from tests.support.wait import eventually


class Record(NamedTuple):
    """One record, as it lies on the topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int

    def header(self, name: str) -> str | None:
        """Return the text of the header *name*."""
        found = dict(self.headers).get(name)
        return None if found is None else found.decode()

    @property
    def id(self) -> str:
        """Return the message's id."""
        found = self.header("id")
        assert found is not None
        return found


def make_topic(bootstrap: str, topic: str, *, partitions: int = 3, **config: str) -> None:
    """Create *topic*; names of settings are given with underscores for dots."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    settings = {name.replace("_", "."): value for name, value in config.items()}
    for future in admin.create_topics([NewTopic(topic, partitions, 1, config=settings)]).values():
        future.result(30)


def set_limit(bootstrap: str, topic: str, limit: int) -> None:
    """Set the topic's max.message.bytes."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    entry = ConfigEntry("max.message.bytes", str(limit), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


def wait_for_limit(bootstrap: str, topic: str, payload: bytes, *, refused: bool) -> None:
    """Wait until the broker refuses, or takes, *payload*: a changed limit holds a moment after it is set."""

    def as_wanted() -> bool:
        errors: list[object] = []
        producer = Producer(
            {"bootstrap.servers": bootstrap, "message.max.bytes": 100_000_000, "log_level": 2}
        )
        producer.produce(
            topic,
            payload,
            "probe",
            headers={"id": "probe"},
            on_delivery=lambda error, _: errors.append(error),
        )
        return producer.flush(10) == 0 and (errors[0] is not None) is refused

    eventually(as_wanted, what=f"{topic} {'refuses' if refused else 'takes'} {len(payload)} bytes")


@contextmanager
def _consumer(bootstrap: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "tests", "enable.partition.eof": True, "log_level": 2}
    )
    try:
        yield consumer
    finally:
        consumer.close()


def records(bootstrap: str, topic: str) -> list[Record]:
    """Return all records that stand on *topic* now, partition after partition."""
    with _consumer(bootstrap) as consumer:
        return _read_on(consumer, topic, {})


def _read_on(consumer: Consumer, topic: str, ends: dict[int, int]) -> list[Record]:
    """Return what stands on *topic* behind *ends*, and move them."""
    open_ = set(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, number, ends.get(number, 0)) for number in sorted(open_)])
    found: list[Record] = []
    while open_:
        for message in eventually(
            lambda: consumer.consume(500, 0.5), what=f"{topic} can be read", timeout=20
        ):
            _take(message, found, open_)
    for record in found:
        ends[record.partition] = max(ends.get(record.partition, 0), record.offset + 1)
    return sorted(found)


def _take(message: Any, found: list[Record], open_: set[int]) -> None:
    error = message.error()
    if error is not None:
        assert error.code() == KafkaError._PARTITION_EOF, error
        open_.discard(message.partition())
        return
    found.append(
        Record(
            message.partition(),
            message.offset(),
            message.key(),
            message.value(),
            tuple(message.headers() or ()),
            message.timestamp()[1],
        )
    )


def wait_for(bootstrap: str, topic: str, count: int, *, timeout: float = 30) -> list[Record]:
    """Wait until at least *count* different messages stand on *topic*, and return all records."""
    found: list[Record] = []
    ends: dict[int, int] = {}
    with _consumer(bootstrap) as consumer:

        def there() -> bool:
            found.extend(_read_on(consumer, topic, ends))
            return len({record.id for record in found}) >= count

        eventually(there, what=f"{count} messages stand on {topic}", timeout=timeout)
    return sorted(found)


def first_arrivals(found: list[Record]) -> dict[bytes | None, list[str]]:
    """Return for each key the ids in the order in which they arrived first."""
    arrived: dict[bytes | None, list[str]] = {}
    for record in sorted(found):
        ids = arrived.setdefault(record.key, [])
        if record.id not in ids:
            ids.append(record.id)
    return arrived


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete *topic*; returns when its name is free."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_topics([topic]).values():
        future.result(30)
    eventually(lambda: topic not in admin.list_topics(timeout=10).topics, what=f"{topic} is gone", timeout=30)


def lose_topic(bootstrap: str, topic: str, *, partitions: int = 3, **config: str) -> None:
    """Delete *topic* and make it anew, empty."""
    delete_topic(bootstrap, topic)
    make_topic(bootstrap, topic, partitions=partitions, **config)


@contextmanager
def removed_topics(bootstrap: str, prefix: str) -> Iterator[None]:
    """Remove the topics whose names begin with *prefix*, before the block and after it."""
    _remove(bootstrap, prefix)
    yield
    _remove(bootstrap, prefix)


def _remove(bootstrap: str, prefix: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def found() -> list[str]:
        return [name for name in admin.list_topics(timeout=10).topics if name.startswith(prefix)]

    if names := found():
        for removed in admin.delete_topics(names).values():
            removed.result()
    eventually(lambda: not found(), what="the topics are removed")
