"""Every statement that the processor sends, named and described; `{schema}` is a checked identifier."""

from dataclasses import dataclass, fields

from packhorse.core.naming import checked_identifier
from packhorse.processor.storing import sql_many, sql_marks, sql_parking, sql_running

# Which server answers: its system identifier and timeline. A restored or failed-over one has another.
INCARNATION = """(SELECT system_identifier FROM pg_control_system())::text || '/' ||
    substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"""

# The transaction's commit waits for its WAL, and so for that of all commits before it, whatever the session asks for.
DURABLE = """(SELECT set_config('synchronous_commit',
        CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true) AS mode)"""

# Begins a batch. The id is drawn at once, so that a handler that ends the transaction is found out by another id.
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_current_xact_id()::text"

# Whether a transaction that a handler has ended was committed.
WAS_COMMITTED = "SELECT pg_xact_status(%s::xid8) = 'committed'"

# Of inbox i: the partitions that these ids may be in. Of an array of ids alone the planner can't tell once the plan is kept.
SPAN = "i.message_id >= %(low)s::uuid AND i.message_id <= %(high)s::uuid"

# What the database knows of a batch: the watermark, the server, the clock, inbox rows, and whether any key of the topic is
# parked, in whatever partition: not all that write place a key alike (asked so that whatever the statistics say it is one
# step in an index). No row: no watermark.
LOOK_UP = """
WITH mark AS MATERIALIZED (
    SELECT w."offset", w.incarnation = {incarnation} AS same
    FROM "{schema}".watermark w
    WHERE w.group_id = %(group)s AND w.topic_id = %(topic_id)s AND w.partition = %(partition)s
)
SELECT m."offset", m.same, clock_timestamp(), i.message_id, i.outcome, i.attempt,
    coalesce(extract(epoch FROM i.due_at - clock_timestamp()), 0)::float8,
    coalesce(extract(epoch FROM clock_timestamp() - i.first_failed_at), 0)::float8,
    q.state, CASE i.outcome
        WHEN 'retry' THEN w.sent_at IS NOT NULL OR w.attempt IS NULL AND (q.state IS DISTINCT FROM 'redriven'
            OR q.redrive_sent_at IS NOT NULL OR i.due_at > clock_timestamp())
        WHEN 'quarantine' THEN coalesce(q.copy_offset IS NOT NULL OR q.state <> 'quarantined', true)
        ELSE true END,
    coalesce(w.spent, 0), i.digest, coalesce(w.tier, CASE WHEN q.state = 'redriven' THEN '0s' END),
    coalesce((SELECT (k.group_id, k.topic) = (%(group)s, %(source)s) FROM "{schema}".parked_key k
        WHERE (k.group_id, k.topic) >= (%(group)s, %(source)s) ORDER BY k.group_id, k.topic LIMIT 1), false)
FROM mark m
LEFT JOIN "{schema}".inbox i
    ON i.message_id = ANY(%(ids)s::uuid[]) AND {span} AND i.group_id = %(group)s AND i.topic = %(source)s
LEFT JOIN "{schema}".quarantined_message q
    ON q.message_id = i.message_id AND q.group_id = i.group_id AND q.topic = i.topic
LEFT JOIN "{schema}".retry_message w
    ON w.message_id = i.message_id AND w.group_id = i.group_id AND w.topic = i.topic AND w.attempt = i.attempt
        AND i.outcome = 'retry'"""

# Inbox rows of first results. The condition holds in the transaction that BEGIN began and in no other.
INSERT_RESULTS = """
INSERT INTO "{schema}".inbox (group_id, topic, message_id, outcome, attempt, partition, "offset", type, due_at,
    first_failed_at, reason, error, digest)
SELECT %(group)s, %(source)s, r.id, r.outcome, r.attempt, r.partition, r."offset", r.type,
    CASE WHEN r.outcome = 'retry' THEN clock_timestamp() + r.delay * interval '1 second' END,
    CASE WHEN r.outcome IN ('retry', 'quarantine') THEN clock_timestamp() END, r.reason, r.error, r.digest
FROM unnest(%(ids)s::uuid[], %(outcomes)s::text[], %(attempts)s::int[], %(partitions)s::int[], %(offsets)s::bigint[],
    %(types)s::text[], %(delays)s::float8[], %(reasons)s::text[], %(errors)s::text[], %(digests)s::text[])
    AS r (id, outcome, attempt, partition, "offset", type, delay, reason, error, digest)
WHERE pg_current_xact_id() = %(xid)s::xid8"""

