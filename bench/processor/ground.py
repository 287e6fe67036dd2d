"""The ground that all contestants stand on: the relay benchmark's broker and database, a registry, and topics that are full."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
from bench.processor.messages import FORMS, produce, record
from bench.relay import ground as relay
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # exported at run time
from psycopg import sql
from tests.support.databases import unique_name, with_database
from tests.support.stack import stack_settings, temporary_folder

from packhorse.local.settings import endpoints
from packhorse.local.stack import held_stack

TABLES = """
CREATE TABLE result (id uuid NOT NULL, n bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE seen (id uuid PRIMARY KEY);
"""
"""What everybody writes into, and the inbox of who keeps one by hand."""
KEYS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """
    A topic that is full.

    Attributes:
        form: "avro" or "bytes", see `messages`.
        namespace: `topic` is `<namespace>.<form>`.
        records: How many it has, numbered from 0.
    """

    form: str
    namespace: str
    records: int
    schema_id: int

    @property
    def topic(self) -> str:
        """Return its name."""
        return f"{self.namespace}.{self.form}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place(relay.Place):
    """
    Where one contestant works, once.

    Attributes:
        database: URL of a database with Packhorse's tables, `result` and `seen`.
        filled: The topic.
        group: A consumer group that nobody had before.
    """

    registry: str
    filled: Filled
    group: str

    def environment(self) -> Mapping[str, str]:
        """Return what the children read."""
        message = FORMS[self.filled.form](self.namespace)
        return {
            "PACKHORSE_DATABASE_URL": self.database,
            "PACKHORSE_KAFKA_BOOTSTRAP_SERVERS": self.servers,
            "PACKHORSE_REGISTRY_URL": self.registry,
            "BENCH_NAMESPACE": self.namespace,
            "BENCH_TOPIC": self.topic,
            "BENCH_FORM": self.filled.form,
            "BENCH_SCHEMA": message.__packhorse__.schema,
            "BENCH_GROUP": self.group,
        }


class Ground(relay.Ground):
    """
    One broker, one database server and one registry of the benchmark's own.

    Attributes:
        processes: Process ids of `postgres` and `kafka`.
    """

    def __init__(
        self, server: str, servers: str, registry: str, processes: Mapping[str, int], folder: Path
    ) -> None:
        super().__init__(server, servers, processes, folder)
        self.registry = registry
        self._filled: dict[tuple[str, int, int], Filled] = {}
        with psycopg.connect(with_database(server, self._template)) as connection:
            connection.execute(TABLES)

    def filled(self, form: str, records: int, *, keys: int = KEYS) -> Filled:
        """Return a topic with that many records; made when it is first asked for."""
        if (form, records, keys) not in self._filled:
            filled = self.empty(form)
            self.produce(filled, 0, records, keys=keys)
            self._filled[form, records, keys] = Filled(
                form=form, namespace=filled.namespace, records=records, schema_id=filled.schema_id
            )
        return self._filled[form, records, keys]

    def empty(self, form: str) -> Filled:
        """Return a new topic without records."""
        namespace = unique_name("bench").replace("_", "")
        kind = FORMS[form](namespace).__packhorse__
        answer = httpx.post(
            f"{self.registry}/subjects/{kind.subject}/versions", json={"schema": kind.schema}, timeout=30
        )
        answer.raise_for_status()
        topic = NewTopic(kind.topic, relay.PARTITIONS, 1, config={"message.timestamp.type": "LogAppendTime"})
        for future in self._admin.create_topics([topic]).values():
            future.result(30)
        return Filled(form=form, namespace=namespace, records=0, schema_id=int(answer.json()["id"]))

    def produce(self, filled: Filled, first: int, last: int, *, keys: int = KEYS) -> None:
        """Put the records with the numbers from *first* to below *last* into the topic."""
        produce(
            self.servers,
            filled.topic,
            (record(filled.form, filled.namespace, filled.schema_id, n, keys) for n in range(first, last)),
        )

    @contextmanager
    def standing(self, filled: Filled) -> Iterator[Place]:
        """Provide a fresh database and an unused group; afterwards the database is dropped, and the group's topics."""
        name = unique_name("bench")
        database, template = sql.Identifier(name), sql.Identifier(self._template)
        self._control.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(database, template))
        folder = self._folder / name
        folder.mkdir()
        place = Place(
            database=with_database(self.server, name), servers=self.servers, registry=self.registry, filled=filled,
            namespace=filled.namespace, topic=filled.topic, group=name.replace("_", "-"), folder=folder,
        )  # fmt: skip
        try:
            yield place
        finally:
            self.forget(place)
            self._drop_slots(name)
            self._control.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))

    def settled(self, place: Place, members: int) -> str:
        """
        Wait until the place's group has *members* and all its partitions are given out; return the condition of results since then.

        Raises:
            TimeoutError: That was not so within 30 s.
        """
        self.at_rest(place.group, members)
        return f"at > to_timestamp({time.time()})"

    def forget(self, place: Place) -> None:
        """Delete the topics of the place's group."""
        start = f"{place.filled.topic}.{place.group}."
        if topics := [name for name in self._admin.list_topics(timeout=30).topics if name.startswith(start)]:
            for future in self._admin.delete_topics(topics).values():
                future.result(30)


@contextmanager
def private_ground() -> Iterator[Ground]:
    """Start a broker, a database server and a registry for the block; they end with it, and with this process in any case."""
    with temporary_folder() as folder:
        settings = stack_settings(
            folder / "stack", postgres=relay.POSTGRES, kafka_java_options=("-Xms512m", "-Xmx1g")
        )
        with held_stack(settings) as stack:
            processes = {name: stack.process(name).pid for name in ("postgres", "kafka")}
            found = endpoints(stack.ports)
            ground = Ground(found.database_url, found.kafka_bootstrap, found.registry_url, processes, folder)
            try:
                yield ground
            finally:
                ground.close()
