"""Every statement that the processor sends, named and described; `{schema}` is a checked identifier."""

from dataclasses import dataclass, fields

from packhorse.core.naming import checked_identifier

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

# What the database knows of a batch: the watermark, the server, the clock, and inbox rows. No row: no watermark.
LOOK_UP = """
WITH mark AS MATERIALIZED (
    SELECT w."offset", w.incarnation = {incarnation} AS same
    FROM "{schema}".watermark w
    WHERE w.group_id = %(group)s AND w.topic_id = %(topic_id)s AND w.partition = %(partition)s
)
SELECT m."offset", m.same, clock_timestamp(), i.message_id, i.outcome, i.attempt,
    coalesce(extract(epoch FROM i.due_at - clock_timestamp()), 0)::float8,
    coalesce(extract(epoch FROM clock_timestamp() - i.first_failed_at), 0)::float8,
    q.state, coalesce(q.copy_offset IS NOT NULL OR q.state <> 'quarantined', true)
FROM mark m
LEFT JOIN "{schema}".inbox i
    ON i.message_id = ANY(%(ids)s::uuid[]) AND i.group_id = %(group)s AND i.topic = %(source)s
LEFT JOIN "{schema}".quarantined_message q
    ON q.message_id = i.message_id AND q.group_id = i.group_id AND q.topic = i.topic"""

# Inbox rows of first results. The condition holds in the transaction that BEGIN began and in no other.
INSERT_RESULTS = """
INSERT INTO "{schema}".inbox (group_id, topic, message_id, outcome, attempt, partition, "offset", type, due_at,
    first_failed_at, reason, error)
SELECT %(group)s, %(source)s, r.id, r.outcome, r.attempt, r.partition, r."offset", r.type,
    CASE WHEN r.outcome = 'retry' THEN clock_timestamp() + r.delay * interval '1 second' END,
    CASE WHEN r.outcome IN ('retry', 'quarantine') THEN clock_timestamp() END, r.reason, r.error
FROM unnest(%(ids)s::uuid[], %(outcomes)s::text[], %(attempts)s::int[], %(partitions)s::int[], %(offsets)s::bigint[],
    %(types)s::text[], %(delays)s::float8[], %(reasons)s::text[], %(errors)s::text[])
    AS r (id, outcome, attempt, partition, "offset", type, delay, reason, error)
WHERE pg_current_xact_id() = %(xid)s::xid8"""

# Results of attempts that the inbox knew of: compare-and-set on the attempt.
UPDATE_RESULTS = """
UPDATE "{schema}".inbox i
SET outcome = r.outcome, attempt = r.attempt, deliveries = i.deliveries + r.more,
    due_at = CASE WHEN r.outcome = 'retry' THEN clock_timestamp() + r.delay * interval '1 second' END,
    first_failed_at = CASE WHEN r.outcome IN ('retry', 'quarantine')
        THEN coalesce(i.first_failed_at, clock_timestamp()) ELSE i.first_failed_at END,
    reason = r.reason, error = r.error, changed_at = clock_timestamp()
FROM unnest(%(ids)s::uuid[], %(outcomes)s::text[], %(attempts)s::int[], %(more)s::int[], %(delays)s::float8[],
    %(reasons)s::text[], %(errors)s::text[], %(expected)s::int[])
    AS r (id, outcome, attempt, more, delay, reason, error, expected)
WHERE i.message_id = r.id AND i.group_id = %(group)s AND i.topic = %(source)s
    AND i.outcome = 'retry' AND i.attempt = r.expected AND pg_current_xact_id() = %(xid)s::xid8"""

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
    timestamp_ms, key, payload, headers, type, tenant, reason, error, attempts, first_failed_at)
SELECT %(group)s, %(source)s, r.id, r.topic_id, r.partition, r."offset", r.leader_epoch, r.timestamp_ms, r.key,
    r.payload, r.headers::jsonb, r.type, r.tenant, r.reason, r.error, r.attempts,
    coalesce((SELECT i.first_failed_at FROM "{schema}".inbox i
        WHERE i.message_id = r.id AND i.group_id = %(group)s AND i.topic = %(source)s), clock_timestamp())
FROM unnest(%(ids)s::uuid[], %(topic_ids)s::uuid[], %(partitions)s::int[], %(offsets)s::bigint[], %(epochs)s::int[],
    %(timestamps)s::bigint[], %(keys)s::bytea[], %(payloads)s::bytea[], %(headers)s::text[], %(types)s::text[],
    %(tenants)s::text[], %(reasons)s::text[], %(errors)s::text[], %(attempts)s::int[])
    AS r (id, topic_id, partition, "offset", leader_epoch, timestamp_ms, key, payload, headers, type, tenant, reason,
        error, attempts)
