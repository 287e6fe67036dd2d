"""Adapter to confluent-kafka: the group's consumer, the producer of copies, questions to the broker."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from packhorse.core.errors import BrokerUnavailable, NotReady, UsageError
from packhorse.core.kafka_properties import Property
from packhorse.core.logs import Log
from packhorse.processor.copies import Copy
from packhorse.processor.record import Record
from packhorse.processor.starting import LogEnds
from packhorse.processor.store import Place

Assignment = list[tuple[str, int]]
SEND_TIMEOUT = 30.0
"""Seconds after which a copy that is not confirmed counts as not sent."""
ASK_TIMEOUT = 10.0

_MOVED_ON = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError.REBALANCE_IN_PROGRESS,
    }
)
_FORBIDDEN = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,  # noqa: SLF001 the client names its own errors so
    }
)
_OUT_OF_RANGE = frozenset(
    {
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001
        KafkaError._LOG_TRUNCATION,  # noqa: SLF001
    }
)


class Rebalances(Protocol):
    """What is told of rebalances, from inside `poll`, in the thread that polls."""

    def assigned(self, partitions: Assignment) -> None:
        """Take partitions over."""

    def revoked(self, partitions: Assignment) -> None:
        """Give partitions back; may block for a bounded time to finish and commit."""

    def lost(self, partitions: Assignment) -> None:
        """Forget partitions that are somebody else's by now."""


class Trouble(NamedTuple):
    """An error that a poll brought instead of a record."""

    kind: str
    topic: str | None
    partition: int | None
    text: str


class CommitReport(NamedTuple):
    """How one commit of one partition ended: "ok", "failed", or "refused" because the group has moved on."""

    topic: str
    partition: int
    position: int
    ended: str
    text: str


@dataclass(frozen=True, slots=True)
class Polled:
    """What one poll brought: records by partition, errors, and how commits ended."""

    records: Mapping[tuple[str, int], list[Record]]
    troubles: Sequence[Trouble]
    commits: Sequence[CommitReport]


class GroupConsumer:
    """The member of the group; every method is for the one thread that polls."""

    def __init__(
        self, properties: Mapping[str, Property], topics: Sequence[str], rebalances: Rebalances, log: Log
    ) -> None:
        self._log = log
        self._attached: set[tuple[str, int]] = set()
        self._commits: list[CommitReport] = []
        self._troubles: list[Trouble] = []
        self._rebalances = rebalances
        self._consumer: Consumer = _made(
            lambda: Consumer({**properties, "on_commit": self._on_commit, "error_cb": self._on_error})
        )
        self._consumer.subscribe(
            list(topics),
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )

    def poll(self, wait: float, most: int) -> Polled:
        """Wait up to *wait* seconds for a record and return it with what else is there; runs the rebalance callbacks."""
        first = self._consumer.poll(wait)
        found: list[Message] = [] if first is None else [first, *self._consumer.consume(most, 0)]
        records: dict[tuple[str, int], list[Record]] = {}
        for message in found:
            if (error := message.error()) is not None:
                self._troubles.append(_trouble(error, message.topic(), message.partition()))
                continue
            record = _record(message)
            records.setdefault((record.topic, record.partition), []).append(record)
        troubles, self._troubles = self._troubles, []
        commits, self._commits = self._commits, []
        return Polled(records, troubles, commits)

    def attach(self, topic: str, partition: int, offset: int) -> None:
        """Fetch an assigned partition from *offset*."""
        self._consumer.incremental_assign([TopicPartition(topic, partition, offset)])
        self._attached.add((topic, partition))

    def seek(self, topic: str, partition: int, offset: int) -> bool:
        """Fetch from *offset* from now on; return False when the client can't just now."""
        try:
            self._consumer.seek(TopicPartition(topic, partition, offset))
        except KafkaException as error:
            self._log.warning(
                "seek failed", topic=topic, partition=partition, offset=offset, cause=_told(error.args[0])
            )
            return False
        return True

    def pause(self, topic: str, partition: int) -> None:
        """Stop fetching."""
        self._consumer.pause([TopicPartition(topic, partition)])

    def resume(self, topic: str, partition: int) -> None:
        """Fetch again."""
        self._consumer.resume([TopicPartition(topic, partition)])

    def commit(self, topic: str, partition: int, position: int, leader_epoch: int | None) -> None:
        """Send a commit; how it ended comes with a later poll."""
        try:
            self._consumer.commit(
                offsets=[_position(topic, partition, position, leader_epoch)], asynchronous=True
            )
        except KafkaException as error:
            self._commits.append(_report(topic, partition, position, error.args[0]))

    def commit_now(self, positions: Mapping[tuple[str, int], tuple[int, int | None]]) -> list[CommitReport]:
        """Commit and wait for the coordinator; never raises."""
        if not positions:
            return []
        offsets = [_position(topic, partition, *at) for (topic, partition), at in positions.items()]
        try:
            done = self._consumer.commit(offsets=offsets, asynchronous=False) or []
        except KafkaException as error:
            return [_report(one.topic, one.partition, one.offset, error.args[0]) for one in offsets]
        return [_report(one.topic, one.partition, one.offset, one.error) for one in done]

    def close(self) -> None:
        """Leave the group; commits nothing by itself."""
        self._consumer.close()

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        # Nothing is fetched yet: each partition is attached at its own offset once its watermark is known.
        consumer.incremental_assign([])
        self._rebalances.assigned(_pairs(partitions))

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        pairs = _pairs(partitions)
        self._rebalances.revoked(pairs)
        self._detach(consumer, pairs)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        pairs = _pairs(partitions)
        self._rebalances.lost(pairs)
        self._detach(consumer, pairs)

    def _detach(self, consumer: Consumer, pairs: Assignment) -> None:
        mine = [pair for pair in pairs if pair in self._attached]
        self._attached.difference_update(mine)
        consumer.incremental_unassign([TopicPartition(*pair) for pair in mine])

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        for one in partitions:
            self._commits.append(_report(one.topic, one.partition, one.offset, one.error or error))

    def _on_error(self, error: KafkaError) -> None:
        self._troubles.append(_trouble(error, None, None))


