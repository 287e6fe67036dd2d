"""The ground that all contestants stand on: one database server, one broker, one registry, one server that speaks Redis."""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
from bench.jobs import redis
from bench.jobs.messages import work
from bench.relay import ground as relay
from psycopg import sql
from tests.support.databases import unique_name, with_database
from tests.support.stack import stack_settings, temporary_folder

from packhorse.core.message import MessageType
from packhorse.local.settings import endpoints
from packhorse.local.stack import held_stack
from packhorse.producer.jobs.messages import JobReference
from packhorse.schemas import fingerprint

POSTGRES = {**relay.POSTGRES, "max_connections": "400"}
"""Two workers of the one that holds a connection for each of a hundred jobs."""
BY_HAND = """
CREATE TABLE hand_job (LIKE packhorse.job INCLUDING ALL);
CREATE TABLE hand_job_transition (LIKE packhorse.job_transition INCLUDING ALL);
"""
"""What is written by hand: copies with the same indexes, and without triggers."""
REGISTERED = """
INSERT INTO packhorse.schema_version (subject, version, schema_id, fingerprint, schema)
VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place(relay.Place):
    """
    Where one contestant works, once.

    Attributes:
        database: URL of its own database, with the contestant's tables.
        registry: Base URL of the schema registry.
        redis: URL of the Redis-compatible server, which is empty.
        schema_ids: Ids of the input's and the reference's schema.
        since: Jobs with ids from this on count.
    """

    registry: str
    redis: str
    schema_ids: Mapping[str, int] = field(default_factory=dict)
    since: str = "00000000-0000-0000-0000-000000000000"

    def environment(self) -> Mapping[str, str]:
        """Return what the children read."""
        return {
            "PACKHORSE_DATABASE_URL": self.database,
            "PACKHORSE_KAFKA_BOOTSTRAP_SERVERS": self.servers,
            "PACKHORSE_REGISTRY_URL": self.registry,
            "PACKHORSE_NAMESPACE": self.namespace,
            "BENCH_DATABASE": self.database,
            "BENCH_REDIS": self.redis,
            "BENCH_RESULTS": redis.results(self.redis),
            "BENCH_NAMESPACE": self.namespace,
            "BENCH_GROUP": self.namespace,
            "BENCH_SCHEMA_IDS": json.dumps(dict(self.schema_ids)),
        }


class Ground(relay.Ground):
    """
    The servers of the benchmark's own.

    Attributes:
        processes: Process ids of `postgres`, `kafka` and, where there is one, `redis`.
    """

    def __init__(
        self,
        server: str,
        servers: str,
        registry: str,
        redis_url: str,
        processes: Mapping[str, int],
        folder: Path,
    ) -> None:
        super().__init__(server, servers, processes, folder)
        self.registry, self.redis = registry, redis_url
        self._templates = {"packhorse": self._template}
        with psycopg.connect(with_database(server, self._template)) as connection:
            connection.execute(BY_HAND)

    def template(self, name: str, prepare: Callable[[str], None], *, like: str = "") -> str:
        """
        Return the name of a database with the tables of *name*.

        Args:
            name: Which one.
            prepare: Makes them, once, given the database's URL.
            like: The template that it is a copy of at first; Packhorse's is "packhorse".
        """
        if name not in self._templates:
            database = unique_name(f"bench_{name}")
            source = sql.Identifier(self._templates[like] if like else "template1")
            create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(database), source)
            self._control.execute(create)
            prepare(with_database(self.server, database))
            self._templates[name] = database
        return self._templates[name]

    @contextmanager
    def standing(self, template: str = "", types: Sequence[str] = ("work",)) -> Iterator[Place]:
        """Provide a fresh copy of *template*, an unused namespace and an empty Redis; they are dropped afterwards."""
        name = unique_name("bench")
        database, source = sql.Identifier(name), sql.Identifier(template or self._template)
        # A file is copied as it is: no block of a large template goes through the log.
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(database, source)
        self._control.execute(create)
        folder = self._folder / name
        folder.mkdir()
        url, namespace = with_database(self.server, name), name.replace("_", "")
        ours = template in {"", self._templates.get("filled")}
        ids = self._registered(url, namespace, types) if ours else {}
        if self.redis:
            redis.flush(self.redis)
        try:
            yield Place(
                database=url, servers=self.servers, registry=self.registry, redis=self.redis, namespace=namespace,
                topic=f"{namespace}.work", folder=folder, schema_ids=ids,
            )  # fmt: skip
        finally:
            self._forget(namespace)
            self._control.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))

    def _registered(self, database: str, namespace: str, types: Sequence[str]) -> Mapping[str, int]:
        kinds: list[MessageType] = [work(namespace, name).__packhorse__ for name in types]
        ids = []
        with psycopg.connect(database) as connection:
            for kind in [*kinds, JobReference.__packhorse__]:
                answer = httpx.post(
                    f"{self.registry}/subjects/{kind.subject}/versions",
                    json={"schema": kind.schema},
                    timeout=30,
                )
                ids.append(int(answer.raise_for_status().json()["id"]))
                values = (kind.subject, kind.version, ids[-1], fingerprint(kind.schema), kind.schema)
                connection.execute(REGISTERED, values)
        return {"input": ids[0], "reference": ids[-1]}

    def _forget(self, namespace: str) -> None:
        if topics := [
            name for name in self._admin.list_topics(timeout=30).topics if name.startswith(f"{namespace}.")
        ]:
            for future in self._admin.delete_topics(topics).values():
                future.result(30)


@contextmanager
def private_ground() -> Iterator[Ground]:
    """Start the servers for the block; they end with it, and with this process in any case."""
    with ExitStack() as held:
        folder = held.enter_context(temporary_folder())
        settings = stack_settings(
            folder / "stack", postgres=POSTGRES, kafka_java_options=("-Xms512m", "-Xmx1g")
        )
        stack = held.enter_context(held_stack(settings))
        processes = {name: stack.process(name).pid for name in ("postgres", "kafka")}
        found, url = endpoints(stack.ports), ""
        if (why := redis.missing()) is None:
            url, processes["redis"] = held.enter_context(redis.running(folder))
        else:
            print(f"skipped: celery: {why}", flush=True)
        ground = Ground(found.database_url, found.kafka_bootstrap, found.registry_url, url, processes, folder)
        try:
            yield ground
        finally:
            ground.close()


def checked(command: list[str], environment: Mapping[str, str]) -> None:
    """
    Run *command* to its end.

    Raises:
        RuntimeError: It failed; with what it said.
    """
    done = subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[1:])}: {done.stderr.strip() or done.stdout.strip()}")
