"""A processor under test: a topic of its own, one message type, a database, and ways to feed, run and ask."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, cast
from uuid import UUID

import httpx
import psycopg
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.message import MessageType
from packhorse.core.telemetry import NO_TELEMETRY, Telemetry
from packhorse.local.settings import Endpoints
from packhorse.processor import Context, Processor, Retry
from packhorse.processor.clients import admin_properties
from packhorse.processor.compose import Composed
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.processor.settings import ProcessorSettings
from packhorse.processor.signals import Signal, no_signal
from packhorse.processor.topics.plan import plan, wanted_by
from packhorse.schemas.codec import encode_message

NOTED = '{"type":"record","name":"tests.Noted","fields":[{"name":"n","type":"long"},{"name":"what","type":"string"}]}'
FRESH = """
DROP TABLE IF EXISTS result;
CREATE TABLE result (at bigint GENERATED ALWAYS AS IDENTITY, id uuid, n bigint, attempt int);
ALTER TABLE packhorse.audit DISABLE TRIGGER refuse_forgetting;
TRUNCATE packhorse.inbox, packhorse.watermark, packhorse.failed_attempt, packhorse.quarantined_message, packhorse.audit,
    packhorse.parked_key, packhorse.parked_message, packhorse.retry_message, packhorse.in_hand, packhorse.started, packhorse.pause,
    packhorse.operator;
ALTER TABLE packhorse.audit ENABLE TRIGGER refuse_forgetting
"""
GROUP = os.environ.setdefault("PACKHORSE_TEST_GROUP", f"noters-{SYSTEM_CHANCE.token().hex[:8]}")
"""One for each run of the tests and its child processes: several runs may share a broker."""


@cache
def noted(namespace: str) -> Any:
    """Return the message class of one namespace."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Noted:
        n: int
        what: str = ""

        __packhorse__: ClassVar[MessageType] = MessageType(
            type="tests.Noted", version=1, namespace=namespace, aggregatetype="notes", schema=NOTED
        )

    return Noted


def note(message: Any, ctx: Context) -> None:
    """Write the message into the table `result`; what it says then happens: "fails" raises, "fails once" at first."""
    ctx.connection.execute(
        "INSERT INTO result (id, n, attempt) VALUES (%s, %s, %s)", (ctx.id, message.n, ctx.attempt)
    )
    if message.what == "fails" or (message.what == "fails once" and ctx.attempt == 1):
        raise ValueError(f"fails: {message.n}")


def noting(namespace: str, group: str = GROUP, *, retry: Retry | None = None) -> Processor:
    """Return a processor whose one handler is `note`."""
    app = Processor(group)
    app.handler(noted(namespace), retry=retry or Retry(attempts=3, delays=["100ms"]))(note)
    return app


