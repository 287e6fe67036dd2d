"""The doctor's questions to the database. `{schema}` is the database schema of Packhorse's tables."""
# ruff: noqa: S608 only constants of this module are put together here

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
             UNION ALL
             SELECT c.relname::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
             WHERE n.nspname = %(schema)s AND c.relname = 'audit'
               AND 2 > (SELECT count(*) FROM pg_trigger AS t WHERE t.tgrelid = c.oid
                        AND t.tgname IN ('refuse_forgetting', 'stamp_act') AND t.tgenabled IN ('O', 'A'))
             ORDER BY 1) AS without_trigger,
       ARRAY(SELECT t.name FROM unnest(%(tables)s::text[]) AS t (name)
             WHERE NOT EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
                               WHERE n.nspname = %(schema)s AND c.relname = t.name AND c.relkind IN ('r', 'p'))
             ORDER BY 1) AS missing,
       (clock_timestamp() AT TIME ZONE 'UTC')::date AS today
"""
"""The outbox's sequence, the tables that would let a row be changed, the audit among them, and which of all tables are missing."""

_MINE = """(n.shards = 1 OR r.shard = mod(
            ('x' || left(encode(sha256(convert_to(coalesce(o.aggregateid, ''), 'UTF8')), 'hex'), 4))::bit(16)::int, n.shards))"""
"""Which rows are one shard's; as the relay deals them."""

RELAY = f"""
SELECT r.shard::int, n.shards::int, r.epoch, r.owner, coalesce(r.token IS NOT NULL AND r.lease_until > clock_timestamp(), false) AS owned,
       clock_timestamp() - r.lease_until AS lease_age, r.trouble, r.trouble_since,
       w.waiting IS NOT NULL AS waiting, clock_timestamp() - w.waiting AS oldest,
       r.mode, r.mode_cause, clock_timestamp() - r.mode_since AS mode_age, h.heal::int, h.people, h.oldest_hold, h.what,
       CASE WHEN r.finish THEN r.shards_wanted END AS shards_wanted
FROM {{schema}}.relay AS r CROSS JOIN (SELECT count(*) AS shards FROM {{schema}}.relay) AS n
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE h.heals OR h.state <> 'held' OR h.asked IS NOT NULL) AS heal,
           ARRAY(SELECT p.id FROM {{schema}}.relay_hold AS p WHERE p.shard = r.shard AND p.state = 'held' AND p.asked IS NULL
                 AND NOT p.heals ORDER BY p.id LIMIT 1000) AS people,
           clock_timestamp() - min(h.made_at) AS oldest_hold,
           ARRAY(SELECT DISTINCT p.code || ' ' || p.aggregatetype FROM {{schema}}.relay_hold AS p
                  WHERE p.shard = r.shard AND p.state <> 'ended' ORDER BY 1 LIMIT 6) AS what
    FROM {{schema}}.relay_hold AS h WHERE h.shard = r.shard AND h.state <> 'ended') AS h
LEFT JOIN LATERAL (
    SELECT min(open.created_at) AT TIME ZONE 'UTC' AS waiting FROM (
        (SELECT o.created_at FROM {{schema}}.outbox AS o
         WHERE o.xid = ANY (ARRAY(SELECT pg_snapshot_xip(r.horizon))) AND {_MINE}
           AND NOT (r.target IS NOT NULL AND pg_visible_in_snapshot(o.xid, r.target) AND o.seq <= r.progress)
         ORDER BY o.xid, o.seq LIMIT 1)
        UNION ALL
        (SELECT o.created_at FROM {{schema}}.outbox AS o
         WHERE o.xid >= pg_snapshot_xmax(r.horizon) AND {_MINE}
           AND NOT (r.target IS NOT NULL AND pg_visible_in_snapshot(o.xid, r.target) AND o.seq <= r.progress)
         ORDER BY o.xid, o.seq LIMIT 1)) AS open WHERE isfinite(open.created_at)) AS w ON true
ORDER BY r.shard
"""
"""Each shard's row; whether its horizon has everything; what it holds."""

SLOTS = """
SELECT s.slot_name::text AS name, s.active, coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn), 0)::bigint AS held,
       coalesce(s.wal_status = 'lost', false) AS lost, current_setting('max_slot_wal_keep_size') <> '-1' AS bounded,
       (SELECT d.oid::bigint FROM pg_database AS d WHERE d.datname = current_database()) AS database
FROM pg_replication_slots AS s
WHERE s.database = current_database() AND s.plugin = 'pgoutput' AND s.slot_name LIKE 'packhorse\\_%%' AND NOT pg_is_in_recovery()
ORDER BY s.slot_name
"""
"""Slots of Packhorse in this database, whoever reads them."""

SHARDS = "SELECT r.shard::int FROM {schema}.relay AS r"

