"""The crew's SQL; `{schema}` is the database schema."""

SEEN = """
INSERT INTO "{schema}".relay_member AS m (token, name) VALUES (%(token)s, %(name)s)
ON CONFLICT (token) DO UPDATE SET seen_at = clock_timestamp()
"""

FORGET = """
DELETE FROM "{schema}".relay_member WHERE token = %(token)s OR seen_at < clock_timestamp() - interval '1 day'
"""

ROSTER = """
SELECT r.shard, coalesce(r.token IS NOT NULL AND r.lease_until > clock_timestamp(), false),
    NOT r.finish OR r.target IS NOT NULL,
    (SELECT count(*) FROM "{schema}".relay_member
      WHERE seen_at > clock_timestamp() - %(patience)s * interval '1 second' AND token <> %(token)s)
  FROM "{schema}".relay AS r ORDER BY r.shard
"""
