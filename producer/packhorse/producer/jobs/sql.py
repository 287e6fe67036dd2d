"""Every statement about jobs that an application sends, named and described; `{schema}` is a checked identifier."""

from dataclasses import dataclass
from functools import cache

from packhorse.core.naming import checked_identifier

# A job without request key, name to wait by and time to wait for: its row and its message. What both say travels once.
SUBMIT_PLAIN = """
WITH job AS (
    INSERT INTO "{schema}".job (id, type, version, topic, input, tenant, actor, correlation_id, causation_id, origin,
        traceparent, priority, one_running, expires_at, changed_by)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
    RETURNING id, type, version, tenant, actor, correlation_id, causation_id, origin, traceparent
)
INSERT INTO "{schema}".outbox (id, aggregatetype, type, schema_version, payload, traceparent, tracestate, correlation_id,
    causation_id, origin, actor, tenant, expires_at, headers)
SELECT j.id, %s, j.type, j.version::text, %s, j.traceparent, %s, j.correlation_id, j.causation_id, j.origin, j.actor,
    j.tenant, %s, %s::jsonb
FROM job AS j"""

PLAIN = (
    "id",
    "type",
    "version",
    "topic",
    "input",
    "tenant",
    "actor",
    "correlation_id",
    "causation_id",
    "origin",
    "traceparent",
    "priority",
    "one_running",
    "expires_at",
    "changed_by",
    "aggregatetype",
    "payload",
    "tracestate",
    "expires_at",
    "headers",
)
"""The parameters of SUBMIT_PLAIN."""

# Jobs of any kind. Names and request keys that others are about to take are waited for in the unique indexes, in one order for
# all callers; where one is taken already, neither that job nor its message is written, and its id is missing in the answer.
# ORDER BY n stands for the promise that messages are written in the order of the calls. statement_timestamp is the database's
# clock, and the same for the two that ask whether a job is due.
SUBMIT = """
WITH i AS (
    SELECT g.*, g.not_before::timestamptz > statement_timestamp() IS TRUE AS waits
    FROM unnest(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) WITH ORDINALITY
        AS g (id, type, version, topic, input, tenant, actor, correlation_id, causation_id, origin, traceparent, request_key,
        priority, one_waiting, one_running, not_before, expires_at, changed_by, aggregatetype, payload, tracestate, headers,
        digest, n)
), named AS (
    INSERT INTO "{schema}".job_waiting (type, name, job_id)
    SELECT i.type, i.one_waiting, i.id FROM i WHERE i.one_waiting IS NOT NULL ORDER BY 1, 2
    ON CONFLICT DO NOTHING RETURNING job_id
), asked AS (
    INSERT INTO "{schema}".job_request (type, tenant, request_key, job_id, digest)
    SELECT i.type, coalesce(i.tenant, ''), i.request_key, i.id, i.digest FROM i
    WHERE i.request_key IS NOT NULL AND (i.one_waiting IS NULL OR i.id IN (SELECT job_id FROM named))
    ORDER BY 1, 2, 3
    ON CONFLICT DO NOTHING RETURNING job_id
), job AS (
    INSERT INTO "{schema}".job (id, type, version, topic, input, tenant, actor, correlation_id, causation_id, origin,
        traceparent, request_key, priority, one_waiting, one_running, not_before, expires_at, changed_by)
    SELECT i.id, i.type, i.version::int, i.topic, i.input, i.tenant, i.actor, i.correlation_id, i.causation_id, i.origin,
        i.traceparent, i.request_key, i.priority, i.one_waiting, i.one_running, i.not_before::timestamptz,
        i.expires_at::timestamptz, i.changed_by
    FROM i
    WHERE (i.one_waiting IS NULL OR i.id IN (SELECT job_id FROM named))
      AND (i.request_key IS NULL OR i.id IN (SELECT job_id FROM asked))
    ORDER BY i.n
    RETURNING id
), due AS (
    INSERT INTO "{schema}".job_due (job_id, due_at, aggregatetype, type, schema_version, payload, traceparent, tracestate,
        correlation_id, causation_id, origin, actor, tenant, expires_at, headers)
    SELECT i.id, i.not_before::timestamptz, i.aggregatetype, i.type, i.version, i.payload, i.traceparent, i.tracestate,
        i.correlation_id, i.causation_id, i.origin, i.actor, i.tenant, i.expires_at, i.headers::jsonb
    FROM i JOIN job AS j ON j.id = i.id WHERE i.waits
), sent AS (
    INSERT INTO "{schema}".outbox (id, aggregatetype, type, schema_version, payload, traceparent, tracestate, correlation_id,
        causation_id, origin, actor, tenant, expires_at, headers)
    SELECT i.id, i.aggregatetype, i.type, i.version, i.payload, i.traceparent, i.tracestate, i.correlation_id, i.causation_id,
        i.origin, i.actor, i.tenant, i.expires_at, i.headers::jsonb
    FROM i JOIN job AS j ON j.id = i.id WHERE NOT i.waits ORDER BY i.n
)
SELECT j.id FROM job AS j"""

