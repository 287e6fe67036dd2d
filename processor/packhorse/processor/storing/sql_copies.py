"""
Statements on copies, in tiers and in quarantine: what they are made of, which are owed, where they stand; `{schema}` is a checked
identifier.
"""

# Of quarantined_message q: what any copy of it is made of, in the order of `steps.Quarantined`.
KEPT = """q.message_id, q.topic, q.topic_id, q.partition, q."offset", q.key, q.payload, q.headers::text, q.reason, q.error"""

# Of quarantined_message q: the next portion, locked. Another process's are passed over. What can't be sent stays owed, so each portion
# begins behind the last one.
PORTION = """(q.topic, q.partition, q."offset", q.message_id)
        > (%(after_topic)s::text, %(after_partition)s::int, %(after_offset)s::bigint, %(after_id)s::uuid)
ORDER BY q.topic, q.partition, q."offset", q.message_id
LIMIT %(most)s
FOR UPDATE OF q SKIP LOCKED"""

# What copies are made of: of these messages those whose recorded attempt, or whose quarantine, has no copy that is known
# to be confirmed. Without a tier it is one to quarantine.
UNCOPIED = """
SELECT r.message_id, r.topic, r.topic_id, r.partition, r."offset", r.key, r.payload, r.headers::text, r.reason, r.error,
    r.attempt, r.first_failed_at, r.tier, r.due_at
FROM "{schema}".retry_message r
WHERE r.message_id = ANY(%(ids)s::uuid[]) AND r.group_id = %(group)s AND r.topic = %(source)s AND r.sent_at IS NULL
UNION ALL
SELECT {kept}, CASE q.state WHEN 'redriven' THEN i.attempt ELSE q.attempts END, q.first_failed_at,
    CASE q.state WHEN 'redriven' THEN '0s' END, CASE q.state WHEN 'redriven' THEN i.due_at END
FROM "{schema}".quarantined_message q
JOIN "{schema}".inbox i ON i.message_id = q.message_id AND i.group_id = q.group_id AND i.topic = q.topic
WHERE q.message_id = ANY(%(ids)s::uuid[]) AND q.group_id = %(group)s AND q.topic = %(source)s
    AND (q.state = 'quarantined' AND q.copy_offset IS NULL OR q.state = 'redriven' AND q.redrive_sent_at IS NULL
        AND i.outcome = 'retry' AND i.due_at <= clock_timestamp() AND NOT EXISTS (SELECT FROM "{schema}".retry_message r
            WHERE r.message_id = q.message_id AND r.group_id = q.group_id AND r.topic = q.topic))
ORDER BY 4, 5"""

# Where the broker has put copies to quarantine; for the attempt that they tell of alone.
CONFIRM_COPIES = """
UPDATE "{schema}".quarantined_message q SET copy_partition = r.partition, copy_offset = r."offset"
FROM unnest(%(ids)s::uuid[], %(partitions)s::int[], %(offsets)s::bigint[], %(attempts)s::int[])
    AS r (id, partition, "offset", attempts)
WHERE q.message_id = r.id AND q.group_id = %(group)s AND q.topic = %(source)s
    AND q.state = 'quarantined' AND q.attempts = r.attempts"""

# Where the broker has put copies to tiers; for the attempt that they tell of alone. What was redriven has no other row. Each is
# looked for by itself (OFFSET 0): by what the planner has seen before many were redriven, it would go through all of them.
CONFIRM_RETRIES = """
WITH redriven AS (
    UPDATE "{schema}".quarantined_message q SET redrive_sent_at = clock_timestamp()
    FROM unnest(%(ids)s::uuid[], %(attempts)s::int[]) AS r (id, attempt)
    CROSS JOIN LATERAL (SELECT o.ctid AS place FROM "{schema}".quarantined_message o
        WHERE o.message_id = r.id AND o.group_id = %(group)s AND o.topic = %(source)s OFFSET 0) o
    CROSS JOIN LATERAL (SELECT i.outcome, i.attempt FROM "{schema}".inbox i
        WHERE i.message_id = r.id AND i.group_id = %(group)s AND i.topic = %(source)s OFFSET 0) i
    WHERE q.ctid = o.place AND q.state = 'redriven' AND i.outcome = 'retry' AND i.attempt = r.attempt
)
UPDATE "{schema}".retry_message m SET sent_at = clock_timestamp(), sent_partition = r.partition, sent_offset = r."offset"
FROM unnest(%(ids)s::uuid[], %(partitions)s::int[], %(offsets)s::bigint[], %(attempts)s::int[])
    AS r (id, partition, "offset", attempt)
WHERE m.message_id = r.id AND m.group_id = %(group)s AND m.topic = %(source)s AND m.attempt = r.attempt"""

