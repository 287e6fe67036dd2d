"""Lists and counts of jobs, and acts on one. `{schema}` is the database schema of Packhorse's tables."""
# ruff: noqa: S608 only constants are put together here

from packhorse.console.truth.sql_jobs import EFFECT, JOB, JOB_OF

_BEHIND = """(%(after)s::uuid IS NULL OR j.id < %(after)s) AND (%(low)s::uuid IS NULL OR j.id >= %(low)s)
      AND (%(high)s::uuid IS NULL OR j.id <= %(high)s)"""
_LOOKED = (
    """
    SELECT j.id FROM {schema}.job AS j WHERE """
    + _BEHIND
    + """
    ORDER BY j.id DESC"""
)
_PAIRS = """pair AS (
    (SELECT j.state, j.type FROM {schema}.job AS j WHERE j.state <> 'succeeded' ORDER BY j.state, j.type LIMIT 1)
    UNION ALL
    SELECT n.state, n.type FROM pair AS p CROSS JOIN LATERAL (
        SELECT j.state, j.type FROM {schema}.job AS j
        WHERE j.state <> 'succeeded' AND (j.state, j.type) > (p.state, p.type) ORDER BY j.state, j.type LIMIT 1) AS n)"""
_LOOKED_OPEN = (
    """
    SELECT f.id FROM pair AS p CROSS JOIN LATERAL (
        SELECT j.id FROM {schema}.job AS j
        WHERE j.state <> 'succeeded' AND j.state = p.state AND j.type = p.type AND """
    + _BEHIND
    + """
        ORDER BY j.id DESC LIMIT %(look)s) AS f
    WHERE p.state = ANY(%(states)s::text[]) AND (%(type)s::text IS NULL OR p.type = %(type)s)
    ORDER BY f.id DESC"""
)
_LOOK = """
    LIMIT %(look)s"""
_FAR = """
    OFFSET %(look)s - 1 LIMIT 1"""
_FITS = """
JOIN looked AS l ON l.id = j.id
WHERE (%(states)s::text[] IS NULL OR j.state = ANY(%(states)s))
  AND (%(type)s::text IS NULL OR j.type = %(type)s)
  AND (%(tenant)s::text IS NULL OR j.tenant = %(tenant)s)
  AND (%(topic)s::text IS NULL OR j.topic = %(topic)s)
  AND (%(since)s::timestamptz IS NULL OR j.accepted_at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR j.accepted_at < %(until)s)
  AND (%(text)s::text IS NULL OR strpos(lower(j.error), lower(%(text)s)) > 0)
  AND (%(stuck)s::float8 IS NULL OR CASE j.state WHEN 'uncertain' THEN true
      WHEN 'running' THEN coalesce(j.lease_until <= clock_timestamp(), true)
      WHEN 'accepted' THEN greatest(j.accepted_at, j.not_before) < clock_timestamp() - %(stuck)s * interval '1 second'
      ELSE false END)
ORDER BY j.id DESC LIMIT %(limit)s
"""

PAGE = "WITH looked AS MATERIALIZED (" + _LOOKED + _LOOK + ")" + JOB + _FITS
"""One page of jobs, the newest first, behind the one that the page before ended with, out of the next so many."""
FAR = _LOOKED + _FAR
"""The last of the next so many: how far the page looked if it found no more."""

PAGE_OPEN = (
    "WITH RECURSIVE " + _PAIRS + ", looked AS MATERIALIZED (" + _LOOKED_OPEN + _LOOK + ")" + JOB + _FITS
)
FAR_OPEN = "WITH RECURSIVE " + _PAIRS + _LOOKED_OPEN + _FAR
"""The same of states that an index leads to: by its pairs of state and type, each of which is in the order of ids."""

COUNTS = (
    "WITH RECURSIVE "
    + _PAIRS
    + """
SELECT p.state, p.type, (SELECT count(*) FROM (SELECT FROM {schema}.job AS j
    WHERE j.state <> 'succeeded' AND j.state = p.state AND j.type = p.type LIMIT %(most)s) AS c)::int AS jobs
FROM pair AS p ORDER BY 1, 2 LIMIT 1000
"""
)
"""Jobs by state and type, each counted up to a bound by the index of all that have not succeeded."""