ON CONFLICT (message_id, group_id, topic) DO UPDATE
SET state = 'quarantined', reason = EXCLUDED.reason, error = EXCLUDED.error, attempts = EXCLUDED.attempts,
    quarantined_at = clock_timestamp(), copy_partition = NULL, copy_offset = NULL, redrive_sent_at = NULL"""

# One more delivery for each duplicate.
COUNT_DELIVERIES = """
UPDATE "{schema}".inbox i SET deliveries = i.deliveries + r.more
FROM (SELECT id, count(*) AS more FROM unnest(%(ids)s::uuid[]) AS id GROUP BY id ORDER BY id) r
WHERE i.message_id = r.id AND i.group_id = %(group)s AND i.topic = %(source)s"""

# What copies to quarantine are made of: rows whose copy is not known to be confirmed.
UNCOPIED = """
SELECT message_id, topic, topic_id, partition, "offset", key, payload, headers::text, reason, error, attempts,
    first_failed_at
FROM "{schema}".quarantined_message
WHERE message_id = ANY(%(ids)s::uuid[]) AND group_id = %(group)s AND topic = %(source)s
    AND state = 'quarantined' AND copy_offset IS NULL
ORDER BY partition, "offset" """

# Where the broker has put the copies; for the attempt that they tell of alone.
CONFIRM_COPIES = """
UPDATE "{schema}".quarantined_message q SET copy_partition = r.partition, copy_offset = r."offset"
FROM unnest(%(ids)s::uuid[], %(partitions)s::int[], %(offsets)s::bigint[], %(attempts)s::int[])
    AS r (id, partition, "offset", attempts)
WHERE q.message_id = r.id AND q.group_id = %(group)s AND q.topic = %(source)s
    AND q.state = 'quarantined' AND q.attempts = r.attempts"""

# Which server answers.
WHICH_SERVER = "SELECT {incarnation}"

# Moves the watermark by compare-and-set on its old value and the server, in a durable transaction of its own.
MOVE_WATERMARK = """
UPDATE "{schema}".watermark w
SET "offset" = %(new)s, leader_epoch = %(leader_epoch)s, moved_at = clock_timestamp()
FROM {durable} d
WHERE w.group_id = %(group)s AND w.topic_id = %(topic_id)s AND w.partition = %(partition)s
    AND w."offset" = %(old)s AND w.incarnation = {incarnation} AND d.mode IS NOT NULL"""

# The watermark of one partition, and whether this server wrote it. Always one row.
READ_WATERMARK = """
SELECT w."offset", w.leader_epoch, w.incarnation = {incarnation},
    (SELECT count(*) FROM "{schema}".watermark o
     WHERE o.group_id = %(group)s AND o.topic = %(topic)s AND o.topic_id <> %(topic_id)s)
FROM (SELECT 1) AS one
LEFT JOIN "{schema}".watermark w
    ON w.group_id = %(group)s AND w.topic_id = %(topic_id)s AND w.partition = %(partition)s"""

# The first watermark of a partition, durably; whoever else was first wins.
FIRST_WATERMARK = """
INSERT INTO "{schema}".watermark (group_id, topic_id, partition, topic, "offset", leader_epoch, incarnation)
SELECT %(group)s, %(topic_id)s, %(partition)s, %(topic)s, %(new)s, NULL, {incarnation}
FROM {durable} d WHERE d.mode IS NOT NULL
ON CONFLICT DO NOTHING"""

# Takes over a watermark that another server wrote (restored, failed over), or sets it anew, by compare-and-set.
ADOPT_WATERMARK = """
UPDATE "{schema}".watermark w
SET "offset" = %(new)s, incarnation = {incarnation}, moved_at = clock_timestamp(),
    leader_epoch = CASE WHEN %(new)s = w."offset" THEN w.leader_epoch END
FROM {durable} d
WHERE w.group_id = %(group)s AND w.topic_id = %(topic_id)s AND w.partition = %(partition)s
    AND w."offset" = %(old)s AND d.mode IS NOT NULL"""

# Redriven messages that are due and whose copy was not sent, or so long ago that it may be lost. Another process's are
# passed over.
DUE_REDRIVES = """
SELECT q.message_id, q.topic, q.topic_id, q.partition, q."offset", q.key, q.payload, q.headers::text, q.reason, q.error,
    i.attempt, q.first_failed_at
