"""Previews, confirmations and looks at redrives of sets. `{schema}` is the database schema of Packhorse's tables."""

from packhorse.console.redriving.sql_asking import put

_FITS = """
q.state = 'quarantined'
  AND (%(group)s::text IS NULL OR q.group_id = %(group)s)
  AND (%(topic)s::text IS NULL OR q.topic = %(topic)s)
  AND (%(reason)s::text IS NULL OR q.reason = %(reason)s)
  AND (%(type)s::text IS NULL OR q.type = %(type)s)
  AND (%(tenant)s::text IS NULL OR q.tenant = %(tenant)s)
  AND (%(key)s::bytea IS NULL OR q.key = %(key)s)
  AND (%(ids)s::uuid[] IS NULL OR q.message_id = ANY(%(ids)s::uuid[]))
  AND (%(picked_ids)s::uuid[] IS NULL OR q.message_id = ANY(%(picked_ids)s::uuid[]) AND (q.message_id, q.group_id, q.topic) IN (
       SELECT p.id, p.group_id, p.topic
       FROM unnest(%(picked_ids)s::uuid[], %(picked_groups)s::text[], %(picked_topics)s::text[]) AS p (id, group_id, topic)))
  AND (%(since)s::timestamptz IS NULL OR q.quarantined_at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR q.quarantined_at < %(until)s)
  AND (%(text)s::text IS NULL OR q.error ILIKE %(text)s)
  AND (%(failure)s::text IS NULL OR {schema}.failure_print(q.group_id, q.topic, q.type, q.reason, q.error) >= %(failure)s
       AND {schema}.failure_print(q.group_id, q.topic, q.type, q.reason, q.error) <= rpad(%(failure)s, 32, 'f'))
"""

INSERT_REDRIVE = """
INSERT INTO {schema}.redrive (wanted, rate, stages, most_failures, previewed_by, expires_at)
VALUES (%(wanted)s, %(rate)s, %(stages)s, %(most_failures)s, %(actor)s, clock_timestamp() + interval '1 hour')
RETURNING id
"""
"""A preview: it holds for an hour."""

FREEZE = """
WITH ages AS (
    SELECT w.group_id, w.topic_id, min(w.first_at) AS first_at FROM {schema}.watermark AS w GROUP BY 1, 2
), fits AS (
    SELECT q.group_id, q.topic, q.message_id, q.partition, q."offset", q.key_hash, i.attempt, q.redrives, q.quarantined_at,
           q.purged_at, coalesce(a.first_at, '-infinity') AS first_at,
           q.key_hash IS NOT NULL AND count(*) OVER (PARTITION BY q.group_id, q.topic, q.key_hash) > 1 AS several
    FROM {schema}.quarantined_message AS q
    JOIN {schema}.inbox AS i ON i.message_id = q.message_id AND i.group_id = q.group_id AND i.topic = q.topic
        AND (i.outcome = 'quarantine') IS TRUE
    LEFT JOIN ages AS a ON a.group_id = q.group_id AND a.topic_id = q.topic_id
    WHERE <fits>
    LIMIT %(most)s + 1
)
INSERT INTO {schema}.redrive_member (redrive_id, ordinal, group_id, topic, message_id, partition, "offset", key_hash, attempt,
    redrives, quarantined_at, state, said)
SELECT %(id)s, row_number() OVER (ORDER BY f.several, f.group_id, f.topic, CASE WHEN f.several THEN f.key_hash END,
           CASE WHEN f.several THEN 0 ELSE f.partition END, f.first_at, f."offset", f.message_id),
       f.group_id, f.topic, f.message_id, f.partition, f."offset", f.key_hash, f.attempt, f.redrives, f.quarantined_at,
       CASE WHEN f.purged_at IS NOT NULL OR f.redrives >= %(cap)s THEN 'left' ELSE 'waiting' END,
       CASE WHEN f.purged_at IS NOT NULL THEN 'its bytes were purged'
            WHEN f.redrives >= %(cap)s THEN format('redriven %%s times already, the cap is %%s', f.redrives, %(cap)s::int) END
FROM fits AS f
""".replace("<fits>", _FITS)
"""
The set, in the order in which it is asked for: members of one key stand together, in the order in which they came; keys with
several come last, so that they are no canaries.
"""

