"""What the tables say around one message. `{schema}` is the database schema of Packhorse's tables."""
# ruff: noqa: S608 only constants of this module are put together here

CLOCK = "SELECT clock_timestamp() AS now"

ROWS = "SELECT count(*) AS rows FROM {schema}.outbox AS o WHERE o.id = %(id)s"
"""How many outbox rows bear the id."""

CARRIER = """
SELECT r.shard::int, CASE WHEN r.token IS NOT NULL AND r.lease_until > clock_timestamp() THEN r.owner END AS owner,
       r.lease_until AS owned_until, r.trouble, r.trouble_since, r.finish
FROM {schema}.outbox AS o JOIN {schema}.relay AS r ON r.shard = mod(
    ('x' || left(encode(sha256(convert_to(coalesce(o.aggregateid, ''), 'UTF8')), 'hex'), 4))::bit(16)::int,
    (SELECT count(*) FROM {schema}.relay))
WHERE o.id = %(id)s ORDER BY o.seq LIMIT 1
"""
"""The relay of the row's shard."""

TOPICS_LIKE = """
SELECT DISTINCT w.topic FROM {schema}.watermark AS w
WHERE right(w.topic, length(%(end)s)) = %(end)s AND position('.retry.' IN w.topic) = 0
"""
"""Topics that groups read and whose names end with the aggregate type: what the topic may be, while the namespace is not known."""

MARKS = """
SELECT DISTINCT ON (w.group_id, w.topic, w.partition)
       w.group_id AS "group", w.topic, w.partition, w."offset", w.moved_at
FROM {schema}.watermark AS w WHERE w.topic = ANY(%(topics)s)
ORDER BY w.group_id, w.topic, w.partition, w.first_at DESC
"""
"""How far each group is on these topics; of a topic that was made anew, on the newest."""

RETRIES = """
SELECT r.group_id AS "group", r.topic, r.attempt, r.tier, r.due_at, r.sent_at, r.sent_partition, r.sent_offset, r.resends,
       (SELECT greatest(0, r.sent_offset - w."offset") FROM {schema}.watermark AS w
         WHERE w.group_id = r.group_id AND w.topic = r.topic || '.' || r.group_id || '.retry.' || r.tier
           AND w.partition = r.sent_partition ORDER BY w.first_at DESC LIMIT 1) AS ahead
FROM {schema}.retry_message AS r WHERE r.message_id = %(id)s ORDER BY 1, 2
"""
"""What waits for its next attempt, and where its copy stands."""

KEY = """
SELECT k.group_id AS "group", k.topic, k.key_hash, k.partition, k.head_id AS head, h.outcome AS head_outcome,
       h.reason AS head_reason, h.due_at AS head_due_at, k.parked_at, k.paused, k.paused_by, k.paused_why, k.paused_at,
       CASE WHEN k.lease_until > clock_timestamp() THEN k.drainer END AS drainer,
       (SELECT count(*) FROM (SELECT FROM {schema}.parked_message AS m WHERE m.group_id = k.group_id AND m.topic = k.topic
            AND m.key_hash = k.key_hash LIMIT %(most)s) AS m)::int AS waiting,
       (SELECT m.parked_at FROM {schema}.parked_message AS m WHERE m.group_id = k.group_id AND m.topic = k.topic
            AND m.key_hash = k.key_hash ORDER BY m.topic_age, m."offset" LIMIT 1) AS oldest
FROM {schema}.parked_key AS k
LEFT JOIN {schema}.inbox AS h ON h.message_id = k.head_id AND h.group_id = k.group_id AND h.topic = k.topic
"""

KEYS_OF = (
    KEY
    + """
WHERE (k.group_id, k.topic, k.key_hash) IN (
    SELECT m.group_id, m.topic, m.key_hash FROM {schema}.parked_message AS m WHERE m.message_id = %(id)s
    UNION SELECT f.group_id, f.topic, f.key_hash FROM {schema}.parked_key AS f WHERE f.head_id = %(id)s
    UNION SELECT g.name, t.name, %(hash)s FROM unnest(%(groups)s::text[]) AS g (name), unnest(%(topics)s::text[]) AS t (name)
        WHERE %(hash)s::text IS NOT NULL)
ORDER BY 1, 2
"""
)
"""Parked keys that the message is the head of, waits behind, or belongs to."""

KEY_OF = KEY + "WHERE k.group_id = %(group)s AND k.topic = %(topic)s AND k.key_hash = %(hash)s"
"""One parked key."""

FOLLOWERS = """
SELECT m.message_id AS id, m.type, m."offset", m.parked_at FROM {schema}.parked_message AS m
WHERE m.group_id = %(group)s AND m.topic = %(topic)s AND m.key_hash = %(hash)s
ORDER BY m.topic_age, m."offset" LIMIT %(first)s
"""
"""The first of what waits behind a key, in the order in which they run."""

QUEUED = """
SELECT m.group_id AS "group", m.topic, m.key_hash, m.parked_at,
       1 + (SELECT count(*) FROM (SELECT FROM {schema}.parked_message AS b
            WHERE b.group_id = m.group_id AND b.topic = m.topic AND b.key_hash = m.key_hash
              AND (b.topic_age, b."offset") < (m.topic_age, m."offset") LIMIT %(most)s) AS b)::int AS position
FROM {schema}.parked_message AS m WHERE m.message_id = %(id)s ORDER BY 1, 2
"""
"""Where it stands among those that wait behind its key."""

