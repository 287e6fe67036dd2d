"""Every statement of the console. `{schema}` is the database schema of Packhorse's tables."""

OUTBOX_ROW = """
SELECT o.id, o.aggregatetype, o.aggregateid AS key, o.type, o.schema_version, octet_length(o.payload) AS payload_bytes,
       o.created_at AT TIME ZONE 'UTC' AS created_at, o.correlation_id, o.causation_id, o.origin, o.tenant,
       o.traceparent, o.expires_at,
       pg_visible_in_snapshot(o.xid, r.horizon)
         OR (r.target IS NOT NULL AND pg_visible_in_snapshot(o.xid, r.target) AND o.seq <= r.progress) AS published,
       coalesce(r.epoch > 0, false) AS relay_ran
FROM {schema}.outbox AS o LEFT JOIN {schema}.relay AS r ON r.shard = mod(
    ('x' || left(encode(sha256(convert_to(coalesce(o.aggregateid, ''), 'UTF8')), 'hex'), 4))::bit(16)::int,
    (SELECT count(*) FROM {schema}.relay))
WHERE o.id = %(id)s
ORDER BY o.seq LIMIT 1
"""
"""The row of one id, and the horizon of its shard (as the relay reckons it) asked whether the relay has passed it."""

HOLDS_OF = """
SELECT h.id, h.scope, h.partition, h.partitions, h.code, h.reason, h.heals, h.state, h.asked IS NOT NULL AS asked, h.made_at AS since
FROM {schema}.outbox AS o JOIN {schema}.relay_hold AS h ON h.aggregatetype = o.aggregatetype
WHERE o.id = %(id)s AND h.state <> 'ended'
  AND CASE h.scope WHEN 'row' THEN h.message_id = o.id WHEN 'key' THEN h.aggregateid = o.aggregateid
      WHEN 'partition' THEN o.aggregateid IS NOT NULL ELSE true END
  AND NOT pg_visible_in_snapshot(o.xid, h.horizon)
  AND NOT coalesce(pg_visible_in_snapshot(o.xid, h.target) AND o.seq <= h.progress, false)
ORDER BY h.id
"""
"""Open holds that the row of one id may wait in; which partition it belongs to is not known here."""

DISCARD_OF = """
SELECT d.hold_id AS hold, d.actor, d.why, d.at FROM {schema}.relay_discard AS d WHERE d.message_id = %(id)s
"""
"""Who gave the row up before it was published."""

INBOX_ROWS = """
SELECT i.group_id AS "group", i.topic, i.outcome, i.attempt, i.deliveries, i.partition, i."offset", i.type, i.due_at,
       i.first_failed_at, i.reason, i.error, i.recorded_at, i.changed_at,
       CASE i.outcome WHEN 'parked' THEN (SELECT k.head_id FROM {schema}.parked_message AS m
           JOIN {schema}.parked_key AS k ON k.group_id = m.group_id AND k.topic = m.topic AND k.key_hash = m.key_hash
           WHERE m.message_id = i.message_id AND m.group_id = i.group_id AND m.topic = i.topic) END AS behind
FROM {schema}.inbox AS i WHERE i.message_id = %(id)s ORDER BY i.recorded_at, i.group_id, i.topic
"""
"""What every group has dealt with, for one id, and behind which head of its key it waits."""

FORGOTTEN = """
SELECT r.group_id AS "group", r.kept_from, extract(day FROM clock_timestamp() - r.kept_from)::int AS days
FROM {schema}.inbox_retention AS r WHERE r.group_id <> '' AND r.kept_from > %(at)s ORDER BY r.group_id
"""
"""Groups whose inbox keeps no closed rows of the time in an id."""

FAILED_ATTEMPTS = """
SELECT f.group_id AS "group", f.topic, f.attempt, f.failed_at, f.reason, f.error, f.due_at
FROM {schema}.failed_attempt AS f WHERE f.message_id = %(id)s ORDER BY f.group_id, f.topic, f.attempt
"""
"""The attempts of one id that failed."""

_QUARANTINED = """
SELECT q.message_id AS id, q.group_id AS "group", q.topic, q.partition, q."offset", q.key,
       octet_length(q.payload) AS payload_bytes, q.type, q.tenant, q.reason, q.error, q.attempts, q.first_failed_at,
       q.quarantined_at, q.state, q.copy_partition, q.copy_offset, q.redrives, q.redrive_sent_at
FROM {schema}.quarantined_message AS q
"""

QUARANTINED_OF = _QUARANTINED + "WHERE q.message_id = %(id)s ORDER BY q.quarantined_at, q.group_id, q.topic"
"""The quarantined messages of one id, one a group and topic."""

