"""Find what does not add up about jobs, and put right what can be. `{schema}` is the database schema of Packhorse's tables."""

PLANNED = """
SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true)
"""
"""A portion is some thousand rows in the order of an index, however old the statistics."""

SUCCEEDED = """
WITH seen AS MATERIALIZED (
    SELECT j.id, j.group_id, j.topic, j.state, j.finished_at FROM {schema}.job AS j WHERE j.id > %(after)s::uuid
    ORDER BY j.id LIMIT %(step)s
), missing AS (
    SELECT s.id FROM seen AS s LEFT JOIN {schema}.inbox_retention AS r ON r.group_id = s.group_id
    WHERE s.state = 'succeeded' AND (r.kept_from IS NULL OR s.finished_at > r.kept_from + interval '1 minute')
      AND NOT EXISTS (SELECT FROM {schema}.inbox AS i WHERE i.message_id = s.id AND i.group_id = s.group_id AND i.topic = s.topic
            AND i.outcome = 'done')
)
SELECT (SELECT count(*) FROM seen)::int AS seen, (SELECT s.id FROM seen AS s ORDER BY s.id DESC LIMIT 1) AS last,
       ARRAY(SELECT m.id FROM missing AS m ORDER BY m.id) AS ids
"""
"""Jobs that succeeded after the time that the inbox keeps, without the fact; a portion of all jobs."""

OPEN = """
WITH seen AS MATERIALIZED (
    SELECT j.id, j.type, j.state, j.group_id, j.topic, extract(epoch FROM clock_timestamp() - j.changed_at)::float8 AS age,
           extract(epoch FROM clock_timestamp() - j.lease_until)::float8 AS lease_over
    FROM {schema}.job AS j WHERE j.state = %(state)s AND j.state <> 'succeeded' AND (j.type, j.id) > (%(type)s, %(id)s::uuid)
    ORDER BY j.type, j.id LIMIT %(step)s
)
SELECT s.id, s.type, s.state, s.group_id AS "group", s.topic, s.lease_over, i.outcome, q.state AS rests, d.overdue,
       CASE WHEN s.state = 'accepted' AND i.outcome IS NULL AND d.overdue IS NULL AND s.age > %(patience)s
            THEN coalesce(o.place, 'gone') END AS outbox, o.written
FROM seen AS s
LEFT JOIN LATERAL (SELECT i.outcome FROM {schema}.inbox AS i WHERE i.message_id = s.id AND i.topic = s.topic
    AND (s.group_id IS NULL OR i.group_id = s.group_id) LIMIT 1) AS i ON true
LEFT JOIN LATERAL (SELECT q.state FROM {schema}.quarantined_message AS q WHERE q.message_id = s.id AND q.topic = s.topic
    AND (s.group_id IS NULL OR q.group_id = s.group_id) ORDER BY q.state = 'quarantined' DESC LIMIT 1) AS q ON true
LEFT JOIN LATERAL (SELECT extract(epoch FROM clock_timestamp() - d.due_at)::float8 AS overdue FROM {schema}.job_due AS d
    WHERE d.job_id = s.id) AS d ON true
LEFT JOIN LATERAL (
    SELECT extract(epoch FROM clock_timestamp() - o.created_at AT TIME ZONE 'UTC')::float8 AS written,
        CASE WHEN EXISTS (SELECT FROM {schema}.relay_discard AS d WHERE d.message_id = o.id) THEN 'gone'
        WHEN EXISTS (SELECT FROM {schema}.relay_hold AS h WHERE h.state <> 'ended' AND h.aggregatetype = o.aggregatetype
            AND NOT pg_visible_in_snapshot(o.xid, h.horizon) AND CASE h.scope WHEN 'row' THEN h.message_id = o.id
                WHEN 'key' THEN h.aggregateid = o.aggregateid ELSE h.scope <> 'partition' END) THEN 'unpublished'
        WHEN pg_visible_in_snapshot(o.xid, r.horizon)
        OR (r.target IS NOT NULL AND pg_visible_in_snapshot(o.xid, r.target) AND o.seq <= r.progress) THEN 'published'
        ELSE 'unpublished' END AS place
    FROM {schema}.outbox AS o LEFT JOIN {schema}.relay AS r ON r.shard = mod(
        ('x' || left(encode(sha256(convert_to(coalesce(o.aggregateid, ''), 'UTF8')), 'hex'), 4))::bit(16)::int,
        (SELECT count(*) FROM {schema}.relay))
    WHERE o.id = s.id AND s.state = 'accepted' AND i.outcome IS NULL AND d.overdue IS NULL AND s.age > %(patience)s
    LIMIT 1  -- in no order: for one, the planner would walk the index on seq
) AS o ON true
ORDER BY s.type, s.id
"""
"""Jobs in one state, and what inbox, quarantine, job_due and, where nothing else knows them, the outbox and its horizon say."""

