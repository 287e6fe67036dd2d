"""An edited copy takes the place of a quarantined message. `{schema}` is the database schema of Packhorse's tables."""

from packhorse.console.sql_pieces import put

BEFORE_EDIT = """
SELECT q.message_id AS id, q.group_id AS "group", q.topic, q.type, q.payload, q.headers, q.key_hash, q.redrives, q.quarantined_at,
    q.purged_at, q.state, i.attempt, i.outcome, k.head_id AS head,
    EXISTS (SELECT FROM {schema}.job AS j WHERE j.id = q.message_id) AS of_job
FROM {schema}.quarantined_message AS q
LEFT JOIN {schema}.inbox AS i ON i.message_id = q.message_id AND i.group_id = q.group_id AND i.topic = q.topic
LEFT JOIN {schema}.parked_key AS k ON k.group_id = q.group_id AND k.topic = q.topic AND k.key_hash = q.key_hash
WHERE q.message_id = %(id)s AND (%(group)s::text IS NULL OR q.group_id = %(group)s)
  AND (%(topic)s::text IS NULL OR q.topic = %(topic)s)
ORDER BY q.group_id, q.topic
"""
"""The message that is to be edited, with its bytes and how its key stands."""

CLAIM_EDITED = """
UPDATE {schema}.quarantined_message AS q SET state = 'discarded', discarded_at = clock_timestamp(), edited_as = %(copy)s
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = %(id)s
  AND q.state = 'quarantined' AND q.redrives = %(redrives)s AND q.quarantined_at = %(quarantined_at)s AND q.purged_at IS NULL
"""
"""Give the parent up for its copy, only as it was looked at."""

PUT_COPY = """
INSERT INTO {schema}.inbox (group_id, topic, message_id, outcome, attempt, partition, "offset", type, digest)
SELECT q.group_id, q.topic, %(copy)s, 'parked', 1, q.partition, q."offset", q.type, %(digest)s
FROM {schema}.quarantined_message AS q
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = %(id)s
"""
"""The copy is known to the group: it waits to be drained."""

PUT_BYTES = put("""<insert parked message>
SELECT q.group_id, q.topic, %(copy)s, %(hash)s,
    <age of q>,
    q.topic_id, q.partition, q."offset", q.leader_epoch, q.timestamp_ms, q.key, %(payload)s, %(headers)s::jsonb, q.type, q.tenant
FROM {schema}.quarantined_message AS q
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = %(id)s
""")
"""The copy's bytes, in the place where its parent first stood: what waits behind that comes after it."""

WAKE_OR_PARK = put("""
INSERT INTO {schema}.parked_key AS k (group_id, topic, key_hash, key, partition, head_id, token, wake_at)
SELECT q.group_id, q.topic, %(hash)s, coalesce(%(key)s::bytea, q.key), q.partition, q.message_id,
    <new token>, clock_timestamp()
FROM {schema}.quarantined_message AS q
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = %(id)s
ON CONFLICT (group_id, topic, key_hash) DO UPDATE SET wake_at = clock_timestamp()
""")
"""
The key is parked, with the parent as its head, which is finished now; or it is locked and woken. Last in the transaction, as
processors do.
"""
