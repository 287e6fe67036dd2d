"""
The relay's SQL. `{schema}` is the database schema; `{limit}` a number of rows, written out so that plans know it.

Plans rest on three shapes, checked against millions of published rows, many partitions and long transactions:

* `(xid, seq) >= (a, 0) AND xid <= a ORDER BY xid, seq LIMIT n` reads the index (xid, seq) in order and stops. With
  `xid = a` the planner may walk the index on seq through all history; with `xid >= a AND xid <= a` it expects next to
  nothing (0.5 %) and sorts the whole backlog for each batch.
* A transaction that still runs is left out before its rows are looked for, so an open one costs no reads.
* `ORDER BY o.seq LIMIT n` from a lower bound walks the index on seq of each partition, merged.
"""
# ruff: noqa: S608 only constants of this module are put together here, and checked identifiers and numbers in the adapter

from packhorse.relay.identity.sql import DRAWN, INCARNATION, ON_ANOTHER_SERVER

_COLUMNS = (
    "o.seq, o.aggregatetype, o.aggregateid, o.payload, o.created_at, o.id, o.type, o.schema_version, o.traceparent, "
    "o.tracestate, o.correlation_id, o.causation_id, o.origin, o.actor, o.tenant, o.expires_at, o.headers"
)

_ROW = (
    "c.seq, c.aggregatetype, c.aggregateid, CASE WHEN octet_length(c.payload) <= {inline} THEN c.payload END AS payload, "
    "CASE WHEN c.created_at BETWEEN '1900-01-01' AND '2200-01-01' "
    "THEN floor(round(date_part('epoch', c.created_at) * 1000000) / 1000)::bigint "
    "WHEN isfinite(c.created_at) THEN floor(extract(epoch FROM c.created_at) * 1000)::bigint ELSE 0 END AS created_ms, "
    "c.id::text, c.type, c.schema_version, "
    "c.traceparent, c.tracestate, c.correlation_id, c.causation_id, c.origin, c.actor, c.tenant, c.expires_at, "
    "c.headers::text, CASE WHEN octet_length(c.payload) > {inline} THEN octet_length(c.payload) END AS withheld"
)
"""
A payload of more than `inline` bytes is held back and only its size told: memory stays bounded whatever the sizes.

Milliseconds are reckoned in double precision, exact to the microsecond in these three centuries, because `extract` gives a
numeric: 0.2 µs a row of the server's time.
"""

SHARD_OF = "mod(('x' || left(encode(sha256(convert_to(coalesce(o.aggregateid, ''), 'UTF8')), 'hex'), 4))::bit(16)::int, {shards})"
"""The shard of a row, or of a hold, of several: by the first two bytes of the key's SHA-256; `packhorse.relay.shards` has it in Python."""

MINE = f" AND {SHARD_OF} = {{shard}}"
"""Which rows are one shard's."""

_NAME = """(CASE {0}scope WHEN 'row' THEN {0}message_id::text WHEN 'key' THEN {0}aggregateid
        WHEN 'partition' THEN {0}partition::text ELSE '' END)"""
"""What tells the holds of one kind and topic apart; the unique index has the same expression."""

_FLUSHED = """CASE WHEN current_setting('synchronous_standby_names') = '' THEN pg_current_wal_flush_lsn() ELSE '0/0' END"""
"""
How far the log is on every disk that a commit waits for. How far synchronous standbys are is told to no plain role: with
those the relay always commits a small write of its own, which waits for them. Without that a row whose writer waits for
nobody would be on its topic and, when a standby takes over, in no database.
"""

