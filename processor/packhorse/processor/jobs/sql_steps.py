"""Statements on steps of jobs; `{owned}`, `{durable}` and `{schema}` are filled in by `fencing.filled`."""

from dataclasses import dataclass
from functools import cache

from packhorse.processor.jobs.fencing import filled

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StepQueries:
    """The statements above for one database schema."""

    read_step: bytes
    record_step: bytes


@cache
def step_queries(schema: str) -> StepQueries:
    """
    Return the statements for the database schema *schema*.

    Raises:
        SettingsError: The name is not allowed.
    """
    return StepQueries(read_step=filled(READ_STEP, schema), record_step=filled(RECORD_STEP, schema))
