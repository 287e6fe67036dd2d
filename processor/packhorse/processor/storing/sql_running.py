"""Statements on what lanes have in hand, what was begun one by one, and what people paused; `{schema}` is a checked name."""

# Commits without waiting for the disk: what a crash of the server loses of it, is only a hint.
LOOSE = """(SELECT set_config('synchronous_commit', 'off', true) AS mode)"""

# What a lane has in hand now, in place of what it had.
TAKE_IN_HAND = """
INSERT INTO "{schema}".in_hand (group_id, lane, topic_id, partition, offsets, alone, member)
SELECT %(group)s, %(lane)s, %(topic_id)s, %(partition)s, %(offsets)s::bigint[], %(alone)s, %(member)s
FROM {loose} l WHERE l.mode IS NOT NULL
ON CONFLICT (group_id, lane) DO UPDATE
SET topic_id = EXCLUDED.topic_id, partition = EXCLUDED.partition, offsets = EXCLUDED.offsets, alone = EXCLUDED.alone,
    member = EXCLUDED.member, at = clock_timestamp()"""

# Lanes that ended well have nothing in hand.
EMPTY_HANDS = """
DELETE FROM "{schema}".in_hand h USING {loose} l
WHERE h.group_id = %(group)s AND h.lane = ANY(%(lanes)s::uuid[]) AND l.mode IS NOT NULL"""

# What lanes, of whatever member, were last seen to have in hand of these partitions.
LOOK_IN_HANDS = """
SELECT h.lane, h.topic_id, h.partition, h.offsets, h.alone, h.member, extract(epoch FROM clock_timestamp() - h.at)::float8
FROM "{schema}".in_hand h
JOIN unnest(%(topic_ids)s::uuid[], %(partitions)s::int[]) AS r (topic_id, partition)
    ON h.topic_id = r.topic_id AND h.partition = r.partition
WHERE h.group_id = %(group)s"""

# That a message which is run alone begins, before it begins; returns how often it has.
MARK_START = """
INSERT INTO "{schema}".started AS s (group_id, topic_id, partition, "offset")
VALUES (%(group)s, %(topic_id)s, %(partition)s, %(offset)s)
ON CONFLICT (group_id, topic_id, partition, "offset") DO UPDATE
SET starts = s.starts + CASE WHEN %(lived)s THEN 0 ELSE 1 END, at = clock_timestamp()
RETURNING starts"""

# How often messages were begun.
READ_STARTS = """
SELECT "offset", starts FROM "{schema}".started
WHERE group_id = %(group)s AND topic_id = %(topic_id)s AND partition = %(partition)s
    AND "offset" = ANY(%(offsets)s::bigint[])"""

# Forgets the starts of messages that are dealt with.
CLEAR_STARTS = """
DELETE FROM "{schema}".started
WHERE group_id = %(group)s AND topic_id = %(topic_id)s AND partition = %(partition)s
    AND "offset" = ANY(%(offsets)s::bigint[])"""

# What people paused of a group.
READ_PAUSES = """
SELECT topic, partition, paused_by, why, paused_at FROM "{schema}".pause
WHERE group_id = %(group)s ORDER BY topic, partition"""

# Pauses a group, a topic of it or one partition; who was first stays named.
PAUSE = """
INSERT INTO "{schema}".pause (group_id, topic, partition, paused_by, why)
VALUES (%(group)s, %(topic)s, %(partition)s, %(actor)s, %(why)s) ON CONFLICT DO NOTHING"""

# Lets it go on.
RESUME = """
DELETE FROM "{schema}".pause WHERE group_id = %(group)s AND topic = %(topic)s AND partition = %(partition)s"""
