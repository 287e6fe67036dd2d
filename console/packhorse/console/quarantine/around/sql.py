"""What stands around one quarantined message. `{schema}` is the database schema of Packhorse's tables."""

BEHIND = """
SELECT count(*) AS behind, (array_agg(f.message_id ORDER BY f.topic_age, f."offset"))[1:%(first)s] AS followers
FROM (
    SELECT m.message_id, m.topic_age, m."offset"
    FROM {schema}.parked_key AS k
    JOIN {schema}.parked_message AS m ON m.group_id = k.group_id AND m.topic = k.topic AND m.key_hash = k.key_hash
    WHERE k.group_id = %(group)s AND k.topic = %(topic)s AND k.head_id = %(id)s
) AS f
"""
"""How many messages wait behind one, and the first of them."""

CAUSED = """
SELECT o.id, o.type, o.aggregatetype, o.created_at AT TIME ZONE 'UTC' AS created_at
FROM {schema}.outbox AS o WHERE o.id = ANY(%(ids)s::uuid[]) AND o.causation_id = %(cause)s ORDER BY o.seq
"""
"""What the outbox has under these ids that names the message as its cause."""

REDRIVES = """
SELECT m.redrive_id AS redrive, m.state, m.stage, m.asked_at, m.said
FROM {schema}.redrive_member AS m
WHERE m.message_id = %(id)s AND m.group_id = %(group)s AND m.topic = %(topic)s ORDER BY m.redrive_id DESC LIMIT 20
"""
"""The redrives of sets that a message was a member of."""

FAILURE = """
SELECT p.print AS failure, f.acknowledged_by, f.acknowledged_at, f.acknowledged_why, f.contact, f.told_at,
    (SELECT count(*) FROM {schema}.failure_note AS o WHERE o.print = p.print) AS notes
FROM (SELECT {schema}.failure_print(q.group_id, q.topic, q.type, q.reason, q.error) AS print
    FROM {schema}.quarantined_message AS q
    WHERE q.message_id = %(id)s AND q.group_id = %(group)s AND q.topic = %(topic)s) AS p
LEFT JOIN {schema}.failure_group AS f ON f.print = p.print
"""
"""The group of failures of a message, and what people know of it."""