class CopyProducer:
    """Produce copies with all acknowledgements; safe to share between threads."""

    def __init__(self, properties: Mapping[str, Property]) -> None:
        self._producer: Producer = _made(lambda: Producer({**properties, "error_cb": _ignore}))

    def send(self, copies: Sequence[Copy]) -> list[Place]:
        """Produce *copies* and return where they stand; see `plant.SendsCopies`."""
        reports: dict[int, Message] = {}
        failures: list[KafkaError] = []
        done = threading.Event()

        def report(at: int) -> Callable[[KafkaError | None, Message], None]:
            def delivered(error: KafkaError | None, message: Message) -> None:
                failures.append(error) if error is not None else reports.__setitem__(at, message)
                if len(reports) + len(failures) == len(copies):
                    done.set()

            return delivered

        for at, copy in enumerate(copies):
            self._produce(copy, report(at))
        self._producer.flush(SEND_TIMEOUT)
        if failures or not done.wait(1.0):
            cause = _told(failures[0]) if failures else f"not confirmed within {SEND_TIMEOUT:g} s"
            raise BrokerUnavailable(
                f"{len(copies) - len(reports)} of {len(copies)} copies to {copies[0].topic}: {cause}"
            )
        return [
            Place(copy.of.id, reports[at].partition() or 0, reports[at].offset() or 0, copy.of.attempt)
            for at, copy in enumerate(copies)
        ]

    def _produce(self, copy: Copy, on_delivery: Callable[[KafkaError | None, Message], None]) -> None:
        try:
            self._producer.produce(
                copy.topic,
                value=copy.value,
                key=copy.key,
                partition=copy.partition,
                headers=list(copy.headers),
                on_delivery=on_delivery,
            )
        except BufferError as error:
            raise BrokerUnavailable(f"the producer's queue is full of copies to {copy.topic}") from error
        except KafkaException as error:
            raise BrokerUnavailable(f"copy to {copy.topic}: {_told(error.args[0])}") from error


def _ignore(error: KafkaError) -> None:
    """Each copy's own report says what became of it."""