# The same of messages of one partition that are done at their first attempt, which most are.
INSERT_DONE = """
INSERT INTO "{schema}".inbox (group_id, topic, message_id, outcome, attempt, partition, "offset", type, digest)
SELECT %(group)s, %(source)s, r.id, 'done', 1, %(partition)s, r."offset", r.type, r.digest
FROM unnest(%(ids)s::uuid[], %(offsets)s::bigint[], %(types)s::text[], %(digests)s::text[])
    AS r (id, "offset", type, digest)
WHERE pg_current_xact_id() = %(xid)s::xid8"""

# Results of messages that the inbox knew of: compare-and-set on outcome and attempt.
UPDATE_RESULTS = """
UPDATE "{schema}".inbox i
SET outcome = r.outcome, attempt = r.attempt, deliveries = i.deliveries + r.more,
    due_at = CASE WHEN r.outcome = 'retry' THEN clock_timestamp() + r.delay * interval '1 second' END,
    first_failed_at = CASE WHEN r.outcome IN ('retry', 'quarantine')
        THEN coalesce(i.first_failed_at, clock_timestamp()) ELSE i.first_failed_at END,
    reason = r.reason, error = r.error, digest = coalesce(i.digest, r.digest), changed_at = clock_timestamp()
FROM unnest(%(ids)s::uuid[], %(outcomes)s::text[], %(attempts)s::int[], %(more)s::int[], %(delays)s::float8[],
    %(reasons)s::text[], %(errors)s::text[], %(digests)s::text[], %(was)s::text[], %(expected)s::int[])
    AS r (id, outcome, attempt, more, delay, reason, error, digest, was, expected)
WHERE i.message_id = r.id AND {span} AND i.group_id = %(group)s AND i.topic = %(source)s
    AND i.outcome = r.was AND i.attempt = r.expected AND pg_current_xact_id() = %(xid)s::xid8"""

# One row for each run of a handler that failed.
INSERT_FAILED = """
INSERT INTO "{schema}".failed_attempt (group_id, topic, message_id, attempt, reason, error, due_at)
SELECT %(group)s, %(source)s, r.id, r.attempt, r.reason, r.error, clock_timestamp() + r.delay * interval '1 second'
FROM unnest(%(ids)s::uuid[], %(attempts)s::int[], %(reasons)s::text[], %(errors)s::text[], %(delays)s::float8[])
    AS r (id, attempt, reason, error, delay)
ON CONFLICT DO NOTHING"""

# The messages that stop, byte for byte. One that was redriven and stops again keeps its bytes and origin.
UPSERT_QUARANTINED = """
INSERT INTO "{schema}".quarantined_message AS q (group_id, topic, message_id, topic_id, partition, "offset", leader_epoch,
    timestamp_ms, key, payload, headers, type, tenant, reason, error, attempts, key_hash, history, first_failed_at)
SELECT %(group)s, %(source)s, r.id, r.topic_id, r.partition, r."offset", r.leader_epoch, r.timestamp_ms, r.key,
    r.payload, r.headers::jsonb, r.type, r.tenant, r.reason, r.error, r.attempts, r.hash,
    (SELECT jsonb_agg(jsonb_build_object('attempt', f.attempt, 'at', f.failed_at, 'reason', f.reason, 'error', f.error)
            ORDER BY f.attempt)
        FROM (SELECT * FROM "{schema}".failed_attempt a
            WHERE a.message_id = r.id AND a.group_id = %(group)s AND a.topic = %(source)s
            ORDER BY a.attempt DESC LIMIT 20) f),
    coalesce((SELECT i.first_failed_at FROM "{schema}".inbox i
        WHERE i.message_id = r.id AND i.group_id = %(group)s AND i.topic = %(source)s), clock_timestamp())
FROM unnest(%(ids)s::uuid[], %(topic_ids)s::uuid[], %(partitions)s::int[], %(offsets)s::bigint[], %(epochs)s::int[],
    %(timestamps)s::bigint[], %(keys)s::bytea[], %(payloads)s::bytea[], %(headers)s::text[], %(types)s::text[],
    %(tenants)s::text[], %(reasons)s::text[], %(errors)s::text[], %(attempts)s::int[], %(hashes)s::text[])
    AS r (id, topic_id, partition, "offset", leader_epoch, timestamp_ms, key, payload, headers, type, tenant, reason,
        error, attempts, hash)
ON CONFLICT (message_id, group_id, topic) DO UPDATE
SET state = 'quarantined', reason = EXCLUDED.reason, error = EXCLUDED.error, attempts = EXCLUDED.attempts,
    key_hash = EXCLUDED.key_hash, history = EXCLUDED.history, quarantined_at = clock_timestamp(), copy_partition = NULL, copy_offset = NULL, redrive_sent_at = NULL"""