POLL = f"""
SELECT 0::bigint AS seq, pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text, NULL::bytea,
    ({_FLUSHED} >= pg_current_wal_insert_lsn())::int::bigint, NULL::text, NULL::text, NULL::text,
    NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::int
UNION ALL
SELECT {_ROW} FROM (
    (SELECT {_COLUMNS} FROM "{{schema}}".outbox o
      WHERE (o.xid, o.seq) >= (pg_snapshot_xmax(%(horizon)s::pg_snapshot), 0::bigint)
        AND o.xid < pg_snapshot_xmax(pg_current_snapshot()){{mine}}
      ORDER BY o.xid, o.seq LIMIT {{over}})
    UNION ALL
    (SELECT l.* FROM pg_snapshot_xip(%(horizon)s::pg_snapshot) AS x
      CROSS JOIN LATERAL (
        SELECT {_COLUMNS} FROM "{{schema}}".outbox o WHERE (o.xid, o.seq) >= (x, 0::bigint) AND o.xid <= x{{mine}}
         ORDER BY o.xid, o.seq LIMIT {{over}}) AS l
      WHERE pg_visible_in_snapshot(x, pg_current_snapshot()))
    LIMIT {{over}}) AS c
ORDER BY seq
"""
"""
One round trip for a whole cycle: the target and, when they are few, all rows between it and the horizon.

The first row (seq 0) says: target, insert position of the log, whether the log is flushed up to there. A statement's own
snapshot is pg_current_snapshot(), so the rows are exactly those visible in the target; the insert position is read while
the statement runs, hence after the target was taken. `over` rows mean that there are more: then none of them is used.
"""

TARGET = f"""
SELECT 0::bigint, pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text, NULL::bytea,
    ({_FLUSHED} >= pg_current_wal_insert_lsn())::int::bigint
"""
"""The first row of POLL alone: where many rows are expected, reading some to throw them away is saved."""

RUNNING_THEN = """
SELECT x::text, min(l.seq) FROM pg_snapshot_xip(%(horizon)s::pg_snapshot) AS x
 CROSS JOIN LATERAL (
    SELECT o.seq FROM "{schema}".outbox o WHERE (o.xid, o.seq) >= (x, 0::bigint) AND o.xid <= x ORDER BY o.xid, o.seq LIMIT 1) AS l
 WHERE pg_visible_in_snapshot(x, %(target)s::pg_snapshot)
 GROUP BY x
"""
"""Transactions that ran when the horizon was taken, are over in the target, and left rows."""

LOWEST = """
SELECT min(c.seq), max(c.xid::text::numeric)::text, count(*) FROM (
    SELECT o.xid, o.seq FROM "{schema}".outbox o
     WHERE (o.xid, o.seq) >= (%(first)s::xid8, 0::bigint) AND o.xid < pg_snapshot_xmax(%(target)s::pg_snapshot)
     ORDER BY o.xid, o.seq LIMIT {chunk}) AS c
"""
"""Lowest seq among the next rows by transaction; the index alone is read."""

FETCH = f"""
SELECT {_ROW} FROM (
    (SELECT {_COLUMNS} FROM "{{schema}}".outbox o
      WHERE o.seq > %(low)s
        AND NOT pg_visible_in_snapshot(o.xid, %(before)s::pg_snapshot)
        AND pg_visible_in_snapshot(o.xid, %(target)s::pg_snapshot){{mine}}
      ORDER BY o.seq LIMIT {{limit}})
    UNION ALL
    (SELECT l.* FROM unnest(%(late)s::xid8[]) AS x
      CROSS JOIN LATERAL (
        SELECT {_COLUMNS} FROM "{{schema}}".outbox o
         WHERE (o.xid, o.seq) > (x, %(progress)s::bigint) AND o.xid <= x{{mine}}
         ORDER BY o.xid, o.seq LIMIT {{limit}}) AS l)) AS c
ORDER BY c.seq LIMIT {{limit}}
"""
"""
The next rows of a target that holds too many for one fetch.

`before` is a snapshot in which every transaction below the horizon's xmax is visible. Written as a function and not as
a comparison, it leaves the planner no way but the index on seq, which alone needs no sort of the whole backlog.
"""

PAYLOADS = """
SELECT o.seq, o.payload FROM "{schema}".outbox o WHERE o.seq = ANY(%(seqs)s::bigint[])
"""
"""What FETCH and POLL held back."""

