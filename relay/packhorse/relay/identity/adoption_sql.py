"""SQL of `packhorse relay adopt`, in the order in which it runs. `{schema}` is the database schema."""
# ruff: noqa: S608 only constants of this module are put together here, and checked identifiers in the adapter

from packhorse.relay.identity.sql import DRAWN, INCARNATION

LIMITS = """
SELECT set_config('lock_timeout', '5s', true), set_config('statement_timeout', '0', true),
    set_config('synchronous_commit', 'on', true)
"""
"""Writers wait behind our request for a lock: it is given up soon."""

OWNER = """
SELECT pg_get_userbyid(c.relowner), pg_has_role(c.relowner, 'USAGE') FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = '{schema}' AND c.relname = 'outbox'
"""

SHARDS = 'SELECT r.shard FROM "{schema}".relay AS r ORDER BY r.shard'

LOCK_RELAY = 'LOCK TABLE "{schema}".relay, "{schema}".relay_hold IN SHARE ROW EXCLUSIVE MODE'
"""No relay takes the lease, and none is asked for a release, until the end."""

LEASES = """
SELECT r.shard, r.owner, ceil(extract(epoch FROM r.lease_until - clock_timestamp()))::int
  FROM "{schema}".relay AS r WHERE r.token IS NOT NULL AND r.lease_until > clock_timestamp() ORDER BY r.shard
"""

LOCK_OUTBOX = 'LOCK TABLE "{schema}".outbox IN SHARE ROW EXCLUSIVE MODE'
"""Every writer that has inserted is over when this returns, and none inserts until the end."""

SNAPSHOT = f"""
SELECT pg_current_snapshot()::text, {INCARNATION}, pg_current_xact_id_if_assigned() IS NULL
"""
"""
The new horizon. Rows written by whoever runs now or begins later are not in it; nor is this transaction, because its id is
drawn afterwards: that is how the rows that it rewrites count as not published.
"""

POSITIONS = """
SELECT bool_and(r.horizon::text = '1:1:'), min(r.seq_high) FILTER (WHERE r.incarnation IS NOT NULL),
    min(r.incarnation), min(r.saved_at) AT TIME ZONE 'UTC', bool_and(r.incarnation IS NOT NULL)
  FROM "{schema}".relay AS r
"""

UNPUBLISHED = """
CREATE TEMP TABLE packhorse_unpublished (part oid, place tid, seq bigint, lost boolean, anew boolean) ON COMMIT DROP
"""
"""Rows that are not published, by their place in the table; `lost`: the old position has them as published."""

_BEHIND = """(pg_visible_in_snapshot(o.xid, {of}.horizon)
    OR coalesce(pg_visible_in_snapshot(o.xid, {of}.target) AND o.seq <= {of}.progress, false))"""
_NOT_BEHIND_ALL = f"""EXISTS (SELECT FROM "{{schema}}".relay AS r WHERE NOT {_BEHIND.format(of="r")})"""
_FOUND = "INSERT INTO packhorse_unpublished SELECT o.tableoid, o.ctid, o.seq,"
_NEW = """NOT EXISTS (SELECT FROM packhorse_unpublished AS u WHERE u.seq = o.seq AND u.part = o.tableoid AND u.place = o.ctid)"""

DRAWN_LATER = f"""
{_FOUND} NOT {_NOT_BEHIND_ALL}, false FROM "{{schema}}".outbox AS o WHERE o.seq > %(seq_high)s
"""
"""Drawn after the last save: nothing of that is published, or not known to be."""

WRITTEN_LATER = f"""
{_FOUND} NOT {_NOT_BEHIND_ALL}, %(seq_high)s::bigint IS NOT NULL FROM "{{schema}}".outbox AS o
 WHERE o.created_at > %(saved_at)s::timestamp AND isfinite(o.created_at) AND (o.seq <= %(seq_high)s) IS NOT FALSE
"""
"""Written after the last save with a seq from before it: the sequence had begun anew, or nobody knows how far it was."""

