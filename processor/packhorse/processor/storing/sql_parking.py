"""
Statements on parked keys, their followers, and the messages that wait for another attempt; `{schema}` is a checked name.

Rows of parked_key are locked last in a transaction and sorted, so that no two transactions wait for each other in a ring.
"""

# Of parked_key k: nothing of its head is open any more. A head without an inbox row is long finished. Asked of each row by itself:
# as a join, the planner would go through an inbox that it thinks small.
FINISHED = """(k.head_id IS NULL OR coalesce((
    SELECT h.outcome NOT IN ('retry', 'parked', 'quarantine', 'uncertain') FROM "{schema}".inbox h
    WHERE h.message_id = k.head_id AND h.group_id = k.group_id AND h.topic = k.topic), true))"""

# Of parked_key k: nobody drains it.
FREE = """(k.lease_until IS NULL OR k.lease_until <= clock_timestamp())"""

# Of parked_message f, inbox i and quarantined_message q: what a follower is made of, and the database's clock.
FOLLOWER = """f.message_id, f.topic_id, f.partition, f."offset", f.leader_epoch, f.timestamp_ms, f.key, f.payload,
    f.headers::text, i.outcome, i.attempt,
    coalesce(extract(epoch FROM clock_timestamp() - i.first_failed_at), 0)::float8, q.state, i.digest, clock_timestamp()"""

# Those of these keys that are parked (found by a number, which costs a third of what the text does), and the head behind which more may wait: a paused key lets its own head wait too. Asked only where the topic has a parked key at all.
PARKED_KEYS = """
SELECT k.key_hash, CASE WHEN NOT k.paused THEN k.head_id END FROM "{schema}".parked_key k
WHERE ('x' || left(k.key_hash, 16))::bit(64)::bigint = ANY(%(numbers)s::bigint[])
    AND k.group_id = %(group)s AND k.topic = %(source)s"""

# What waits for another attempt, byte for byte. A message that fails again keeps its bytes and origin.
UPSERT_RETRY = """
INSERT INTO "{schema}".retry_message AS m (group_id, topic, message_id, attempt, tier, due_at, spent, key_hash, topic_id,
    partition, "offset", leader_epoch, timestamp_ms, key, payload, headers, type, tenant, reason, error, first_failed_at)
SELECT %(group)s, %(source)s, r.id, r.attempts, r.tier, i.due_at, r.spent, r.hash, r.topic_id, r.partition, r."offset",
    r.leader_epoch, r.timestamp_ms, r.key, r.payload, r.headers::jsonb, r.type, r.tenant, r.reason, r.error,
    i.first_failed_at
FROM unnest(%(ids)s::uuid[], %(topic_ids)s::uuid[], %(partitions)s::int[], %(offsets)s::bigint[], %(epochs)s::int[],
    %(timestamps)s::bigint[], %(keys)s::bytea[], %(payloads)s::bytea[], %(headers)s::text[], %(types)s::text[],
    %(tenants)s::text[], %(reasons)s::text[], %(errors)s::text[], %(attempts)s::int[], %(hashes)s::text[],
    %(tiers)s::text[], %(spent)s::float8[])
    AS r (id, topic_id, partition, "offset", leader_epoch, timestamp_ms, key, payload, headers, type, tenant, reason,
        error, attempts, hash, tier, spent)
JOIN "{schema}".inbox i ON i.message_id = r.id AND i.group_id = %(group)s AND i.topic = %(source)s
ON CONFLICT (message_id, group_id, topic) DO UPDATE
SET attempt = EXCLUDED.attempt, tier = EXCLUDED.tier, due_at = EXCLUDED.due_at, spent = EXCLUDED.spent,
    key_hash = EXCLUDED.key_hash, reason = EXCLUDED.reason, error = EXCLUDED.error,
    sent_at = NULL, sent_partition = NULL, sent_offset = NULL, resend_at = NULL, resends = 0"""