LOG_REACHED = f"SELECT {_FLUSHED} >= %(until)s::pg_lsn"

FLUSH_LOG = """
SELECT set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'packhorse', 'flush')
"""
"""A commit that leaves no dead row behind, whatever old snapshot somebody holds; any plain role may do it."""

OWN = f"""
WITH durable AS (SELECT set_config('synchronous_commit', 'on', true))
UPDATE "{{schema}}".relay AS r SET
    epoch = r.epoch + CASE WHEN r.token = %(token)s THEN 0 ELSE 1 END,
    token = %(token)s, owner = %(owner)s, lease_until = clock_timestamp() + %(lease)s * interval '1 second',
    seq_high = greatest(r.seq_high, {DRAWN}), {ON_ANOTHER_SERVER}
  FROM durable
 WHERE r.shard = {{shard}} AND (r.token IS NULL OR r.token = %(token)s OR r.lease_until < clock_timestamp())
   AND {INCARNATION} = %(incarnation)s AND (NOT r.finish OR r.target IS NOT NULL)
RETURNING r.horizon::text, r.target::text, r.progress, r.epoch, r.trouble, r.orders, r.finish, r.mode,
    (SELECT count(*) FROM "{{schema}}".relay)
"""
"""Take or keep the lease by the database's clock, and read the position in the same write; only on the server that was judged."""

RENEW = """
UPDATE "{schema}".relay SET lease_until = clock_timestamp() + %(lease)s * interval '1 second'
 WHERE shard = {shard} AND token = %(token)s
RETURNING orders
"""

SAVE = f"""
WITH durable AS (SELECT set_config('synchronous_commit', 'on', true))
UPDATE "{{schema}}".relay AS r SET
    horizon = %(horizon)s::pg_snapshot, target = %(target)s::pg_snapshot, progress = %(progress)s,
    published = r.published + %(rows)s, saved_at = clock_timestamp(), seq_high = greatest(r.seq_high, {DRAWN})
  FROM durable
 WHERE r.shard = {{shard}} AND r.token = %(token)s
   AND r.horizon::text = %(old_horizon)s AND r.target::text IS NOT DISTINCT FROM %(old_target)s::text
   AND r.progress = %(old_progress)s AND r.incarnation = {INCARNATION}
"""
"""Compare-and-set on the token, on the whole old value, and on the server: a pooler may lead to another one unseen."""

SAVE_HOLDS = f"""
WITH saved AS ({SAVE} RETURNING r.shard),
ended AS (
    UPDATE "{{schema}}".relay_hold AS h SET state = 'ended', asked = NULL, ended_at = clock_timestamp(), changed_at = clock_timestamp()
      FROM saved, jsonb_to_recordset(%(ended)s::jsonb) AS e (scope text, aggregatetype text, name text)
     WHERE h.shard = saved.shard AND h.state <> 'ended' AND h.scope = e.scope AND h.aggregatetype = e.aggregatetype
       AND {_NAME.format("h.")} IS NOT DISTINCT FROM e.name
    RETURNING h.id),
made AS (
    INSERT INTO "{{schema}}".relay_hold AS h (shard, scope, aggregatetype, aggregateid, partition, partitions, message_id, seq,
        code, reason, heals, horizon, target, progress, until, resume_horizon, resume_target, resume_progress, state, tries, sent, rate)
    SELECT saved.shard, n.scope, n.aggregatetype, n.aggregateid, n.partition, n.partitions, n.message_id, n.seq,
        n.code, n.reason, n.heals, n.horizon, n.target, n.progress, n.until, n.resume_horizon, n.resume_target,
        n.resume_progress, n.state, n.tries, n.sent, n.rate
      FROM saved, jsonb_to_recordset(%(made)s::jsonb) AS n (scope text, aggregatetype text, aggregateid text, partition int,
        partitions int, message_id uuid, seq bigint, code text, reason text, heals boolean, horizon pg_snapshot,
        target pg_snapshot, progress bigint, until bigint, resume_horizon pg_snapshot, resume_target pg_snapshot,
        resume_progress bigint, state text, tries int, sent bigint, rate int)
    ON CONFLICT (shard, scope, hashtextextended(aggregatetype, 0), hashtextextended({_NAME.format("")}, 0)) WHERE state <> 'ended'
    DO UPDATE SET message_id = EXCLUDED.message_id, seq = EXCLUDED.seq, code = EXCLUDED.code, reason = EXCLUDED.reason,
        heals = EXCLUDED.heals, horizon = EXCLUDED.horizon, target = EXCLUDED.target, progress = EXCLUDED.progress,
        until = EXCLUDED.until, resume_horizon = EXCLUDED.resume_horizon, resume_target = EXCLUDED.resume_target,
        resume_progress = EXCLUDED.resume_progress, tries = EXCLUDED.tries, sent = EXCLUDED.sent,
        rate = CASE WHEN h.asked IS NOT NULL AND EXCLUDED.state = 'held' THEN h.rate ELSE EXCLUDED.rate END,
        asked = CASE WHEN EXCLUDED.state = 'releasing' OR h.state = 'releasing' THEN NULL ELSE h.asked END,
        state = EXCLUDED.state, changed_at = clock_timestamp()
    RETURNING h.id)
SELECT count(*) FROM saved
"""
"""
SAVE and what becomes of holds, all or nothing. An order that came in between stays: its hold is not on its way yet.
"""

