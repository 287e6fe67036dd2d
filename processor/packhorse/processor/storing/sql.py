"""Every statement that the processor sends, named and described, here and in the modules beside; `{schema}` is a checked identifier."""

from dataclasses import dataclass, fields
from functools import cache

from packhorse.core.naming import checked_identifier
from packhorse.processor.storing import (
    sql_copies,
    sql_effects,
    sql_jobs,
    sql_many,
    sql_marks,
    sql_parking,
    sql_running,
)

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
_LOOK_UP = """
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
LEFT JOIN {wanted}
LEFT JOIN "{schema}".quarantined_message q
    ON q.message_id = i.message_id AND q.group_id = i.group_id AND q.topic = i.topic
LEFT JOIN "{schema}".retry_message w
    ON w.message_id = i.message_id AND w.group_id = i.group_id AND w.topic = i.topic AND w.attempt = i.attempt
        AND i.outcome = 'retry'"""
LOOK_UP = _LOOK_UP.replace(
    "{wanted}",
    """"{schema}".inbox i
    ON i.message_id = ANY(%(ids)s::uuid[]) AND {span} AND i.group_id = %(group)s AND i.topic = %(source)s""",
)
# The same of one message. Its id is no parameter where the inbox is asked for it: so the server keeps the plan. Over an inbox of a million
# rows it made one anew for each message, since a kept one may be in any partition, and that took ten times as long as the look itself.
LOOK_UP_ONE = _LOOK_UP.replace(
    "{wanted}",
    """((SELECT o.id FROM unnest(%(ids)s::uuid[]) AS o (id) LIMIT 1) AS o
    JOIN "{schema}".inbox i ON i.message_id = o.id AND i.group_id = %(group)s AND i.topic = %(source)s) ON true""",
)

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
    look_up_one: bytes
    insert_results: bytes
    insert_done: bytes
    update_results: bytes
    insert_failed: bytes
    upsert_quarantined: bytes
    count_deliveries: bytes
    ready: bytes
    open_outcomes: bytes
    # copies
    uncopied: bytes
    confirm_copies: bytes
    confirm_retries: bytes
    refuse_redrives: bytes
    due_redrives: bytes
    lost_redrives: bytes
    late_copies: bytes
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
    # jobs
    claim_jobs: bytes
    claim_job: bytes
    look_up_jobs: bytes
    finish_jobs: bytes
    finish_job: bytes
    record_jobs: bytes
    record_job: bytes
    release_jobs: bytes
    renew_jobs: bytes
    standing_jobs: bytes
    checkpoint_job: bytes
    due_jobs: bytes
    declare_jobs: bytes
    # effects and steps of jobs
    read_effect: bytes
    intend_effect: bytes
    intend_again: bytes
    change_effect: bytes
    effects_in_doubt: bytes
    read_step: bytes
    record_step: bytes


_PARTS = {
    "{kept}": sql_copies.KEPT,
    "{portion}": sql_copies.PORTION,
    "{follower}": sql_parking.FOLLOWER,
    "{finished}": sql_parking.FINISHED,
    "{free}": sql_parking.FREE,
    "{loose}": sql_running.LOOSE,
    "{brief}": sql_jobs.BRIEF,
    "{owned}": sql_effects.OWNED,
    "{incarnation}": INCARNATION,
    "{durable}": DURABLE,
    "{span}": SPAN,
}


@cache
def queries_for(schema: str) -> Queries:
    """
    Return the statements for the database schema *schema*; made once, for the console needs them with every request.

    Raises:
        SettingsError: The name is not allowed.
    """
    checked_identifier(schema, what="database schema")
    known = {
        **vars(sql_copies),
        **vars(sql_effects),
        **vars(sql_jobs),
        **vars(sql_many),
        **vars(sql_marks),
        **vars(sql_parking),
        **vars(sql_running),
        **globals(),
    }
    return Queries(**{field.name: _filled(known[field.name.upper()], schema) for field in fields(Queries)})


def _filled(text: str, schema: str) -> bytes:
    for name, part in _PARTS.items():
        text = text.replace(name, part)
    return text.replace("{schema}", schema).encode()