COUNT_MEMBERS = """
UPDATE {schema}.redrive AS r SET members = %(members)s, checks = %(checks)s WHERE r.id = %(id)s
"""

FORGET_PREVIEWS = """
DELETE FROM {schema}.redrive AS r WHERE r.id IN (
    SELECT o.id FROM {schema}.redrive AS o
    WHERE o.id IN (SELECT p.id FROM (
            SELECT e.id, row_number() OVER b AS n, sum(e.members) OVER b AS members FROM {schema}.redrive AS e
            WHERE e.state = 'previewed' AND e.expires_at < clock_timestamp() - interval '1 day' WINDOW b AS (ORDER BY e.id)
        ) AS p WHERE p.n = 1 OR (p.n <= 20 AND p.members <= %(most)s))
      AND o.state = 'previewed'
    FOR UPDATE SKIP LOCKED)
"""
"""Previews that nobody confirmed, a day after they expired; their members go along, of several no more than *most*."""

CHECKED = put("""
SELECT count(*) AS members,
    count(*) FILTER (WHERE m.state = 'waiting') AS waiting,
    count(*) FILTER (WHERE m.state = 'left' AND m.redrives >= %(cap)s) AS capped,
    count(*) FILTER (WHERE q.purged_at IS NOT NULL) AS purged,
    count(*) FILTER (WHERE m.redrives > 0) AS redriven_before,
    count(*) FILTER (WHERE q.reason IN ('crashed', 'timeout', 'broken-transaction', 'connection-lost')
        OR q.history @? '$[*] ? (@.reason == "timeout" || @.reason == "connection-lost" || @.reason == "crashed")') AS effects,
    count(*) FILTER (WHERE q.reason = 'uncertain' OR EXISTS (SELECT FROM {schema}.job_effect AS e WHERE e.job_id = m.message_id
        AND e.state IN ('intended', 'uncertain'))) AS in_doubt,
    count(*) FILTER (WHERE q.quarantined_at < clock_timestamp() - %(stale)s * interval '1 second') AS stale,
    count(*) FILTER (WHERE q.reason IN ('undecodable', 'unknown-schema', 'unknown-type', 'no-tombstone-handler', 'id-reused'))
        AS same_bytes,
    count(*) FILTER (WHERE q.key IS NOT NULL AND (q.key_hash IS NULL OR k.key_hash IS NULL)) AS overtaken,
    count(*) FILTER (WHERE h.outcome IN ('quarantine', 'uncertain') AND NOT EXISTS (
        SELECT FROM {schema}.redrive_member AS o WHERE o.redrive_id + 0 = m.redrive_id AND o.message_id = k.head_id
            AND o.group_id = m.group_id AND o.topic = m.topic AND (o.state = 'waiting') IS TRUE)) AS behind_others,
    count(*) - count(DISTINCT (m.group_id, m.topic, coalesce(m.key_hash, m.message_id::text))) AS more_of_a_key,
    min(q.quarantined_at) AS oldest
FROM {schema}.redrive_member AS m
JOIN {schema}.quarantined_message AS q
    ON q.message_id = m.message_id AND q.group_id = m.group_id AND q.topic = m.topic
LEFT JOIN {schema}.parked_key AS k ON <key of m>
LEFT JOIN {schema}.inbox AS h
    ON h.message_id = k.head_id AND h.group_id = k.group_id AND h.topic = k.topic AND k.head_id <> m.message_id
WHERE m.redrive_id = %(id)s
""")
"""What speaks for or against a set, counted."""

