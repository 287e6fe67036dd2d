"""Statements on many parked keys at once, to drain them together; `{schema}` is a checked name, rows are locked sorted."""

# Claims those of these keys whose head is finished and that nobody drains, to drain them together; sorted. One that another
# changes in this instant is left out. A later time to look again stays as it is: then no index changes.
CLAIM_KEYS = """
WITH free AS MATERIALIZED (
    SELECT k.ctid AS place
    FROM unnest(%(keys)s::text[]) AS r (hash)
    JOIN "{schema}".parked_key k ON k.group_id = %(group)s AND k.topic = %(source)s AND k.key_hash = r.hash
    WHERE NOT k.paused AND {free} AND {finished}
    ORDER BY k.key_hash FOR UPDATE OF k
)
UPDATE "{schema}".parked_key k
SET token = k.token + 1, drainer = %(drainer)s, lease_until = clock_timestamp() + %(lease)s * interval '1 second',
    wake_at = greatest(k.wake_at, clock_timestamp() + (%(lease)s + 5) * interval '1 second')
FROM free WHERE k.ctid = free.place
RETURNING k.key_hash, k.token"""

# Locks claimed keys, sorted: those whose token has not moved; says which are paused.
LOCK_CLAIMED = """
SELECT k.key_hash, k.paused
FROM unnest(%(keys)s::text[], %(tokens)s::bigint[]) AS r (hash, held)
JOIN "{schema}".parked_key k ON k.group_id = %(group)s AND k.topic = %(source)s AND k.key_hash = r.hash AND k.token = r.held
ORDER BY k.key_hash FOR UPDATE OF k"""

# The first follower of each of these keys, no more bytes than a transaction should hold.
FIRST_FOLLOWERS = """
SELECT {follower},
    f.key_hash
FROM (
    SELECT p.*, coalesce(sum(octet_length(p.payload)) OVER (ORDER BY r.n
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
    FROM unnest(%(keys)s::text[]) WITH ORDINALITY AS r (hash, n)
    CROSS JOIN LATERAL (
        SELECT * FROM "{schema}".parked_message m
        WHERE m.group_id = %(group)s AND m.topic = %(source)s AND m.key_hash = r.hash
            AND m."offset" < coalesce((SELECT k.barrier FROM "{schema}".parked_key k WHERE k.group_id = %(group)s
                AND k.topic = %(source)s AND k.key_hash = r.hash), 9223372036854775807)
        ORDER BY m.topic_age, m."offset" LIMIT 1
    ) p
) f
LEFT JOIN LATERAL (SELECT * FROM "{schema}".inbox i
    WHERE i.message_id = f.message_id AND i.group_id = f.group_id AND i.topic = f.topic OFFSET 0) i ON true
LEFT JOIN LATERAL (SELECT q.state FROM "{schema}".quarantined_message q
    WHERE q.message_id = f.message_id AND q.group_id = f.group_id AND q.topic = f.topic OFFSET 0) q ON true
WHERE f.before < 4194304"""

# Ends claims, as LEAVE_KEY does; sorted.
LEAVE_KEYS = """
WITH ours AS MATERIALIZED (
    SELECT k.ctid AS place
    FROM unnest(%(topics)s::text[], %(keys)s::text[], %(tokens)s::bigint[]) AS r (topic, hash, held)
    JOIN "{schema}".parked_key k ON k.group_id = %(group)s AND k.topic = r.topic AND k.key_hash = r.hash AND k.token = r.held
    WHERE k.lease_until IS NOT NULL
    ORDER BY k.topic, k.key_hash FOR UPDATE OF k
)
UPDATE "{schema}".parked_key k SET lease_until = NULL, wake_at = clock_timestamp() + interval '1 second'
FROM ours WHERE k.ctid = ours.place"""