READERS = """
SELECT m.group_id AS "group", e.topic, count(DISTINCT m.member)::int AS readers
FROM {schema}.processor_member AS m CROSS JOIN LATERAL (SELECT DISTINCT p ->> 'topic' AS topic FROM jsonb_array_elements(
    CASE jsonb_typeof(m.status::jsonb -> 'partitions') WHEN 'array' THEN m.status::jsonb -> 'partitions' END) AS p) AS e
WHERE m.seen_at > clock_timestamp() - interval '20 seconds' GROUP BY m.group_id, e.topic
"""
"""How many living processes of each group have partitions of each topic."""

ALIVE = """
SELECT m.group_id AS "group", count(*)::int AS alive FROM {schema}.processor_member AS m
WHERE m.seen_at > clock_timestamp() - interval '20 seconds' GROUP BY m.group_id
"""
"""Living processes of each group."""

UNANSWERED = """
SELECT e.job_id AS id, e.key, j.state FROM {schema}.job_effect AS e JOIN {schema}.job AS j ON j.id = e.job_id
WHERE e.state IN ('intended', 'uncertain') AND e.changed_at < clock_timestamp() - (least(e.timeout, 1e9) + 5) * interval '1 second'
  AND NOT (j.state = 'running' AND j.lease_until > clock_timestamp())
  AND NOT (e.state = 'uncertain' AND j.state = 'uncertain')
ORDER BY e.job_id, e.key LIMIT %(most)s
"""
"""Effects without an answer whose job does not run; those of a job that is uncertain wait for a person, as they should."""

_ORPHANS = """
WITH seen AS MATERIALIZED (
    SELECT t.job_id FROM {{schema}}.{table} AS t WHERE t.job_id > %(after)s::uuid ORDER BY t.job_id LIMIT %(step)s
)
SELECT (SELECT count(*) FROM seen)::int AS seen, (SELECT s.job_id FROM seen AS s ORDER BY s.job_id DESC LIMIT 1) AS last,
       ARRAY(SELECT DISTINCT s.job_id FROM seen AS s
             WHERE NOT EXISTS (SELECT FROM {{schema}}.job AS j WHERE j.id = s.job_id) ORDER BY 1) AS ids
"""
ORPHANS = {
    table: _ORPHANS.format(table=table) for table in ("job_transition", "job_step", "job_effect", "job_due")
}
"""Rows of a job that is not there; a portion of a table in the order of jobs."""

REQUESTS = """
WITH seen AS MATERIALIZED (
    SELECT t.type, t.tenant, t.request_key, t.job_id FROM {schema}.job_request AS t
    WHERE (t.type, t.tenant, t.request_key) > (%(type)s, %(tenant)s, %(key)s)
    ORDER BY t.type, t.tenant, t.request_key LIMIT %(step)s
)
SELECT (SELECT count(*) FROM seen)::int AS seen, l.type, l.tenant, l.request_key AS key,
       ARRAY(SELECT DISTINCT s.job_id FROM seen AS s
             WHERE NOT EXISTS (SELECT FROM {schema}.job AS j WHERE j.id = s.job_id) ORDER BY 1) AS ids
FROM (SELECT 1) AS one LEFT JOIN (
    SELECT s.* FROM seen AS s ORDER BY s.type DESC, s.tenant DESC, s.request_key DESC LIMIT 1) AS l ON true
"""
"""Request keys of a job that is not there; a portion."""

STALE = """
SELECT w.job_id AS id FROM {schema}.job_waiting AS w
WHERE NOT EXISTS (SELECT FROM {schema}.job AS j WHERE j.id = w.job_id AND j.state = 'accepted')
UNION ALL
SELECT d.job_id FROM {schema}.job_due AS d JOIN {schema}.job AS j ON j.id = d.job_id WHERE j.state <> 'accepted'
UNION ALL
SELECT r.job_id FROM {schema}.job_running AS r
WHERE NOT EXISTS (SELECT FROM {schema}.job AS j WHERE j.id = r.job_id AND j.state = 'running' AND j.token = r.token)
LIMIT %(most)s
"""
"""Names, and times to wait for, that are held for a job that does not wait or run."""

