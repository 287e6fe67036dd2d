"""The topics through librdkafka: the port `Broker`."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported at run time
    AdminClient,
    ConfigResource,
    ResourceType,
)

from packhorse.core.clock import Clock
from packhorse.core.errors import BrokerUnavailable, NotReady, PackhorseError, SettingsError
from packhorse.core.kafka_properties import Property
from packhorse.core.naming import topic_name
from packhorse.relay.holds import Fault, scope_of
from packhorse.relay.model import (
    AGGREGATEID,
    AGGREGATETYPE,
    CREATED_MS,
    FIRST_HEADER,
    ID,
    PAYLOAD,
    SEQ,
    WITHHELD,
    Row,
)
from packhorse.relay.ports import Failed, Handed
from packhorse.relay.records import headers_of

OURS: Mapping[str, Property] = {
    "enable.idempotence": True,
    "acks": "all",
    "max.in.flight.requests.per.connection": 5,
    "enable.gapless.guarantee": True,
    "message.timeout.ms": 0,
    "partitioner": "murmur2_random",
    "delivery.report.only.error": True,
}
"""What order and "nothing lost" rest on; nobody may set them otherwise."""

DEFAULTS: Mapping[str, Property] = {
    "compression.type": "lz4",
    "linger.ms": 5,
    "queue.buffering.max.messages": 100_000,
    "queue.buffering.max.kbytes": 131_072,
    "message.max.bytes": 100_000_000,
    "reconnect.backoff.max.ms": 2_000,
    "client.id": "packhorse-relay",
}
"""What a user may set otherwise."""

MOST_ROWS, MOST_BYTES = 50_000, 64 * 1024 * 1024
"""Rows and payload bytes that are kept until the next confirmation; then there is no room for more."""
_ROOM = 0.1
_ASK_WITHIN = 5.0
_OVERHEAD = 512
"""Bytes of a record and its batch beside key, value and texts of headers, at most."""
_LARGEST_HEADERS = 64 * 1024

_NO_BLAME = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._FATAL})  # noqa: SLF001 the client's own public codes are spelled so


def _worth_telling(record: logging.LogRecord) -> bool:
    """Drop the client's warning that the gapless guarantee is experimental: the relay checks each report itself."""
    return "enable.gapless.guarantee is experimental" not in record.getMessage()


_CLIENT_LOG = logging.getLogger("packhorse.relay.librdkafka")
_CLIENT_LOG.addFilter(_worth_telling)

_Report = tuple[KafkaError, Message, Any]


class _Topic(NamedTuple):
    name: str
    limit: int

    @property
    def surely_fits(self) -> int:
        """Return the payload size up to which nobody need count headers."""
        return self.limit - _LARGEST_HEADERS


def _size(row: Row) -> int:
    """Return about how many bytes the record of *row* takes, rather too many than too few."""
    texts = [text for text in (row[AGGREGATEID], *row[FIRST_HEADER:WITHHELD]) if text is not None]
    return _OVERHEAD + len(row[PAYLOAD] or b"") + sum(len(text.encode()) for text in texts)


def _refusal(topic: str, error: KafkaError) -> PackhorseError:
    if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return NotReady("the topic does not exist; make it with `packhorse topics apply`")
    if error.code() in {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}:
        return NotReady("the relay may not use the topic; grant it Describe, DescribeConfigs and Write")
    return BrokerUnavailable(f"the broker does not say the limits of topic {topic}: {error.str()}")


