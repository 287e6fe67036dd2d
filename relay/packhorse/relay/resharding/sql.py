"""SQL of a change of the number of shards; `{schema}` is the database schema."""
# ruff: noqa: S608 only constants are put together here, and checked identifiers in the adapter

from packhorse.relay.sql import SHARD_OF

STANDING = """
SELECT r.shard, CASE WHEN r.token IS NOT NULL AND r.lease_until > clock_timestamp() THEN r.owner END, r.horizon::text,
    r.target::text, r.finish, r.shards_wanted
  FROM "{schema}".relay AS r ORDER BY r.shard
"""
LOCKED = f"{STANDING.rstrip()} FOR UPDATE"

WIDE_HOLDS = """
SELECT id, scope, aggregatetype FROM "{schema}".relay_hold WHERE state <> 'ended' AND scope IN ('partition', 'topic') ORDER BY id
"""

ORDER = """
UPDATE "{schema}".relay SET finish = true, shards_wanted = %(wanted)s, orders = orders + 1
"""

LEVEL = """
UPDATE "{schema}".relay SET target = pg_current_snapshot(), progress = 0, token = NULL, owner = NULL, lease_until = NULL
"""
"""One statement has one snapshot: every shard gets the same target, which is later than all their horizons."""

KEEP_FIRST = """
WITH everyone AS (
    SELECT max(epoch) AS epoch, sum(published) AS published, max(seq_high) AS seq_high, max(orders) AS orders FROM "{schema}".relay)
UPDATE "{schema}".relay AS r SET epoch = e.epoch + 1, published = e.published, seq_high = e.seq_high, orders = e.orders + 1,
    token = NULL, owner = NULL, lease_until = NULL, finish = false, shards_wanted = NULL
  FROM everyone AS e WHERE r.shard = 0
"""
DROP_OTHERS = 'DELETE FROM "{schema}".relay WHERE shard > 0'
MAKE_OTHERS = """
INSERT INTO "{schema}".relay SELECT (jsonb_populate_record(r, jsonb_build_object('shard', n, 'published', 0))).*
  FROM "{schema}".relay AS r, generate_series(1, %(wanted)s::int - 1) AS n WHERE r.shard = 0
"""
DEAL_HOLDS = f"""
UPDATE "{{schema}}".relay_hold AS o SET shard = {SHARD_OF.format(shards="%(wanted)s::int")}
 WHERE o.state <> 'ended'
"""
"""A held key goes where its rows go."""

ABORT = """
UPDATE "{schema}".relay SET finish = false, shards_wanted = NULL, orders = orders + 1 WHERE finish
"""

AUDIT = """
INSERT INTO "{schema}".audit (actor, act, detail, why) VALUES (%(actor)s, %(act)s, %(detail)s::jsonb, %(why)s)
"""
