"""Statements around counts of the quarantine and who was told; `{schema}` is a checked identifier."""

# Adds a portion of what has changed to the counts; none when nothing has, or another process does just that.
FOLD = """
SELECT CASE WHEN EXISTS (SELECT FROM "{schema}".quarantine_change)
    THEN "{schema}".fold_quarantine(%(step)s::int) ELSE 0 END"""

# The groups of failures of a group with messages that wait, the largest first, and when somebody was told of each.
FAILING = """
SELECT c.print, c.topic, c.type, c.reason, c.site, c.n, c.first_at, c.last_at, f.told_at, coalesce(f.told_count, 0),
    f.acknowledged_at IS NOT NULL, clock_timestamp()
FROM (
    SELECT "{schema}".failure_print(%(group)s, e.topic, e.type, e.reason, e.site) AS print, e.*
    FROM (
        SELECT a.topic, a.type, a.reason, a.site, sum(a.n)::bigint AS n, min(a.first_at) AS first_at, max(a.last_at) AS last_at
        FROM (
            SELECT t.topic, t.type, t.reason, t.site, t.n, t.first_at, t.last_at FROM "{schema}".quarantine_tally t
            WHERE t.group_id = %(group)s AND t.state = 'quarantined'
            UNION ALL
            SELECT q.topic, q.type, q.reason, q.site, q.n, q.first_at, q.last_at FROM "{schema}".quarantine_change q
            WHERE q.group_id = %(group)s AND q.state = 'quarantined'
        ) a
        GROUP BY a.topic, a.type, a.reason, a.site HAVING sum(a.n) > 0 ORDER BY n DESC LIMIT 1000
    ) e
) c
LEFT JOIN "{schema}".failure_group f ON f.print = c.print
ORDER BY c.n DESC"""

# Takes it on to tell of a group; no row: another process has, or a person has acknowledged it.
TELL = """
INSERT INTO "{schema}".failure_group AS g (print, contact, told_at, told_count)
VALUES (%(print)s, %(contact)s, clock_timestamp(), %(count)s)
ON CONFLICT (print) DO UPDATE SET told_at = EXCLUDED.told_at, told_count = EXCLUDED.told_count, contact = EXCLUDED.contact
WHERE g.acknowledged_at IS NULL AND g.told_at IS NOT DISTINCT FROM %(told_at)s::timestamptz AND g.told_count = %(told_count)s
RETURNING g.print"""

# The namespace under which the notice's schema is registered here, if it is.
NAMESPACE = """
SELECT left(s.subject, -length(%(rest)s)) FROM "{schema}".schema_version s
WHERE right(s.subject, length(%(rest)s)) = %(rest)s ORDER BY s.subject LIMIT 1"""