QUARANTINE_PAGE = (
    _QUARANTINED
    + """
WHERE (%(group)s::text IS NULL OR q.group_id = %(group)s)
  AND (%(topic)s::text IS NULL OR q.topic = %(topic)s)
  AND (%(reason)s::text IS NULL OR q.reason = %(reason)s)
  AND (%(type)s::text IS NULL OR q.type = %(type)s)
  AND (%(tenant)s::text IS NULL OR q.tenant = %(tenant)s)
  AND (%(state)s::text IS NULL OR q.state = %(state)s)
  AND (%(after_at)s::timestamptz IS NULL
       OR (q.quarantined_at, q.message_id, q.group_id, q.topic)
          < (%(after_at)s, %(after_id)s::uuid, %(after_group)s, %(after_topic)s))
ORDER BY q.quarantined_at DESC, q.message_id DESC, q.group_id DESC, q.topic DESC
LIMIT %(limit)s
"""
)
"""One page of the quarantine, the newest first, behind the row that the page before ended with."""

QUARANTINED_BYTES = """
SELECT q.payload, q.headers FROM {schema}.quarantined_message AS q
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = %(id)s
"""
"""The bytes of one quarantined message as they arrived."""

ACTS_OF = """
SELECT a.at, a.actor, a.act, a.group_id AS "group", a.topic, a.why, a.detail
FROM {schema}.audit AS a WHERE a.message_id = %(id)s ORDER BY a.id
"""
"""Who has acted on one id."""

CLAIM_REDRIVE = """
UPDATE {schema}.quarantined_message AS q
SET state = 'redriven', redrives = q.redrives + 1, redrive_sent_at = NULL
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = %(id)s
  AND q.state = 'quarantined' AND q.redrives = %(redrives)s AND q.quarantined_at = %(quarantined_at)s
RETURNING q.redrives
"""
"""Take the message for a redrive, only as it was previewed."""

ORDER_ATTEMPT = """
UPDATE {schema}.inbox AS i
SET outcome = 'retry', attempt = i.attempt + 1, due_at = clock_timestamp(), changed_at = clock_timestamp()
WHERE i.group_id = %(group)s AND i.topic = %(topic)s AND i.message_id = %(id)s
  AND i.outcome = 'quarantine' AND i.attempt = %(attempt)s
RETURNING i.attempt
"""
"""Order the next attempt, due now by the database's clock."""

PARK_KEY = """
INSERT INTO {schema}.parked_key (group_id, topic, key_hash, key, partition, head_id, token)
SELECT q.group_id, q.topic, q.key_hash, q.key, q.partition, q.message_id,
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM {schema}.quarantined_message AS q
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = %(id)s AND q.key_hash IS NOT NULL
ON CONFLICT DO NOTHING
RETURNING key_hash
"""
"""Park the key of a message that is redriven, with it as the head, unless it is parked; where order binds it."""

CLAIM_DISCARD = """
UPDATE {schema}.quarantined_message AS q
SET state = 'discarded'
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = %(id)s
  AND q.state = 'quarantined' AND q.redrives = %(redrives)s AND q.quarantined_at = %(quarantined_at)s
RETURNING q.redrives
"""
"""Give the message up, only as it was previewed; its bytes stay."""

END_DISCARDED = """
UPDATE {schema}.inbox AS i
SET outcome = 'discarded', changed_at = clock_timestamp()
WHERE i.group_id = %(group)s AND i.topic = %(topic)s AND i.message_id = %(id)s
  AND i.outcome = 'quarantine' AND i.attempt = %(attempt)s
RETURNING i.attempt
"""
"""Let the message's outcome be that it was given up."""

WAKE_KEY = """
UPDATE {schema}.parked_key AS k SET wake_at = clock_timestamp()
WHERE k.group_id = %(group)s AND k.topic = %(topic)s AND k.head_id = %(id)s
RETURNING k.key_hash
"""
"""Have the key that waits for the message woken, at a processor's next look."""

FOLLOWERS_OF = """
SELECT count(*) AS waiting
FROM {schema}.parked_key AS k
JOIN {schema}.parked_message AS m ON m.group_id = k.group_id AND m.topic = k.topic AND m.key_hash = k.key_hash
WHERE k.group_id = %(group)s AND k.topic = %(topic)s AND k.head_id = %(id)s
"""
"""How many messages wait behind it."""

WRITE_ACT = """
INSERT INTO {schema}.audit (actor, act, group_id, topic, message_id, detail, why)
VALUES (%(actor)s, %(act)s, %(group)s, %(topic)s, %(id)s, %(detail)s, %(why)s)
RETURNING at
"""
"""Put an act on the record, in the transaction of the act."""

LAST_ACT = """
SELECT a.at, a.actor, a.act, a.group_id AS "group", a.topic, a.why, a.detail
FROM {schema}.audit AS a
WHERE a.message_id = %(id)s AND a.group_id = %(group)s AND a.topic = %(topic)s
ORDER BY a.id DESC LIMIT 1
"""
"""Who acted last on one message of a group."""

DATABASE_ROLE = "SELECT session_user::text"
"""The role that the server knows us by."""
