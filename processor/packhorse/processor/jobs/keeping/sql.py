"""Every statement that the retention of jobs sends, named and described; `{schema}` is a checked identifier."""
# ruff: noqa: S608 only constants of this module are put together here

# Takes the turn for one process, when nobody works and the last turn is long enough ago, or whoever worked has gone silent.
CLAIM = """
INSERT INTO "{schema}".job_retention AS r (type, ran_by)
VALUES ('', %(by)s)
ON CONFLICT (type) DO UPDATE SET ran_by = EXCLUDED.ran_by, seen_at = clock_timestamp()
WHERE r.ran_by = %(by)s OR (r.ran_by IS NULL AND r.seen_at <= clock_timestamp() - %(every)s * interval '1 second')
    OR (r.ran_by IS NOT NULL AND r.seen_at < clock_timestamp() - interval '2 minutes')
RETURNING 1"""

# A sign of life in the middle of a turn; no row: another process has taken it.
RENEW = """
UPDATE "{schema}".job_retention SET seen_at = clock_timestamp() WHERE type = '' AND ran_by = %(by)s RETURNING 1"""

# The database's time, since when turns have been complete, and every finite number of seconds after which something goes.
FACTS = """
SELECT clock_timestamp(), (r.detail ->> 'began')::timestamptz, (r.detail ->> 'whole_began')::timestamptz, ARRAY(
    SELECT DISTINCT t.seconds FROM (
        SELECT unnest(ARRAY[%(keep)s::float8, %(keep_result)s::float8])
        UNION ALL
        SELECT unnest(ARRAY[p.keep_row, p.keep_result]) FROM "{schema}".job_policy AS p) AS t (seconds)
    WHERE t.seconds < 'Infinity' ORDER BY 1)
FROM (SELECT 1) AS one LEFT JOIN "{schema}".job_retention AS r ON r.type = ''"""

# The next ids of a window, and which of their jobs are due: over for longer than what their type declares, or else the
# settings. A discarded job is spared as long as its message can be had back: it would need its input.
_DUE = """
seen AS MATERIALIZED (
    SELECT j.id, j.type, j.topic, j.state, extract(epoch FROM clock_timestamp() - j.finished_at)::float8 AS age,
        j.input IS NOT NULL OR j.result IS NOT NULL OR j.checkpoint IS NOT NULL OR j.progress_text IS NOT NULL AS holds
      FROM "{schema}".job AS j
     WHERE j.id > %(after)s::uuid AND j.id <= %(until)s::uuid AND {mine} ORDER BY j.id LIMIT %(step)s
), due AS MATERIALIZED (
    SELECT s.id, s.type, s.age > k.whole AS goes FROM seen AS s LEFT JOIN "{schema}".job_policy AS p ON p.type = s.type
      CROSS JOIN LATERAL (SELECT coalesce(p.keep_row, %(keep)s) AS whole, coalesce(p.keep_result, %(keep_result)s) AS part) AS k
     WHERE s.state = ANY (%(ended)s) AND (s.age > k.whole OR (s.age > k.part AND s.holds))
       AND NOT (s.state = 'discarded' AND EXISTS (SELECT FROM "{schema}".quarantined_message AS q
            WHERE q.message_id = s.id AND q.topic = s.topic AND q.state = 'discarded' AND q.purged_at IS NULL))
)"""

# What a step says: whether it was done, how many rows it saw, where to go on, and how many jobs and results of each type went.
_SAID = """
SELECT {mine}, (SELECT count(*) FROM seen), (SELECT s.id FROM seen AS s ORDER BY s.id DESC LIMIT 1), coalesce((
    SELECT jsonb_object_agg(g.type, jsonb_build_array(g.jobs, g.results)) FROM (
        SELECT h.type, count(*) FILTER (WHERE h.goes) AS jobs, count(*) FILTER (WHERE NOT h.goes) AS results
          FROM {found} AS h GROUP BY h.type) AS g), '{{}}')"""

_TURN = "EXISTS (SELECT FROM mine)"
_GOING = "= ANY (ARRAY(SELECT h.id FROM held AS h WHERE h.goes))"
_LOSING = "= ANY (ARRAY(SELECT h.id FROM held AS h WHERE NOT h.goes))"