EXPIRIES = """
SELECT h.value ->> 1 AS text, count(*) AS n
FROM {schema}.redrive_member AS m
JOIN {schema}.quarantined_message AS q
    ON q.message_id = m.message_id AND q.group_id = m.group_id AND q.topic = m.topic
CROSS JOIN LATERAL jsonb_array_elements(q.headers) AS h
WHERE m.redrive_id = %(id)s AND m.state = 'waiting' AND h.value ->> 0 = 'expires-at' AND h.value ->> 1 IS NOT NULL
GROUP BY 1 ORDER BY 2 DESC LIMIT 10000
"""
"""When members expire, as their header says in base64."""

STILL_FAILING = """
WITH kinds AS (
    SELECT DISTINCT m.group_id, {schema}.failure_print(q.group_id, q.topic, q.type, q.reason, q.error) AS print
    FROM {schema}.redrive_member AS m
    JOIN {schema}.quarantined_message AS q
        ON q.message_id = m.message_id AND q.group_id = m.group_id AND q.topic = m.topic
    WHERE m.redrive_id = %(id)s AND m.state = 'waiting'
    LIMIT 500
), lives AS (
    SELECT p.group_id, max(p.started_at) AS started_at,
        bool_or(p.status::text LIKE '%%stopped by brake or breaker%%') AS braked
    FROM {schema}.processor_member AS p WHERE p.seen_at > clock_timestamp() - %(alive)s * interval '1 second' GROUP BY 1
)
SELECT k.group_id AS "group", l.started_at, coalesce(l.braked, false) AS braked,
    coalesce(sum(f.n) FILTER (WHERE l.started_at IS NOT NULL), 0)::bigint AS failing
FROM kinds AS k LEFT JOIN lives AS l USING (group_id)
CROSS JOIN LATERAL (SELECT count(*) AS n FROM {schema}.quarantined_message AS q
    WHERE {schema}.failure_print(q.group_id, q.topic, q.type, q.reason, q.error) = k.print
      AND q.quarantined_at > l.started_at) AS f
GROUP BY 1, 2, 3 ORDER BY 1
"""
"""Of each group in the set: since when its newest process runs, and how many more have failed alike since then."""

SAMPLES = """
SELECT m.message_id AS id, m.group_id AS "group", m.topic, q.type, q.reason, {schema}.error_site(q.error) AS site, m.redrives,
    m.quarantined_at, m.state, m.said
FROM {schema}.redrive_member AS m
JOIN {schema}.quarantined_message AS q
    ON q.message_id = m.message_id AND q.group_id = m.group_id AND q.topic = m.topic
WHERE m.redrive_id = %(id)s ORDER BY m.state <> 'left', m.ordinal LIMIT %(most)s
"""
"""Some members: those that are left out first."""

REDRIVE = """
SELECT r.id, r.state, r.wanted, r.checks, r.members, r.rate, r.stages, r.stage, r.most_failures, r.previewed_by, r.previewed_at,
    r.expires_at, r.expires_at <= clock_timestamp() AS expired, r.confirmed_by, r.confirmed_at, r.why, r.said, r.runner,
    coalesce(r.lease_until > clock_timestamp(), false) AS worked_on, r.changed_at, r.ended_at
FROM {schema}.redrive AS r
"""

REDRIVE_OF = REDRIVE + "WHERE r.id = %(id)s"

REDRIVES = REDRIVE + "WHERE %(id)s::bigint IS NULL OR r.id < %(id)s ORDER BY r.id DESC LIMIT %(most)s"
"""The newest redrives, behind one."""

CONFIRM = """
UPDATE {schema}.redrive AS r
SET state = 'running', confirmed_by = %(actor)s, confirmed_at = clock_timestamp(), why = %(why)s,
    changed_at = clock_timestamp()
WHERE r.id = %(id)s AND r.state = 'previewed' AND r.expires_at > clock_timestamp()
RETURNING r.members, r.wanted
"""
"""Confirm a preview: of two who do, one does."""