# Messages that wait for no other attempt any more.
DELETE_RETRY = """
DELETE FROM "{schema}".retry_message
WHERE message_id = ANY(%(ids)s::uuid[]) AND group_id = %(group)s AND topic = %(source)s"""

# Followers, byte for byte. Of a message that was read from elsewhere than its source the age is looked up.
INSERT_PARKED = """
INSERT INTO "{schema}".parked_message (group_id, topic, message_id, key_hash, topic_age, topic_id, partition, "offset",
    leader_epoch, timestamp_ms, key, payload, headers, type, tenant)
SELECT %(group)s, %(source)s, r.id, r.hash,
    coalesce(%(topic_age)s::int, (SELECT count(DISTINCT o.topic_id) FROM "{schema}".watermark o
        WHERE o.group_id = %(group)s AND o.topic = %(source)s AND o.topic_id <> r.topic_id AND o.first_at < (
            SELECT min(w.first_at) FROM "{schema}".watermark w WHERE w.group_id = %(group)s AND w.topic_id = r.topic_id))),
    r.topic_id, r.partition, r."offset", r.leader_epoch, r.timestamp_ms, r.key, r.payload, r.headers::jsonb, r.type,
    r.tenant
FROM unnest(%(ids)s::uuid[], %(topic_ids)s::uuid[], %(partitions)s::int[], %(offsets)s::bigint[], %(epochs)s::int[],
    %(timestamps)s::bigint[], %(keys)s::bytea[], %(payloads)s::bytea[], %(headers)s::text[], %(types)s::text[],
    %(tenants)s::text[], %(hashes)s::text[])
    AS r (id, topic_id, partition, "offset", leader_epoch, timestamp_ms, key, payload, headers, type, tenant, hash)"""

# Followers that were run.
DELETE_PARKED = """
DELETE FROM "{schema}".parked_message
WHERE message_id = ANY(%(ids)s::uuid[]) AND group_id = %(group)s AND topic = %(source)s"""

# Locks the keys that followers and heads of before rest on, sorted.
LOCK_KEYS = """
SELECT k.key_hash, k.head_id FROM "{schema}".parked_key k
WHERE k.group_id = %(group)s AND k.topic = %(source)s AND k.key_hash = ANY(%(keys)s::text[])
ORDER BY k.key_hash FOR UPDATE"""

# Parks keys. The token begins at the time, so that it never comes again when a key is parked anew.
PARK_KEYS = """
INSERT INTO "{schema}".parked_key (group_id, topic, key_hash, key, partition, head_id, token)
SELECT %(group)s, %(source)s, r.hash, r.key, r.partition, r.head,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM unnest(%(hashes)s::text[], %(keys)s::bytea[], %(partitions)s::int[], %(heads)s::uuid[])
    AS r (hash, key, partition, head)
ORDER BY r.hash
ON CONFLICT DO NOTHING"""

# Heads that stopped where later messages go on behind quarantine, or that went behind their own paused key: it is parked
# without a head until drained.
UNHEAD_KEYS = """
UPDATE "{schema}".parked_key k SET head_id = NULL, wake_at = clock_timestamp() + interval '10 seconds'
WHERE k.group_id = %(group)s AND k.topic = %(source)s AND k.key_hash = ANY(%(keys)s::text[])
    AND k.head_id = ANY(%(heads)s::uuid[])"""

# Holds on to a claimed key with the results of its followers; touches nothing when the token has moved. Where a
# follower failed, the key is the head's, and the claim ends.
KEEP_CLAIM = """
UPDATE "{schema}".parked_key k
SET head_id = %(head)s::uuid,
    lease_until = CASE WHEN NOT %(ends)s THEN clock_timestamp() + %(lease)s * interval '1 second' END,
    wake_at = CASE WHEN NOT %(ends)s THEN clock_timestamp() + (%(lease)s + 5) * interval '1 second' END
WHERE k.group_id = %(group)s AND k.topic = %(source)s AND k.key_hash = %(key)s AND k.token = %(token)s"""