# One step: of the next jobs that are due, remove rows with all that hangs on them, or what they hold; and count it, to be put on
# the record. What somebody has locked is passed over. Does nothing unless the turn is still ours, and keeps it so until it commits.
STEP = (
    """
WITH mine AS MATERIALIZED (
    SELECT FROM "{schema}".job_retention AS r WHERE r.type = '' AND r.ran_by = %(by)s FOR SHARE
), """
    + _DUE.replace("{mine}", _TURN)
    + f""", held AS MATERIALIZED (
    -- the condition once more, on the row as it is under its lock
    SELECT j.id, j.type, j.tenant, j.request_key, d.goes FROM "{{schema}}".job AS j JOIN due AS d USING (id)
     WHERE j.state = ANY (%(ended)s) FOR UPDATE OF j SKIP LOCKED
), transitions AS (
    DELETE FROM "{{schema}}".job_transition AS t WHERE t.job_id {_GOING}
), steps AS (
    DELETE FROM "{{schema}}".job_step AS t WHERE t.job_id {_GOING}
), effects AS (
    DELETE FROM "{{schema}}".job_effect AS t WHERE t.job_id {_GOING}
), waiting AS (
    DELETE FROM "{{schema}}".job_waiting AS t WHERE t.job_id {_GOING}
), running AS (
    DELETE FROM "{{schema}}".job_running AS t WHERE t.job_id {_GOING}
), unsent AS (
    DELETE FROM "{{schema}}".job_due AS t WHERE t.job_id {_GOING}
), requests AS (
    DELETE FROM "{{schema}}".job_request AS t USING held AS h
     WHERE h.goes AND h.request_key IS NOT NULL AND t.type = h.type AND t.tenant = coalesce(h.tenant, '')
       AND t.request_key = h.request_key AND t.job_id = h.id
), jobs AS (
    DELETE FROM "{{schema}}".job AS t WHERE t.id {_GOING}
), step_results AS (
    UPDATE "{{schema}}".job_step AS t SET result = NULL WHERE t.job_id {_LOSING} AND t.result IS NOT NULL
), answers AS (
    UPDATE "{{schema}}".job_effect AS t SET answer = NULL WHERE t.job_id {_LOSING} AND t.answer IS NOT NULL
), results AS (
    UPDATE "{{schema}}".job AS t SET input = NULL, result = NULL, checkpoint = NULL, progress_text = NULL WHERE t.id {_LOSING}
), counted AS (
    INSERT INTO "{{schema}}".job_retention AS r (type, jobs, results)
    SELECT h.type, count(*) FILTER (WHERE h.goes), count(*) FILTER (WHERE NOT h.goes) FROM held AS h GROUP BY h.type
    ON CONFLICT (type) DO UPDATE SET jobs = r.jobs + EXCLUDED.jobs, results = r.results + EXCLUDED.results
)"""
    + _SAID.replace("{mine}", _TURN).replace("{found}", "held")
)

# What a step would do; changes nothing.
LOOK = "WITH " + _DUE.replace("{mine}", "true") + _SAID.replace("{mine}", "true").replace("{found}", "due")

# The turn is over: what went of each type since the last record, in this turn or in one that was cut off, goes into the audit.
RECORD = """
WITH mine AS MATERIALIZED (
    SELECT FROM "{schema}".job_retention AS r WHERE r.type = '' AND r.ran_by = %(by)s FOR UPDATE
), told AS (
    DELETE FROM "{schema}".job_retention AS r WHERE r.type <> '' AND EXISTS (SELECT FROM mine) RETURNING r.type, r.jobs, r.results
), recorded AS (
    INSERT INTO "{schema}".audit (actor, act, group_id, detail, why)
    SELECT %(actor)s, 'job-retention', p.group_id, jsonb_build_object('type', t.type, 'jobs', t.jobs, 'results', t.results),
        'their time was over'
      FROM told AS t LEFT JOIN "{schema}".job_policy AS p ON p.type = t.type ORDER BY t.type
)
UPDATE "{schema}".job_retention AS r SET ran_by = NULL, seen_at = clock_timestamp(), detail = r.detail || %(detail)s::jsonb
    || jsonb_build_object('by', %(by)s::text, 'at', clock_timestamp())
WHERE r.type = '' AND EXISTS (SELECT FROM mine)"""

# The last turn, and what each type declares.
LAST = """
SELECT '' AS type, r.detail, NULL::float8, NULL::float8 FROM "{schema}".job_retention AS r WHERE r.type = ''
UNION ALL
SELECT p.type, NULL, p.keep_row, p.keep_result FROM "{schema}".job_policy AS p ORDER BY 1"""


# What nobody sees to, counted up to a bound by small indexes: runs whose lease is over, jobs that are due and not sent, effects that
# have no answer while their job does not run.
LEFT = """
SELECT (SELECT count(*) FROM (SELECT FROM "{schema}".job AS j WHERE j.state <> 'succeeded' AND j.state = 'running'
            AND j.lease_until < clock_timestamp() - interval '1 minute' LIMIT 10000) AS a),
       (SELECT count(*) FROM (SELECT FROM "{schema}".job_due AS d WHERE d.due_at < clock_timestamp() - interval '1 minute'
            LIMIT 10000) AS b),
       (SELECT count(*) FROM (SELECT FROM "{schema}".job_effect AS e JOIN "{schema}".job AS j ON j.id = e.job_id
         WHERE e.state = 'intended' AND e.changed_at < clock_timestamp() - (least(e.timeout, 1e9) + 5) * interval '1 second'
           AND j.state NOT IN ('running', 'retrying') LIMIT 10000) AS c)"""
