"""The statements of the member row, and of what status shows besides watermarks; `{schema}` is a checked identifier."""

# That a member lives, and how it says it is.
SEEN = """
INSERT INTO "{schema}".processor_member AS m (group_id, member, host, pid, started_at, status)
VALUES (%(group)s, %(member)s, %(host)s, %(pid)s, %(started_at)s, %(status)s::jsonb)
ON CONFLICT (group_id, member) DO UPDATE SET seen_at = clock_timestamp(), status = EXCLUDED.status"""

# Rows of members that have died long ago, so that they do not gather.
FORGET_DEAD = """
DELETE FROM "{schema}".processor_member
WHERE group_id = %(group)s AND seen_at < clock_timestamp() - %(keep)s * interval '1 second'"""

# A member that has left cleanly.
GONE = """
DELETE FROM "{schema}".processor_member WHERE group_id = %(group)s AND member = %(member)s"""

# All members of a group, the dead ones too.
MEMBERS = """
SELECT member, host, pid, started_at, extract(epoch FROM clock_timestamp() - seen_at)::float8, status
FROM "{schema}".processor_member WHERE group_id = %(group)s ORDER BY started_at, member"""

# What waits in each tier; a retry whose copy is not known to be confirmed is counted apart.
TIERS = """
SELECT topic, tier, count(*), count(*) FILTER (WHERE sent_at IS NULL),
    extract(epoch FROM min(due_at) - clock_timestamp())::float8
FROM "{schema}".retry_message WHERE group_id = %(group)s GROUP BY topic, tier ORDER BY topic, tier"""

# Parked keys by topic: how many, how old the oldest, how many people have paused, and what waits behind them.
PARKED = """
SELECT k.topic, count(*), extract(epoch FROM clock_timestamp() - min(k.parked_at))::float8,
    count(*) FILTER (WHERE k.paused),
    (SELECT count(*) FROM "{schema}".parked_message f WHERE f.group_id = %(group)s AND f.topic = k.topic)
FROM "{schema}".parked_key k WHERE k.group_id = %(group)s GROUP BY k.topic ORDER BY k.topic"""

# What rests in quarantine, by topic and reason.
QUARANTINE = """
SELECT topic, coalesce(reason, ''), count(*), extract(epoch FROM clock_timestamp() - min(quarantined_at))::float8
FROM "{schema}".quarantined_message WHERE group_id = %(group)s AND state = 'quarantined'
GROUP BY topic, reason ORDER BY topic, reason"""


# All groups that left anything behind here, in one line each: processes alive and known, what waits for a person.
GROUPS = """
SELECT g.name,
    (SELECT count(*) FROM "{schema}".processor_member AS m
        WHERE m.group_id = g.name AND m.seen_at > clock_timestamp() - %(alive)s * interval '1 second'),
    (SELECT count(*) FROM "{schema}".parked_key AS k WHERE k.group_id = g.name),
    (SELECT count(*) FROM "{schema}".quarantined_message AS q WHERE q.group_id = g.name AND q.state = 'quarantined'),
    (SELECT count(*) FROM "{schema}".pause AS p WHERE p.group_id = g.name)
FROM (SELECT w.group_id AS name FROM "{schema}".watermark AS w
      UNION SELECT m.group_id FROM "{schema}".processor_member AS m
      UNION SELECT p.group_id FROM "{schema}".pause AS p) AS g
ORDER BY g.name"""
