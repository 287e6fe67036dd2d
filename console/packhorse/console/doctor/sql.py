"""The doctor's questions to the database. `{schema}` is the database schema of Packhorse's tables."""

SERVER = """
SELECT current_setting('server_version_num')::int AS version, pg_is_in_recovery() AS standby,
       (SELECT max(clock_timestamp() - a.xact_start) FROM pg_stat_activity AS a
        WHERE a.datname = current_database() AND a.backend_type = 'client backend') AS oldest_transaction
"""
"""Version, role, and the oldest transaction that our rights let us see."""

CLOCK = "SELECT clock_timestamp() AS now"
"""The server's clock, asked alone so that the round trip bounds the error."""

OUTBOX = """
SELECT (SELECT s.seqcache FROM pg_sequence AS s
        WHERE s.seqrelid = to_regclass(pg_get_serial_sequence(%(outbox)s, 'seq'))) AS sequence_cache,
       ARRAY(SELECT c.relname::text FROM pg_class AS c
             WHERE (c.oid = to_regclass(%(outbox)s)
                    OR c.oid IN (SELECT i.inhrelid FROM pg_inherits AS i WHERE i.inhparent = to_regclass(%(outbox)s)))
               AND NOT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND t.tgname = 'refuse_change'
                               AND t.tgenabled IN ('O', 'A'))
             ORDER BY 1) AS without_trigger,
       ARRAY(SELECT t.name FROM unnest(%(tables)s::text[]) AS t (name)
             WHERE NOT EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
                               WHERE n.nspname = %(schema)s AND c.relname = t.name AND c.relkind IN ('r', 'p'))
             ORDER BY 1) AS missing,
       (clock_timestamp() AT TIME ZONE 'UTC')::date AS today
"""
"""The outbox's sequence, its tables that would let a row be changed, and which of all tables are missing."""

RELAY = """
SELECT r.epoch, r.owner, coalesce(r.lease_until > clock_timestamp(), false) AS owned,
       clock_timestamp() - r.lease_until AS lease_age, r.trouble, r.trouble_since,
       w.waiting IS NOT NULL AS waiting, clock_timestamp() - w.waiting AS oldest
FROM {schema}.relay AS r
LEFT JOIN LATERAL (
    SELECT min(open.created_at) AT TIME ZONE 'UTC' AS waiting FROM (
        (SELECT o.created_at FROM {schema}.outbox AS o
         WHERE o.xid = ANY (ARRAY(SELECT pg_snapshot_xip(r.horizon)))
           AND NOT (r.target IS NOT NULL AND pg_visible_in_snapshot(o.xid, r.target) AND o.seq <= r.progress)
         ORDER BY o.xid, o.seq LIMIT 1)
        UNION ALL
        (SELECT o.created_at FROM {schema}.outbox AS o
         WHERE o.xid >= pg_snapshot_xmax(r.horizon)
           AND NOT (r.target IS NOT NULL AND pg_visible_in_snapshot(o.xid, r.target) AND o.seq <= r.progress)
         ORDER BY o.xid, o.seq LIMIT 1)) AS open) AS w ON true
WHERE r.shard = 0
"""
"""The relay's row; whether its horizon has everything."""

RETENTION = """
SELECT clock_timestamp() - t.ran_at AS age, t.keep_days,
       ARRAY(SELECT each ->> 'name' || ' ' || (each ->> 'told') FROM jsonb_array_elements(t.overdue) AS each) AS overdue,
       EXISTS (SELECT FROM {schema}.relay AS r WHERE r.lease_until > clock_timestamp()) AS owned
FROM {schema}.retention AS t
"""
"""When retention ran last, and what it had to keep."""

GROUPS = """
SELECT i.group_id AS "group", count(*) FILTER (WHERE i.outcome = 'quarantine') AS quarantined,
       clock_timestamp() - min(i.due_at) FILTER (WHERE i.outcome = 'retry') AS overdue
FROM {schema}.inbox AS i
WHERE i.outcome NOT IN ('done', 'skipped')
GROUP BY i.group_id ORDER BY i.group_id
"""
"""Open messages of each group that works in this database."""

SOURCES = """
SELECT DISTINCT regexp_replace(v.subject, '-[^-]*$', '') AS topic
FROM {schema}.schema_version AS v WHERE v.subject LIKE '%%-%%' ORDER BY 1
"""
"""Topics that registered schemas belong to."""

WATERMARKS = """
SELECT w.group_id AS "group", w.topic, count(*) AS partitions
FROM {schema}.watermark AS w WHERE position('.' || w.group_id || '.retry.' IN w.topic) = 0
GROUP BY w.group_id, w.topic, w.topic_id ORDER BY 1, 2
"""
"""Groups and the source topics that they read; the tiers that a group reads besides are its own."""

SCHEMA_IDS = """
SELECT v.subject, v.version, v.fingerprint, v.schema_id FROM {schema}.schema_version AS v ORDER BY 1, 2
"""
"""The registered schema versions and their ids."""