FROM "{schema}".quarantined_message q
JOIN "{schema}".inbox i ON i.message_id = q.message_id AND i.group_id = q.group_id AND i.topic = q.topic
WHERE q.group_id = %(group)s AND q.state = 'redriven' AND q.topic = ANY(%(topics)s)
    AND i.outcome = 'retry' AND i.due_at <= clock_timestamp()
    AND (q.redrive_sent_at IS NULL OR q.redrive_sent_at < clock_timestamp() - interval '5 minutes')
ORDER BY q.topic, q.partition, q."offset"
LIMIT 100
FOR UPDATE OF q SKIP LOCKED"""

# That their copies stand in the topic.
REDRIVES_SENT = """
UPDATE "{schema}".quarantined_message SET redrive_sent_at = clock_timestamp()
WHERE message_id = ANY(%(ids)s::uuid[]) AND group_id = %(group)s AND topic = ANY(%(topics)s) AND state = 'redriven'"""

# Quarantined messages whose copy should long be confirmed.
LATE_COPIES = """
SELECT message_id, topic, topic_id, partition, "offset", key, payload, headers::text, reason, error, attempts,
    first_failed_at
FROM "{schema}".quarantined_message
WHERE group_id = %(group)s AND state = 'quarantined' AND topic = ANY(%(topics)s) AND copy_offset IS NULL
    AND quarantined_at < clock_timestamp() - interval '30 seconds'
ORDER BY topic, partition, "offset"
LIMIT 100
FOR UPDATE SKIP LOCKED"""

# Which tables are there and what this role may do with them.
READY = """
SELECT c.relname, has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    AND has_table_privilege(c.oid, 'INSERT') AND (c.relname = 'failed_attempt' OR has_table_privilege(c.oid, 'UPDATE')),
    current_user
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = '{schema}' AND c.relname IN ('inbox', 'watermark', 'failed_attempt', 'quarantined_message')"""

# All watermarks of a group.
WATERMARKS = """
SELECT topic, topic_id, partition, "offset", extract(epoch FROM clock_timestamp() - moved_at)::float8
FROM "{schema}".watermark WHERE group_id = %(group)s ORDER BY topic, topic_id, partition"""

# Sets a watermark because a person said so, whatever it was; returns what it was.
RESET_WATERMARK = """
WITH was AS (
    SELECT w."offset" FROM "{schema}".watermark w
    WHERE w.group_id = %(group)s AND w.topic_id = %(topic_id)s AND w.partition = %(partition)s
    FOR UPDATE
), done AS (
    INSERT INTO "{schema}".watermark AS w (group_id, topic_id, partition, topic, "offset", leader_epoch, incarnation)
    SELECT %(group)s, %(topic_id)s, %(partition)s, %(topic)s, %(new)s, NULL, {incarnation}
    FROM {durable} d WHERE d.mode IS NOT NULL
    ON CONFLICT (group_id, topic_id, partition) DO UPDATE
    SET "offset" = EXCLUDED."offset", leader_epoch = NULL, incarnation = EXCLUDED.incarnation,
        moved_at = clock_timestamp()
    RETURNING 1
)
SELECT (SELECT "offset" FROM was) FROM done"""

# Messages of a group that wait for something, by topic and outcome.
OPEN_OUTCOMES = """
SELECT topic, outcome, count(*), extract(epoch FROM min(due_at) - clock_timestamp())::float8
FROM "{schema}".inbox
WHERE group_id = %(group)s AND outcome NOT IN ('done', 'skipped') GROUP BY topic, outcome ORDER BY topic, outcome"""

# What a person did.
AUDIT = """
INSERT INTO "{schema}".audit (actor, act, group_id, topic, detail, why)
VALUES (%(actor)s, %(act)s, %(group)s, %(topic)s, %(detail)s::jsonb, %(why)s)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """The statements for one database schema, as the driver takes them."""

    look_up: bytes
    insert_results: bytes
    update_results: bytes
    insert_failed: bytes
    upsert_quarantined: bytes
    count_deliveries: bytes
    uncopied: bytes
    confirm_copies: bytes
    which_server: bytes
    move_watermark: bytes
    read_watermark: bytes
    first_watermark: bytes
    adopt_watermark: bytes
    due_redrives: bytes
    redrives_sent: bytes
    late_copies: bytes
    ready: bytes
    watermarks: bytes
    reset_watermark: bytes
    open_outcomes: bytes
    audit: bytes


def queries_for(schema: str) -> Queries:
    """
    Return the statements for the database schema *schema*.

    Raises:
        SettingsError: The name is not allowed.
    """
    checked_identifier(schema, what="database schema")
    texts = {
        field.name: globals()[field.name.upper()]
        .replace("{schema}", schema)
        .replace("{incarnation}", INCARNATION)
        .replace("{durable}", DURABLE)
        .encode()
        for field in fields(Queries)
    }
    return Queries(**texts)