@dataclass(frozen=True, slots=True, kw_only=True)
class Stood:
    """A record as a plain client reads it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class Ground:
    """
    One topic, `<namespace>.notes`, with the topics of its groups, and the database of the processors.

    Attributes:
        message: The message class.
        topic: The source topic.
        database: URL of the database, with Packhorse's tables and the table `result`.
    """

    def __init__(
        self, endpoints: Endpoints, database: str, namespace: str, *, partitions: int = 1, kafka: str = ""
    ) -> None:
        self.namespace, self.database = namespace, database
        self.message = noted(namespace)
        self.topic = f"{namespace}.notes"
        self.partitions = partitions
        self.environ = endpoints.variables() | {"PACKHORSE_DATABASE_URL": database}
        self.kafka = kafka or endpoints.kafka_bootstrap
        self.environ["PACKHORSE_KAFKA_BOOTSTRAP_SERVERS"] = self.kafka
        self.schema_id = _registered(endpoints.registry_url, f"{self.topic}-tests.Noted")
        self._producer = Producer({"bootstrap.servers": self.kafka, "linger.ms": 0})
        with psycopg.connect(database) as connection:
            connection.execute(FRESH)

    @cached_property
    def _broker(self) -> BrokerQuestions:
        return BrokerQuestions(admin_properties(self.settings()))

    def settings(self, **given: object) -> ProcessorSettings:
        """Return settings that are quick."""
        quick = {"concurrency": 2, "commit_interval": 0.05, "drain_timeout": 10}
        return ProcessorSettings.load({**quick, **given}, environ=self.environ)

    def make_topics(self, *apps: Processor) -> None:
        """Make the topics of *apps*, by the product's own plan."""
        broker = self._broker
        wanted = wanted_by(apps, [self.topic], partitions=self.partitions, replication=1)
        steps = plan(wanted, broker.standing(wanted), default_max_bytes=1_048_588)
        broker.apply(steps)

    def payload(self, n: int, what: str = "") -> bytes:
        """Return the encoded message."""
        return encode_message(self.message(n=n, what=what), self.schema_id)

    def send(
        self,
        n: int = 0,
        what: str = "",
        *,
        key: bytes | None = b"k",
        partition: int = 0,
        payload: bytes | str | None = "",
        headers: Mapping[str, bytes | None] | None = None,
        message_id: UUID | None = None,
        topic: str | None = None,
    ) -> UUID:
        """Produce one record and wait until it stands; *payload* "" means the encoded message."""
        message_id = self._produce(
            n, what, key, partition, payload, headers or {}, message_id, topic or self.topic
        )
        self._producer.flush(10)
        return message_id

    def send_many(self, numbers: Iterable[int], what: Mapping[int, str] | None = None) -> None:
        """Produce a message of each number, each with a key of its own, and wait until all stand; some say *what*."""
        for n in numbers:
            self._produce(n, (what or {}).get(n, ""), b"%d" % n, 0, "", {}, None, self.topic)
        self._producer.flush(30)

    def _produce(
        self,
        n: int,
        what: str,
        key: bytes | None,
        partition: int,
        payload: bytes | str | None,
        headers: Mapping[str, bytes | None],
        message_id: UUID | None,
        topic: str,
    ) -> UUID:
        message_id = message_id or SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now())
        told: dict[str, bytes | None] = {"id": str(message_id).encode(), "type": b"tests.Noted", **headers}
        kept: list[tuple[str, str | bytes | None]] = [
            (name, text) for name, text in told.items() if text != b"-"
        ]
        value = self.payload(n, what) if payload == "" else payload
        self._producer.produce(topic, value=value, key=key, partition=partition, headers=kept)
        return message_id

    @contextmanager
    def processing(
        self,
        app: Processor,
        *,
        signal: Signal = no_signal,
        telemetry: Telemetry = NO_TELEMETRY,
        **given: object,
    ) -> Iterator["Running"]:
        """Run *app* meanwhile; what its loop raises is raised here, unless the test has taken it."""
        composed = Composed(app, self.settings(**given), signal=signal, telemetry=telemetry)
        running = Running(composed)
        running.thread.start()
        try:
            yield running
        finally:
            running.stop()
        if running.error is not None and not running.taken:
            raise running.error

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Ask the database."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            return connection.execute(query, parameters).fetchall()

    def results(self) -> list[int]:
        """Return the numbers in the table `result`, in the order of their writing."""
        return [row[0] for row in self.rows("SELECT n FROM result ORDER BY at")]

    def until_results(self, *wanted: int, timeout: float = 20.0, any_order: bool = False) -> None:
        """Wait until the table `result` holds exactly *wanted*; *any_order*: of keys that run beside each other."""

        def there() -> bool:
            found = self.results()
            return (sorted(found) if any_order else found) == list(wanted)

        eventually(there, what=f"results are {wanted}", timeout=timeout)

    def outcome(self, message_id: UUID, group: str = GROUP) -> tuple[Any, ...] | None:
        """Return outcome, attempt, reason and deliveries of a message."""
        found = self.rows(
            "SELECT outcome, attempt, reason, deliveries FROM packhorse.inbox WHERE message_id = %s AND group_id = %s",
            message_id,
            group,
        )
        return found[0] if found else None

    def until_outcome(
        self, message_id: UUID, outcome: str, *, group: str = GROUP, timeout: float = 20.0
    ) -> Any:
        """Wait until the message has *outcome* and return its row."""

        def there() -> Any:
            row = self.outcome(message_id, group)
            return row if row is not None and row[0] == outcome else None

        return eventually(there, what=f"{message_id} is {outcome}", timeout=timeout)

    def watermark(self, partition: int = 0, group: str = GROUP) -> int | None:
        """Return the watermark of the source topic."""
        found = self.rows(
            'SELECT "offset" FROM packhorse.watermark WHERE topic = %s AND partition = %s AND group_id = %s',
            self.topic,
            partition,
            group,
        )
        return int(found[0][0]) if found else None

    def committed(self, partition: int = 0, group: str = GROUP) -> int | None:
        """Return the committed offset of the source topic."""
        broker = self._broker
        return broker.log_ends(group, self.topic, partition).committed

    def stood(self, topic: str, count: int, *, timeout: float = 15.0) -> list[Stood]:
        """Return the first *count* records of *topic*, once they stand there."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.kafka,
                "group.id": f"reader-{self.namespace}",
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition(topic, p, 0) for p in range(self.partitions)])
        found: list[Stood] = []

        def enough() -> bool:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found.append(
                    Stood(
                        partition=message.partition() or 0,
                        offset=message.offset() or 0,
                        key=message.key(),
                        value=message.value(),
                        headers=list(cast("Any", message.headers()) or ()),
                    )
                )
            return len(found) >= count

        try:
            eventually(enough, what=f"{topic} holds {count} records", timeout=timeout)
        finally:
            consumer.close()
        return found


class Running:
    """
    A processor in threads.

    Attributes:
        composed: What it is made of.
        error: What its loop has raised.
        taken: The test expects that.
    """

    def __init__(self, composed: Composed) -> None:
        self.composed = composed
        self.error: BaseException | None = None
        self.taken = False
        self._stop = threading.Event()
        self.thread = threading.Thread(target=self._run, name="processor", daemon=True)

    def _run(self) -> None:
        try:
            self.composed.run(self._stop)
        except BaseException as error:  # noqa: BLE001 the test decides
            self.error = error

    def ask_to_stop(self) -> None:
        """Do what SIGTERM does."""
        self._stop.set()

    def stop(self) -> None:
        """Stop it, and wait until it has left."""
        self._stop.set()
        self.thread.join(60)
        assert not self.thread.is_alive(), "the processor does not stop"

    def until_assigned(self, count: int = 1) -> None:
        """Wait until partitions are read."""
        eventually(
            lambda: sum(s.position is not None for s in self.composed.loop.states.values()) >= count,
            what=f"{count} partitions are read",
        )


@contextmanager
def hold() -> Iterator[tuple[threading.Event, Callable[[], None]]]:
    """Provide a handler's blocking place: an event that says it is in there; leaving the block lets it go."""
    inside, go = threading.Event(), threading.Event()

    def wait() -> None:
        inside.set()
        assert go.wait(60)

    try:
        yield inside, wait
    finally:
        go.set()


def headers_of(record: Stood) -> dict[str, bytes | None]:
    """Return the headers by name."""
    return dict(record.headers)


def names_of(record: Stood) -> Sequence[str]:
    """Return the headers' names in order."""
    return [name for name, _ in record.headers]


def _registered(registry_url: str, subject: str) -> int:
    answer = httpx.post(f"{registry_url}/subjects/{subject}/versions", json={"schema": NOTED}, timeout=20)
    return int(answer.json()["id"])