NOT_REACHED = f"""
{_FOUND} false, false FROM "{{schema}}".outbox AS o
 WHERE o.xid >= (SELECT min(pg_snapshot_xmin(r.horizon)) FROM "{{schema}}".relay AS r) AND {_NOT_BEHIND_ALL} AND {_NEW}
"""
"""What waited when the position was saved. A horizon's running transactions lie between its xmin and its xmax."""

_RANGE = """CASE WHEN h.until IS NULL THEN NOT {held}
    ELSE (NOT {held} AND o.seq <= h.until)
        OR NOT (pg_visible_in_snapshot(o.xid, h.resume_horizon)
            OR coalesce(pg_visible_in_snapshot(o.xid, h.resume_target) AND o.seq <= h.resume_progress, false)) END""".format(
    held=_BEHIND.format(of="h")
)

NEVER_PUBLISHED = f"""
{_FOUND} false, false FROM "{{schema}}".outbox AS o
 WHERE o.xid >= pg_snapshot_xmin(%(horizon)s::pg_snapshot) AND NOT pg_visible_in_snapshot(o.xid, %(horizon)s::pg_snapshot)
"""
"""Where nothing has ever been published the first horizon stays, and only ids that this server has not reached are rewritten."""

HELD = f"""
{_FOUND} false, false FROM "{{schema}}".outbox AS o
 WHERE {_NEW} AND EXISTS (SELECT FROM "{{schema}}".relay_hold AS h
   WHERE h.state <> 'ended' AND h.aggregatetype = o.aggregatetype
     AND CASE h.scope WHEN 'row' THEN o.id = h.message_id WHEN 'key' THEN o.aggregateid = h.aggregateid
           WHEN 'topic' THEN true ELSE false END
     AND {_RANGE})
"""
"""What holds of rows, keys and topics keep back."""

HELD_PARTITIONS = f"""
SELECT o.tableoid::bigint, o.ctid::text, o.seq, o.aggregateid, h.partition, h.partitions FROM "{{schema}}".outbox AS o
  JOIN "{{schema}}".relay_hold AS h ON h.aggregatetype = o.aggregatetype
 WHERE h.state <> 'ended' AND h.scope = 'partition' AND o.aggregateid IS NOT NULL AND {_RANGE} AND {_NEW}
"""
"""Candidates for what holds of partitions keep back; the partition of a key is computed by the caller."""

ADD = "INSERT INTO packhorse_unpublished VALUES (%s::oid, %s::tid, %s, false, false)"

COUNTS = f"""
SELECT count(*), count(*) FILTER (WHERE u.lost), count(*) FILTER (WHERE u.anew), count(*) FILTER (WHERE u.anew AND u.lost),
    (SELECT count(*) FROM "{{schema}}".relay_hold AS h WHERE h.state <> 'ended'), {DRAWN},
    greatest((SELECT max(o.seq) FROM "{{schema}}".outbox AS o), (SELECT max(r.seq_high) FROM "{{schema}}".relay AS r))
  FROM packhorse_unpublished AS u
"""

INDEXED = "CREATE INDEX ON packhorse_unpublished (seq)"
ANALYZED = "ANALYZE packhorse_unpublished"

_STRANGE = f"""NOT pg_visible_in_snapshot(o.xid, %(horizon)s::pg_snapshot)
   AND o.xid >= pg_snapshot_xmin(%(horizon)s::pg_snapshot) AND {_NEW}"""

STRANGE = f"""
SELECT count(*) FROM "{{schema}}".outbox AS o WHERE {_STRANGE}
"""
"""Rows that are published, with transaction ids that this server has not reached or is giving to others now."""

TRIGGER_OFF = 'ALTER TABLE "{schema}".outbox DISABLE TRIGGER refuse_change'
TRIGGER_ON = 'ALTER TABLE "{schema}".outbox ENABLE TRIGGER refuse_change'