RETENTION = """
SELECT clock_timestamp() - t.ran_at AS age, t.keep_days,
       ARRAY(SELECT each ->> 'name' || ' ' || (each ->> 'told') FROM jsonb_array_elements(t.overdue) AS each) AS overdue,
       EXISTS (SELECT FROM {schema}.relay AS r WHERE r.lease_until > clock_timestamp()) AS owned
FROM {schema}.retention AS t
"""
"""When retention ran last, and what it had to keep."""

INBOX = """
SELECT clock_timestamp() - (r.detail ->> 'at')::timestamptz AS age,
       (SELECT count(DISTINCT w.group_id) FROM {schema}.watermark AS w)::int AS groups,
       EXISTS (SELECT FROM {schema}.processor_member AS m WHERE m.seen_at > clock_timestamp() - interval '5 minutes') AS processed,
       (SELECT count(*) FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
         WHERE i.inhparent = '{schema}.inbox'::regclass
           AND c.relname > 'inbox_' || to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD') AND c.relname ~ '^inbox_[0-9]{{8}}$')::int
         AS days_ahead,
       (SELECT count(*) FROM jsonb_object_keys(coalesce(r.detail -> 'overdue', '{{}}')))::int AS stays
FROM (SELECT 1) AS one LEFT JOIN {schema}.inbox_retention AS r ON r.group_id = ''
"""
"""When the inbox's retention ran last, and what it left behind."""

_OF_STATE = """
    SELECT count(*)::int AS n, clock_timestamp() - min(j.at) AS age FROM (SELECT {column} AS at FROM {{schema}}.job AS j
        WHERE j.state <> 'succeeded' AND j.state = '{state}' AND {column} < clock_timestamp() - interval '{patience}' LIMIT 10000) AS j"""
JOBS = f"""
WITH RECURSIVE waits (state, type) AS (
    (SELECT j.state, j.type FROM {{schema}}.job AS j WHERE j.state = 'accepted' ORDER BY j.type LIMIT 1)
    UNION ALL
    SELECT n.state, n.type FROM waits AS w CROSS JOIN LATERAL (SELECT j.state, j.type FROM {{schema}}.job AS j
        WHERE j.state = 'accepted' AND j.type > w.type ORDER BY j.type LIMIT 1) AS n
)
SELECT EXISTS (SELECT FROM {{schema}}.job) AS there, u.n AS uncertain, u.age AS uncertain_age, d.n AS overdue, d.age AS overdue_age,
       l.n AS leaseless, l.age AS leaseless_age,
       ARRAY(SELECT w.type FROM waits AS w WHERE NOT EXISTS (SELECT FROM {{schema}}.job_policy AS p WHERE p.type = w.type)
             ORDER BY 1) AS undeclared,
       (SELECT clock_timestamp() - (r.detail ->> 'at')::timestamptz FROM {{schema}}.job_retention AS r WHERE r.type = '') AS kept_age,
       EXISTS (SELECT FROM {{schema}}.processor_member AS m WHERE m.seen_at > clock_timestamp() - interval '5 minutes') AS processed
FROM ({_OF_STATE.format(column="j.changed_at", state="uncertain", patience="0")}) AS u,
     ({_OF_STATE.format(column="j.lease_until", state="running", patience="1 minute")}) AS l,
     (SELECT count(*)::int AS n, clock_timestamp() - min(j.due_at) AS age FROM (SELECT d.due_at FROM {{schema}}.job_due AS d
        WHERE d.due_at < clock_timestamp() - interval '1 minute' ORDER BY d.due_at LIMIT 10000) AS j) AS d
"""
"""Jobs that wait for a person or for nobody, counted up to a bound by the index of those that have not succeeded; and their retention."""

GROUPS = """
SELECT i.group_id AS "group", count(*) FILTER (WHERE i.outcome = 'quarantine') AS quarantined,
       clock_timestamp() - min(i.due_at) FILTER (WHERE i.outcome = 'retry') AS overdue
FROM {schema}.inbox AS i
WHERE i.outcome NOT IN ('done', 'skipped')
GROUP BY i.group_id ORDER BY i.group_id
"""
"""Open messages of each group that works in this database."""