# The jobs that request keys stand for. A statement of its own, so that in READ COMMITTED it sees what SUBMIT waited for.
REQUESTS = """
SELECT r.type, r.tenant, r.request_key, r.job_id, r.digest
FROM unnest(%s, %s, %s) AS i (type, tenant, request_key)
JOIN "{schema}".job_request AS r ON r.type = i.type AND r.tenant = i.tenant AND r.request_key = i.request_key"""

# The jobs that wait by their names. Each stays so until this transaction ends: a run that began before could not see what the
# caller has written, and the caller counts on it to.
WAITING = """
SELECT w.type, w.name, w.job_id
FROM "{schema}".job_waiting AS w
WHERE (w.type, w.name) IN (SELECT i.type, i.name FROM unnest(%s, %s) AS i (type, name))
ORDER BY w.type, w.name FOR KEY SHARE"""

# Lets a request key stand for the job that waits by the same name already.
ADOPT = """
INSERT INTO "{schema}".job_request (type, tenant, request_key, job_id, digest) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT DO NOTHING RETURNING job_id"""

# What is undone when one of several can't be written. SAVEPOINT takes no table: its name is nobody else's.
MARK = "SAVEPOINT packhorse_submit"
UNDO = "ROLLBACK TO SAVEPOINT packhorse_submit"
FORGET = "RELEASE SAVEPOINT packhorse_submit"

# Cancels a job, or asks the worker that runs it (see migration 0010).
CANCEL = """
SELECT before, after FROM "{schema}".cancel_job(%s, %s, %s)"""

# How one job stands; neither its input nor its checkpoint.
GET = """
SELECT id, type, version, topic, group_id, state, attempt, tenant, actor, correlation_id, causation_id, origin, traceparent,
    request_key, priority, one_waiting, one_running, not_before, expires_at, accepted_at, changed_at, changed_by, reason,
    started_at, finished_at, worker, lease_until, cancel_asked_at, cancel_asked_by, cancel_why, progress_done, progress_total,
    progress_text, progress_at, result, error, purged_at
FROM "{schema}".job WHERE id = %s"""

# Every change of state of one job, in the order of the changes.
HISTORY = """
SELECT at, before, after, actor, reason, attempt, worker FROM "{schema}".job_transition WHERE job_id = %s ORDER BY id"""

# The outside effects of one job; not what the outside answered.
EFFECTS = """
SELECT key, idempotency_key, state, attempt, calls, intended_at, changed_at, changed_by, why
FROM "{schema}".job_effect WHERE job_id = %s ORDER BY intended_at, key"""

# What submitting needs, asked of the catalog, so that the caller's transaction stays usable.
READY = """
SELECT c.relname, has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'INSERT'), current_user
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = '{schema}' AND c.relname IN ('job', 'job_due', 'job_request', 'job_waiting')"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQueries:
    """The statements for one database schema, as the driver takes them."""

    submit_plain: bytes
    submit: bytes
    requests: bytes
    waiting: bytes
    adopt: bytes
    mark: bytes
    undo: bytes
    forget: bytes
    cancel: bytes
    get: bytes
    history: bytes
    effects: bytes
    ready: bytes


@cache
def job_queries_for(schema: str) -> JobQueries:
    """
    Return the statements for the database schema *schema*.

    Raises:
        SettingsError: The name is not allowed.
    """
    checked_identifier(schema, what="database schema")
    return JobQueries(
        submit_plain=SUBMIT_PLAIN.format(schema=schema).encode(),
        submit=SUBMIT.format(schema=schema).encode(),
        requests=REQUESTS.format(schema=schema).encode(),
        waiting=WAITING.format(schema=schema).encode(),
        adopt=ADOPT.format(schema=schema).encode(),
        mark=MARK.encode(),
        undo=UNDO.encode(),
        forget=FORGET.encode(),
        cancel=CANCEL.format(schema=schema).encode(),
        get=GET.format(schema=schema).encode(),
        history=HISTORY.format(schema=schema).encode(),
        effects=EFFECTS.format(schema=schema).encode(),
        ready=READY.format(schema=schema).encode(),
    )