class KafkaBroker:
    """
    Be the port `Broker`; `send`, `confirmed` and `renew` belong to one thread, `halt` to any.

    Reports are asked for of errors alone. A callback bound to each row would say which one failed and costs 0.4 µs a row;
    instead the rows handed over since the last confirmation are kept, within bounds, and searched when something failed.
    """

    def __init__(self, properties: Mapping[str, Property], *, namespace: str, clock: Clock) -> None:
        self._properties = dict(properties)
        self._namespace = namespace
        self._clock = clock
        self._topics: dict[str, _Topic] = {}
        self._handed: list[Row] = []
        self._handed_bytes = 0
        self._reports: _Report | None = None
        self._fatal: str | None = None
        asking = {k: v for k, v in self._properties.items() if k not in {*OURS, *DEFAULTS}}
        # What it fails at is raised; its own log would repeat that on the terminal.
        self._admin = AdminClient({"log_level": 0, **asking})
        self._halted = False
        self._producer = self._made()

    def _made(self) -> Producer:
        try:
            return Producer({**self._properties, "error_cb": self._client_error}, logger=_CLIENT_LOG)
        except KafkaException as error:
            raise SettingsError(f"kafka_properties: {error.args[0].str()}") from error

    def _client_error(self, error: KafkaError) -> None:
        """Take note of nothing: what matters comes as a report, or as the client's fatal error."""

    def missing(self, topics: Iterable[str]) -> list[str]:
        """
        Return those of *topics* that the broker does not have, or does not let this client see.

        Raises:
            BrokerUnavailable: No answer.
        """
        try:
            there = self._admin.list_topics(timeout=_ASK_WITHIN).topics
        except KafkaException as error:
            raise BrokerUnavailable(f"the broker does not list its topics: {error.args[0].str()}") from error
        return [topic for topic in topics if topic not in there]

    def send(self, rows: Sequence[Row]) -> Handed:
        if len(self._handed) > MOST_ROWS or self._handed_bytes > MOST_BYTES:
            return Handed(0)
        handed = self._send(rows)
        self._handed += rows[: handed.count]
        self._handed_bytes += sum(len(row[PAYLOAD] or b"") for row in rows[: handed.count])
        return handed

    def _send(self, rows: Sequence[Row]) -> Handed:
        produce, report, topics = self._producer.produce, self._report, self._topics
        for count, row in enumerate(rows):
            topic = topics.get(row[AGGREGATETYPE])
            if topic is None or len(row[PAYLOAD] or b"") > topic.surely_fits:
                looked_at = self._looked_at(row)
                if isinstance(looked_at, Fault):
                    return Handed(count, looked_at)
                topic = looked_at
            try:
                produce(
                    topic.name,
                    row[PAYLOAD],
                    row[AGGREGATEID],
                    on_delivery=report,
                    timestamp=row[CREATED_MS],
                    headers=headers_of(row),
                )
            except BufferError:
                self._poll(_ROOM)
                return Handed(count)
            except KafkaException as error:
                self._note(error)
                return Handed(count)
            if self._halted:
                return Handed(count)
        self._poll(0)
        return Handed(len(rows))

    def _looked_at(self, row: Row) -> "_Topic | Fault":
        """Return the row's topic when it takes the row; else what is wrong, and ask for the topic's limit again next time."""
        aggregatetype = row[AGGREGATETYPE]
        try:
            topic = self._topics.get(aggregatetype) or self._asked(topic_name(self._namespace, aggregatetype))
        except (NotReady, SettingsError) as error:
            return self._fault(row, str(error))
        if (size := _size(row)) > topic.limit:
            return self._fault(
                row,
                f"{size} bytes with key and headers, and the topic's max.message.bytes is {topic.limit}; "
                "raise it on the topic, or max_payload_bytes of the outbox down",
            )
        self._topics[aggregatetype] = topic
        return topic

    def _fault(self, row: Row, reason: str) -> Fault:
        self._topics.pop(row[AGGREGATETYPE], None)
        return Fault(
            scope=scope_of(row), code="refused", reason=reason, heals=False,
            topic=f"{self._namespace}.{row[AGGREGATETYPE]}", seq=row[SEQ], id=row[ID],
        )  # fmt: skip

    def _asked(self, name: str) -> "_Topic":
        """
        Ask the broker for the topic's limit.

        Raises:
            NotReady: The topic is missing, or the right to see it.
            BrokerUnavailable: No answer.
        """
        resource = ConfigResource(ResourceType.TOPIC, name)
        try:
            asked = self._admin.describe_configs([resource], request_timeout=_ASK_WITHIN)
            found = asked[resource].result(_ASK_WITHIN + 1)
        except KafkaException as error:
            raise _refusal(name, error.args[0]) from error
        except TimeoutError as error:
            raise BrokerUnavailable(
                f"the broker does not say the limits of topic {name} within {_ASK_WITHIN:g} s"
            ) from error
        return _Topic(name, int(found["max.message.bytes"].value))

    def _report(self, error: KafkaError | None, message: Message) -> None:
        """
        Keep a failed report.

        The client calls this with an exception already set when it met its fatal error in the same poll: any call of a
        C function would fail here, so this only builds a tuple and stores it.
        """
        if error is not None:
            self._reports = (error, message, self._reports)

    def _poll(self, seconds: float) -> None:
        try:
            self._producer.poll(seconds)
        except (KafkaException, SystemError) as error:
            self._note(error)

    def _note(self, error: BaseException) -> None:
        """Remember that the client is beyond use; reports of the rows follow in later polls."""
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KafkaException):
            cause = cause.__cause__
        text = cause.args[0].str() if isinstance(cause, KafkaException) else str(error)
        self._fatal = self._fatal or text

    def confirmed(self, patience: float) -> bool:
        try:
            left = self._producer.flush(patience)
        except (KafkaException, SystemError) as error:
            self._note(error)
            return False
        if left or self._halted or self._reports is not None or self._fatal is not None:
            return False
        self._forget()
        return True

    def _forget(self) -> None:
        self._handed.clear()
        self._handed_bytes = 0

    def failed(self) -> Failed | None:
        if self._reports is None and self._fatal is None:
            return Failed(None, "sending was halted") if self._halted else None
        reasons: dict[tuple[str | None, bytes | None, bytes | None], str] = {}
        report = self._reports
        while report is not None:
            error, message, report = report
            if error.code() not in _NO_BLAME:
                reasons[message.topic(), message.key(), message.value()] = error.str()
        for row in self._handed if reasons else ():
            name = f"{self._namespace}.{row[AGGREGATETYPE]}"
            key = None if row[AGGREGATEID] is None else row[AGGREGATEID].encode()
            if (reason := reasons.get((name, key, row[PAYLOAD]))) is not None:
                return Failed(self._fault(row, reason), reason)
        return Failed(None, self._fatal or "the client dropped rows")

    def halt(self) -> None:
        self._halted = True
        self._producer.purge(in_queue=True, in_flight=True, blocking=False)

    def renew(self, patience: float) -> Failed | None:
        until = self._clock.monotonic() + patience
        self._producer.purge(in_queue=True, in_flight=False, blocking=True)
        while len(self._producer) and self._clock.monotonic() < until:
            self._poll(0.1)
        failed = self.failed()
        self.close()
        self._reports, self._fatal = None, None
        self._forget()
        self._halted = False
        self._producer = self._made()
        return failed

    def close(self) -> None:
        self.halt()
        self._poll(0)
        self._producer.close()
