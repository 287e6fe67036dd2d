"""
Counts of the quarantine, and what people know of groups of failures. `{schema}` is the database schema of Packhorse's tables.

Counts are those of a tally and, with *changes*, of what has not been added to it yet, in one snapshot: then they are exact. They are
never a look at the messages.
"""

_DAYS = """
    SELECT t.group_id, t.topic, t.type, ''::text AS tenant, t.reason, t.site, t.day, t.state, t.n, t.first_at, t.last_at
    FROM {schema}.quarantine_tally AS t"""
_TENANTS = """
    SELECT t.group_id, t.topic, t.type, t.tenant, t.reason, t.site, NULL::date AS day, t.state, t.n, t.first_at, t.last_at
    FROM {schema}.quarantine_tenant_tally AS t"""
_CHANGES = """
    UNION ALL
    SELECT c.group_id, c.topic, c.type, c.tenant, c.reason, c.site, c.day, c.state, c.n, c.first_at, c.last_at
    FROM {schema}.quarantine_change AS c WHERE %(changes)s::boolean)"""
_BY_DAY = "WITH every_one AS (" + _DAYS + _CHANGES
_BY_TENANT = "WITH every_one AS (" + _TENANTS + _CHANGES

_FITS = """
, fits AS (
    SELECT e.* FROM every_one AS e
    WHERE (%(group)s::text IS NULL OR e.group_id = %(group)s)
      AND (%(topic)s::text IS NULL OR e.topic = %(topic)s)
      AND (%(type)s::text IS NULL OR e.type = %(type)s)
      AND (%(tenant)s::text IS NULL OR e.tenant = %(tenant)s)
      AND (%(reason)s::text IS NULL OR e.reason = %(reason)s)
      AND (%(since)s::date IS NULL OR e.day >= %(since)s)
      AND (%(until)s::date IS NULL OR e.day <= %(until)s)
)"""
_NAMED = """
, kind AS MATERIALIZED (
    SELECT e.group_id, e.topic, e.type, e.reason, e.site, e.state,
        CASE %(by)s WHEN 'tenant' THEN e.tenant WHEN 'day' THEN e.day::text END AS other,
        sum(e.n) AS n, min(e.first_at) AS first_at, max(e.last_at) AS last_at
    FROM fits AS e
    GROUP BY 1, 2, 3, 4, 5, 6, 7
), named AS (
    SELECT CASE %(by)s
            WHEN 'failure' THEN {schema}.failure_print(k.group_id, k.topic, k.type, k.reason, k.site)
            WHEN 'reason' THEN k.reason
            WHEN 'class' THEN split_part(split_part(k.site, ' at ', 1), ' (', 1)
            WHEN 'place' THEN split_part(k.site, ' at ', 2)
            WHEN 'type' THEN k.type
            WHEN 'topic' THEN k.topic
            WHEN 'group' THEN k.group_id
            WHEN 'state' THEN k.state
            ELSE k.other END AS name,
        k.*
    FROM kind AS k
)"""
_NAMED_BY_TENANT = """
, named AS (
    SELECT e.tenant AS name, e.state, e.n, e.first_at, e.last_at, NULL::text AS group_id, NULL::text AS topic,
        NULL::text AS type, NULL::text AS reason, NULL::text AS site
    FROM fits AS e
)"""
_GROUPED = """
, counted AS (
    SELECT d.name,
        coalesce(sum(d.n) FILTER (WHERE d.state = 'quarantined'), 0)::bigint AS quarantined,
        coalesce(sum(d.n) FILTER (WHERE d.state = 'redriven'), 0)::bigint AS redriven,
        coalesce(sum(d.n) FILTER (WHERE d.state = 'discarded'), 0)::bigint AS discarded,
        min(d.first_at) AS first_at, max(d.last_at) AS last_at,
        min(d.group_id) AS group_id, min(d.topic) AS topic, min(d.type) AS type, min(d.reason) AS reason, min(d.site) AS site
    FROM named AS d GROUP BY d.name
), ranked AS (
    SELECT c.*, c.quarantined + c.redriven + c.discarded AS total,
        CASE %(state)s::text WHEN 'redriven' THEN c.redriven WHEN 'discarded' THEN c.discarded ELSE c.quarantined END AS rank
    FROM counted AS c
), shared AS (
    SELECT c.*, count(*) OVER () AS in_all,
        coalesce(c.rank / nullif(sum(c.rank) OVER (), 0), 0)::float8 AS share
    FROM ranked AS c WHERE c.total > 0 AND (%(state)s::text IS NULL OR c.rank > 0)
), page AS MATERIALIZED (
    SELECT s.* FROM shared AS s
    WHERE %(after_name)s::text IS NULL
       OR (-s.rank, -s.total, s.name COLLATE "C") > (-%(after_rank)s::bigint, -%(after_total)s::bigint, %(after_name)s COLLATE "C")
    ORDER BY s.rank DESC, s.total DESC, s.name COLLATE "C" LIMIT %(limit)s
)
SELECT p.*, f.acknowledged_by, f.acknowledged_at, f.acknowledged_why, f.contact, f.told_at,
    (SELECT count(*) FROM {schema}.failure_note AS o WHERE o.print = p.name) AS notes,
    CASE WHEN f.acknowledged_at IS NOT NULL THEN (SELECT count(*) FROM (SELECT FROM {schema}.quarantined_message AS q
        WHERE {schema}.failure_print(q.group_id, q.topic, q.type, q.reason, q.error) = p.name
          AND q.quarantined_at > f.acknowledged_at LIMIT %(most_since)s) AS few) END AS since
FROM page AS p LEFT JOIN {schema}.failure_group AS f ON f.print = p.name AND %(by)s = 'failure'
ORDER BY p.rank DESC, p.total DESC, p.name COLLATE "C"
"""