# One more delivery for each duplicate.
COUNT_DELIVERIES = """
UPDATE "{schema}".inbox i SET deliveries = i.deliveries + r.more
FROM (SELECT id, count(*) AS more FROM unnest(%(ids)s::uuid[]) AS id GROUP BY id ORDER BY id) r
WHERE i.message_id = r.id AND {span} AND i.group_id = %(group)s AND i.topic = %(source)s"""

# What copies are made of: of these messages those whose recorded attempt, or whose quarantine, has no copy that is known
# to be confirmed. Without a tier it is one to quarantine.
UNCOPIED = """
SELECT r.message_id, r.topic, r.topic_id, r.partition, r."offset", r.key, r.payload, r.headers::text, r.reason, r.error,
    r.attempt, r.first_failed_at, r.tier, r.due_at
FROM "{schema}".retry_message r
WHERE r.message_id = ANY(%(ids)s::uuid[]) AND r.group_id = %(group)s AND r.topic = %(source)s AND r.sent_at IS NULL
UNION ALL
SELECT q.message_id, q.topic, q.topic_id, q.partition, q."offset", q.key, q.payload, q.headers::text, q.reason, q.error,
    CASE q.state WHEN 'redriven' THEN i.attempt ELSE q.attempts END, q.first_failed_at,
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

# Redriven messages that are due and whose copy was never sent. Another process's are passed over. What can't be sent stays due, so
# each portion begins behind the last one. Each one's inbox row is asked for by itself (OFFSET 0): the planner, who has not heard
# of a redrive of many yet, would go through all that are to be tried again for each of them.
DUE_REDRIVES = """
SELECT q.message_id, q.topic, q.topic_id, q.partition, q."offset", q.key, q.payload, q.headers::text, q.reason, q.error,
    i.attempt, q.first_failed_at, '0s', i.due_at
FROM "{schema}".quarantined_message q
CROSS JOIN LATERAL (SELECT i.outcome, i.attempt, i.due_at FROM "{schema}".inbox i
    WHERE i.message_id = q.message_id AND i.group_id = q.group_id AND i.topic = q.topic OFFSET 0) i
WHERE q.group_id = %(group)s AND q.state = 'redriven' AND q.redrive_sent_at IS NULL AND q.topic = ANY(%(topics)s)
    AND i.outcome = 'retry' AND i.due_at <= clock_timestamp()
    AND NOT EXISTS (SELECT FROM "{schema}".retry_message r
        WHERE r.message_id = q.message_id AND r.group_id = q.group_id AND r.topic = q.topic OFFSET 0)
    AND (q.topic, q.partition, q."offset", q.message_id)
        > (%(after_topic)s::text, %(after_partition)s::int, %(after_offset)s::bigint, %(after_id)s::uuid)
ORDER BY q.topic, q.partition, q."offset", q.message_id
LIMIT %(most)s
FOR UPDATE OF q SKIP LOCKED"""

# Redriven messages that are due and whose copy was sent so long ago that it may be lost: as long as it was then, and so at
# doubling waits, since it may as well lie in a tier that a person has paused; in portions as above. The five minutes are asked for
# in the words of the index quarantined_message_redriven, with a time that stands still: what was just sent is passed over in the
# index alone.
LOST_REDRIVES = """
SELECT q.message_id, q.topic, q.topic_id, q.partition, q."offset", q.key, q.payload, q.headers::text, q.reason, q.error,
    i.attempt, q.first_failed_at, '0s', i.due_at
FROM "{schema}".quarantined_message q
JOIN "{schema}".inbox i ON i.message_id = q.message_id AND i.group_id = q.group_id AND i.topic = q.topic
WHERE q.group_id = %(group)s AND q.state = 'redriven' AND q.topic = ANY(%(topics)s)
    AND i.outcome = 'retry' AND i.due_at <= clock_timestamp()
    AND q.redrive_sent_at < statement_timestamp() - interval '5 minutes'
    AND q.redrive_sent_at < clock_timestamp() - (q.redrive_sent_at - i.due_at)
    AND NOT EXISTS (SELECT FROM "{schema}".retry_message r
        WHERE r.message_id = q.message_id AND r.group_id = q.group_id AND r.topic = q.topic)
    AND (q.topic, q.partition, q."offset", q.message_id)
        > (%(after_topic)s::text, %(after_partition)s::int, %(after_offset)s::bigint, %(after_id)s::uuid)