PROCESSORS = """
WITH known AS (
    SELECT m.group_id FROM {schema}.processor_member AS m UNION SELECT p.group_id FROM {schema}.pause AS p
    UNION SELECT k.group_id FROM {schema}.parked_key AS k
), living AS (
    SELECT m.group_id, m.pid, m.host, m.status FROM {schema}.processor_member AS m
    WHERE m.seen_at > clock_timestamp() - interval '20 seconds'
)
SELECT g.group_id AS "group",
       ARRAY(SELECT clock_timestamp() - m.seen_at FROM {schema}.processor_member AS m WHERE m.group_id = g.group_id) AS seen,
       ARRAY(SELECT 'process ' || l.pid || ' on ' || l.host || ': ' || w.text
             FROM living AS l, jsonb_array_elements_text(l.status -> 'wrong') AS w (text)
             WHERE l.group_id = g.group_id AND (l.status ->> 'live') = 'false' ORDER BY 1) AS wrong,
       ARRAY(SELECT (s.each ->> 'topic') || '[' || (s.each ->> 'partition') || '] does not move for ' || (s.each ->> 'seconds')
                    || ' s: ' || (s.each ->> 'cause')
             FROM living AS l, jsonb_array_elements(l.status -> 'stalls') AS s (each)
             WHERE l.group_id = g.group_id AND (s.each ->> 'cause') NOT IN ('paused', 'not-due', 'leaving') ORDER BY 1) AS stalls,
       ARRAY(SELECT CASE WHEN p.topic = '' THEN 'the group' WHEN p.partition < 0 THEN p.topic
                         ELSE p.topic || '[' || p.partition || ']' END || ' paused by ' || p.paused_by || coalesce(': ' || p.why, '')
             FROM {schema}.pause AS p WHERE p.group_id = g.group_id ORDER BY p.topic, p.partition) AS pauses,
       (SELECT count(*) FROM {schema}.parked_key AS k WHERE k.group_id = g.group_id AND k.paused)::int AS paused_keys,
       (SELECT count(*) FROM {schema}.parked_key AS k WHERE k.group_id = g.group_id)::int AS parked_keys
FROM known AS g ORDER BY g.group_id
"""
"""What each group's processes say of themselves, and what people have paused."""

RUNS = """
(SELECT 'redrive' AS kind, r.id, r.state, coalesce(r.lease_until > clock_timestamp(), false) AS live,
        clock_timestamp() - greatest(r.lease_until, r.changed_at) AS idle, coalesce(r.confirmed_by, r.previewed_by) AS by, r.said
 FROM {schema}.redrive AS r WHERE r.state IN ('running', 'paused', 'halted') ORDER BY r.id LIMIT 50)
UNION ALL
(SELECT 'replay', r.id, r.state, coalesce(r.lease_until > clock_timestamp(), false),
        clock_timestamp() - greatest(r.lease_until, r.changed_at), coalesce(r.confirmed_by, r.planned_by), r.said
 FROM {schema}.replay AS r WHERE r.state IN ('running', 'paused', 'halted') ORDER BY r.id LIMIT 50)
"""
"""Redrives and replays that are not over, and since when nobody works on them."""

UPKEEP = """
WITH previews AS (
    SELECT r.expires_at FROM {schema}.redrive AS r WHERE r.state = 'previewed'
    UNION ALL SELECT r.expires_at FROM {schema}.replay AS r WHERE r.state = 'planned'
)
SELECT (SELECT count(*) FROM previews)::int AS previews,
       (SELECT count(*) FROM previews AS p WHERE p.expires_at < clock_timestamp())::int AS expired,
       (SELECT count(*) FROM (SELECT FROM {schema}.quarantine_change LIMIT 100000) AS c)::int AS unfolded,
       (SELECT count(*) FROM (
            SELECT DISTINCT {schema}.failure_print(t.group_id, t.topic, t.type, t.reason, t.site) AS print
            FROM {schema}.quarantine_tally AS t WHERE t.state = 'quarantined' AND t.n > 0) AS t
         WHERE NOT EXISTS (SELECT FROM {schema}.failure_group AS g WHERE g.print = t.print AND g.acknowledged_at IS NOT NULL))::int
         AS unacknowledged,
       (SELECT count(DISTINCT c.value)
        FROM {schema}.processor_member AS m CROSS JOIN LATERAL jsonb_each_text(
            CASE jsonb_typeof(m.status::jsonb -> 'contacts') WHEN 'object' THEN m.status::jsonb -> 'contacts' END) AS c
        WHERE NOT EXISTS (SELECT FROM {schema}.schema_version AS v
            WHERE position('.packhorse-notice-packhorse.NeedsPerson' IN v.subject) > 0))::int AS untold
FROM (SELECT 1) AS one
"""
"""Previews that nobody confirmed, counts that are not added up, failures that nobody has acknowledged, contacts that no notice reaches."""

EXPIRING = """
SELECT o.kind, o.name, o.expires_at - clock_timestamp() AS left FROM {schema}.operator AS o
WHERE o.expires_at < clock_timestamp() + %(soon)s ORDER BY o.expires_at LIMIT 50
"""
"""Rights that end soon, or have ended."""

SOURCES = """
SELECT DISTINCT regexp_replace(v.subject, '-[^-]*$', '') AS topic
FROM {schema}.schema_version AS v WHERE v.subject LIKE '%%-%%' AND v.subject <> 'packhorse.job-packhorse.JobReference' ORDER BY 1
"""
"""Topics that registered schemas belong to; that of the messages of jobs stands in the topics of the jobs."""

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
