"""
The statements of one portion that is handed over, in their order; `{schema}` is the database schema of Packhorse's tables.

The run's row is locked before all of them, under the runner's token. Inbox rows come first and keys last, sorted, as
processors write them: nobody waits in a ring.
"""

from packhorse.console.replaying.sql import SPAN
from packhorse.console.sql_pieces import put

INSERT_INBOX = """
INSERT INTO {schema}.inbox (group_id, topic, message_id, outcome, attempt, partition, "offset", type, digest)
SELECT %(group)s, %(topic)s, r.id, 'parked', 1, r.partition, r."offset", r.type, r.digest
FROM unnest(%(ids)s::uuid[], %(partitions)s::int[], %(offsets)s::bigint[], %(types)s::text[], %(digests)s::text[])
    AS r (id, partition, "offset", type, digest)
ON CONFLICT DO NOTHING
RETURNING message_id
"""
"""Make them known as followers; whose id is known already is not handed over."""

INSERT_FOLLOWERS = put("""<insert parked message>
SELECT %(group)s, %(topic)s, r.id, r.hash,
    <age of the topic>,
    %(topic_id)s, r.partition, r."offset", r.leader_epoch, r.timestamp_ms, r.key, r.payload, r.headers::jsonb, r.type, r.tenant
FROM unnest(%(ids)s::uuid[], %(hashes)s::text[], %(partitions)s::int[], %(offsets)s::bigint[], %(epochs)s::int[],
    %(timestamps)s::bigint[], %(keys)s::bytea[], %(payloads)s::bytea[], %(headers)s::text[], %(types)s::text[],
    %(tenants)s::text[])
    AS r (id, hash, partition, "offset", leader_epoch, timestamp_ms, key, payload, headers, type, tenant)
""")
"""Their bytes, in the order of the topic."""

INSERT_HANDED = """
INSERT INTO {schema}.replay_message (replay_id, partition, "offset", message_id)
SELECT %(id)s, r.partition, r."offset", r.id
FROM unnest(%(ids)s::uuid[], %(partitions)s::int[], %(offsets)s::bigint[]) AS r (id, partition, "offset")
"""
"""That they are in the hands of the group, and to be proved."""

MOVE_POSITION = """
UPDATE {schema}.replay_partition AS p
SET position = %(to)s, gone = p.gone + %(gone)s, counts = (
    SELECT coalesce(jsonb_object_agg(c.name, c.n), '{{}}') FROM (
        SELECT e.key AS name, sum(e.value::bigint) AS n
        FROM (SELECT * FROM jsonb_each_text(p.counts) UNION ALL SELECT * FROM jsonb_each_text(%(more)s)) AS e GROUP BY e.key) AS c)
WHERE p.replay_id = %(id)s AND p.partition = %(partition)s AND p.position = %(was)s
RETURNING p.position
"""
"""How far the run is, and what it has counted; only from where it was."""

COUNT = MOVE_POSITION.replace("position = %(to)s, gone = p.gone + %(gone)s, counts", "counts").replace(
    " AND p.position = %(was)s", ""
)
"""Add to what it has counted."""

LOCK_KEYS = """
SELECT k.key_hash FROM {schema}.parked_key AS k
WHERE k.group_id = %(group)s AND k.topic = %(topic)s AND k.key_hash = ANY(%(hashes)s::text[])
ORDER BY k.key_hash FOR UPDATE
"""
"""Lock the keys that are parked, sorted: none is let go until the followers are there."""

PARK_KEYS = put("""
INSERT INTO {schema}.parked_key (group_id, topic, key_hash, key, partition, token, wake_at, replay_id, barrier)
SELECT %(group)s, %(topic)s, r.hash, r.key, r.partition, <new token>,
    clock_timestamp() + %(settle)s * interval '1 second', CASE WHEN r.held THEN %(id)s END, CASE WHEN r.held THEN %(past)s END
FROM unnest(%(hashes)s::text[], %(keys)s::bytea[], %(partitions)s::int[], %(held)s::bool[]) AS r (hash, key, partition, held)
ORDER BY r.hash
ON CONFLICT DO NOTHING
""")
"""Park the keys that are not, without a head: whoever is woken runs what waits."""

HOLD_KEYS = """
UPDATE {schema}.parked_key AS k
SET replay_id = CASE WHEN r.held THEN %(id)s END, barrier = CASE WHEN r.held THEN %(past)s END,
    wake_at = CASE WHEN k.lease_until > clock_timestamp() THEN k.wake_at ELSE least(coalesce(k.wake_at, 'infinity'),
        clock_timestamp()) END
FROM unnest(%(hashes)s::text[], %(held)s::bool[]) AS r (hash, held)
WHERE k.group_id = %(group)s AND k.topic = %(topic)s AND k.key_hash = r.hash
  AND (k.replay_id IS NULL OR k.replay_id = %(id)s)
"""
"""Hold on to keys of which more is to come, let go of those that are through, and have both woken."""

TAKE_PROVED = """
WITH looked AS (
    SELECT m.partition, m."offset", coalesce(i.outcome, 'done') AS outcome
    FROM (SELECT * FROM {schema}.replay_message AS o WHERE o.replay_id = %(id)s LIMIT 20000) AS m
    LEFT JOIN {schema}.inbox AS i ON i.message_id = m.message_id AND i.group_id = %(group)s AND i.topic = %(topic)s AND <span>
), proved AS (
    DELETE FROM {schema}.replay_message AS m USING looked AS s
    WHERE m.replay_id = %(id)s AND m.partition = s.partition AND m."offset" = s."offset"
      AND s.outcome IN ('done', 'skipped', 'discarded', 'quarantine', 'uncertain')
)
SELECT s.partition, s.outcome, count(*) AS n FROM looked AS s GROUP BY 1, 2
""".replace("<span>", SPAN)
"""Take off what has an outcome, and say how the first 20,000 stand. A row that the inbox has forgotten was done."""

CONTROL = """
SELECT r.rate, r.most_failures FROM {schema}.replay AS r WHERE r.id = %(id)s
"""
"""What a person may have changed."""

OUR_KEYS = """
SELECT k.key_hash FROM {schema}.parked_key AS k WHERE k.replay_id = %(id)s
"""
"""Keys that the run holds, whoever has worked on it."""

KEPT_FROM = """
SELECT nullif(r.kept_from, '-infinity') AS kept_from FROM {schema}.inbox_retention AS r WHERE r.group_id = %(group)s
"""
"""Since when the inbox keeps every row; asked after the rows: what is deleted is below what was written here before."""

WATERMARK = """
SELECT w."offset" FROM {schema}.watermark AS w
WHERE w.group_id = %(group)s AND w.topic_id = %(topic_id)s AND w.partition = %(partition)s
"""
"""How far the live group is."""

LET_GO_OF_PARTITION = """
UPDATE {schema}.parked_key AS k SET replay_id = NULL, barrier = NULL, wake_at = clock_timestamp()
FROM (SELECT h.group_id, h.topic, h.key_hash FROM {schema}.parked_key AS h
      WHERE h.replay_id = %(id)s AND h.partition = %(partition)s ORDER BY h.group_id, h.topic, h.key_hash FOR UPDATE) AS held
WHERE k.group_id = held.group_id AND k.topic = held.topic AND k.key_hash = held.key_hash
"""
"""Let go of what is still held of a partition that is through."""
