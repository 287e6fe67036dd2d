"""What is asked about relays and holds besides the relay's own statements. `{schema}` is the database schema of Packhorse's tables."""

PLANNER = """
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)
"""
"""As on the relay's own connections: its statements are meant to read an index in its order and stop."""

NOW = "SELECT clock_timestamp() AS at"

PROCESSES = """
SELECT m.name, m.seen_at, ARRAY(SELECT r.shard::int FROM {schema}.relay AS r
    WHERE r.token = m.token AND r.lease_until > clock_timestamp() ORDER BY 1) AS shards
FROM (SELECT m.token, m.name, m.seen_at FROM {schema}.relay_member AS m
      WHERE m.seen_at > clock_timestamp() - interval '30 seconds' ORDER BY m.seen_at DESC LIMIT 200) AS m
UNION ALL
SELECT r.owner, NULL, array_agg(r.shard::int ORDER BY r.shard) FROM {schema}.relay AS r
WHERE r.lease_until > clock_timestamp() AND NOT EXISTS (SELECT FROM {schema}.relay_member AS m
    WHERE m.token = r.token AND m.seen_at > clock_timestamp() - interval '30 seconds')
GROUP BY r.owner, r.token
ORDER BY 1
"""
"""Relays that live, and what each owns; one that carries a single shard is known by its lease alone."""

ACTS = """
SELECT a.act, a.actor, a.at, a.why FROM (
    SELECT a.act, a.actor, a.at, a.id, a.why, a.detail FROM {schema}.audit AS a WHERE a.at >= %(since)s
    ORDER BY a.at DESC, a.id DESC LIMIT 20000) AS a
WHERE a.detail @> jsonb_build_object('hold', %(id)s::bigint) ORDER BY a.at DESC, a.id DESC LIMIT 20
"""
"""What people did with one hold, among the newest acts since it was made."""
