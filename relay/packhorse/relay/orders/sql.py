"""
Every statement of people's orders to the relay. `{schema}` is the database schema, `{mine}` leaves one shard's rows of several.

An order locks the shard's row of relay first, then its holds: as a save of the relay does, so that neither waits for the other in a ring.
"""
# ruff: noqa: S608 only constants of this module are put together here, and checked identifiers and numbers in the adapter

LIMITS = """
SELECT set_config('synchronous_commit', 'on', true), set_config('lock_timeout', '5s', true)
"""
"""An order counts only once it is durable, and is given up when a lock isn't free in time."""

HOLDS = """
SELECT h.scope, h.aggregatetype, h.aggregateid, h.partition, h.partitions, h.message_id::text, h.seq, h.code, h.reason, h.heals,
    h.horizon::text, h.target::text, h.progress, h.until, h.resume_horizon::text, h.resume_target::text, h.resume_progress,
    h.state = 'releasing', h.asked IS NOT NULL, h.tries, h.sent, h.rate,
    h.id, h.shard, h.state, h.asked_at, h.made_at, h.changed_at, h.ended_at,
    coalesce(r.token IS NOT NULL AND r.lease_until > clock_timestamp(), false)
  FROM "{schema}".relay_hold AS h LEFT JOIN "{schema}".relay AS r ON r.shard = h.shard
 WHERE (%(all)s OR h.state <> 'ended') AND (%(ids)s::bigint[] IS NULL OR h.id = ANY(%(ids)s::bigint[]))
   AND (%(below)s::bigint IS NULL OR h.id < %(below)s::bigint)
 ORDER BY h.id DESC LIMIT %(limit)s
"""
"""What the relay reads of a hold, in the same order, and what people want to know besides."""

SHARDS = """
SELECT count(*) FROM "{schema}".relay
"""

_BEHIND = """
  FROM (
    SELECT s.* FROM (
        (SELECT o.xid, o.seq, o.id, o.aggregatetype, o.aggregateid, o.created_at FROM "{schema}".outbox AS o
          WHERE (o.xid, o.seq) >= (pg_snapshot_xmax(%(horizon)s::pg_snapshot), 0::bigint) ORDER BY o.xid, o.seq LIMIT {scanned})
        UNION ALL
        (SELECT l.* FROM pg_snapshot_xip(%(horizon)s::pg_snapshot) AS x
          CROSS JOIN LATERAL (
            SELECT o.xid, o.seq, o.id, o.aggregatetype, o.aggregateid, o.created_at FROM "{schema}".outbox AS o
             WHERE (o.xid, o.seq) >= (x, 0::bigint) AND o.xid <= x ORDER BY o.xid, o.seq LIMIT {scanned}) AS l)
        LIMIT {scanned}) AS s) AS o
 WHERE o.aggregatetype = %(type)s
   AND (%(key)s::text IS NULL OR o.aggregateid = %(key)s::text) AND (%(id)s::uuid IS NULL OR o.id = %(id)s::uuid)
   AND NOT coalesce(pg_visible_in_snapshot(o.xid, %(target)s::pg_snapshot) AND o.seq <= %(progress)s, false)
   AND (%(until)s::bigint IS NULL OR o.seq <= %(until)s::bigint
        OR NOT pg_visible_in_snapshot(o.xid, %(resume)s::pg_snapshot)){mine}
   AND NOT EXISTS (SELECT FROM "{schema}".relay_discard AS d WHERE d.message_id = o.id)
"""
"""
Rows behind a hold's position, of its topic and, where it has one, its key or id; among the next rows of the outbox. Which partition they
belong to is not known here.
"""

WAITING = f"""
SELECT o.aggregateid, CASE WHEN o.aggregateid IS NULL THEN o.id::text END, count(*),
    min(o.created_at) FILTER (WHERE isfinite(o.created_at)) AT TIME ZONE 'UTC', NULL::bigint
{_BEHIND} GROUP BY 1, 2
UNION ALL
SELECT NULL, NULL, 0, NULL, (SELECT count(*) FROM (
    SELECT FROM "{{schema}}".outbox AS o WHERE (o.xid, o.seq) >= (pg_snapshot_xmax(%(horizon)s::pg_snapshot), 0::bigint) LIMIT {{scanned}}) AS c)
"""
"""Rows behind a hold's position by key, among the next rows of the outbox; the last row says how many those were."""

