"""What a plan asks of the tables, and acts on a replay's row. `{schema}` is the database schema of Packhorse's tables."""

WATERMARKS = """
SELECT w.topic_id, w.partition, w."offset" FROM {schema}.watermark AS w
WHERE w.group_id = %(group)s AND w.topic = %(topic)s
"""
"""How far the group is in the topic, by the topic's ids."""

GROUP_FACTS = """
SELECT clock_timestamp() AS now,
    (SELECT nullif(r.kept_from, '-infinity') FROM {schema}.inbox_retention AS r WHERE r.group_id = %(group)s) AS kept_from,
    (SELECT count(*) FROM {schema}.processor_member AS m WHERE m.group_id = %(group)s
        AND m.seen_at > clock_timestamp() - interval '20 seconds') AS members,
    (SELECT jsonb_agg(DISTINCT h.name) FROM {schema}.processor_member AS m,
        jsonb_array_elements_text(coalesce(m.status -> 'replay_handlers', '[]')) AS h (name)
        WHERE m.group_id = %(group)s AND m.seen_at > clock_timestamp() - interval '20 seconds') AS handlers,
    (SELECT coalesce(jsonb_agg(DISTINCT p.topic || CASE WHEN p.partition >= 0 THEN '[' || p.partition || ']' ELSE '' END), '[]')
        FROM {schema}.pause AS p WHERE p.group_id = %(group)s AND p.topic IN ('', %(topic)s)) AS pauses,
    (SELECT coalesce(jsonb_agg(r.id), '[]') FROM {schema}.replay AS r WHERE r.group_id = %(group)s AND r.topic = %(topic)s
        AND r.state IN ('running', 'paused', 'halted')) AS open_runs
"""
"""What decides how a replay would go; kept_from is since when the inbox keeps every row, null: it keeps all."""

STANDINGS = """
SELECT i.message_id, i.outcome, i.digest, q.edited_as IS NOT NULL AS edited,
    q.purged_at IS NOT NULL OR (i.outcome = 'discarded' AND i.reason = 'purged') IS TRUE AS purged
FROM {schema}.inbox AS i
LEFT JOIN {schema}.quarantined_message AS q
    ON q.message_id = i.message_id AND q.group_id = i.group_id AND q.topic = i.topic
WHERE i.message_id = ANY(%(ids)s::uuid[]) AND i.message_id >= %(low)s::uuid AND i.message_id <= %(high)s::uuid
  AND i.group_id = %(group)s AND i.topic = %(topic)s
UNION ALL
SELECT q.message_id, 'discarded', NULL, q.edited_as IS NOT NULL, q.purged_at IS NOT NULL
FROM {schema}.quarantined_message AS q
WHERE q.message_id = ANY(%(ids)s::uuid[]) AND q.group_id = %(group)s AND q.topic = %(topic)s
  AND (q.state = 'discarded' OR q.purged_at IS NOT NULL)
  AND NOT EXISTS (SELECT FROM {schema}.inbox AS i
      WHERE i.message_id = q.message_id AND i.message_id >= %(low)s::uuid AND i.message_id <= %(high)s::uuid
        AND i.group_id = q.group_id AND i.topic = q.topic)
"""
"""What the tables know of these messages; what was given up is known also where the inbox has forgotten it."""

STUCK_KEYS = """
SELECT k.key_hash FROM {schema}.parked_key AS k
WHERE k.group_id = %(group)s AND k.topic = %(topic)s AND (k.paused OR EXISTS (SELECT FROM {schema}.inbox AS h
    WHERE h.message_id = k.head_id AND h.group_id = k.group_id AND h.topic = k.topic
      AND h.outcome IN ('quarantine', 'uncertain')))
LIMIT 100000
"""
"""Keys that wait for a person: what is handed over behind them waits with them."""

INSERT_REPLAY = """
INSERT INTO {schema}.replay (group_id, topic, topic_id, wanted, checks, again, rate, most_failures, planned_by, expires_at)
VALUES (%(group)s, %(topic)s, %(topic_id)s, %(wanted)s, %(checks)s, %(again)s, %(rate)s, %(most_failures)s, %(by)s,
    clock_timestamp() + interval '1 hour')
RETURNING id
"""
"""Keep a plan for an hour."""

INSERT_RANGES = """
INSERT INTO {schema}.replay_partition (replay_id, partition, first, position, past, gone, matches)
SELECT %(id)s, r.partition, r.first, r.first, r.past, r.gone, r.matches
FROM unnest(%(partitions)s::int[], %(firsts)s::bigint[], %(pasts)s::bigint[], %(gones)s::bigint[], %(matches)s::bigint[])
    AS r (partition, first, past, gone, matches)
"""
"""Keep its ranges."""

CONFIRM = """
UPDATE {schema}.replay AS r
SET state = 'running', confirmed_by = %(by)s, confirmed_at = clock_timestamp(), why = %(why)s, changed_at = clock_timestamp()
WHERE r.id = %(id)s AND r.state = 'planned' AND r.expires_at > clock_timestamp()
  AND NOT EXISTS (SELECT FROM {schema}.replay AS o WHERE o.group_id = r.group_id AND o.topic = r.topic
      AND o.state IN ('running', 'paused', 'halted'))
RETURNING r.id
"""
"""Let a plan run: only as it was planned, in time, and while no other replay of the group and topic is open."""