# Why the broker does not take the copies of redriven messages, for whoever asked for them; written once for each cause.
REFUSE_REDRIVES = """
UPDATE "{schema}".quarantined_message q SET redrive_refused = r.text
FROM unnest(%(ids)s::uuid[], %(texts)s::text[]) AS r (id, text)
WHERE q.message_id = r.id AND q.group_id = %(group)s AND q.topic = %(source)s AND (q.state = 'redriven') IS TRUE
    AND q.redrive_refused IS DISTINCT FROM r.text"""

# Redriven messages that are due and whose copy was never sent. Each one's inbox row is asked for by itself (OFFSET 0): the planner,
# who has not heard of a redrive of many yet, would go through all that are to be tried again for each of them.
DUE_REDRIVES = """
SELECT {kept}, i.attempt, q.first_failed_at, '0s', i.due_at
FROM "{schema}".quarantined_message q
CROSS JOIN LATERAL (SELECT i.outcome, i.attempt, i.due_at FROM "{schema}".inbox i
    WHERE i.message_id = q.message_id AND i.group_id = q.group_id AND i.topic = q.topic OFFSET 0) i
WHERE q.group_id = %(group)s AND q.state = 'redriven' AND q.redrive_sent_at IS NULL AND q.topic = ANY(%(topics)s)
    AND i.outcome = 'retry' AND i.due_at <= clock_timestamp()
    AND NOT EXISTS (SELECT FROM "{schema}".retry_message r
        WHERE r.message_id = q.message_id AND r.group_id = q.group_id AND r.topic = q.topic OFFSET 0)
    AND {portion}"""

# Redriven messages that are due and whose copy was sent so long ago that it may be lost: as long as it was then, and so at
# doubling waits, since it may as well lie in a tier that a person has paused. The five minutes are asked for
# in the words of the index quarantined_message_redriven, with a time that stands still: what was just sent is passed over in the
# index alone.
LOST_REDRIVES = """
SELECT {kept}, i.attempt, q.first_failed_at, '0s', i.due_at
FROM "{schema}".quarantined_message q
JOIN "{schema}".inbox i ON i.message_id = q.message_id AND i.group_id = q.group_id AND i.topic = q.topic
WHERE q.group_id = %(group)s AND q.state = 'redriven' AND q.topic = ANY(%(topics)s)
    AND i.outcome = 'retry' AND i.due_at <= clock_timestamp()
    AND q.redrive_sent_at < statement_timestamp() - interval '5 minutes'
    AND q.redrive_sent_at < clock_timestamp() - (q.redrive_sent_at - i.due_at)
    AND NOT EXISTS (SELECT FROM "{schema}".retry_message r
        WHERE r.message_id = q.message_id AND r.group_id = q.group_id AND r.topic = q.topic)
    AND {portion}"""

# Quarantined messages whose copy should long be confirmed.
LATE_COPIES = """
SELECT {kept}, q.attempts, q.first_failed_at
FROM "{schema}".quarantined_message q
WHERE q.group_id = %(group)s AND q.state = 'quarantined' AND q.topic = ANY(%(topics)s) AND q.copy_offset IS NULL
    AND q.quarantined_at < clock_timestamp() - interval '30 seconds'
    AND {portion}"""
