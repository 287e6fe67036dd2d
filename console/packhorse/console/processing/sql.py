"""
What is asked about one group; each statement reads a bounded number of rows, however large the tables are. `{schema}` is the database
schema of Packhorse's tables.
"""

NOW = "SELECT clock_timestamp() AS at"

TIERS = """
SELECT r.topic, r.tier, count(*)::int AS messages, (count(*) FILTER (WHERE r.sent_at IS NULL))::int AS unsent,
       min(r.due_at) AS due_at, (count(*) FILTER (WHERE r.due_at <= clock_timestamp()))::int AS overdue
FROM (SELECT r.topic, r.tier, r.due_at, r.sent_at FROM {schema}.retry_message AS r WHERE r.group_id = %(group)s
      ORDER BY r.due_at LIMIT %(most)s) AS r
GROUP BY 1, 2 ORDER BY 5, 1, 2
"""
"""What waits in each tier, of what comes due first."""

PROCESSES = """
SELECT m.host, m.pid, m.started_at, m.seen_at, m.status FROM {schema}.processor_member AS m
WHERE m.group_id = %(group)s AND m.seen_at > clock_timestamp() - interval '1 day' ORDER BY m.seen_at DESC LIMIT %(most)s
"""
"""The processes of the last day, and all that each says of itself."""

PARKED = """
SELECT k.topic, k.key_hash, p.partition, k.parked_at, p.head_id AS head, h.outcome AS head_outcome, h.reason AS head_reason,
       h.due_at AS head_due_at, p.paused, p.paused_by,
       (SELECT count(*) FROM (SELECT FROM {schema}.parked_message AS m WHERE m.group_id = p.group_id AND m.topic = p.topic
            AND m.key_hash = p.key_hash LIMIT %(behind)s) AS m)::int AS followers
FROM (SELECT k.topic, k.key_hash, k.parked_at
      FROM (SELECT k.topic, k.key_hash, k.parked_at FROM {schema}.parked_key AS k WHERE k.group_id = %(group)s LIMIT %(keys)s) AS k
      WHERE %(at)s::timestamptz IS NULL
         OR (k.parked_at, k.topic, k.key_hash) > (%(at)s::timestamptz, %(topic)s::text, %(key_hash)s::text)
      ORDER BY k.parked_at, k.topic, k.key_hash LIMIT %(limit)s) AS k
JOIN {schema}.parked_key AS p ON p.group_id = %(group)s AND p.topic = k.topic AND p.key_hash = k.key_hash
LEFT JOIN {schema}.inbox AS h ON h.message_id = p.head_id AND h.group_id = p.group_id AND h.topic = p.topic
ORDER BY k.parked_at, k.topic, k.key_hash
"""
"""The keys that are parked for longest, of so many that one question looks through."""

KEYS = """
SELECT count(*)::int AS keys FROM (SELECT FROM {schema}.parked_key AS k WHERE k.group_id = %(group)s LIMIT %(keys)s) AS k
"""
"""How many keys that question looked through."""

FOLLOWS = """
SELECT m.host, m.pid, m.seen_at, coalesce(p.partitions, 0)::int AS partitions, coalesce(p.paused, 0)::int AS paused,
       coalesce(p.in_hand, 0)::int AS in_hand
FROM (SELECT m.host, m.pid, m.seen_at, m.status FROM {schema}.processor_member AS m
      WHERE m.group_id = %(group)s AND m.seen_at > clock_timestamp() - interval '20 seconds' ORDER BY m.seen_at DESC LIMIT 500) AS m
LEFT JOIN LATERAL (
    SELECT count(*) AS partitions, count(*) FILTER (WHERE e.place ->> 'paused' IS NOT NULL) AS paused,
           sum(CASE jsonb_typeof(e.place -> 'in_flight') WHEN 'number' THEN (e.place ->> 'in_flight')::int ELSE 0 END) AS in_hand
    FROM jsonb_array_elements(CASE jsonb_typeof(m.status -> 'partitions') WHEN 'array' THEN m.status -> 'partitions' ELSE '[]' END)
        AS e (place)
    WHERE (%(topic)s::text IS NULL OR e.place ->> 'topic' = %(topic)s::text
           OR starts_with(e.place ->> 'topic', %(topic)s::text || '.' || %(group)s || '.retry.'))
      AND (%(partition)s::int IS NULL OR e.place ->> 'partition' = (%(partition)s::int)::text)) AS p ON true
ORDER BY 1, 2
"""
"""What the living processes say of the partitions of a topic, with its tiers, or of all of the group."""

LAST = """
SELECT a.act, a.actor, a.at, a.why FROM (
    SELECT a.act, a.actor, a.at, a.id, a.why, a.group_id, a.topic, a.detail FROM {schema}.audit AS a
    ORDER BY a.at DESC, a.id DESC LIMIT 20000) AS a
WHERE a.act IN ('pause', 'resume') AND a.group_id = %(group)s AND a.topic IS NOT DISTINCT FROM %(topic)s::text
  AND a.detail -> 'key_hash' IS NULL AND a.detail -> 'partition' IS NOT DISTINCT FROM to_jsonb(%(partition)s::int)
ORDER BY a.at DESC, a.id DESC LIMIT 1
"""
"""What somebody last did with just that, among the newest acts."""
