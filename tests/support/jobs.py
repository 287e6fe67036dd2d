"""Jobs under test: one type of them, its topic, and a carrier that puts what the outbox holds on it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar
from uuid import UUID

import httpx
import psycopg
from tests.support.processing import GROUP, Ground
from tests.support.wait import eventually

from packhorse.core.message import MessageType
from packhorse.local.settings import Endpoints
from packhorse.processor import JobContext, Processor, Retry
from packhorse.producer import JobHandle, Outbox
from packhorse.producer.jobs.messages import JobReference

REPORT = '{"type":"record","name":"tests.Report","fields":[{"name":"n","type":"long"},{"name":"what","type":"string"}]}'
EMPTY = """
SET session_replication_role = replica;
DELETE FROM packhorse.outbox; DELETE FROM packhorse.job; DELETE FROM packhorse.job_transition; DELETE FROM packhorse.job_request;
DELETE FROM packhorse.job_waiting; DELETE FROM packhorse.job_running; DELETE FROM packhorse.job_due; DELETE FROM packhorse.job_step;
DELETE FROM packhorse.job_effect; DELETE FROM packhorse.job_policy;
SET session_replication_role = DEFAULT;
"""
REGISTER = """
INSERT INTO packhorse.schema_version (subject, version, schema_id, fingerprint, schema)
VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"""


@cache
def report(namespace: str, name: str = "tests.Report") -> Any:
    """Return the class of the jobs of one namespace, under a name."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Report:
        n: int
        what: str = ""

        __packhorse__: ClassVar[MessageType] = MessageType(
            type=name,
            version=1,
            namespace=namespace,
            aggregatetype="reports",
            schema=REPORT.replace("tests.Report", name),
        )

    return Report


def write(job: Any, ctx: JobContext) -> dict[str, int]:
    """Be the body of a job: what it says happens, and a row in `result` comes with its success."""
    if job.what == "fails" or (job.what == "fails once" and ctx.attempt == 1):
        raise ValueError(f"fails: {job.n}")
    ctx.on_success(
        lambda connection: connection.execute(
            "INSERT INTO result (id, n, attempt) VALUES (%s, %s, %s)", (ctx.id, job.n, ctx.attempt)
        )
    )
    return {"n": job.n}


def working(namespace: str, group: str = GROUP, body: Any = write, **options: Any) -> Processor:
    """Return a processor whose one job is *body*."""
    app = Processor(group)
    app.job(report(namespace), **{"retry": Retry(attempts=3, delays=["100ms"]), **options})(body)
    return app


class JobGround(Ground):
    """
    The topic `<namespace>.reports` with the topics of its group, and the database of jobs and workers.

    Attributes:
        report: The class of the jobs.
    """

    def __init__(
        self, endpoints: Endpoints, database: str, namespace: str, *, partitions: int = 1, kafka: str = ""
    ) -> None:
        super().__init__(endpoints, database, namespace, partitions=partitions, kafka=kafka)
        self.report = report(namespace)
        self.topic = f"{namespace}.reports"
        self._outbox = Outbox(origin="tests")
        self._carried: set[UUID] = set()
        with psycopg.connect(database) as connection:
            connection.execute(EMPTY)
            for kind in (self.report.__packhorse__, JobReference.__packhorse__):
                _register(connection, endpoints.registry_url, kind)

    def submit(self, n: int = 0, what: str = "", *, carry: bool = True, **extra: Any) -> JobHandle[Any]:
        """Submit a job in a transaction of its own; *carry*: its message goes to its topic at once."""
        with psycopg.connect(self.database) as connection:
            handle = self._outbox.submit(connection, self.report(n=n, what=what), **extra)
        if carry:
            self.carry()
        return handle

    def submit_of(self, job: Any, **extra: Any) -> JobHandle[Any]:
        """Submit *job*, of whatever class, and carry its message."""
        with psycopg.connect(self.database) as connection:
            handle = self._outbox.submit(connection, job, **extra)
        self.carry()
        return handle

    def also(self, name: str) -> Any:
        """Return the class of another type of jobs on the same topic."""
        cls = report(self.namespace, name)
        with psycopg.connect(self.database) as connection:
            _register(connection, self.environ["PACKHORSE_REGISTRY_URL"], cls.__packhorse__)
        return cls

    def cancel(self, job_id: UUID, **extra: Any) -> Any:
        """Cancel a job in a transaction of its own."""
        with psycopg.connect(self.database) as connection:
            return self._outbox.cancel(connection, job_id, **extra)

    @contextmanager
    def connected(self) -> Iterator[psycopg.Connection[Any]]:
        """Provide a connection in a transaction of its own, which is rolled back."""
        with psycopg.connect(self.database) as connection:
            yield connection
            connection.rollback()

    def carry(self, partition: int = 0, *, again: bool = False) -> int:
        """
        Put on *partition* of their topics what the outbox holds and was not carried before; return how many rows that were.

        *again*: All once more, as a relay does that was killed before it knew that they were published.
        """
        rows = self.rows(
            "SELECT id, aggregatetype, payload, type, schema_version, expires_at, tenant, actor, correlation_id, headers "
            "FROM packhorse.outbox ORDER BY seq"
        )
        new = [row for row in rows if again or row[0] not in self._carried]
        for message_id, aggregatetype, payload, kind, version, expires, *texts, headers in new:
            names = ("tenant", "actor", "correlation-id")
            told = {
                "type": kind,
                "schema-version": version,
                "expires-at": expires,
                **dict(zip(names, texts, strict=True)),
            }
            del headers
            self.send(
                key=None,
                payload=bytes(payload),
                message_id=message_id,
                partition=partition,
                topic=f"{self.namespace}.{aggregatetype}",
                headers={name: text.encode() for name, text in told.items() if text is not None},
            )
            self._carried.add(message_id)
        return len(new)

    def job(self, job_id: UUID, columns: str = "state, attempt, reason") -> tuple[Any, ...]:
        """Return what the job's row says."""
        return self.rows(f"SELECT {columns} FROM packhorse.job WHERE id = %s", job_id)[0]

    def until_state(self, job_id: UUID, state: str, *, timeout: float = 20.0) -> tuple[Any, ...]:
        """Wait until the job is in *state*, and return what its row says."""

        def there() -> Any:
            row = self.job(job_id)
            return row if row[0] == state else None

        found: tuple[Any, ...] = eventually(there, what=f"job {job_id} is {state}", timeout=timeout)
        return found

    def history(self, job_id: UUID) -> list[str]:
        """Return the states that the job was in, in order."""
        rows = self.rows("SELECT after FROM packhorse.job_transition WHERE job_id = %s ORDER BY id", job_id)
        return [row[0] for row in rows]

    def reasons(self, job_id: UUID) -> list[tuple[str, str | None]]:
        """Return the states that the job was in, each with why."""
        query = "SELECT after, reason FROM packhorse.job_transition WHERE job_id = %s ORDER BY id"
        return [(row[0], row[1]) for row in self.rows(query, job_id)]


def _register(connection: psycopg.Connection[Any], registry_url: str, kind: MessageType) -> None:
    from packhorse.schemas import fingerprint

    answer = httpx.post(
        f"{registry_url}/subjects/{kind.subject}/versions", json={"schema": kind.schema}, timeout=20
    )
    values = (kind.subject, kind.version, int(answer.json()["id"]), fingerprint(kind.schema), kind.schema)
    connection.execute(REGISTER, values)