GROUPS = _BY_DAY + _FITS + _NAMED + _GROUPED
"""Groups with their counts, the largest first, behind the one that the page before ended with."""

GROUPS_OF_TENANTS = _BY_TENANT + _FITS + _NAMED + _GROUPED
"""The same of one tenant, which knows no days."""

GROUPS_BY_TENANT = _BY_TENANT + _FITS + _NAMED_BY_TENANT + _GROUPED
"""The same by tenant: straight from the rows, which are many."""

_PRINTED = """
, kind AS MATERIALIZED (
    SELECT DISTINCT a.group_id, a.topic, a.type, a.reason, a.site FROM every_one AS a
), named AS MATERIALIZED (
    SELECT {schema}.failure_print(k.group_id, k.topic, k.type, k.reason, k.site) AS print, k.* FROM kind AS k
)
SELECT n.print, n.group_id, n.topic, n.type, n.reason, n.site FROM named AS n
WHERE n.print >= %(low)s COLLATE "C" AND n.print <= %(high)s COLLATE "C" ORDER BY n.print LIMIT 3
"""
PRINTS = _BY_DAY + _PRINTED
"""Groups of failures whose print begins so, and what their messages have in common."""

PRINT_OF = """
SELECT {schema}.failure_print(q.group_id, q.topic, q.type, q.reason, q.error) AS print
FROM {schema}.quarantined_message AS q
WHERE q.message_id = %(id)s AND (%(group)s::text IS NULL OR q.group_id = %(group)s)
  AND (%(topic)s::text IS NULL OR q.topic = %(topic)s)
"""
"""The group of failures that a message belongs to."""

DAYS_OF = (
    _BY_DAY
    + """
SELECT e.day, coalesce(sum(e.n) FILTER (WHERE e.state = 'quarantined'), 0)::bigint AS quarantined,
    coalesce(sum(e.n) FILTER (WHERE e.state = 'redriven'), 0)::bigint AS redriven,
    coalesce(sum(e.n) FILTER (WHERE e.state = 'discarded'), 0)::bigint AS discarded
FROM every_one AS e
WHERE e.group_id = %(group)s AND e.topic = %(topic)s AND e.type = %(type)s AND e.reason = %(reason)s AND e.site = %(site)s
GROUP BY e.day HAVING sum(e.n) > 0 ORDER BY e.day DESC LIMIT 60
"""
)
"""The last days on which messages of a group came."""

