"""Pages of what people did. `{schema}` is the database schema of Packhorse's tables."""

PAGE = """
SELECT a.id, a.at, a.actor, a.role, a.act, a.group_id AS "group", a.topic, a.message_id, a.detail, a.why
FROM {schema}.audit AS a
WHERE (%(actor)s::text IS NULL OR strpos(a.actor, %(actor)s) > 0)
  AND (%(act)s::text IS NULL OR starts_with(a.act, %(act)s))
  AND (%(id)s::uuid IS NULL OR a.message_id = %(id)s)
  AND (%(group)s::text IS NULL OR a.group_id = %(group)s)
  AND (%(since)s::timestamptz IS NULL OR a.at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR a.at < %(until)s)
  AND (%(after_at)s::timestamptz IS NULL OR (a.at, a.id) < (%(after_at)s, %(after_id)s::bigint))
ORDER BY a.at DESC, a.id DESC
LIMIT %(limit)s
"""
"""One page of what people did, the newest first, behind the act that the page before ended with."""