HOLDS = """
SELECT scope, aggregatetype, aggregateid, partition, partitions, message_id::text, seq, code, reason, heals, horizon::text,
    target::text, progress, until, resume_horizon::text, resume_target::text, resume_progress, state = 'releasing',
    asked IS NOT NULL, tries, sent, rate
  FROM "{schema}".relay_hold WHERE shard = {shard} AND state <> 'ended' ORDER BY id
"""

ORDERS = """
SELECT orders, finish FROM "{schema}".relay WHERE shard = {shard}
"""

HELD = f"""
SELECT {_ROW} FROM (
    SELECT {_COLUMNS} FROM "{{schema}}".outbox o
     WHERE o.seq > %(low)s AND o.seq <= %(high)s AND o.aggregatetype = %(type)s
       AND (%(key)s::text IS NULL OR o.aggregateid = %(key)s::text) AND (%(id)s::uuid IS NULL OR o.id = %(id)s::uuid)
       AND NOT pg_visible_in_snapshot(o.xid, %(horizon)s::pg_snapshot)
       AND pg_visible_in_snapshot(o.xid, %(target)s::pg_snapshot){{mine}}
       AND NOT EXISTS (SELECT FROM "{{schema}}".relay_discard AS d WHERE d.message_id = o.id)
     ORDER BY o.seq LIMIT %(limit)s) AS c
ORDER BY c.seq
"""
"""Rows of a hold in a stretch of seq; what people discarded is left out."""

TOP = """
SELECT coalesce(max(o.seq), 0) FROM "{schema}".outbox o
"""

RECORD_MODE = """
UPDATE "{schema}".relay SET mode = %(mode)s, mode_cause = %(cause)s, mode_since = CASE WHEN mode = %(mode)s THEN coalesce(mode_since, clock_timestamp()) ELSE clock_timestamp() END,
    moves = moves + (mode <> %(mode)s)::int
 WHERE shard = {shard} AND token = %(token)s
"""

RECORD_TROUBLE = """
UPDATE "{schema}".relay SET trouble = %(text)s::text,
    trouble_since = CASE WHEN %(text)s::text IS NULL THEN NULL ELSE coalesce(trouble_since, clock_timestamp()) END
 WHERE shard = {shard} AND token = %(token)s
"""

RELEASE = """
UPDATE "{schema}".relay SET token = NULL, owner = NULL, lease_until = NULL WHERE shard = {shard} AND token = %(token)s
"""