TENANTS_OF = (
    _BY_TENANT
    + """
SELECT e.tenant, sum(e.n)::bigint AS n FROM every_one AS e
WHERE e.group_id = %(group)s AND e.topic = %(topic)s AND e.type = %(type)s AND e.reason = %(reason)s AND e.site = %(site)s
  AND e.state = 'quarantined'
GROUP BY e.tenant HAVING sum(e.n) > 0 ORDER BY n DESC, e.tenant LIMIT 10
"""
)
"""The tenants with most of a group's messages that wait."""

SAMPLES_OF = """
SELECT q.message_id AS id FROM {schema}.quarantined_message AS q
WHERE {schema}.failure_print(q.group_id, q.topic, q.type, q.reason, q.error) = %(print)s
ORDER BY q.quarantined_at DESC, q.message_id DESC LIMIT 5
"""
"""The newest messages of a group."""

NOTES_OF = """
SELECT n.at, n.actor, n.note FROM {schema}.failure_note AS n WHERE n.print = %(print)s ORDER BY n.id DESC LIMIT 20
"""
"""The last notes about a group."""

FOR_GOOD = """
WITH looked AS MATERIALIZED (
    SELECT f.message_id, f.group_id, f.topic FROM {schema}.failed_attempt AS f ORDER BY f.message_id DESC LIMIT %(look)s
), failed AS (
    SELECT DISTINCT l.message_id FROM looked AS l WHERE l.group_id = %(group)s AND l.topic = %(topic)s
), judged AS (
    SELECT f.message_id, q.message_id IS NOT NULL AS stopped
    FROM failed AS f
    LEFT JOIN {schema}.quarantined_message AS q
        ON q.message_id = f.message_id AND q.group_id = %(group)s AND q.topic = %(topic)s
    LEFT JOIN {schema}.inbox AS i ON i.message_id = f.message_id AND i.group_id = %(group)s AND i.topic = %(topic)s
    WHERE coalesce(q.type, i.type, '') = %(type)s
)
SELECT count(*) AS failed, count(*) FILTER (WHERE j.stopped) AS stopped,
    (SELECT count(*) FROM looked) AS looked, (SELECT l.message_id FROM looked AS l ORDER BY l.message_id LIMIT 1) AS oldest
FROM judged AS j
"""
"""Among the newest failed attempts: the messages of a type and group, and those of them that have ever stopped."""

LONG_CHANGES = """
SELECT count(*) > %(many)s AS many, has_function_privilege(%(fold)s, 'EXECUTE') AS may
FROM (SELECT FROM {schema}.quarantine_change LIMIT %(many)s + 1) AS c
"""
"""Whether so much waits to be added to the counts that it is worth doing, and whether we may."""

UNCOUNTED = """
SELECT count(*) AS n FROM (SELECT FROM {schema}.quarantine_change LIMIT %(most)s + 1) AS c
"""
"""How much waits to be added to the counts, up to a bound."""

FOLD = """
SELECT {schema}.fold_quarantine(%(step)s) AS folded
"""
"""Add a portion of what has changed to the counts; nothing while somebody else does."""

WRITE_NOTE = """
INSERT INTO {schema}.failure_note (print, actor, note) VALUES (%(print)s, %(actor)s, %(note)s) RETURNING at
"""
"""Put a note about a group."""

ACKNOWLEDGE = """
INSERT INTO {schema}.failure_group AS g (print, acknowledged_by, acknowledged_at, acknowledged_why)
VALUES (%(print)s, %(actor)s, clock_timestamp(), %(why)s)
ON CONFLICT (print) DO UPDATE SET acknowledged_by = EXCLUDED.acknowledged_by, acknowledged_at = EXCLUDED.acknowledged_at,
    acknowledged_why = EXCLUDED.acknowledged_why
WHERE g.acknowledged_at IS NULL
RETURNING g.acknowledged_at AS at
"""
"""Acknowledge a group that nobody has acknowledged."""

UNACKNOWLEDGE = """
UPDATE {schema}.failure_group AS g SET acknowledged_by = NULL, acknowledged_at = NULL, acknowledged_why = NULL
WHERE g.print = %(print)s AND g.acknowledged_at IS NOT NULL
RETURNING g.print
"""
"""Take the acknowledgement of a group back."""

WHO_ACKNOWLEDGED = """
SELECT g.acknowledged_by AS actor, g.acknowledged_at AS at FROM {schema}.failure_group AS g WHERE g.print = %(print)s
"""
"""Who has acknowledged a group, and when."""
