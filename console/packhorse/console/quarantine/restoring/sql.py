"""Statements that restore a discarded message. `{schema}` is the database schema of Packhorse's tables."""

DISCARDED = """
SELECT q.topic_id, q.key_hash IS NOT NULL AS ordered, q.discarded_at, q.purged_at, q.edited_as
FROM {schema}.quarantined_message AS q
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = %(id)s
"""
"""What is kept of a discarded message besides."""

OUTCOMES = """
SELECT i.message_id AS id, i.outcome, i.changed_at FROM {schema}.inbox AS i
WHERE i.message_id = ANY(%(ids)s::uuid[]) AND i.group_id = %(group)s AND i.topic = %(topic)s
"""
"""What became of later messages of the key."""

REOPEN = """
UPDATE {schema}.inbox AS i
SET outcome = 'quarantine', changed_at = clock_timestamp()
WHERE i.group_id = %(group)s AND i.topic = %(topic)s AND i.message_id = %(id)s
  AND i.outcome = 'discarded' AND i.attempt = %(attempt)s
RETURNING i.attempt
"""
"""Let the message's outcome be that it waits for a person again."""

RESTORE = """
UPDATE {schema}.quarantined_message AS q
SET state = 'quarantined', discarded_at = NULL
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = %(id)s
  AND q.state = 'discarded' AND q.redrives = %(redrives)s AND q.quarantined_at = %(quarantined_at)s
  AND q.discarded_at IS NOT DISTINCT FROM %(discarded_at)s::timestamptz AND q.purged_at IS NULL AND q.edited_as IS NULL
RETURNING q.redrives
"""
"""Take the message back, only as it was previewed."""

LOCK_KEY = """
SELECT k.head_id AS head, coalesce(k.lease_until > clock_timestamp(), false) AS draining
FROM {schema}.parked_key AS k
JOIN {schema}.quarantined_message AS q ON q.group_id = k.group_id AND q.topic = k.topic AND q.key_hash = k.key_hash
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = %(id)s
FOR UPDATE OF k
"""
"""Lock the row of the message's key, if it is parked; who it waits behind is asked in a statement with a snapshot of its own."""

HEAD_OPEN = """
SELECT EXISTS (SELECT FROM {schema}.inbox AS i WHERE i.message_id = %(head)s::uuid AND i.group_id = %(group)s
    AND i.topic = %(topic)s AND i.outcome IN ('retry', 'parked', 'quarantine', 'uncertain')) AS open
"""
"""Whether a head waits for something itself."""

TAKE_HEAD = """
UPDATE {schema}.parked_key AS k
SET head_id = %(id)s, token = k.token + 1, drainer = 'restore', lease_until = clock_timestamp() + interval '5 seconds',
    wake_at = clock_timestamp() + interval '10 seconds'
FROM {schema}.quarantined_message AS q
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = %(id)s
  AND k.group_id = q.group_id AND k.topic = q.topic AND k.key_hash = q.key_hash
RETURNING k.key_hash
"""
"""
Let the message be the head of its parked key. The lease keeps off whoever waits for this row with a snapshot of before, in which
the head was still finished: it would run the followers past the message.
"""
