"""The member of the group: polls, attaches partitions at their own offsets, commits what it is told."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import methodcaller
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from packhorse.core.kafka_properties import Property
from packhorse.core.logs import Log
from packhorse.processor.kafka.errors import FORBIDDEN, MISSING, MOVED_ON, OUT_OF_RANGE, made, told
from packhorse.processor.record import HeaderList, Record, made_record

T = TypeVar("T")
_headers = methodcaller("headers")
"""
A call from Python, once it is optimized, does not look whether the client left an error behind beside its broken result: the
error would come up somewhere later. This way it is raised at once.
"""
Assignment = list[tuple[str, int]]
REFUSED_WAIT = 5.0
"""Seconds that a client which could not subscribe has to close."""


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
    """
    The member of the group; every method is for the one thread that polls. It is none before `join`, nor after `close`.

    Whoever joins must close: a client that is left to the collector still has its share of the partitions, and the collector may
    wait for ever for it to end.
    """

    def __init__(
        self, properties: Mapping[str, Property], topics: Sequence[str], rebalances: Rebalances, log: Log
    ) -> None:
        self._log = log
        self._attached: set[tuple[str, int]] = set()
        self._paused: set[tuple[str, int]] = set()
        self._commits: list[CommitReport] = []
        self._troubles: list[Trouble] = []
        self._rebalances = rebalances
        self._properties = properties
        self._topics = list(topics)
        self._consumer: Consumer

    def join(self) -> None:
        """
        Make the client and join the group; a client that can't is closed.

        Raises:
            UsageError: The client refuses one of its properties; names it.
        """
        given = {**self._properties, "on_commit": self._on_commit, "error_cb": self._on_error}
        self._consumer = made(lambda: Consumer(given))
        try:
            self._consumer.subscribe(
                self._topics,
                on_assign=self._on_assign,
                on_revoke=self._on_revoke,
                on_lost=self._on_lost,
            )
        except BaseException:
            self.close(REFUSED_WAIT)
            raise

    def poll(self, wait: float, most: int) -> Polled:
        """Wait up to *wait* seconds for a record and return it with what else is there; runs the rebalance callbacks."""
        first = self._consumer.poll(wait)
        found: list[Message] = [] if first is None else [first, *self._consumer.consume(most, 0)]
        records = self._records(found)
        troubles, self._troubles = self._troubles, []
        commits, self._commits = self._commits, []
        return Polled(records, troubles, commits)

    def attach(self, topic: str, partition: int, offset: int) -> None:
        """Fetch an assigned partition from *offset*; what keeps the client from it comes as a trouble with the next poll."""
        try:
            self._consumer.incremental_assign([TopicPartition(topic, partition, offset)])
        except KafkaException as error:
            # As after an offset outside the log: nothing is fetched until it is told anew where to.
            self._troubles.append(Trouble("out-of-range", topic, partition, told(error.args[0])))
            return
        self._attached.add((topic, partition))

    def seek(self, topic: str, partition: int, offset: int) -> bool:
        """Fetch from *offset* from now on; return False when the client can't just now."""
        place = TopicPartition(topic, partition, offset)
        try:
            if self._seeks(place):
                return True
            # After an offset outside the log the client fetches no more and takes no seek: it must be given anew.
            if (topic, partition) in self._attached:
                self._consumer.incremental_unassign([TopicPartition(topic, partition)])
                self._attached.discard((topic, partition))
            self._consumer.incremental_assign([place])
            self._attached.add((topic, partition))
            if (topic, partition) in self._paused:
                self._consumer.pause([TopicPartition(topic, partition)])
        except KafkaException as error:
            self._troubles.append(Trouble("seek", topic, partition, told(error.args[0])))
            return False
        return True

    def _seeks(self, place: TopicPartition) -> bool:
        try:
            self._consumer.seek(place)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._STATE:  # noqa: SLF001 the client names its own errors so
                raise
            return False
        return True

    def pause(self, topic: str, partition: int) -> None:
        """Stop fetching."""
        self._paused.add((topic, partition))
        self._consumer.pause([TopicPartition(topic, partition)])

    def resume(self, topic: str, partition: int) -> None:
        """Fetch again."""
        self._paused.discard((topic, partition))
        self._consumer.resume([TopicPartition(topic, partition)])

    def commit(self, topic: str, partition: int, position: int, leader_epoch: int | None) -> None:
        """Send a commit; how it ended comes with a later poll."""
        try:
            self._consumer.commit(
                offsets=[_position(topic, partition, position, leader_epoch)], asynchronous=True
            )
        except KafkaException as error:
            self._commits.append(_report(topic, partition, position, error.args[0]))

    def close(self, wait: float) -> bool:
        """
        Leave the group and return True; commits nothing by itself. After *wait* seconds return False and let it be.

        The rebalance callbacks are called from another thread while this one waits.
        """

        def leave() -> bool:
            self._consumer.close()
            return True

        return _within(wait, leave) is not None

    def _records(self, messages: Sequence[Message]) -> dict[tuple[str, int], list[Record]]:
        """Return the records among *messages* by partition; what is an error is a trouble."""
        records: dict[tuple[str, int], list[Record]] = {}
        for message in messages:
            if (error := message.error()) is not None:
                self._troubles.append(_trouble(error, message.topic(), message.partition()))
                continue
            try:
                headers = _headers(message)
            except (SystemError, UnicodeDecodeError):
                headers = self._unreadable(message)
            record = made_record(
                (
                    message.topic() or "",
                    message.partition() or 0,
                    message.offset() or 0,
                    message.leader_epoch(),
                    message.timestamp()[1],
                    _bytes(message.key()),
                    _bytes(message.value()),
                    tuple(headers) if headers else (),
                )
            )
            records.setdefault((record.topic, record.partition), []).append(record)
        return records

    def _unreadable(self, message: Message) -> HeaderList:
        """Take headers as absent that the client can't hand out, because a name among them is no UTF-8."""
        self._log.error(
            "a record's headers can't be read, since a name is no UTF-8; they are taken as absent",
            topic=message.topic(),
            partition=message.partition(),
            offset=message.offset(),
        )
        return ()

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
        self._paused.difference_update(pairs)
        consumer.incremental_unassign([TopicPartition(*pair) for pair in mine])

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        for one in partitions:
            self._commits.append(_report(one.topic, one.partition, one.offset, one.error or error))

    def _on_error(self, error: KafkaError) -> None:
        self._troubles.append(_trouble(error, None, None))


def _within(seconds: float, call: Callable[[], T]) -> T | None:
    """Return what *call* returns, or None after *seconds*: then the thread that it runs in is left behind."""
    answer: SimpleQueue[T] = SimpleQueue()
    threading.Thread(target=lambda: answer.put(call()), name="packhorse-leaving", daemon=True).start()
    try:
        return answer.get(timeout=seconds)
    except Empty:
        return None


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
    ended = "refused" if error.code() in MOVED_ON else "failed"
    return CommitReport(topic, partition, position, ended, told(error))


def _trouble(error: KafkaError, topic: str | None, partition: int | None) -> Trouble:
    code = error.code()
    if error.fatal():
        kind = "fatal"
    elif code in FORBIDDEN:
        kind = "forbidden"
    elif code in OUT_OF_RANGE:
        kind = "out-of-range"
    elif code in MISSING:
        kind = "missing"
    else:
        kind = "away"
    return Trouble(kind, topic, partition, told(error))
