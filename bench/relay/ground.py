"""The ground that all carriers stand on: one broker, one database server, fresh databases, topics and backlogs."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # exported at run time
from psycopg import sql
from tests.support.databases import make_tables, unique_name, with_database
from tests.support.stack import stack_settings, temporary_folder

from packhorse.local.settings import database_url, kafka_bootstrap
from packhorse.local.stack import held_stack

PARTITIONS = 6
POSTGRES = {
    "shared_preload_libraries": "'pg_stat_statements'",
    # Checkpoints fall before each backlog and in none of the runs.
    "max_wal_size": "'16GB'",
    "checkpoint_timeout": "'60min'",
    "max_slot_wal_keep_size": "'32GB'",
}
STATEMENTS = """
SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements
 WHERE dbid = (SELECT oid FROM pg_database WHERE datname = %s) AND toplevel
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What the database server has counted: statements of one database, bytes of write-ahead log of all."""

    statements: int
    wal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """
    Where one carrier works, once.

    Attributes:
        database: URL of its own database.
        servers: The broker.
        namespace, topic: `topic` is `<namespace>.bench` and exists.
        folder: For files of this run.
        rows: How many it is to carry; 0: until it is stopped.
    """

    database: str
    servers: str
    namespace: str
    topic: str
    folder: Path
    rows: int = 0

    def environment(self) -> Mapping[str, str]:
        """Return the settings that every part of Packhorse reads."""
        return {
            "PACKHORSE_DATABASE_URL": self.database,
            "PACKHORSE_KAFKA_BOOTSTRAP_SERVERS": self.servers,
            "PACKHORSE_NAMESPACE": self.namespace,
        }


class Ground:
    """
    One broker and one database server of the benchmark's own.

    Attributes:
        processes: Process ids of `postgres` and `kafka`.
    """

    def __init__(self, server: str, servers: str, processes: Mapping[str, int], folder: Path) -> None:
        self.server = server
        self.servers = servers
        self.processes = processes
        self._folder = folder
        self._admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        self._template = unique_name("bench_template")
        self._control = psycopg.connect(server, autocommit=True)
        self._control.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        self._control.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(self._template)))
        make_tables(with_database(server, self._template))

    @contextmanager
    def place(self, rows: int = 0) -> Iterator[Place]:
        """Provide a fresh database with Packhorse's tables, and a topic; both are dropped afterwards."""
        name = unique_name("bench")
        namespace = name.replace("_", "")
        database, template = sql.Identifier(name), sql.Identifier(self._template)
        self._control.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(database, template))
        topic = f"{namespace}.bench"
        for future in self._admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
            future.result(30)
        folder = self._folder / name
        folder.mkdir()
        try:
            yield Place(
                database=with_database(self.server, name), servers=self.servers, namespace=namespace,
                topic=topic, folder=folder, rows=rows,
            )  # fmt: skip
        finally:
            for future in self._admin.delete_topics([topic]).values():
                future.result(30)
            self._drop_slots(name)
            self._control.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))

    def _drop_slots(self, name: str) -> None:
        self._control.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
            " WHERE database = %s AND active_pid IS NOT NULL",
            [name],
        )
        with psycopg.connect(with_database(self.server, name), autocommit=True) as connection:
            for _ in range(100):
                left = connection.execute(
                    "SELECT slot_name, active FROM pg_replication_slots WHERE database = %s", [name]
                ).fetchall()
                if not left:
                    return
                for slot, active in left:
                    if not active:
                        connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])
                connection.execute("SELECT pg_sleep(0.05)")

    def at_rest(self, group: str, members: int) -> None:
        """
        Wait until a consumer group has *members* and all its partitions are given out.

        Raises:
            TimeoutError: That was not so within 30 s.
        """
        until = time.monotonic() + 30
        while time.monotonic() < until:
            # Nobody has joined yet, or the coordinator has just moved.
            with contextlib.suppress(KafkaException):
                found = self._admin.describe_consumer_groups([group])[group].result(30)
                if found.state == ConsumerGroupState.STABLE and len(found.members) == members:
                    return
            time.sleep(0.1)
        raise TimeoutError(f"group {group} has not come to rest with {members} members within 30 s")

    def checkpoint(self) -> None:
        """Write a checkpoint, so that none falls into the run that follows."""
        self._control.execute("CHECKPOINT")

    def counters(self, place: Place) -> Counters:
        """Return what was counted so far."""
        name = place.database.rpartition("/")[2]
        found = self._control.execute(STATEMENTS, [name]).fetchone()
        wal = self._control.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
        assert found is not None
        assert wal is not None
        return Counters(statements=int(found[0]), wal=int(wal[0]))

    def close(self) -> None:
        """Let go of the server."""
        self._control.close()


@contextmanager
def private_ground() -> Iterator[Ground]:
    """Start a broker and a database server for the block; they end with it, and with this process in any case."""
    with temporary_folder() as folder:
        settings = stack_settings(
            folder / "stack", services=("postgres", "kafka"), postgres=POSTGRES, kafka_java_options=("-Xms512m", "-Xmx1g")
        )  # fmt: skip
        with held_stack(settings) as stack:
            processes = {name: stack.process(name).pid for name in ("postgres", "kafka")}
            ground = Ground(
                database_url(stack.ports, "postgres"), kafka_bootstrap(stack.ports), processes, folder
            )
            try:
                yield ground
            finally:
                ground.close()