# Locks keys that may be let go, each by who asks under its token, sorted. What is then to be seen of followers is looked at in RELEASE_KEYS, a statement
# with a snapshot of its own: a follower is added under this lock.
LOCK_RELEASABLE = """
SELECT k.key_hash
FROM unnest(%(keys)s::text[], %(tokens)s::bigint[]) AS r (hash, held)
JOIN "{schema}".parked_key k ON k.group_id = %(group)s AND k.topic = %(source)s AND k.key_hash = r.hash
WHERE NOT k.paused AND ({free} OR k.token = r.held)
ORDER BY k.key_hash FOR UPDATE OF k"""

# Lets go of locked keys whose head is finished and behind which nothing waits; says how all that were asked for stand. One that
# a replay holds stays parked, and nobody need look at it until the replay hands over more, or lets go. Each key is looked for by
# itself (OFFSET 0), whatever the planner thinks of the tables. A row that is locked stays where it is.
RELEASE_KEYS = """
WITH looked AS MATERIALIZED (
    SELECT k.key_hash, k.head_id, k.paused, l.hash IS NOT NULL AS mine, {finished} AS finished,
        greatest(0, extract(epoch FROM k.lease_until - clock_timestamp()))::float8 AS busy,
        EXISTS (SELECT FROM "{schema}".parked_message m WHERE m.group_id = k.group_id AND m.topic = k.topic
            AND m.key_hash = k.key_hash AND (k.barrier IS NULL OR m."offset" < k.barrier) OFFSET 0) AS waiting,
        k.replay_id IS NOT NULL AS replayed, k.place
    FROM unnest(%(keys)s::text[]) AS r (hash)
    LEFT JOIN unnest(%(locked)s::text[]) AS l (hash) ON l.hash = r.hash
    CROSS JOIN LATERAL (SELECT k.*, k.ctid AS place FROM "{schema}".parked_key k
        WHERE k.group_id = %(group)s AND k.topic = %(source)s AND k.key_hash = r.hash OFFSET 0) k
), gone AS (
    DELETE FROM "{schema}".parked_key k USING looked l
    WHERE k.ctid = l.place AND l.mine AND l.finished AND NOT l.waiting AND NOT l.replayed
), held AS (
    UPDATE "{schema}".parked_key k SET lease_until = NULL, wake_at = NULL FROM looked l
    WHERE k.ctid = l.place AND l.mine AND l.finished AND NOT l.waiting AND l.replayed
)
SELECT key_hash, head_id, paused, mine, finished, busy, waiting FROM looked ORDER BY key_hash"""

# Claims a key whose head is finished, to drain it: a new token, a lease.
CLAIM_KEY = """
UPDATE "{schema}".parked_key k
SET token = k.token + 1, drainer = %(drainer)s, lease_until = clock_timestamp() + %(lease)s * interval '1 second',
    wake_at = clock_timestamp() + (%(lease)s + 5) * interval '1 second'
WHERE k.group_id = %(group)s AND k.topic = %(source)s AND k.key_hash = %(key)s AND NOT k.paused AND ({free} OR k.token = %(held)s)
    AND {finished}
RETURNING k.token"""

# Why a key could not be claimed.
KEY_STANDING = """
SELECT k.head_id, k.paused, {finished}, greatest(0, extract(epoch FROM k.lease_until - clock_timestamp()))::float8
FROM "{schema}".parked_key k
WHERE k.group_id = %(group)s AND k.topic = %(source)s AND k.key_hash = %(key)s"""

