"""Statements on outside effects and steps of jobs; `{schema}` is a checked name."""

# The job, while this run has it. The lock makes a take-over wait for the commit, and a run that was taken over see that in the same
# statement; runs of one job share it, so that two effects side by side do not wait for each other.
OWNED = """owned AS MATERIALIZED (
    SELECT j.id FROM "{schema}".job j
    WHERE j.id = %(job)s AND j.token = %(token)s AND j.state = 'running' FOR SHARE
)"""

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

# Effects of jobs of which nobody knows whether they have happened, in the order of their calls.
EFFECTS_IN_DOUBT = """
SELECT e.job_id, array_agg(e.key ORDER BY e.intended_at, e.key) FROM "{schema}".job_effect e
WHERE e.job_id = ANY(%(ids)s::uuid[]) AND e.state IN ('intended', 'uncertain')
GROUP BY e.job_id"""

# Whether the run has its job, whether the step is done, and what it returned. Always one row.
READ_STEP = """
SELECT coalesce(j.token = %(token)s AND j.state = 'running', false), s.name IS NOT NULL, s.result::text
FROM (SELECT 1) AS one
LEFT JOIN "{schema}".job j ON j.id = %(job)s
LEFT JOIN "{schema}".job_step s ON s.job_id = %(job)s AND s.name = %(name)s"""

# That a step is done, durably, under the fence. Returns whether the run has its job, and whether it was written: the first
# result stands.
RECORD_STEP = """
WITH {owned}, written AS (
    INSERT INTO "{schema}".job_step (job_id, name, attempt, result)
    SELECT o.id, %(name)s, %(attempt)s, %(result)s::jsonb FROM owned o, {durable} d WHERE d.mode IS NOT NULL
    ON CONFLICT (job_id, name) DO NOTHING
    RETURNING 1
)
SELECT EXISTS (SELECT FROM owned), EXISTS (SELECT FROM written)"""