SUBJECTS = """
SELECT DISTINCT subject FROM "{schema}".schema_version
"""

STATUS = """
SELECT r.shard, r.epoch, r.owner, r.token IS NOT NULL AND r.lease_until > clock_timestamp(),
    extract(epoch FROM r.lease_until - clock_timestamp())::float8, r.horizon::text, r.target::text, r.progress,
    r.published, extract(epoch FROM clock_timestamp() - r.saved_at)::float8, r.trouble,
    extract(epoch FROM clock_timestamp() - r.trouble_since)::float8, extract(epoch FROM clock_timestamp())::float8,
    r.mode, r.mode_cause, extract(epoch FROM clock_timestamp() - r.mode_since)::float8, r.moves, h.count, h.oldest, h.people,
    CASE WHEN r.finish THEN r.shards_wanted END
  FROM "{schema}".relay AS r CROSS JOIN LATERAL (
    SELECT count(*) AS count, extract(epoch FROM clock_timestamp() - min(h.made_at))::float8 AS oldest,
        coalesce(array_agg(h.id ORDER BY h.id) FILTER (WHERE h.state = 'held' AND h.asked IS NULL AND NOT h.heals), '{{}}') AS people
      FROM "{schema}".relay_hold AS h WHERE h.shard = r.shard AND h.state <> 'ended') AS h
 ORDER BY r.shard
"""
"""How each shard stands, with its open holds; `people` are those that wait for a person."""

LAG = """
SELECT count(*), (max(extract(epoch FROM (clock_timestamp() AT TIME ZONE 'UTC') - c.created_at))
    FILTER (WHERE isfinite(c.created_at)))::float8 FROM (
    (SELECT o.xid, o.seq, o.created_at FROM "{schema}".outbox o
      WHERE (o.xid, o.seq) >= (pg_snapshot_xmax(%(horizon)s::pg_snapshot), 0::bigint)
        AND NOT coalesce(pg_visible_in_snapshot(o.xid, %(target)s::pg_snapshot) AND o.seq <= %(progress)s, false){mine}
      ORDER BY o.xid, o.seq LIMIT {count})
    UNION ALL
    (SELECT l.* FROM pg_snapshot_xip(%(horizon)s::pg_snapshot) AS x
      CROSS JOIN LATERAL (
        SELECT o.xid, o.seq, o.created_at FROM "{schema}".outbox o
         WHERE (o.xid, o.seq) >= (x, 0::bigint) AND o.xid <= x
           AND NOT coalesce(pg_visible_in_snapshot(o.xid, %(target)s::pg_snapshot) AND o.seq <= %(progress)s, false){mine}
         ORDER BY o.xid, o.seq LIMIT {count}) AS l
      WHERE pg_visible_in_snapshot(x, pg_current_snapshot()))
    LIMIT {count}) AS c
"""
"""Rows committed and not published, counted up to a bound, and the age of the oldest of them."""

SESSION = "SELECT pg_backend_pid(), current_setting('plan_cache_mode')"
"""Who answers, and whether what was asked for at the start of the connection holds."""

SERVER = """
SELECT concat(extract(epoch FROM pg_postmaster_start_time()), ' ', extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()))
"""
"""
Tells one run of a server from any other: when its first process started, and when its counters began, as they do after a crash
of one of its processes. Digits and points alone.
"""

PREAMBLE = f"""
SELECT set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true),
    set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
    set_config('statement_timeout', '{{statement}}', true), set_config('lock_timeout', '{{lock}}', true),
    1 / (({SERVER}) = '{{server}}')::int
"""
"""What goes ahead of each statement through a pooler; a division by zero says that another server answers."""

PROBE = "SELECT 'packhorse: by which name?'"
PROBED = f"""
SELECT name FROM pg_prepared_statements WHERE statement = $${PROBE}$$ ORDER BY prepare_time DESC LIMIT 1
"""
"""By which name the server knows PROBE: the driver's own, or one that a pooler gave it."""