AHEAD_OF_ALL = f"""
WITH c AS MATERIALIZED (
    SELECT o.xid, o.seq, o.tableoid AS part, o.ctid AS place FROM "{{schema}}".outbox AS o
     WHERE (o.xid, o.seq) > (%(xid)s::xid8, %(seq)s::bigint) AND NOT {_NOT_BEHIND_ALL}
       AND o.seq <= (SELECT min(r.seq_high) FROM "{{schema}}".relay AS r)
       AND o.created_at <= (SELECT min(r.saved_at) FROM "{{schema}}".relay AS r) AT TIME ZONE 'UTC'
       AND NOT EXISTS (SELECT FROM "{{schema}}".relay_hold AS h WHERE h.state <> 'ended' AND h.aggregatetype = o.aggregatetype)
     ORDER BY o.xid, o.seq LIMIT {{chunk}}),
rewritten AS (
    UPDATE "{{schema}}".outbox AS o SET xid = '3' FROM c WHERE o.seq = c.seq AND o.tableoid = c.part AND o.ctid = c.place)
SELECT count(*), max(c.xid::text::numeric)::text, (array_agg(c.seq ORDER BY c.xid DESC, c.seq DESC))[1] FROM c
"""
"""
The next published rows with ids that this server has not reached. By the old position they stay published too: this may be
done in as many transactions as one likes, before anything else, and again after a crash.
"""

COUNTER = """
SELECT pg_snapshot_xmax(pg_current_snapshot())::text, bool_and(r.incarnation IS NOT NULL AND r.saved_at IS NOT NULL)
  FROM "{schema}".relay AS r
"""

REWRITE_PUBLISHED = f"""
UPDATE "{{schema}}".outbox AS o SET xid = '3' WHERE {_STRANGE}
"""
"""3 is the first transaction id there is: every snapshot but the relay's first horizon has it as past."""

REWRITE_UNPUBLISHED = """
UPDATE "{schema}".outbox AS o SET xid = pg_current_xact_id() FROM packhorse_unpublished AS u
 WHERE o.seq = u.seq AND o.tableoid = u.part AND o.ctid = u.place
"""

TO_RENUMBER = """
SELECT o.seq, o.id FROM "{schema}".outbox AS o
  JOIN packhorse_unpublished AS u ON o.seq = u.seq AND o.tableoid = u.part AND o.ctid = u.place
 WHERE u.anew ORDER BY o.created_at, o.seq
"""
"""Asked before rows move. In the order in which they were written."""

RENUMBER = """
UPDATE "{schema}".outbox AS o SET seq = DEFAULT WHERE o.seq = %s AND o.id = %s AND o.xid = pg_current_xact_id()
"""

SET_SEQUENCE = (
    """SELECT setval('"{schema}".outbox_seq_seq', greatest(%(to)s::bigint, 1), %(to)s::bigint > 0)"""
)
"""Only ever forward; not undone by a rollback, and harmless then."""

SET_POSITIONS = f"""
UPDATE "{{schema}}".relay AS r SET horizon = %(horizon)s::pg_snapshot, target = NULL, progress = 0, saved_at = clock_timestamp(),
    token = NULL, owner = NULL, lease_until = NULL, trouble = NULL, trouble_since = NULL, seq_high = {DRAWN},
    incarnation_before = r.incarnation, incarnation_saved_at = r.saved_at, incarnation_since = clock_timestamp(),
    incarnation = %(here)s
"""

SET_HOLDS = """
UPDATE "{schema}".relay_hold AS h SET horizon = %(horizon)s::pg_snapshot, target = NULL, progress = 0, until = NULL,
    resume_horizon = NULL, resume_target = NULL, resume_progress = 0, changed_at = clock_timestamp()
 WHERE h.state <> 'ended'
"""

RECORD = """
INSERT INTO "{schema}".audit (actor, act, detail, why) VALUES (%(actor)s, 'adopt-server', %(detail)s::jsonb, %(why)s)
"""
