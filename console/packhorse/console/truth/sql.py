"""What the tables say about one message. `{schema}` is the database schema of Packhorse's tables."""

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

QUARANTINED = """
SELECT q.message_id AS id, q.group_id AS "group", q.topic, q.partition, q."offset", q.key,
       octet_length(q.payload) AS payload_bytes, q.type, q.tenant, q.reason, q.error, q.attempts, q.first_failed_at,
       q.quarantined_at, q.state, q.copy_partition, q.copy_offset, q.redrives, q.redrive_sent_at
FROM {schema}.quarantined_message AS q
"""

QUARANTINED_OF = QUARANTINED + "WHERE q.message_id = %(id)s ORDER BY q.quarantined_at, q.group_id, q.topic"
"""The quarantined messages of one id, one a group and topic."""

ACTS_OF = """
SELECT a.at, a.actor, a.act, a.group_id AS "group", a.topic, a.why, a.detail
FROM {schema}.audit AS a WHERE a.message_id = %(id)s ORDER BY a.id
"""
"""Who has acted on one id."""
