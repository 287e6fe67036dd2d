"""Statements on outside effects; `{owned}`, `{durable}` and `{schema}` are filled in by `fencing.filled`."""

from dataclasses import dataclass, fields
from functools import cache

from packhorse.processor.jobs.fencing import filled

# What is known of an effect, how long ago it was last intended, and whether the run has its job. Always one row.
READ_EFFECT = """
SELECT coalesce(j.token = %(token)s AND j.state = 'running', false), e.state, e.idempotency_key, e.digest, e.calls,
    extract(epoch FROM clock_timestamp() - e.intended_at)::float8, e.timeout, e.answer::text
FROM (SELECT 1) AS one
LEFT JOIN "{schema}".job j ON j.id = %(job)s
LEFT JOIN "{schema}".job_effect e ON e.job_id = %(job)s AND e.key = %(key)s"""

# The first intent of an effect, durably, under the fence. Returns whether the run has its job, and whether it was written:
# somebody else's row is left as it is.
INTEND_EFFECT = """
WITH {owned}, written AS (
    INSERT INTO "{schema}".job_effect (job_id, key, idempotency_key, digest, attempt, timeout, changed_by)
    SELECT o.id, %(key)s, %(idempotency_key)s, %(digest)s, %(attempt)s, %(timeout)s, 'worker'
    FROM owned o, {durable} d WHERE d.mode IS NOT NULL
    ON CONFLICT (job_id, key) DO NOTHING
    RETURNING 1
)
SELECT EXISTS (SELECT FROM owned), EXISTS (SELECT FROM written)"""

# A further intent, after it is known that the call before had no effect: compare-and-set on state and number of calls.
INTEND_AGAIN = """
WITH {owned}, written AS (
    UPDATE "{schema}".job_effect e
    SET state = 'intended', attempt = %(attempt)s, calls = e.calls + 1, intended_at = clock_timestamp(),
        timeout = %(timeout)s, changed_at = clock_timestamp(), changed_by = 'worker', why = %(why)s, answer = NULL
    FROM owned o, {durable} d
    WHERE e.job_id = o.id AND e.key = %(key)s AND e.state = %(was)s AND e.calls = %(calls)s AND d.mode IS NOT NULL
    RETURNING 1
)
SELECT EXISTS (SELECT FROM owned), EXISTS (SELECT FROM written)"""

# What became of a call, durably, under the fence: compare-and-set on state and number of calls.
CHANGE_EFFECT = """
WITH {owned}, written AS (
    UPDATE "{schema}".job_effect e
    SET state = %(state)s, answer = %(answer)s::jsonb, why = %(why)s, changed_at = clock_timestamp(), changed_by = 'worker'
    FROM owned o, {durable} d
    WHERE e.job_id = o.id AND e.key = %(key)s AND e.state = %(was)s AND e.calls = %(calls)s AND d.mode IS NOT NULL
    RETURNING 1
)
SELECT EXISTS (SELECT FROM owned), EXISTS (SELECT FROM written)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectQueries:
    """The statements above for one database schema."""

    read_effect: bytes
    intend_effect: bytes
    intend_again: bytes
    change_effect: bytes


@cache
def effect_queries(schema: str) -> EffectQueries:
    """
    Return the statements for the database schema *schema*.

    Raises:
        SettingsError: The name is not allowed.
    """
    texts = {field.name: globals()[field.name.upper()] for field in fields(EffectQueries)}
    return EffectQueries(**{name: filled(text, schema) for name, text in texts.items()})