FIRST = f"""
SELECT o.id::text, o.seq, o.aggregateid{_BEHIND} ORDER BY o.seq LIMIT 200
"""
"""The first of them."""

ROW = """
SELECT o.id::text, o.seq, o.aggregatetype, o.aggregateid, o.type,
    CASE WHEN isfinite(o.created_at) THEN o.created_at AT TIME ZONE 'UTC' END,
    pg_visible_in_snapshot(o.xid, r.horizon) OR coalesce(pg_visible_in_snapshot(o.xid, r.target) AND o.seq <= r.progress, false),
    NOT pg_visible_in_snapshot(o.xid, h.horizon)
        AND NOT coalesce(pg_visible_in_snapshot(o.xid, h.target) AND o.seq <= h.progress, false),
    EXISTS (SELECT FROM "{schema}".relay_discard AS d WHERE d.message_id = o.id)
  FROM "{schema}".outbox AS o, "{schema}".relay_hold AS h JOIN "{schema}".relay AS r ON r.shard = h.shard
 WHERE o.id = %(row)s AND h.id = %(hold)s ORDER BY o.seq
"""
"""The rows of one id, and where relay and hold stand to them."""

ORDER = """
UPDATE "{schema}".relay SET orders = orders + 1 WHERE shard = %(shard)s
RETURNING coalesce(token IS NOT NULL AND lease_until > clock_timestamp(), false), horizon::text, finish
"""
"""Tell the owner that there is an order; locks the shard's row, so it comes first. Says whether there is an owner, how far it is, and whether the shards change."""

RELEASE = """
UPDATE "{schema}".relay_hold AS h SET asked = 'release', asked_at = clock_timestamp(), rate = %(rate)s::int, changed_at = clock_timestamp()
 WHERE h.id = %(id)s AND h.shard = %(shard)s AND h.state = 'held' AND h.asked IS NULL AND h.code = %(code)s
   AND h.message_id IS NOT DISTINCT FROM %(row)s::uuid AND (h.heals OR h.tries = %(tries)s)
RETURNING h.asked_at
"""
"""Order a release, only of what was shown: the same row at fault, not tried again and not dealt to another shard meanwhile."""

DISCARD = """
INSERT INTO "{schema}".relay_discard (message_id, hold_id, aggregatetype, seq, actor, why)
VALUES (%(row)s::uuid, %(id)s, %(type)s, %(seq)s, %(actor)s, %(why)s) ON CONFLICT (message_id) DO NOTHING
RETURNING at
"""

AUDIT = """
INSERT INTO "{schema}".audit (actor, act, message_id, detail, why)
VALUES (%(actor)s, %(act)s, %(row)s::uuid, %(detail)s::jsonb, %(why)s) RETURNING at
"""

LAST_ACT = """
SELECT a.act || ' by ' || a.actor || ' at ' || to_char(a.at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || 'Z'
  FROM "{schema}".audit AS a WHERE a.detail @> jsonb_build_object('hold', %(id)s::bigint) ORDER BY a.id DESC LIMIT 1
"""
"""Who acted last on one hold."""

POSITIONS = """
SELECT r.shard, r.horizon::text, coalesce(r.token IS NOT NULL AND r.lease_until > clock_timestamp(), false), r.owner
  FROM "{schema}".relay AS r ORDER BY r.shard
"""

FIRST_BY_SEQ = """
SELECT min(o.seq) FROM "{schema}".outbox AS o WHERE o.aggregatetype = %(type)s AND o.seq >= %(edge)s{mine}
"""
FIRST_BY_TIME = """
SELECT min(o.seq) FROM "{schema}".outbox AS o
 WHERE o.aggregatetype = %(type)s AND o.created_at >= %(edge)s::timestamptz AT TIME ZONE 'UTC'{mine}
"""
LAST_BY_SEQ = """
SELECT max(o.seq) FROM "{schema}".outbox AS o WHERE o.aggregatetype = %(type)s AND o.seq <= %(edge)s{mine}
"""
LAST_BY_TIME = """
SELECT max(o.seq) FROM "{schema}".outbox AS o
 WHERE o.aggregatetype = %(type)s AND o.created_at <= %(edge)s::timestamptz AT TIME ZONE 'UTC'{mine}
"""
"""Where a range begins and ends: the release goes by seq, so a range by time is widened to whole stretches of seq."""