SUCCEEDED = """
WITH looked AS MATERIALIZED (SELECT j.state FROM {schema}.job AS j ORDER BY j.id DESC LIMIT %(look)s)
SELECT (SELECT count(*) FROM looked AS l WHERE l.state = 'succeeded')::int AS succeeded,
       (SELECT count(*) FROM looked)::int AS looked,
       (SELECT greatest(c.reltuples, 0)::bigint FROM pg_class AS c WHERE c.oid = '{schema}.job'::regclass) AS believed
"""
"""Those of the newest jobs that have succeeded, of how many; and how many jobs the planner believes there are."""

KEPT = """
SELECT j.input, j.result, j.checkpoint, j.actor,
       (SELECT coalesce(jsonb_object_agg(s.name, s.result), '{{}}') FROM {schema}.job_step AS s WHERE s.job_id = j.id) AS results,
       (SELECT coalesce(jsonb_object_agg(e.key, e.answer), '{{}}') FROM {schema}.job_effect AS e WHERE e.job_id = j.id) AS answers
FROM {schema}.job AS j WHERE j.id = %(id)s
"""
"""What an application put into a job."""

INPUT = "SELECT j.input FROM {schema}.job AS j WHERE j.id = %(id)s"

LOCK_INBOX = """
SELECT FROM {schema}.inbox AS i WHERE i.message_id = %(id)s ORDER BY i.group_id, i.topic FOR UPDATE
"""
"""Lock what groups say of its message, which acts on messages lock before the job that follows it."""

LOCK_JOB = JOB_OF + " FOR NO KEY UPDATE"

CANCEL = "SELECT c.after FROM {schema}.cancel_job(%(id)s, %(actor)s, %(why)s) AS c"
"""Take a job back that nobody runs, or ask its worker to stop, which hears it with its next heartbeat."""

LOCK_EFFECT = EFFECT + "AND e.key = %(key)s FOR UPDATE"
IN_DOUBT = EFFECT + "AND e.state IN ('intended', 'uncertain') ORDER BY e.intended_at, e.key LIMIT 21"
"""Effects of which nobody knows whether they have happened."""

RESOLVE = """
UPDATE {schema}.job_effect AS e SET state = %(verdict)s, changed_at = clock_timestamp(), changed_by = %(actor)s, why = %(why)s,
    answer = %(answer)s
WHERE e.job_id = %(id)s AND e.key = %(key)s AND e.state IN ('intended', 'uncertain') RETURNING e.changed_at AS at
"""
"""Write down what a person knows of an effect."""

RESTING = """
SELECT q.message_id AS id, q.group_id AS "group", q.topic, i.attempt, q.redrives, q.quarantined_at
FROM {schema}.job AS j
JOIN {schema}.quarantined_message AS q ON q.message_id = j.id AND q.topic = j.topic AND q.group_id = j.group_id
JOIN {schema}.inbox AS i ON i.message_id = q.message_id AND i.group_id = q.group_id AND i.topic = q.topic
WHERE j.id = %(id)s AND j.state = 'uncertain' AND q.state = 'quarantined' AND q.purged_at IS NULL AND i.outcome = 'quarantine'
"""
"""The message of an uncertain job as it rests in quarantine."""

STATE = "SELECT j.state, j.cancel_asked_at AS at FROM {schema}.job AS j WHERE j.id = %(id)s"
CLOCK = "SELECT clock_timestamp() AS now"

REFERENCE_ID = """
SELECT v.schema_id AS id FROM {schema}.schema_version AS v WHERE v.subject = %(subject)s AND v.version = %(version)s
"""
"""Under which id the registry knows the schema of what the message of a job holds."""

SEND = "SELECT {schema}.send_job(%(id)s, %(aggregate)s, %(reference)s) AS sent, clock_timestamp() AS at"
"""Write the outbox row of an accepted job anew, unless there is one or a group has dealt with its message."""
