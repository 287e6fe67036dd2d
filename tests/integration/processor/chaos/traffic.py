"""What goes on beside the members: a writer, a reader of all topics, an operator, and one who looks at the offsets."""

import threading
from collections.abc import Callable, Sequence
from datetime import UTC
from hashlib import blake2b
from random import Random
from typing import Any, cast
from uuid import UUID
from zlib import crc32

import psycopg
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.integration.processor.chaos.app import EVERYTHING, GROUP
from tests.support.history import (
    FAILS_ALWAYS,
    FAILS_ONCE,
    SLOW,
    WELL,
    Act,
    Copy,
    Effect,
    Look,
    Sent,
    snapshot_of,
)
from tests.support.processing import Ground

from packhorse.console.compose import service_of
from packhorse.console.service import Service
from packhorse.console.settings import ConsoleSettings
from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.errors import PackhorseError

SHARES = ((FAILS_ONCE, 0.03), (FAILS_ALWAYS, 0.01), (SLOW, 0.002))
NULL_KEYS, TWICE, HOT = 0.02, 0.005, 0.2
OWN_HEADERS = frozenset({
    "attempt", "first-failed-at", "due-at", "reason", "error", "source-topic", "source-topic-id", "source-partition",
    "source-offset", "group",
})  # fmt: skip
"""Headers that a copy has on top of the message's."""
DISCARDS = 0.1
LEFT = 10
"""One key of so many is left in quarantine for good."""


class Beside:
    """A thread that does something again and again until it is told to stop."""

    def __init__(self, name: str, pause: float) -> None:
        self.errors: list[str] = []
        self._pause = pause
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(30)

    def turn(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        while not self._over.wait(self._pause):
            try:
                self.turn()
            except (psycopg.Error, PackhorseError) as error:
                self.errors.append(f"{type(error).__name__}: {error}")


class Writer(Beside):
    """Produce keyed messages at *rate* a second, around every proxy; some are meant to fail."""

    def __init__(self, ground: Ground, seed: int, *, rate: float, keys: int, trouble: float) -> None:
        super().__init__("writer", 0.02)
        self._ground, self._rate, self._keys = ground, rate, keys
        self._chance = Random(seed)
        self._shares = [(deed, share * trouble) for deed, share in SHARES]
        self._producer = Producer(
            {"bootstrap.servers": ground.kafka, "linger.ms": 5, "enable.idempotence": True, "acks": "all"}
        )
        self._began = SYSTEM_CLOCK.monotonic()
        self.count = 0
        self.ids: set[UUID] = set()

    def start(self) -> None:
        self._began = SYSTEM_CLOCK.monotonic()
        super().start()

    def turn(self) -> None:
        wanted = int((SYSTEM_CLOCK.monotonic() - self._began) * self._rate)
        while self.count < wanted:
            self.count += 1
            self._one(self.count)
        self._producer.poll(0)

    def stop(self) -> None:
        super().stop()
        assert self._producer.flush(60) == 0, "the writer's records did not arrive"

    def _one(self, n: int) -> None:
        chance = self._chance
        draw, deed = chance.random(), WELL
        for name, share in self._shares:
            if draw < share:
                deed = name
                break
            draw -= share
        key = self._key(n)
        message_id = SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now())
        self.ids.add(message_id)
        partition = (n if key is None else crc32(key)) % self._ground.partitions
        headers: list[tuple[str, str | bytes | None]] = [
            ("id", str(message_id)), ("type", "tests.Noted"), ("deed", deed), ("n", str(n)), ("empty", None), ("n", "twice"),
        ]  # fmt: skip
        value = self._ground.payload(n, deed)
        for _ in range(2 if chance.random() < TWICE else 1):
            self._producer.produce(
                self._ground.topic, value=value, key=key, partition=partition, headers=headers
            )

    def _key(self, n: int) -> bytes | None:
        chance = self._chance
        if chance.random() < NULL_KEYS:
            return None
        number = chance.randrange(20) if chance.random() < HOT else chance.randrange(self._keys)
        return f"key-{number}".encode()


def is_left(key: bytes | None) -> bool:
    """Return whether nobody redrives what is quarantined of *key*."""
    return key is not None and crc32(key) % LEFT == 0


class Reader(Beside):
    """Read the source and all topics of the group as they grow; a tier is trimmed behind what was dealt with."""

    def __init__(self, ground: Ground, source: str, own: Sequence[str]) -> None:
        super().__init__("reader", 0.0)
        self.sent: list[Sent] = []
        self.copies: list[Copy] = []
        self._source = source
        self._quarantine = f"{source}.{GROUP}.quarantine"
        self._consumer = Consumer(
            {
                "bootstrap.servers": ground.kafka, "group.id": f"reader-{ground.namespace}", "enable.auto.commit": False,
                "auto.offset.reset": "earliest", "log_level": 0, "enable.partition.eof": False,
            }
        )  # fmt: skip
        topics = (source, *own)
        self._consumer.assign(
            [TopicPartition(topic, p, 0) for topic in topics for p in range(ground.partitions)]
        )

    def stop(self) -> None:
        super().stop()
        self._consumer.close()

    def turn(self) -> None:
        for record in self._consumer.consume(1_000, 0.2):
            if record.error() is None:
                self._take(record)

    def _take(self, record: Any) -> None:
        headers = list(record.headers() or ())
        told = dict(reversed(headers))
        message_id = UUID(told["id"].decode())
        at = record.timestamp()[1] / 1000
        topic, partition, offset = record.topic(), record.partition(), record.offset()
        if topic == self._source:
            digest = _digest(record.key(), record.value(), headers)
            deed, n = told["deed"].decode(), int(told["n"])
            self.sent.append(Sent(partition, offset, message_id, record.key(), deed, n, digest, at))
        elif told.get("reason") != b"wake":
            kept = [one for one in headers if one[0] not in OWN_HEADERS]
            digest = _digest(record.key(), record.value(), kept)
            short = topic.removeprefix(f"{self._source}.{GROUP}.")
            quarantine, attempt = topic == self._quarantine, int(told["attempt"])
            self.copies.append(Copy(short, quarantine, partition, offset, message_id, attempt, digest, at))