RANGE = """
SELECT least(min(o.xid::text::numeric), pg_snapshot_xmin(pg_current_snapshot())::text::numeric)::text, count(*), count(*) FILTER (WHERE NOT pg_visible_in_snapshot(o.xid, %(horizon)s::pg_snapshot)),
    count(d.message_id), max(o.seq), min(o.created_at) FILTER (WHERE isfinite(o.created_at)) AT TIME ZONE 'UTC',
    max(o.created_at) FILTER (WHERE isfinite(o.created_at)) AT TIME ZONE 'UTC'
  FROM "{schema}".outbox AS o LEFT JOIN "{schema}".relay_discard AS d ON d.message_id = o.id
 WHERE o.aggregatetype = %(type)s AND o.seq >= %(first)s AND (%(last)s::bigint IS NULL OR o.seq <= %(last)s::bigint){mine}
"""
"""
What lies in a range: a transaction at or before all of its rows, also those that commit from now on; rows, those that the horizon
lacks, those given up, and its span.
"""

OLDEST = """
SELECT o.seq, CASE WHEN isfinite(o.created_at) THEN o.created_at AT TIME ZONE 'UTC' END FROM "{schema}".outbox AS o ORDER BY o.seq LIMIT 1
"""
"""Where the outbox begins: retention has removed what was before."""

OPEN_OF = """
SELECT h.id, h.scope, h.horizon::text FROM "{schema}".relay_hold AS h
 WHERE h.shard = %(shard)s AND h.aggregatetype = %(type)s AND h.state <> 'ended' ORDER BY h.id FOR UPDATE
"""

REPUBLISH = """
INSERT INTO "{schema}".relay_hold (shard, scope, aggregatetype, code, reason, heals, horizon, target, progress, until, resume_horizon,
    asked, asked_at, rate)
VALUES (%(shard)s, 'topic', %(type)s, 'republish', %(reason)s, false, %(begin)s::pg_snapshot, %(horizon)s::pg_snapshot, %(first)s - 1,
    %(until)s::bigint, CASE WHEN %(until)s::bigint IS NOT NULL THEN %(horizon)s::pg_snapshot END,
    'release', clock_timestamp(), %(rate)s::int)
RETURNING id
"""
"""
A hold of the topic that stands before the range: of what the shard's horizon has, everything from `first` on counts as not published.

Rows up to `until` go again, then the release goes on behind that horizon; without `until` it runs on to where the relay is.
"""

REWIND = """
UPDATE "{schema}".relay_hold AS h SET horizon = %(begin)s::pg_snapshot, target = NULL, progress = 0,
    resume_horizon = CASE WHEN %(until)s::bigint IS NOT NULL THEN coalesce(h.resume_horizon, h.horizon) END,
    resume_target = CASE WHEN %(until)s::bigint IS NULL THEN NULL WHEN h.resume_horizon IS NULL THEN h.target ELSE h.resume_target END,
    resume_progress = CASE WHEN %(until)s::bigint IS NULL THEN 0 WHEN h.resume_horizon IS NULL THEN h.progress ELSE h.resume_progress END,
    until = CASE WHEN %(until)s::bigint IS NOT NULL THEN greatest(h.until, %(until)s::bigint) END,
    state = CASE WHEN h.scope = 'topic' THEN 'held' ELSE h.state END, changed_at = clock_timestamp(),
    reason = CASE WHEN h.code = 'republish' THEN %(reason)s ELSE h.reason END,
    asked = CASE WHEN h.scope = 'topic' THEN 'release' ELSE h.asked END,
    asked_at = CASE WHEN h.scope = 'topic' THEN clock_timestamp() ELSE h.asked_at END,
    rate = CASE WHEN h.scope = 'topic' THEN %(rate)s::int ELSE h.rate END
 WHERE h.id = %(id)s RETURNING h.scope
"""
"""
Set a hold of the topic back before the range; nobody owns the shard. Where it stood is where it goes on after the range.
"""

FENCE = """
UPDATE "{schema}".relay SET token = NULL WHERE shard = %(shard)s AND lease_until <= clock_timestamp()
"""
"""A relay that was frozen when its lease ended can no longer write what it remembers of holds."""
