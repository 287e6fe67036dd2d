"""
What one look asks; each statement reads a bounded number of rows, however large the tables are. `{schema}` is the database schema
of Packhorse's tables.
"""

NOW = """
SELECT clock_timestamp() AS at, (SELECT o.seq FROM {schema}.outbox AS o ORDER BY o.seq DESC LIMIT 1) AS drawn,
       greatest((SELECT count(*) FROM {schema}.relay_member AS m WHERE m.seen_at > clock_timestamp() - interval '30 seconds'),
                (SELECT count(DISTINCT r.token) FROM {schema}.relay AS r WHERE r.lease_until > clock_timestamp()))::int AS relays
"""
"""The clock, the relays that live (one that carries a single shard is no member: it is known by its lease), and how far the outbox's sequence is drawn: one step in the index of each of its partitions."""

PUBLISHED = "SELECT r.shard::int, r.published FROM {schema}.relay AS r"
"""Rows that the broker has confirmed, by shard."""

MARKS = """
SELECT DISTINCT ON (w.group_id, w.topic, w.partition)
       w.group_id AS "group", w.topic, w.partition, w."offset", w.moved_at
FROM {schema}.watermark AS w WHERE position('.' || w.group_id || '.retry.' IN w.topic) = 0
ORDER BY w.group_id, w.topic, w.partition, w.first_at DESC LIMIT 20000
"""
"""The watermarks of source topics, one row a partition."""

GROUPS = """
SELECT w.group_id AS name FROM {schema}.watermark AS w UNION SELECT m.group_id FROM {schema}.processor_member AS m
UNION SELECT p.group_id FROM {schema}.pause AS p ORDER BY 1 LIMIT 100
"""
"""The groups that work in this database."""

WAITING = """
SELECT %(group)s AS "group",
       (SELECT count(*) FROM (SELECT FROM {schema}.retry_message AS r WHERE r.group_id = %(group)s LIMIT %(most)s) AS r)::int AS retries,
       (SELECT r.due_at FROM {schema}.retry_message AS r WHERE r.group_id = %(group)s ORDER BY r.due_at LIMIT 1) AS due_at,
       (SELECT count(*) FROM (SELECT FROM {schema}.parked_key AS k WHERE k.group_id = %(group)s LIMIT %(most)s) AS k)::int
           AS parked_keys,
       (SELECT count(*) FROM (SELECT FROM {schema}.parked_key AS k WHERE k.group_id = %(group)s AND k.paused LIMIT %(most)s) AS k)::int
           AS paused_keys,
       (SELECT count(*) FROM (SELECT FROM {schema}.parked_message AS f WHERE f.group_id = %(group)s LIMIT %(most)s) AS f)::int
           AS followers,
       (SELECT q.quarantined_at FROM {schema}.quarantined_message AS q WHERE q.group_id = %(group)s AND q.state = 'quarantined'
         ORDER BY q.quarantined_at LIMIT 1) AS oldest_quarantined
"""
"""What waits in one group, counted up to a bound, by the indexes that begin with the group."""

FAILING = """
SELECT t.group_id AS "group", t.type, t.reason, sum(t.n)::bigint AS messages, max(t.last_at) AS last_at
FROM (
    SELECT t.group_id, t.type, t.reason, t.n, t.last_at FROM {schema}.quarantine_tally AS t WHERE t.state = 'quarantined'
    UNION ALL
    SELECT c.group_id, c.type, c.reason, c.n, c.last_at FROM {schema}.quarantine_change AS c WHERE c.state = 'quarantined'
) AS t GROUP BY 1, 2, 3 HAVING sum(t.n) > 0 ORDER BY 4 DESC LIMIT 1000
"""
"""What rests in quarantine, by type and reason, from the counts that are kept: never a look at the messages."""