class BrokerQuestions:
    """Ask the broker; safe to share between threads."""

    def __init__(self, properties: Mapping[str, Property]) -> None:
        self._admin: AdminClient = _made(lambda: AdminClient(dict(properties)))

    def topic_id(self, topic: str) -> UUID:
        """Return Kafka's id of *topic*."""
        return self.describe([topic])[topic][0]

    def describe(self, topics: Sequence[str]) -> dict[str, tuple[UUID, int]]:
        """
        Return id and partition count of each of *topics*.

        Raises:
            NotReady: One does not exist, or may not be seen.
            BrokerUnavailable: The broker does not answer.
        """
        found = {}
        futures = self._admin.describe_topics(TopicCollection(list(topics)), request_timeout=ASK_TIMEOUT)
        for topic, future in futures.items():
            try:
                description = future.result()
            except KafkaException as error:
                raise _asked(error, f"topic {topic}") from error
            bits = description.topic_id
            high, low = bits.get_most_significant_bits(), bits.get_least_significant_bits()
            topic_id = UUID(int=(high & _MASK) << 64 | (low & _MASK))
            found[topic] = topic_id, len(description.partitions)
        return found

    def log_ends(self, group: str, topic: str, partition: int) -> LogEnds:
        """Return first offset, next offset and the group's committed offset."""
        place = TopicPartition(topic, partition)
        low, high = (self._end(place, spec) for spec in (_EARLIEST, _LATEST))
        request = [ConsumerGroupTopicPartitions(group, [place])]
        try:
            answer = self._admin.list_consumer_group_offsets(request, request_timeout=ASK_TIMEOUT)
            committed = answer[group].result().topic_partitions[0]
        except KafkaException as error:
            raise _asked(error, f"group {group}") from error
        if committed.error is not None:
            raise _asked(KafkaException(committed.error), f"group {group}")
        return LogEnds(low, high, committed.offset if committed.offset >= 0 else None)

    def _end(self, place: TopicPartition, spec: OffsetSpec) -> int:
        try:
            future = self._admin.list_offsets({place: spec}, request_timeout=ASK_TIMEOUT)[place]
            return int(future.result().offset)
        except KafkaException as error:
            raise _asked(error, f"{place.topic}[{place.partition}]") from error


_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_MASK = (1 << 64) - 1


def _record(message: Message) -> Record:
    return Record(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        message.leader_epoch(),
        message.timestamp()[1],
        _bytes(message.key()),
        _bytes(message.value()),
        tuple(message.headers() or ()),  # type: ignore[arg-type]  # the client hands out bytes alone
    )


def _bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else str(value).encode()


def _position(topic: str, partition: int, position: int, leader_epoch: int | None) -> TopicPartition:
    if leader_epoch is None:
        return TopicPartition(topic, partition, position)
    return TopicPartition(topic, partition, position, leader_epoch=leader_epoch)


def _pairs(partitions: list[TopicPartition]) -> Assignment:
    return [(one.topic, one.partition) for one in partitions]


def _report(topic: str, partition: int, position: int, error: KafkaError | None) -> CommitReport:
    if error is None:
        return CommitReport(topic, partition, position, "ok", "")
    ended = "refused" if error.code() in _MOVED_ON else "failed"
    return CommitReport(topic, partition, position, ended, _told(error))


def _trouble(error: KafkaError, topic: str | None, partition: int | None) -> Trouble:
    code = error.code()
    if error.fatal():
        kind = "fatal"
    elif code in _FORBIDDEN:
        kind = "forbidden"
    elif code in _OUT_OF_RANGE:
        kind = "out-of-range"
    elif code in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}:  # noqa: SLF001
        kind = "missing"
    else:
        kind = "away"
    return Trouble(kind, topic, partition, _told(error))


def _asked(error: KafkaException, what: str) -> Exception:
    cause = error.args[0]
    if cause.code() in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}:  # noqa: SLF001
        return NotReady(f"{what} does not exist; `packhorse topics plan` says what is missing")
    if cause.code() in _FORBIDDEN:
        return NotReady(f"{what}: {_told(cause)}; grant this client the right to describe and read it")
    return BrokerUnavailable(f"{what}: {_told(cause)}")


def _told(error: KafkaError) -> str:
    return f"{error.name()}: {error.str()}"


def _made(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except KafkaException as error:
        raise UsageError(f"kafka_properties: {_told(error.args[0])}") from error
    except (TypeError, ValueError) as error:
        raise UsageError(f"kafka_properties: {error}") from error