def _digest(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, Any]]) -> str:
    return blake2b(repr((key, value, headers)).encode(), digest_size=8).hexdigest()


class Operator(Beside):
    """
    Act on what is in quarantine, through the console's service: send mended messages back, now and then one that is not, and
    give some up.
    """

    def __init__(self, database: str, seed: int, topic: str) -> None:
        super().__init__("operator", 1.0)
        self.acts: list[Act] = []
        self._database, self._topic = database, topic
        self._chance = Random(seed)
        self.settings = ConsoleSettings.load({"database_url": database}, environ={})
        self.everything = self.rests = False

    def mend_everything(self) -> None:
        """From now on nothing fails, and all that is not left for good is sent back."""
        with psycopg.connect(self._database, autocommit=True) as connection:
            connection.execute("INSERT INTO mended VALUES (%s)", (EVERYTHING,))
        self.everything, self.rests = True, False

    def turn(self) -> None:
        if self.rests:
            return
        with psycopg.connect(self._database, autocommit=True) as connection:
            rows = connection.execute(
                "SELECT message_id, key FROM packhorse.quarantined_message WHERE state = 'quarantined' AND group_id = %s",
                (GROUP,),
            ).fetchall()
            open_ = [message_id for message_id, key in rows if not is_left(key)]
            chosen = (
                open_ if self.everything else [one for one in sorted(open_) if self._chance.random() < 0.3]
            )
            for message_id in chosen:
                if not self.everything and self._chance.random() < 0.7:
                    connection.execute("INSERT INTO mended VALUES (%s) ON CONFLICT DO NOTHING", (message_id,))
        with service_of(self.settings, claimed="chaos") as service:
            for message_id in chosen:
                self._act(service, message_id)

    def _act(self, service: Service, message_id: UUID) -> None:
        act = "discard" if not self.everything and self._chance.random() < DISCARDS else "redrive"
        try:
            preview = service.quarantine.preview(message_id, group=GROUP, topic=self._topic)
        except PackhorseError as error:
            self.errors.append(f"{act} of {message_id}: {error}")
            return
        self.acts.append(Act(act, message_id, SYSTEM_CLOCK.now().timestamp()))
        try:
            order = service.quarantine.discard if act == "discard" else service.quarantine.redrive
            order(preview.order, why="a run of chaos")
        except PackhorseError as error:
            self.errors.append(f"{act} of {message_id}: {error}")
            if act == "discard":
                self.acts[-1] = self.acts[-1]._replace(act="discard?")


class Sampler(Beside):
    """Look at the committed offsets and, after that, at what the database shows."""

    def __init__(self, ground: Ground, database: str) -> None:
        super().__init__("sampler", 0.5)
        self.looks: list[Look] = []
        self.void: set[tuple[int, int]] = set()
        self._database, self._topic = database, ground.topic
        self._places = [TopicPartition(ground.topic, p) for p in range(ground.partitions)]
        self._consumer = Consumer(
            {
                "bootstrap.servers": ground.kafka,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        self._asking = threading.Lock()

    def turn(self) -> None:
        committed = {p: at for p, at in self.committed().items() if (p, at) not in self.void}
        with psycopg.connect(self._database, autocommit=True) as connection:
            row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
        assert row is not None
        self.looks.append(Look(SYSTEM_CLOCK.now().timestamp(), committed, snapshot_of(row[0])))

    def committed(self) -> dict[int, int]:
        """Return the group's offsets of the source topic; nothing while the broker is away."""
        try:
            found = self.committed_of(self._places)
        except KafkaException as error:
            self.errors.append(str(error))
            return {}
        return {one.partition: one.offset for one in found}

    def committed_of(self, places: list[TopicPartition]) -> list[TopicPartition]:
        """Return the offsets that there are of *places*. The admin client's own question ends the process at times."""
        with self._asking:
            found = self._consumer.committed(places, timeout=3)
        return [one for one in found if one.error is None and one.offset >= 0]

    def ends_of(self, places: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Return the next offsets of *places*."""
        with self._asking:
            return {
                place: self._consumer.get_watermark_offsets(TopicPartition(*place), timeout=20)[1]
                for place in places
            }


def effects(database: str) -> list[Effect]:
    """Return the application's own table."""
    query = 'SELECT "order", id, n, attempt, xid, seen, at, member FROM effect'
    with psycopg.connect(database) as connection, connection.cursor("effects") as cursor:
        cursor.execute(query)
        return [
            Effect(order, message_id, n, attempt, xid, snapshot_of(seen), at.astimezone(UTC).timestamp(), member)
            for order, message_id, n, attempt, xid, seen, at, member in cast("Any", cursor)
        ]  # fmt: skip


def quietly(call: Callable[[], object]) -> None:
    """Call, and let what fails fail."""
    try:
        call()
    except Exception:  # noqa: BLE001 for the end of a run that has failed already
        return