# The first followers of a key, in order: at most 100, and no more bytes than a transaction should hold. While a replay holds
# the key, none from behind its range: what came meanwhile waits for all that the replay brings.
FOLLOWERS = """
SELECT {follower}
FROM (
    SELECT m.*, coalesce(sum(octet_length(m.payload)) OVER (ORDER BY m.topic_age, m."offset"
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
    FROM (
        SELECT * FROM "{schema}".parked_message p
        WHERE p.group_id = %(group)s AND p.topic = %(source)s AND p.key_hash = %(key)s
            AND p."offset" < coalesce((SELECT k.barrier FROM "{schema}".parked_key k WHERE k.group_id = %(group)s
                AND k.topic = %(source)s AND k.key_hash = %(key)s), 9223372036854775807)
        ORDER BY p.topic_age, p."offset" LIMIT 100
    ) m
) f
LEFT JOIN "{schema}".inbox i ON i.message_id = f.message_id AND i.group_id = f.group_id AND i.topic = f.topic
LEFT JOIN "{schema}".quarantined_message q
    ON q.message_id = f.message_id AND q.group_id = f.group_id AND q.topic = f.topic
WHERE f.before < 4194304
ORDER BY f.topic_age, f."offset" """

# Ends a claim, so that the next one need not wait for the end of its lease. One that has ended otherwise, since its key waits for
# a head, is left as it is.
LEAVE_KEY = """
UPDATE "{schema}".parked_key k SET lease_until = NULL, wake_at = clock_timestamp() + interval '1 second'
WHERE k.group_id = %(group)s AND k.topic = %(source)s AND k.key_hash = %(key)s AND k.token = %(token)s
    AND k.lease_until IS NOT NULL"""

# Renews the leases of claimed keys once a third of them is over; returns those that it has. Rows that are locked have their turn
# with the next look: nobody waits for another in a ring.
RENEW_CLAIMS = """
WITH ours AS MATERIALIZED (
    SELECT k.ctid AS place
    FROM unnest(%(topics)s::text[], %(keys)s::text[], %(tokens)s::bigint[]) AS r (topic, hash, held)
    JOIN "{schema}".parked_key k ON k.group_id = %(group)s AND k.topic = r.topic AND k.key_hash = r.hash AND k.token = r.held
    WHERE k.lease_until < clock_timestamp() + %(lease)s * interval '667 milliseconds'
    FOR UPDATE OF k SKIP LOCKED
)
UPDATE "{schema}".parked_key k
SET lease_until = clock_timestamp() + %(lease)s * interval '1 second',
    wake_at = greatest(k.wake_at, clock_timestamp() + (%(lease)s + 5) * interval '1 second')
FROM ours WHERE k.ctid = ours.place
RETURNING k.topic, k.key_hash, k.token"""

# Messages whose next attempt is overdue: their copy was never known to be confirmed, or is long lost. The wait until the
# next time doubles, and is written before the copy is sent. A tier that is itself behind explains it, for an hour.
# What the inbox knows otherwise, because a version without tiers has gone on with it, is not sent.
OVERDUE_RETRIES = """
WITH again AS (
UPDATE "{schema}".retry_message r
SET resends = r.resends + 1,
    resend_at = clock_timestamp() + least(3600, 60 * 2 ^ least(r.resends, 10)) * interval '1 second'
FROM (
    SELECT o.message_id, o.topic FROM "{schema}".retry_message o
    WHERE o.group_id = %(group)s AND o.topic = ANY(%(topics)s)
        AND o.due_at < clock_timestamp() - %(grace)s * interval '1 second'
        AND (o.resend_at IS NULL OR o.resend_at <= clock_timestamp())
        AND (o.sent_at IS NULL OR (o.due_at < clock_timestamp() - 3 * %(grace)s * interval '1 second' AND (
            o.due_at < clock_timestamp() - interval '1 hour' OR NOT EXISTS (
                SELECT FROM "{schema}".watermark w WHERE w.group_id = o.group_id
                    AND w.topic = o.topic || '.' || o.group_id || '.retry.' || o.tier AND w.partition = o.sent_partition
                    AND w."offset" <= o.sent_offset))))
    ORDER BY o.due_at LIMIT %(most)s
    FOR UPDATE SKIP LOCKED
) due
WHERE r.message_id = due.message_id AND r.group_id = %(group)s AND r.topic = due.topic
RETURNING r.message_id, r.topic, r.topic_id, r.partition, r."offset", r.key, r.payload, r.headers::text, r.reason, r.error,
    r.attempt, r.first_failed_at, r.tier, r.due_at
)
SELECT a.* FROM again a JOIN "{schema}".inbox i ON i.message_id = a.message_id AND i.group_id = %(group)s
    AND i.topic = a.topic AND i.outcome = 'retry' AND i.attempt = a.attempt"""

