"""Rows of jobs as applications and workers write them: of any age and in any state, with all that hangs on them."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg

from packhorse.core.jobs import ENDED, JobState

Connection = psycopg.Connection[Any]
TOPIC, TYPE, GROUP = "airline.reports", "airline.ReportRequest", "reports"

_IDS = """
SELECT (lpad(to_hex(extract(epoch FROM clock_timestamp() - %(ago)s::interval)::bigint * 1000 + n / 10), 12, '0') || '7'
    || substr(md5(random()::text), 1, 3) || '8' || substr(md5(n::text || random()::text), 1, 15))::uuid
FROM generate_series(0, %(count)s - 1) AS n
"""
_JOBS = """
INSERT INTO packhorse.job (id, type, version, topic, group_id, state, attempt, input, tenant, request_key, changed_by, accepted_at,
    changed_at, started_at, finished_at, worker, token, lease_until, checkpoint, progress_done, progress_text, result, error)
SELECT id, %(type)s, 1, %(topic)s, %(group)s, 'accepted', 1, convert_to('input of somebody', 'UTF8'), 'acme',
    CASE WHEN %(keyed)s THEN 'key ' || id::text END, 'ann', clock_timestamp() - %(ago)s::interval,
    clock_timestamp() - %(ago)s::interval, NULL, NULL, NULL, NULL, NULL, '{"page": 3}', 3, 'page 3 of somebody',
    '{"report": "of somebody"}', 'ValueError at handlers.py:12'
FROM unnest(%(ids)s::uuid[]) AS id
"""
_HANGING = """
INSERT INTO packhorse.job_step (job_id, name, attempt, result) SELECT id, 'read', 1, '{"rows": 7}' FROM unnest(%(ids)s::uuid[]) AS id;
INSERT INTO packhorse.job_effect (job_id, key, idempotency_key, digest, state, attempt, timeout, changed_by, answer)
SELECT id, 'pay', id || '/pay', 'd', 'answered', 1, 30, 'worker', '{"paid": 7}' FROM unnest(%(ids)s::uuid[]) AS id;
"""
_REQUESTS = """
INSERT INTO packhorse.job_request (type, tenant, request_key, job_id, digest)
SELECT j.type, coalesce(j.tenant, ''), j.request_key, j.id, 'd' FROM packhorse.job AS j
WHERE j.id = ANY (%(ids)s) AND j.request_key IS NOT NULL
"""
_MOVE = """
UPDATE packhorse.job SET state = %(state)s, changed_at = clock_timestamp() - %(ago)s::interval, changed_by = 'worker',
    worker = CASE WHEN %(state)s = 'running' THEN gen_random_uuid() END, token = CASE WHEN %(state)s = 'running' THEN gen_random_uuid() END,
    lease_until = CASE WHEN %(state)s = 'running' THEN clock_timestamp() + interval '30 seconds' END,
    finished_at = CASE WHEN %(over)s THEN clock_timestamp() - %(ago)s::interval END
WHERE id = ANY (%(ids)s)
"""
_WAYS: dict[str, tuple[str, ...]] = {
    JobState.ACCEPTED: (),
    JobState.RUNNING: ("running",),
    JobState.RETRYING: ("running", "retrying"),
    JobState.SUCCEEDED: ("running", "succeeded"),
    JobState.QUARANTINED: ("running", "quarantined"),
    JobState.UNCERTAIN: ("running", "uncertain"),
    JobState.DISCARDED: ("running", "quarantined", "discarded"),
    JobState.CANCELLED: ("cancelled",),
    JobState.EXPIRED: ("expired",),
}
TABLES = (
    "job",
    "job_transition",
    "job_step",
    "job_effect",
    "job_request",
    "job_waiting",
    "job_running",
    "job_due",
)


def jobs(
    connection: Connection,
    state: str,
    *,
    ago: timedelta = timedelta(0),
    over: timedelta | None = None,
    count: int = 1,
    kind: str = TYPE,
    group: str | None = GROUP,
    hanging: bool = True,
) -> list[UUID]:
    """
    Write *count* jobs that were accepted *ago* before now and went to *state* by the allowed ways, *over* before now.

    With *hanging* each has a step, an answered effect and a request key.
    """
    ids = [row[0] for row in connection.execute(_IDS.encode(), {"ago": ago, "count": count}).fetchall()]
    values = {"ids": ids, "type": kind, "topic": TOPIC, "group": group, "ago": ago, "keyed": hanging}
    with connection.transaction():
        connection.execute(_JOBS.encode(), values)
        for step in _WAYS[state]:
            moved = {"ids": ids, "state": step, "ago": ago if over is None else over, "over": step in ENDED}
            connection.execute(_MOVE.encode(), moved)
        if hanging:
            connection.execute(_REQUESTS.encode(), {"ids": ids})
            for statement in _HANGING.strip().split(";\n"):
                connection.execute(statement.encode(), {"ids": ids})
    return ids


def policy(connection: Connection, kind: str = TYPE, **given: float | None) -> None:
    """Declare how many seconds jobs of a type (`keep_row`) and what they hold (`keep_result`) are kept."""
    connection.execute(
        "INSERT INTO packhorse.job_policy (type, group_id, keep_row, keep_result) VALUES (%s, %s, %s, %s)",
        (kind, GROUP, given.get("keep_row"), given.get("keep_result")),
    )


def left(connection: Connection, table: str = "job") -> set[UUID]:
    """Return the ids of the jobs that a table still knows."""
    column = "id" if table == "job" else "job_id"
    return {row[0] for row in connection.execute(f"SELECT DISTINCT {column} FROM packhorse.{table}".encode())}


def holding(connection: Connection, ids: Iterable[UUID]) -> set[UUID]:
    """Return which of the jobs still hold something that says whom they are about."""
    rows = connection.execute(
        "SELECT j.id FROM packhorse.job AS j WHERE j.id = ANY(%(ids)s) AND (num_nonnulls(j.input, j.result, j.checkpoint,"
        " j.progress_text) > 0 OR EXISTS (SELECT FROM packhorse.job_step AS s WHERE s.job_id = j.id AND s.result IS NOT NULL)"
        " OR EXISTS (SELECT FROM packhorse.job_effect AS e WHERE e.job_id = j.id AND e.answer IS NOT NULL))",
        {"ids": list(ids)},
    )
    return {row[0] for row in rows}
