"""SQL of the comparison. It changes nothing but a temporary table. `{schema}` is the database schema."""
# ruff: noqa: S608 only constants of this module are put together here, and checked identifiers in the adapter

from packhorse.relay.identity.sql import INCARNATION

SESSION = """
SELECT set_config('jit', 'off', false), set_config('statement_timeout', '0', false), set_config('timezone', 'UTC', false)
"""

POSITIONS = f"""
SELECT CASE WHEN NOT pg_is_in_recovery() THEN {INCARNATION} ELSE 'a standby' END, clock_timestamp(),
    array_agg(r.horizon::text ORDER BY r.shard), min(r.incarnation_saved_at)
  FROM "{{schema}}".relay AS r
"""
"""Asked before the topics' ends: what is behind these horizons then stands before those ends."""

SUBJECTS = 'SELECT DISTINCT subject FROM "{schema}".schema_version'

KINDS = """
SELECT DISTINCT o.aggregatetype FROM "{schema}".outbox AS o
 WHERE o.created_at >= %(since)s AND o.created_at <= %(until)s
"""

TABLE = """
CREATE TEMP TABLE packhorse_on_topic (id uuid, topic int, partition int, "offset" bigint, at timestamptz)
"""

COPY = 'COPY packhorse_on_topic (id, topic, partition, "offset", at) FROM STDIN'

INDEXED = "CREATE INDEX ON packhorse_on_topic (id)"
ANALYZED = "ANALYZE packhorse_on_topic"

MESSAGES = "SELECT count(DISTINCT id) FROM packhorse_on_topic"

OUTBOX_SINCE = """
SELECT (SELECT date_trunc('day', min(o.created_at)) FROM "{schema}".outbox AS o WHERE isfinite(o.created_at)) AT TIME ZONE 'UTC'
"""

GONE = """
SELECT DISTINCT ON (t.id) t.id, t.topic, t.partition, t."offset", t.at FROM packhorse_on_topic AS t
 WHERE t.at >= %(since)s AND t.at <= %(until)s
   AND NOT EXISTS (SELECT FROM "{schema}".outbox AS o WHERE o.id = t.id)
 ORDER BY t.id, t.at
"""

_PUBLISHED = """NOT EXISTS (SELECT FROM unnest(%(horizons)s::text[]) AS h (horizon)
     WHERE NOT pg_visible_in_snapshot(o.xid, h.horizon::pg_snapshot))"""

_ROWS = """
  FROM "{schema}".outbox AS o
 WHERE o.created_at >= %(since)s AND o.created_at <= %(until)s AND o.aggregatetype = ANY(%(kinds)s)"""

ROWS = f"""
SELECT count(*) FILTER (WHERE {_PUBLISHED}), count(*) {_ROWS}
"""

ABSENT = f"""
SELECT o.id::text, o.seq, o.aggregatetype, o.aggregateid, o.created_at AT TIME ZONE 'UTC',
    EXISTS (SELECT FROM "{{schema}}".relay_hold AS h
      WHERE h.state <> 'ended' AND h.aggregatetype = o.aggregatetype
        AND CASE h.scope WHEN 'row' THEN o.id = h.message_id WHEN 'key' THEN o.aggregateid = h.aggregateid
              WHEN 'topic' THEN true ELSE false END
        AND NOT pg_visible_in_snapshot(o.xid, h.horizon)),
    EXISTS (SELECT FROM "{{schema}}".relay_discard AS d WHERE d.message_id = o.id),
    ARRAY(SELECT h.partition || '/' || h.partitions FROM "{{schema}}".relay_hold AS h
      WHERE h.state <> 'ended' AND h.aggregatetype = o.aggregatetype AND h.scope = 'partition'
        AND NOT pg_visible_in_snapshot(o.xid, h.horizon)) {_ROWS}
   AND {_PUBLISHED}
   AND NOT EXISTS (SELECT FROM packhorse_on_topic AS t WHERE t.id = o.id)
 ORDER BY o.seq
"""
"""Rows that count as published and are not on a topic, as far as it was read."""