MOVE = """
UPDATE {schema}.redrive AS r
SET state = %(state)s, said = %(said)s, changed_at = clock_timestamp(),
    lease_until = CASE WHEN %(state)s = 'running' THEN r.lease_until END,
    ended_at = CASE WHEN %(state)s = 'aborted' THEN clock_timestamp() END,
    first_stage = CASE WHEN %(state)s = 'running' AND r.state = 'halted' THEN r.stage + 1 ELSE r.first_stage END,
    stage = CASE WHEN %(state)s = 'running' AND r.state = 'halted' THEN r.stage + 1 ELSE r.stage END
WHERE r.id = %(id)s AND r.state = ANY(%(from)s)
RETURNING r.members
"""
"""A person pauses, resumes or aborts; after a halt the stages begin small again."""

_STANDING = """CASE WHEN m.state = 'waiting' AND (SELECT r.state FROM {schema}.redrive AS r WHERE r.id = %(id)s) = 'aborted'
        THEN 'left' ELSE m.state END"""
"""How member m stands: what an aborted run has not asked for does not wait for anything."""

PROGRESS = """
SELECT <standing> AS state, count(*) AS n,
    count(*) FILTER (WHERE q.redrive_sent_at IS NOT NULL OR i.outcome NOT IN ('retry', 'parked')) AS sent,
    count(*) FILTER (WHERE i.outcome = 'parked') AS parked,
    count(*) FILTER (WHERE q.redrive_refused IS NOT NULL AND q.redrive_sent_at IS NULL AND i.outcome = 'retry') AS refused,
    count(*) FILTER (WHERE i.attempt > m.attempt AND i.outcome IN ('done', 'skipped')) AS good,
    count(*) FILTER (WHERE i.attempt > m.attempt AND (i.outcome IN ('quarantine', 'uncertain')
        OR i.outcome = 'discarded' AND i.reason IS DISTINCT FROM 'purged')) AS bad
FROM {schema}.redrive_member AS m
LEFT JOIN {schema}.inbox AS i ON m.state = 'asked'
    AND i.message_id = m.message_id AND i.group_id = m.group_id AND i.topic = m.topic
LEFT JOIN {schema}.quarantined_message AS q ON m.state = 'asked'
    AND q.message_id = m.message_id AND q.group_id = m.group_id AND q.topic = m.topic
WHERE m.redrive_id = %(id)s GROUP BY 1
""".replace("<standing>", _STANDING)
"""How the members stand; of those that are asked for, by what the tables say now."""

MEMBERS = """
SELECT m.ordinal, m.message_id AS id, m.group_id AS "group", m.topic, m.partition, m."offset", m.attempt, m.redrives,
    <standing> AS state, m.stage, m.asked_at,
    CASE WHEN m.state = 'waiting' AND <standing> = 'left' THEN 'the run was aborted before its turn' ELSE m.said END AS said,
    i.outcome, q.redrive_sent_at AS sent_at, q.redrive_refused AS refused,
    m.state IN ('good', 'bad')
        OR m.state = 'asked' AND (q.redrive_sent_at IS NOT NULL OR i.outcome NOT IN ('retry', 'parked')) IS TRUE AS sent
FROM {schema}.redrive_member AS m
LEFT JOIN {schema}.inbox AS i ON i.message_id = m.message_id AND i.group_id = m.group_id AND i.topic = m.topic
LEFT JOIN {schema}.quarantined_message AS q
    ON q.message_id = m.message_id AND q.group_id = m.group_id AND q.topic = m.topic
WHERE m.redrive_id = %(id)s AND (%(state)s::text IS NULL OR <standing> = %(state)s) AND m.ordinal > %(after)s
ORDER BY m.ordinal LIMIT %(most)s
""".replace("<standing>", _STANDING)
"""One page of a set's members, in the order in which they are asked for."""