PAUSES = """
SELECT p.group_id AS "group", p.topic, p.partition, p.paused_by AS by, p.why, p.paused_at AS at
FROM {schema}.pause AS p WHERE p.group_id = ANY(%(groups)s) ORDER BY 1, 2, 3
"""
"""What people have paused in these groups."""

CREWS = """
SELECT g.name AS "group", max(m.seen_at) AS seen_at,
       (count(*) FILTER (WHERE m.seen_at > clock_timestamp() - interval '20 seconds'))::int AS alive,
       coalesce(jsonb_agg(m.status -> 'stopped handlers') FILTER (WHERE m.seen_at > clock_timestamp() - interval '20 seconds'
           AND jsonb_typeof(m.status -> 'stopped handlers') = 'array'), '[]') AS stopped,
       coalesce(jsonb_agg(m.status -> 'stalls') FILTER (WHERE m.seen_at > clock_timestamp() - interval '20 seconds'
           AND jsonb_typeof(m.status -> 'stalls') = 'array'), '[]') AS stalls
FROM unnest(%(groups)s::text[]) AS g (name) LEFT JOIN {schema}.processor_member AS m ON m.group_id = g.name
GROUP BY g.name ORDER BY g.name
"""
"""The processes of these groups, and what the living ones say of themselves."""

MEMBERSHIPS = """
SELECT m.redrive_id AS run, r.state AS run_state,
       CASE WHEN m.state = 'waiting' AND r.state = 'aborted' THEN 'left' ELSE m.state END AS state, m.group_id AS "group", m.topic, r.previewed_by, r.confirmed_by,
       m.asked_at, m.said, r.said AS run_said, coalesce(r.lease_until > clock_timestamp(), false) AS live,
       m.state <> 'waiting' OR EXISTS (SELECT FROM {schema}.inbox AS i
           JOIN {schema}.quarantined_message AS q
             ON q.message_id = i.message_id AND q.group_id = i.group_id AND q.topic = i.topic
           WHERE i.message_id = m.message_id AND i.group_id = m.group_id AND i.topic = m.topic
             AND i.outcome = 'quarantine' AND i.attempt = m.attempt AND q.state = 'quarantined'
             AND q.redrives = m.redrives AND q.quarantined_at = m.quarantined_at AND q.purged_at IS NULL) AS as_frozen
FROM {schema}.redrive_member AS m JOIN {schema}.redrive AS r ON r.id = m.redrive_id
WHERE m.message_id = %(id)s AND (r.state <> 'previewed' OR r.expires_at > clock_timestamp())
ORDER BY m.redrive_id, m.ordinal LIMIT 20
"""
"""
Redrives that the message is a member of; previews that have expired are nothing any more. Which of those that wait are not as they
were frozen is asked as the runner asks it.
"""

REPLAY_RUNS = """
SELECT r.id AS run, r.state AS run_state, r.group_id AS "group", r.topic, coalesce(r.confirmed_by, r.planned_by) AS planned_by,
       coalesce(r.lease_until > clock_timestamp(), false) AS live
FROM {schema}.replay AS r WHERE r.group_id = ANY(%(groups)s) AND r.topic = ANY(%(topics)s) AND r.state <> 'planned'
ORDER BY r.id DESC LIMIT 50
"""
"""The newest replays of these topics for these groups, of those that have begun."""

HANDED = """
SELECT m.replay_id AS run, m.message_id AS identity, m.handed_at FROM {schema}.replay_message AS m
WHERE m.message_id = ANY(%(ids)s)
"""
"""What replays have handed over and not counted yet."""

OUTCOMES = """
SELECT i.message_id AS identity, i.group_id AS "group", i.topic, i.outcome FROM {schema}.inbox AS i
WHERE i.message_id = ANY(%(ids)s)
"""
"""What groups have done with these ids."""

NEIGHBOURS = """
(SELECT i.message_id AS id FROM {schema}.inbox AS i WHERE i.message_id >= %(low)s AND i.message_id <= %(high)s LIMIT 500)
UNION (SELECT o.id FROM {schema}.outbox AS o WHERE o.id >= %(low)s AND o.id <= %(high)s LIMIT 500)
"""
"""Ids of one millisecond: an identity in a replay keeps that of its message."""

FATES = """
SELECT q.group_id AS "group", q.topic, CASE q.state WHEN 'discarded' THEN q.discarded_at END AS discarded_at, q.purged_at,
       q.edited_as, CASE WHEN q.state = 'discarded' AND isfinite(t.discarded_from)
           THEN q.discarded_at + (t.seen_at - t.discarded_from) END AS restorable_until
FROM {schema}.quarantined_message AS q LEFT JOIN {schema}.inbox_retention AS t ON t.group_id = q.group_id
WHERE q.message_id = %(id)s ORDER BY 1, 2
"""
"""Whether it was given up, erased or edited, and until when it may be restored."""

PARENTS = """
SELECT q.message_id AS id, q.group_id AS "group", q.topic FROM {schema}.quarantined_message AS q
WHERE q.edited_as = %(id)s ORDER BY 2, 3
"""
"""What it is an edited copy of."""
