"""Every statement that the inbox's retention sends, named and described; `{schema}` is a checked identifier."""

# Takes the turn for one process, when nobody works and the last turn is long enough ago, or whoever worked has gone silent.
CLAIM = """
INSERT INTO "{schema}".inbox_retention AS r (group_id, kept_from, ran_by)
VALUES ('', '-infinity', %(by)s)
ON CONFLICT (group_id) DO UPDATE SET ran_by = EXCLUDED.ran_by, seen_at = clock_timestamp()
WHERE r.ran_by = %(by)s OR (r.ran_by IS NULL AND r.seen_at <= clock_timestamp() - %(every)s * interval '1 second')
    OR (r.ran_by IS NOT NULL AND r.seen_at < clock_timestamp() - interval '2 minutes')
RETURNING 1"""

# A sign of life in the middle of a turn; no row: another process has taken it.
RENEW = """
UPDATE "{schema}".inbox_retention SET seen_at = clock_timestamp() WHERE group_id = '' AND ran_by = %(by)s RETURNING 1"""

# The turn is over: what it left behind.
RECORD = """
UPDATE "{schema}".inbox_retention SET ran_by = NULL, seen_at = clock_timestamp(), detail = %(detail)s::jsonb || jsonb_build_object(
    'by', %(by)s::text, 'at', clock_timestamp())
WHERE group_id = '' AND ran_by = %(by)s"""

# Until when each group's rows may go. The time of a group that is away or paused stands still. One that comes back reads what
# was published meanwhile, so its time then goes at most twice as fast as the clock, and two days in one turn.
CLOCKS = """
INSERT INTO "{schema}".inbox_retention AS r (group_id, kept_from, discarded_from)
SELECT seen.group_id, seen.at - %(keep)s * interval '1 day', seen.at - %(discarded)s * interval '1 day'
FROM (
    SELECT w.group_id, least(clock_timestamp(), greatest(max(w.moved_at),
            (SELECT max(m.seen_at) FROM "{schema}".processor_member m WHERE m.group_id = w.group_id)),
        (SELECT min(p.paused_at) FROM "{schema}".pause p WHERE p.group_id = w.group_id)) AS at
    FROM "{schema}".watermark w WHERE w.group_id <> '' GROUP BY w.group_id
) AS seen
ON CONFLICT (group_id) DO UPDATE
SET kept_from = greatest(r.kept_from, least(EXCLUDED.kept_from,
        r.kept_from + 2 * least(clock_timestamp() - r.seen_at, interval '1 day'))),
    discarded_from = greatest(r.discarded_from, EXCLUDED.discarded_from), seen_at = clock_timestamp()"""

# How the inbox stands; one row a partition.
FACTS = """
SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date, p.name, p.day, p.bytes,
    (SELECT max(r.kept_from) FROM "{schema}".inbox_retention r WHERE r.group_id <> '')
FROM "{schema}".inbox_partitions() p"""

MAKE = """SELECT "{schema}".make_inbox_partition(%(day)s::date)"""

FENCE = """SELECT "{schema}".fence_inbox(%(act)s, %(day)s::date, %(day)s::date)"""

DROP = """SELECT "{schema}".drop_inbox_partition(%(name)s, act => %(act)s)"""

CLEAN = """SELECT "{schema}".clean_inbox_partition(%(name)s, %(id)s::uuid, %(group)s, %(topic)s, %(step)s)"""

# Failed attempts whose inbox row is gone. Looks at the next messages' in the order of their ids.
CLEAN_ATTEMPTS = """
WITH seen AS MATERIALIZED (
    SELECT f.message_id, f.group_id, f.topic, max(f.failed_at) AS at FROM "{schema}".failed_attempt f
    WHERE (f.message_id, f.group_id, f.topic) > (%(id)s::uuid, %(group)s, %(topic)s)
    GROUP BY f.message_id, f.group_id, f.topic ORDER BY f.message_id, f.group_id, f.topic LIMIT %(step)s
), gone AS (
    DELETE FROM "{schema}".failed_attempt f USING seen s JOIN "{schema}".inbox_retention r USING (group_id)
    WHERE f.message_id = s.message_id AND f.group_id = s.group_id AND f.topic = s.topic AND s.at < r.kept_from
        AND NOT EXISTS (SELECT FROM "{schema}".inbox i
            WHERE i.message_id = s.message_id AND i.group_id = s.group_id AND i.topic = s.topic)
    RETURNING 1
)
SELECT (SELECT count(*) FROM seen), (SELECT count(*) FROM gone), s.message_id, s.group_id, s.topic
FROM (SELECT 1) AS one
LEFT JOIN (SELECT * FROM seen ORDER BY message_id DESC, group_id DESC, topic DESC LIMIT 1) AS s ON true"""

# Messages that no longer wait in quarantine and whose inbox row is gone.
CLEAN_QUARANTINED = """
WITH seen AS MATERIALIZED (
    SELECT q.message_id, q.group_id, q.topic, q.state, q.quarantined_at AS at FROM "{schema}".quarantined_message q
    WHERE (q.message_id, q.group_id, q.topic) > (%(id)s::uuid, %(group)s, %(topic)s)
    ORDER BY q.message_id, q.group_id, q.topic LIMIT %(step)s
), gone AS (
    DELETE FROM "{schema}".quarantined_message q USING seen s JOIN "{schema}".inbox_retention r USING (group_id)
    WHERE q.message_id = s.message_id AND q.group_id = s.group_id AND q.topic = s.topic AND q.state = s.state
        AND s.at < CASE s.state WHEN 'redriven' THEN r.kept_from WHEN 'discarded' THEN r.discarded_from END
        AND NOT EXISTS (SELECT FROM "{schema}".inbox i
            WHERE i.message_id = s.message_id AND i.group_id = s.group_id AND i.topic = s.topic)
    RETURNING 1
)
SELECT (SELECT count(*) FROM seen), (SELECT count(*) FROM gone), s.message_id, s.group_id, s.topic
FROM (SELECT 1) AS one
LEFT JOIN (SELECT * FROM seen ORDER BY message_id DESC, group_id DESC, topic DESC LIMIT 1) AS s ON true"""

# What processes that are gone left behind, once the watermark has passed it.
CLEAN_IN_HAND = """
DELETE FROM "{schema}".in_hand h WHERE h.at < clock_timestamp() - interval '7 days'
    AND (SELECT w."offset" FROM "{schema}".watermark w WHERE w.group_id = h.group_id AND w.topic_id = h.topic_id
        AND w.partition = h.partition) > ALL (h.offsets)"""

CLEAN_STARTED = """
DELETE FROM "{schema}".started s USING "{schema}".watermark w
WHERE w.group_id = s.group_id AND w.topic_id = s.topic_id AND w.partition = s.partition AND s."offset" < w."offset"
    AND s.at < clock_timestamp() - interval '1 day'"""

CLEAN_MEMBERS = """
DELETE FROM "{schema}".processor_member WHERE seen_at < clock_timestamp() - interval '7 days'"""

# The last turn, and what each group keeps.
LAST = """
SELECT group_id, nullif(kept_from, '-infinity'), nullif(discarded_from, '-infinity'), detail FROM "{schema}".inbox_retention
WHERE group_id <> '' OR detail <> '{{}}' ORDER BY group_id"""