ORDER BY q.topic, q.partition, q."offset", q.message_id
LIMIT %(most)s
FOR UPDATE OF q SKIP LOCKED"""

# Quarantined messages whose copy should long be confirmed, in portions as above.
LATE_COPIES = """
SELECT message_id, topic, topic_id, partition, "offset", key, payload, headers::text, reason, error, attempts,
    first_failed_at
FROM "{schema}".quarantined_message
WHERE group_id = %(group)s AND state = 'quarantined' AND topic = ANY(%(topics)s) AND copy_offset IS NULL
    AND quarantined_at < clock_timestamp() - interval '30 seconds'
    AND (topic, partition, "offset", message_id)
        > (%(after_topic)s::text, %(after_partition)s::int, %(after_offset)s::bigint, %(after_id)s::uuid)
ORDER BY topic, partition, "offset", message_id
LIMIT %(most)s
FOR UPDATE SKIP LOCKED"""

# Which tables are there and what this role may do with them.
READY = """
SELECT c.relname, has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    AND has_table_privilege(c.oid, 'INSERT') AND (c.relname = 'failed_attempt' OR has_table_privilege(c.oid, 'UPDATE')),
    current_user
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = '{schema}' AND c.relname = ANY(%(tables)s)"""

# Messages of a group that wait for something, by topic and outcome.
OPEN_OUTCOMES = """
SELECT topic, outcome, count(*), extract(epoch FROM min(due_at) - clock_timestamp())::float8
FROM "{schema}".inbox
WHERE group_id = %(group)s AND outcome NOT IN ('done', 'skipped') GROUP BY topic, outcome ORDER BY topic, outcome"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """The statements for one database schema, as the driver takes them."""

    # what a batch needs
    look_up: bytes
    insert_results: bytes
    insert_done: bytes
    update_results: bytes
    insert_failed: bytes
    upsert_quarantined: bytes
    count_deliveries: bytes
    uncopied: bytes
    confirm_copies: bytes
    confirm_retries: bytes
    refuse_redrives: bytes
    due_redrives: bytes
    lost_redrives: bytes
    late_copies: bytes
    ready: bytes
    open_outcomes: bytes
    # watermarks
    which_server: bytes
    move_watermark: bytes
    move_watermarks: bytes
    read_watermark: bytes
    first_watermark: bytes
    adopt_watermark: bytes
    watermarks: bytes
    reset_watermark: bytes
    # parked keys and retries
    parked_keys: bytes
    upsert_retry: bytes
    delete_retry: bytes
    insert_parked: bytes
    delete_parked: bytes
    lock_keys: bytes
    park_keys: bytes
    unhead_keys: bytes
    keep_claim: bytes
    lock_releasable: bytes
    release_keys: bytes
    claim_key: bytes
    claim_keys: bytes
    lock_claimed: bytes
    first_followers: bytes
    key_standing: bytes
    followers: bytes
    leave_key: bytes
    leave_keys: bytes
    renew_claims: bytes
    overdue_retries: bytes
    due_wakes: bytes
    sweep_keys: bytes
    parked_standing: bytes
    pause_key: bytes
    resume_key: bytes
    # lanes and people
    take_in_hand: bytes
    empty_hands: bytes
    look_in_hands: bytes
    mark_start: bytes
    read_starts: bytes
    clear_starts: bytes
    read_pauses: bytes
    pause: bytes
    resume: bytes


_PARTS = {
    "{finished}": sql_parking.FINISHED,
    "{free}": sql_parking.FREE,
    "{loose}": sql_running.LOOSE,
    "{incarnation}": INCARNATION,
    "{durable}": DURABLE,
    "{span}": SPAN,
}


def queries_for(schema: str) -> Queries:
    """
    Return the statements for the database schema *schema*.

    Raises:
        SettingsError: The name is not allowed.
    """
    checked_identifier(schema, what="database schema")
    known = {**vars(sql_many), **vars(sql_marks), **vars(sql_parking), **vars(sql_running), **globals()}
    return Queries(**{field.name: _filled(known[field.name.upper()], schema) for field in fields(Queries)})


def _filled(text: str, schema: str) -> bytes:
    for name, part in _PARTS.items():
        text = text.replace(name, part)
    return text.replace("{schema}", schema).encode()