FREE = """
WITH waiting AS (
    DELETE FROM {schema}.job_waiting AS w WHERE w.job_id = ANY(%(ids)s::uuid[])
      AND NOT EXISTS (SELECT FROM {schema}.job AS j WHERE j.id = w.job_id AND j.state = 'accepted') RETURNING 1
), due AS (
    DELETE FROM {schema}.job_due AS d USING {schema}.job AS j WHERE d.job_id = ANY(%(ids)s::uuid[]) AND j.id = d.job_id
      AND j.state <> 'accepted' RETURNING 1
), stale AS MATERIALIZED (
    -- locked as they are: one that a claim is taking just now is passed over, and is another's by then
    SELECT r.type, r.name, r.token FROM {schema}.job_running AS r WHERE r.job_id = ANY(%(ids)s::uuid[])
      AND NOT EXISTS (SELECT FROM {schema}.job AS j WHERE j.id = r.job_id AND j.state = 'running' AND j.token = r.token)
    FOR UPDATE OF r SKIP LOCKED
), running AS (
    DELETE FROM {schema}.job_running AS r USING stale AS s
    WHERE r.type = s.type AND r.name = s.name AND r.token = s.token RETURNING 1
)
SELECT ((SELECT count(*) FROM waiting) + (SELECT count(*) FROM due) + (SELECT count(*) FROM running))::int AS n
"""
"""Free names that are still stale."""

DELETE_ORPHANS = """
WITH gone AS MATERIALIZED (
    SELECT id FROM unnest(%(ids)s::uuid[]) AS g (id) WHERE NOT EXISTS (SELECT FROM {schema}.job AS j WHERE j.id = g.id)
), transitions AS (
    DELETE FROM {schema}.job_transition AS t WHERE t.job_id = ANY (ARRAY(SELECT g.id FROM gone AS g))
), steps AS (
    DELETE FROM {schema}.job_step AS t WHERE t.job_id = ANY (ARRAY(SELECT g.id FROM gone AS g))
), effects AS (
    DELETE FROM {schema}.job_effect AS t WHERE t.job_id = ANY (ARRAY(SELECT g.id FROM gone AS g))
), unsent AS (
    DELETE FROM {schema}.job_due AS t WHERE t.job_id = ANY (ARRAY(SELECT g.id FROM gone AS g))
), requests AS (
    DELETE FROM {schema}.job_request AS t WHERE t.job_id = ANY (ARRAY(SELECT g.id FROM gone AS g))
)
SELECT count(*)::int AS n FROM gone
"""
"""Delete what belongs to jobs that are still not there. Request keys have no index by job: this reads them all."""

FOLLOW = """
WITH moves AS MATERIALIZED (
    SELECT j.id, q.group_id, q.reason, q.state AS rests, CASE WHEN q.state = 'redriven' THEN 'retrying' WHEN q.state = 'discarded' THEN 'discarded'
               WHEN q.reason = 'uncertain' OR EXISTS (SELECT FROM {schema}.job_effect AS e
                   WHERE e.job_id = j.id AND e.state IN ('intended', 'uncertain')) THEN 'uncertain' ELSE 'quarantined' END AS after
    FROM {schema}.job AS j CROSS JOIN LATERAL (
        SELECT q.state, q.reason, q.group_id FROM {schema}.quarantined_message AS q WHERE q.message_id = j.id AND q.topic = j.topic
          AND (j.group_id IS NULL OR q.group_id = j.group_id) ORDER BY q.state = 'quarantined' DESC LIMIT 1) AS q
    WHERE j.id = ANY(%(ids)s::uuid[]) AND NOT (j.state = 'running' AND j.lease_until > clock_timestamp())
    FOR NO KEY UPDATE OF j
)
UPDATE {schema}.job AS j SET state = m.after, group_id = m.group_id, changed_at = clock_timestamp(), changed_by = %(actor)s,
    reason = CASE m.rests WHEN 'quarantined' THEN m.reason ELSE m.rests END, worker = NULL, token = NULL, lease_until = NULL,
    finished_at = CASE m.after WHEN 'discarded' THEN clock_timestamp() END
FROM moves AS m WHERE j.id = m.id AND j.state <> m.after AND {schema}.job_may(j.state || '>' || m.after)
RETURNING j.id
"""
"""Move jobs to where their messages are, as the trigger would have; one that a worker has under a lease is left to it."""