ONE_AT_A_TIME = """
SELECT pg_advisory_xact_lock(hashtextextended('packhorse replay ' || r.group_id || ' ' || r.topic, 0))
FROM {schema}.replay AS r WHERE r.id = %(id)s
"""
"""Let two confirmations for one group and topic come one after another."""

PAUSE = """
UPDATE {schema}.replay AS r SET state = 'paused', said = %(said)s, lease_until = NULL, changed_at = clock_timestamp()
WHERE r.id = %(id)s AND r.state = 'running' RETURNING r.id
"""
"""Hand over nothing more for now; waits for the portion in hand."""

RESUME = """
UPDATE {schema}.replay AS r
SET state = 'running', said = NULL, lease_until = NULL, changed_at = clock_timestamp(),
    most_failures = coalesce(%(most)s, r.most_failures)
WHERE r.id = %(id)s AND r.state IN ('paused', 'halted') RETURNING r.id
"""
"""Go on."""

STOP = """
UPDATE {schema}.replay AS r
SET state = 'stopped', said = %(said)s, lease_until = NULL, changed_at = clock_timestamp(), ended_at = clock_timestamp()
WHERE r.id = %(id)s AND r.state IN ('planned', 'running', 'paused', 'halted') RETURNING r.id
"""
"""End it for good, wherever it is."""

LET_GO = """
UPDATE {schema}.parked_key AS k SET replay_id = NULL, barrier = NULL, wake_at = clock_timestamp()
FROM (SELECT h.group_id, h.topic, h.key_hash FROM {schema}.parked_key AS h WHERE h.replay_id = %(id)s
      ORDER BY h.group_id, h.topic, h.key_hash FOR UPDATE) AS held
WHERE k.group_id = held.group_id AND k.topic = held.topic AND k.key_hash = held.key_hash
"""
"""Let go of all keys that the replay holds: what came of them meanwhile goes on."""

ONE = """
SELECT r.id, r.state, r.group_id AS "group", r.topic, r.topic_id, r.wanted, r.checks, r.again, r.rate, r.most_failures,
    r.planned_by, r.planned_at, r.expires_at, r.state = 'planned' AND r.expires_at <= clock_timestamp() AS expired,
    r.confirmed_by, r.confirmed_at, r.why, r.said, r.runner, coalesce(r.lease_until > clock_timestamp(), false) AS alive,
    r.changed_at, r.ended_at
FROM {schema}.replay AS r
"""
RUN = ONE + "WHERE r.id = %(id)s"
"""One replay."""

RUNS = (
    ONE
    + """
WHERE (%(group)s::text IS NULL OR r.group_id = %(group)s) AND (%(topic)s::text IS NULL OR r.topic = %(topic)s)
ORDER BY r.id DESC LIMIT %(limit)s
"""
)
"""The latest replays."""

RANGES = """
SELECT p.partition, p.first, p.position, p.past, p.gone, p.matches, p.counts
FROM {schema}.replay_partition AS p WHERE p.replay_id = %(id)s ORDER BY p.partition
"""
"""How far it is in each partition."""

SPAN = """
    i.message_id >= (SELECT o.message_id FROM {schema}.replay_message AS o WHERE o.replay_id = %(id)s ORDER BY o.message_id LIMIT 1)
    AND i.message_id <= (SELECT o.message_id FROM {schema}.replay_message AS o WHERE o.replay_id = %(id)s
        ORDER BY o.message_id DESC LIMIT 1)"""
"""Of inbox i: the partitions that what was handed over may be in; no other is looked into."""

UNPROVED = (
    """
SELECT coalesce(i.outcome, 'done') AS outcome, count(*) AS n,
    count(*) FILTER (WHERE i.outcome = 'parked' AND (k.paused OR h.outcome IN ('retry', 'quarantine', 'uncertain'))) AS behind
FROM {schema}.replay_message AS m
JOIN {schema}.replay AS r ON r.id = m.replay_id
LEFT JOIN {schema}.inbox AS i ON i.message_id = m.message_id AND i.group_id = r.group_id AND i.topic = r.topic AND """
    + SPAN
    + """
LEFT JOIN {schema}.parked_message AS f
    ON f.message_id = m.message_id AND f.group_id = r.group_id AND f.topic = r.topic
LEFT JOIN {schema}.parked_key AS k ON k.group_id = f.group_id AND k.topic = f.topic AND k.key_hash = f.key_hash
LEFT JOIN {schema}.inbox AS h ON h.message_id = k.head_id AND h.group_id = k.group_id AND h.topic = k.topic
WHERE m.replay_id = %(id)s GROUP BY 1
"""
)
"""What was handed over and is not counted yet, by outcome; behind: it waits for another message, or for a person."""

HELD_KEYS = """
SELECT count(*) AS keys,
    (SELECT count(*) FROM {schema}.parked_message AS f JOIN {schema}.parked_key AS q
        ON q.group_id = f.group_id AND q.topic = f.topic AND q.key_hash = f.key_hash
        WHERE q.replay_id = %(id)s AND f."offset" >= q.barrier) AS waiting
FROM {schema}.parked_key AS k WHERE k.replay_id = %(id)s
"""
"""How many keys it holds, and how many live messages wait for it."""
