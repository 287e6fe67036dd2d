"""What is known of a group. `{schema}` is the database schema of Packhorse's tables."""

GROUP = """
SELECT EXISTS (SELECT FROM {schema}.processor_member AS m WHERE m.group_id = %(group)s)
    OR EXISTS (SELECT FROM {schema}.watermark AS w WHERE w.group_id = %(group)s)
    OR EXISTS (SELECT FROM {schema}.quarantined_message AS q WHERE q.group_id = %(group)s)
    OR EXISTS (SELECT FROM {schema}.parked_key AS k WHERE k.group_id = %(group)s AND k.head_id IS NOT NULL) AS known
"""
"""Whether a group has processes, or left anything behind that it did."""

PLACES = """
SELECT w.topic, w.partition FROM {schema}.watermark AS w WHERE w.group_id = %(group)s
UNION
SELECT p.place ->> 'topic', (p.place ->> 'partition')::int
FROM {schema}.processor_member AS m
CROSS JOIN LATERAL jsonb_array_elements(coalesce(m.status -> 'partitions', '[]')) AS p (place)
WHERE m.group_id = %(group)s
"""
"""Partitions that a group has watermarks of, or that its processes say they have."""

PAUSED_GROUPS = """
SELECT p.group_id AS name FROM {schema}.pause AS p
UNION SELECT k.group_id FROM {schema}.parked_key AS k WHERE k.paused
ORDER BY 1
"""
"""Groups in which something is paused."""

LOCK_PAUSE = """
SELECT p.paused_by AS by, p.paused_at AS at FROM {schema}.pause AS p
WHERE p.group_id = %(group)s AND p.topic = %(topic)s AND p.partition = %(partition)s FOR UPDATE
"""
"""Who paused just that and when, held until it is resumed."""

LOCK_KEY = """
SELECT k.paused_by AS by, k.paused_at AS at FROM {schema}.parked_key AS k
WHERE k.group_id = %(group)s AND k.topic = %(topic)s AND k.key_hash = %(key_hash)s AND k.paused FOR UPDATE
"""
"""The same of a key."""
