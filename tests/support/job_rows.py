"""Put jobs into the real tables as producer and workers would, to stage what is to be seen of them."""

from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb
from tests.support.console_rows import new_id, rested

from packhorse.producer.jobs.messages import JobReference
from packhorse.schemas import fingerprint

TYPE, TOPIC, GROUP = "reports.ReportRequest", "reports.requests", "reports"

_JOB = """
INSERT INTO packhorse.job (id, type, version, topic, group_id, input, tenant, actor, correlation_id, traceparent, request_key,
    priority, one_waiting, one_running, not_before, expires_at, accepted_at, changed_at, changed_by)
VALUES (%(id)s, %(type)s, 1, %(topic)s, %(group)s, %(input)s, %(tenant)s, %(actor)s, %(correlation_id)s, %(traceparent)s,
    %(request_key)s, %(priority)s, %(one_waiting)s, %(one_running)s, %(not_before)s, %(expires_at)s,
    coalesce(%(accepted_at)s, clock_timestamp()), coalesce(%(accepted_at)s, clock_timestamp()), 'app')
"""
_RUN = """
UPDATE packhorse.job SET state = 'running', changed_at = clock_timestamp(), changed_by = 'worker', attempt = attempt + 1,
    started_at = coalesce(started_at, clock_timestamp()), worker = gen_random_uuid(), token = gen_random_uuid(),
    lease_until = clock_timestamp() + %(lease)s * interval '1 second' WHERE id = %(id)s
"""
_END = """
UPDATE packhorse.job SET state = %(state)s, changed_at = clock_timestamp(), changed_by = 'worker', reason = %(reason)s,
    worker = NULL, token = NULL, lease_until = NULL, result = %(result)s, error = %(error)s,
    finished_at = CASE WHEN %(state)s IN ('succeeded', 'cancelled', 'expired') THEN clock_timestamp() END WHERE id = %(id)s
"""
_EFFECT = """
INSERT INTO packhorse.job_effect (job_id, key, idempotency_key, digest, state, attempt, timeout, changed_by, answer, intended_at)
VALUES (%(id)s, %(key)s, %(idempotency_key)s, 'd1', %(state)s, 1, %(timeout)s, 'worker', %(answer)s,
    clock_timestamp() - %(ago)s * interval '1 second')
"""
_DEFAULTS: dict[str, Any] = dict.fromkeys(
    ("input", "tenant", "actor", "correlation_id", "traceparent", "request_key", "one_waiting", "one_running")
)
_DEFAULTS |= dict.fromkeys(("not_before", "expires_at", "accepted_at"))


def accepted(connection: psycopg.Connection[Any], job_id: UUID | None = None, **given: Any) -> UUID:
    """Insert a job that is accepted, without its message, and return its id."""
    values = _DEFAULTS | {"id": job_id or new_id(), "type": TYPE, "topic": TOPIC, "group": GROUP}
    values |= {"priority": "normal"} | given
    connection.execute(_JOB, values)
    found: UUID = values["id"]
    return found


def begin(connection: psycopg.Connection[Any], job_id: UUID, *, lease: float = 30) -> UUID:
    """Let a worker run the job, with *lease* seconds left."""
    connection.execute(_RUN, {"id": job_id, "lease": lease})
    return job_id


def running(connection: psycopg.Connection[Any], *, lease: float = 30, **given: Any) -> UUID:
    """Insert a job that a worker runs."""
    return begin(connection, accepted(connection, **given), lease=lease)


def end(
    connection: psycopg.Connection[Any],
    job_id: UUID,
    state: str,
    *,
    reason: str | None = None,
    result: object = None,
    error: str | None = None,
) -> UUID:
    """Let the worker bring the job that it runs into *state*."""
    values = {"id": job_id, "state": state, "reason": reason, "error": error}
    connection.execute(_END, values | {"result": None if result is None else Jsonb(result)})
    return job_id


def stopped(connection: psycopg.Connection[Any], *, reason: str = "attempts-exhausted", **given: Any) -> UUID:
    """Insert a job whose message went to quarantine with *reason* while it ran; the database moves the job along."""
    job_id = running(connection, **given)
    named = {"topic": given.get("topic", TOPIC), "group": given.get("group") or GROUP, "key": None}
    return rested(connection, job_id, reason=reason, type=given.get("type", TYPE), attempt=1, **named)


def effect(
    connection: psycopg.Connection[Any],
    job_id: UUID,
    key: str = "charge",
    *,
    state: str = "uncertain",
    answer: object = None,
    timeout: float = 30,
    ago: float = 3600,
) -> str:
    """Insert an outside effect of the job, intended *ago* seconds before now; return its key."""
    values = {"id": job_id, "key": key, "state": state, "timeout": timeout, "ago": ago}
    values |= {"idempotency_key": f"{job_id}:{key}", "answer": None if answer is None else Jsonb(answer)}
    connection.execute(_EFFECT, values)
    return key


def uncertain(connection: psycopg.Connection[Any], *keys: str, **given: Any) -> UUID:
    """Insert a job that stopped because nobody knows whether the effects of *keys* have happened."""
    job_id = running(connection, **given)
    for key in keys or ("charge",):
        effect(connection, job_id, key)
    named = {"topic": given.get("topic", TOPIC), "group": given.get("group") or GROUP, "key": None}
    return rested(connection, job_id, reason="uncertain", type=given.get("type", TYPE), attempt=1, **named)


def register_reference(connection: psycopg.Connection[Any], schema_id: int = 77) -> None:
    """Let the tables know under which id the registry has the schema of job references."""
    kind = JobReference.__packhorse__
    connection.execute(
        "INSERT INTO packhorse.schema_version (subject, version, schema_id, fingerprint, schema) VALUES (%s, %s, %s, %s, %s)"
        " ON CONFLICT DO NOTHING",
        (kind.subject, kind.version, schema_id, fingerprint(kind.schema), kind.schema),
    )