# Keys that somebody should look at: their head is finished, and nobody drains them. While people pause what would read the
# wake-ups none is sent: each key's would come every minute, and lie there.
DUE_WAKES = """
UPDATE "{schema}".parked_key k SET wake_at = clock_timestamp() + interval '60 seconds'
FROM (
    SELECT k.ctid AS place FROM "{schema}".parked_key k
    WHERE k.group_id = %(group)s AND k.topic = ANY(%(topics)s) AND k.wake_at <= clock_timestamp() AND NOT k.paused
        AND {free} AND {finished}
        AND NOT EXISTS (SELECT FROM "{schema}".pause p WHERE p.group_id = k.group_id
            AND (p.topic = '' OR (p.topic = k.topic AND p.partition IN (-1, k.partition))))
    ORDER BY k.wake_at LIMIT %(most)s
    FOR UPDATE OF k SKIP LOCKED
) due
WHERE k.ctid = due.place
RETURNING k.topic, k.key_hash, coalesce(k.key, (SELECT m.key FROM "{schema}".parked_message m
    WHERE m.group_id = k.group_id AND m.topic = k.topic AND m.key_hash = k.key_hash LIMIT 1)), k.partition, k.head_id"""

# Goes over the parked keys in portions and has those woken whose head is finished: a person discarded it, or its drainer
# died. Returns where a full portion ended.
SWEEP_KEYS = """
WITH portion AS (
    SELECT k.topic, k.key_hash, k.wake_at IS NULL AND NOT k.paused AND k.replay_id IS NULL
        AND {free} AND {finished} AS left
    FROM "{schema}".parked_key k
    WHERE k.group_id = %(group)s AND (k.topic, k.key_hash) > (%(after_topic)s, %(after_key)s)
    ORDER BY k.topic, k.key_hash LIMIT 1000
), woken AS (
    UPDATE "{schema}".parked_key k SET wake_at = clock_timestamp() FROM portion p
    WHERE p.left AND k.group_id = %(group)s AND k.topic = p.topic AND k.key_hash = p.key_hash AND k.wake_at IS NULL
)
SELECT topic, key_hash FROM portion WHERE (SELECT count(*) FROM portion) = 1000
ORDER BY topic DESC, key_hash DESC LIMIT 1"""

# How many messages wait behind parked keys, and how many bytes they have.
PARKED_STANDING = """
SELECT topic, partition, count(*), coalesce(sum(octet_length(payload)), 0)::bigint
FROM "{schema}".parked_message WHERE group_id = %(group)s GROUP BY topic, partition ORDER BY topic, partition"""

# Stops a key because a person said so; what comes of it waits. Who was first stays named.
PAUSE_KEY = """
INSERT INTO "{schema}".parked_key AS k (group_id, topic, key_hash, key, partition, paused, token, paused_by, paused_why, paused_at)
VALUES (%(group)s, %(source)s, %(hash)s, %(key)s, %(partition)s, true,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, %(actor)s, %(why)s, clock_timestamp())
ON CONFLICT (group_id, topic, key_hash) DO UPDATE
SET paused = true, key = coalesce(k.key, EXCLUDED.key), paused_by = EXCLUDED.paused_by, paused_why = EXCLUDED.paused_why,
    paused_at = EXCLUDED.paused_at
WHERE NOT k.paused"""

# Lets a paused key go on: the watchdog wakes it.
RESUME_KEY = """
UPDATE "{schema}".parked_key
SET paused = false, wake_at = clock_timestamp(), paused_by = NULL, paused_why = NULL, paused_at = NULL
WHERE group_id = %(group)s AND topic = %(source)s AND key_hash = %(hash)s AND paused"""