PROCESSES = """
SELECT m.group_id AS "group", m.host, m.pid, m.seen_at, m.status ->> 'version' AS version,
       CASE jsonb_typeof(m.status -> 'partitions') WHEN 'array' THEN jsonb_array_length(m.status -> 'partitions') ELSE 0 END AS partitions,
       m.status -> 'stalls' AS stalls, m.status -> 'wrong' AS wrong, m.status -> 'stopped handlers' AS stopped
FROM {schema}.processor_member AS m WHERE m.seen_at > clock_timestamp() - interval '1 day' ORDER BY 1, m.started_at LIMIT 500
"""
"""The processes of the last day, and what each says of itself."""

PAUSED = """
SELECT p.group_id AS "group", CASE WHEN p.topic = '' THEN 'the group' WHEN p.partition < 0 THEN p.topic
       ELSE p.topic || '[' || p.partition || ']' END AS what, p.paused_by AS by, p.why, p.paused_at AS at
FROM {schema}.pause AS p ORDER BY 1, 2 LIMIT 200
"""
"""What people have paused, keys aside."""

RUNS = """
(SELECT 'redrive' AS kind, r.id, r.state, NULL AS "group", coalesce((SELECT m.ordinal - 1 FROM {schema}.redrive_member AS m
          WHERE m.redrive_id = r.id AND m.state IN ('waiting', 'asked') ORDER BY m.ordinal LIMIT 1), r.members) AS done,
        r.members AS total, r.runner, coalesce(r.lease_until > clock_timestamp(), false) AS live,
        coalesce(r.confirmed_by, r.previewed_by) AS by, r.said
 FROM {schema}.redrive AS r WHERE r.state IN ('running', 'paused', 'halted') ORDER BY r.id LIMIT 20)
UNION ALL
(SELECT 'replay', r.id, r.state, r.group_id, p.done, p.total, r.runner, coalesce(r.lease_until > clock_timestamp(), false),
        coalesce(r.confirmed_by, r.planned_by), r.said
 FROM {schema}.replay AS r CROSS JOIN LATERAL (
     SELECT coalesce(sum(p.position - p.first), 0)::bigint AS done, coalesce(sum(p.past - p.first), 0)::bigint AS total
     FROM {schema}.replay_partition AS p WHERE p.replay_id = r.id) AS p
 WHERE r.state IN ('running', 'paused', 'halted') ORDER BY r.id LIMIT 20)
"""
"""Redrives and replays that are not over; a redrive is as far as its first member that is not finished, for they go in order."""

SIZES = """
SELECT t.name AS table, coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint AS bytes,
       coalesce(sum(greatest(c.reltuples, 0)) FILTER (WHERE c.relkind = 'r'), 0)::bigint AS rows
FROM (VALUES ('outbox', '{schema}.outbox'::regclass), ('inbox', '{schema}.inbox'::regclass),
             ('retry_message', '{schema}.retry_message'::regclass), ('parked_message', '{schema}.parked_message'::regclass),
             ('quarantined_message', '{schema}.quarantined_message'::regclass)) AS t (name, parent)
CROSS JOIN LATERAL (SELECT t.parent::oid AS oid UNION ALL SELECT i.inhrelid FROM pg_inherits AS i WHERE i.inhparent = t.parent) AS p
JOIN pg_class AS c ON c.oid = p.oid
GROUP BY t.name ORDER BY t.name
"""
"""How large these tables are, by the files; rows as the planner believes."""

JOBS = """
SELECT s.state, (SELECT count(*) FROM (SELECT FROM {schema}.job AS j WHERE j.state <> 'succeeded' AND j.state = s.state
           LIMIT %(most)s) AS c)::int AS jobs,
       CASE s.state WHEN 'running' THEN (SELECT count(*) FROM (SELECT FROM {schema}.job AS j
           WHERE j.state <> 'succeeded' AND j.state = 'running' AND j.lease_until < clock_timestamp() - interval '10 seconds'
           LIMIT %(most)s) AS c)::int ELSE 0 END AS left
FROM (VALUES ('accepted'), ('running'), ('retrying'), ('quarantined'), ('uncertain')) AS s (state)
"""
"""Jobs that are not over, by state, counted up to a bound by their index; of those that run, how many have nobody any more."""
