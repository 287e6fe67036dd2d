"""SQL that tells servers apart. `{schema}` is the database schema, `{chunk}` a number of rows."""
# ruff: noqa: S608 only constants of this module are put together here, and checked identifiers and numbers in the adapter

INCARNATION = """((SELECT system_identifier FROM pg_control_system())::text || '/' ||
    substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))"""
"""Which server answers: system identifier and timeline. pg_control_checkpoint() would name the old timeline for a while after a promotion."""

DRAWN = (
    """(SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM "{schema}".outbox_seq_seq)"""
)
"""
How far outbox.seq was drawn, by whomever, committed or not.

Read in a save it bounds from above every row that the saved horizon can hold: what is drawn later was written later. The
save's own commit makes it durable together with the sequence, whose log record is older.
"""

_MOVED = "r.incarnation <> %(incarnation)s"
ON_ANOTHER_SERVER = f"""incarnation = %(incarnation)s,
    incarnation_before = CASE WHEN {_MOVED} THEN r.incarnation ELSE r.incarnation_before END,
    incarnation_saved_at = CASE WHEN {_MOVED} THEN r.saved_at ELSE r.incarnation_saved_at END,
    incarnation_since = CASE WHEN {_MOVED} THEN clock_timestamp() ELSE r.incarnation_since END"""
"""Names the server in an UPDATE of relay AS r, and keeps what it was before when that is another one."""

FACTS = f"""
SELECT r.incarnation, CASE WHEN NOT pg_is_in_recovery() THEN {INCARNATION} END, r.horizon::text,
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
    pg_snapshot_xmax(coalesce(r.target, r.horizon)) <= pg_snapshot_xmax(pg_current_snapshot()),
    r.epoch, r.published, to_char(r.saved_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), r.seq_high,
    coalesce(r.target, r.horizon)::text, r.incarnation_before,
    extract(epoch FROM clock_timestamp() - r.incarnation_since)::float8,
    to_char(r.incarnation_saved_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
  FROM "{{schema}}".relay AS r WHERE r.shard = %(shard)s
"""

RUNNING = """
SELECT count(*) FROM pg_snapshot_xip(pg_current_snapshot()) AS x
 WHERE pg_visible_in_snapshot(x, %(position)s::pg_snapshot)
"""
"""Open transactions that the position has as past. Asked before SWALLOWED: what ends in between shows its rows there."""

SWALLOWED = """
SELECT count(*), max(c.seq), count(*) FILTER (WHERE c.past), min(c.seq) FILTER (WHERE c.past),
    (array_agg(c.id::text ORDER BY c.seq) FILTER (WHERE c.past))[1]
  FROM (SELECT o.seq, o.id, pg_visible_in_snapshot(o.xid, %(position)s::pg_snapshot) AS past
          FROM "{schema}".outbox AS o WHERE o.seq > %(after)s ORDER BY o.seq LIMIT {chunk}) AS c
"""
"""Among the next rows drawn after the last save, those that the position has as published."""

AHEAD = """
SELECT count(*), min(c.seq), (array_agg(c.id::text ORDER BY c.seq))[1]
  FROM (SELECT o.seq, o.id FROM "{schema}".outbox AS o
         WHERE (o.xid, o.seq) >= (pg_snapshot_xmax(pg_current_snapshot()), 0::bigint)
         ORDER BY o.xid, o.seq LIMIT {chunk}) AS c
"""
"""Committed rows with transaction ids that this server has not given out: it can't have written them."""

SEQUENCE = f"""
SELECT {DRAWN}, coalesce((SELECT o.seq FROM "{{schema}}".outbox AS o ORDER BY o.seq DESC LIMIT 1), 0)
"""
