"""The statements of pauses; `{schema}` is a checked identifier."""

# All pauses of a group but those of keys.
PAUSES = """
SELECT topic, partition, paused_by, why, paused_at FROM "{schema}".pause
WHERE group_id = %(group)s ORDER BY topic, partition"""

# One more; whoever was first stays on record.
PAUSE = """
INSERT INTO "{schema}".pause (group_id, topic, partition, paused_by, why)
VALUES (%(group)s, %(topic)s, %(partition)s, %(by)s, %(why)s) ON CONFLICT DO NOTHING"""

# One less.
RESUME = """
DELETE FROM "{schema}".pause WHERE group_id = %(group)s AND topic = %(topic)s AND partition = %(partition)s"""

# Pauses a key: it is parked, with the head that it has or without one. Touches nothing when it is paused already.
PAUSE_KEY = """
INSERT INTO "{schema}".parked_key AS k (group_id, topic, key_hash, key, partition, paused)
VALUES (%(group)s, %(topic)s, %(key_hash)s, %(key)s, %(partition)s, true)
ON CONFLICT (group_id, topic, key_hash) DO UPDATE SET paused = true WHERE NOT k.paused"""

# Lets a key go: it is woken at once. The row stays locked for the statement after this one.
RESUME_KEY = """
UPDATE "{schema}".parked_key SET paused = false, wake_at = clock_timestamp()
WHERE group_id = %(group)s AND topic = %(topic)s AND key_hash = %(key_hash)s AND paused"""

# Drops a key without head and followers; seen by a statement of its own, as whoever adds a follower has locked the row.
DROP_KEY = """
DELETE FROM "{schema}".parked_key k
WHERE k.group_id = %(group)s AND k.topic = %(topic)s AND k.key_hash = %(key_hash)s AND k.head_id IS NULL
    AND NOT EXISTS (SELECT FROM "{schema}".parked_message f
        WHERE f.group_id = k.group_id AND f.topic = k.topic AND f.key_hash = k.key_hash)"""

# Keys that people have paused, the oldest first.
PAUSED_KEYS = """
SELECT k.topic, k.key_hash, k.partition,
    (SELECT count(*) FROM "{schema}".parked_message f
     WHERE f.group_id = k.group_id AND f.topic = k.topic AND f.key_hash = k.key_hash), k.parked_at
FROM "{schema}".parked_key k WHERE k.group_id = %(group)s AND k.paused ORDER BY k.parked_at LIMIT %(most)s"""

# The role that is connected, and what a person did.
ROLE = "SELECT current_user::text"
AUDIT = """
INSERT INTO "{schema}".audit (actor, act, group_id, topic, detail, why)
VALUES (%(actor)s, %(act)s, %(group)s, %(topic)s, %(detail)s::jsonb, %(why)s)"""
