"""SQL of the moves between our relay and Debezium. `{schema}`, `{slot}`, `{publication}` are checked identifiers."""
# ruff: noqa: S608 only constants are put together here

from packhorse.relay.identity.sql import DRAWN, INCARNATION

PREPARATION = """\
-- For psql or any client that commits each statement by itself, as the owner of the tables or a superuser.
-- wal_level must be logical. Set max_slot_wal_keep_size: a connector that stands still must not fill the disk.

-- 1. What is read; the relay's own CDC mode reads the same. One that is there is left as it is.
DO $do$ BEGIN IF NOT EXISTS (SELECT FROM pg_publication WHERE pubname = '{publication}') THEN
CREATE PUBLICATION "{publication}" FOR TABLE "{schema}".outbox WITH (publish = 'insert', publish_via_partition_root = true); END IF; END $do$;

-- 2. The connector's role; make it first: CREATE ROLE "{role}" LOGIN REPLICATION PASSWORD …
GRANT USAGE ON SCHEMA "{schema}" TO "{role}";
GRANT SELECT ON "{schema}".outbox TO "{role}";

-- 3. The slot; waits until the transactions that write now are over. From here on nothing is missed.
SELECT slot_name, lsn FROM pg_create_logical_replication_slot('{slot}', 'pgoutput');

-- 4. What is older than the slot: rows of transactions below this fence that committed before it.
INSERT INTO "{schema}".audit (actor, act, detail)
SELECT current_user, 'make-connector-slot', jsonb_build_object('slot', s.slot_name, 'fence', pg_current_xact_id()::text)
  FROM pg_replication_slots AS s WHERE s.slot_name = '{slot}';

-- 5. `packhorse relay debezium-ready` says when the connector may start: our relay has to publish what is older first.
"""
"""The fence is drawn after the slot stands, in a transaction of its own: what committed before the slot is below it."""

SLOT = """
SELECT s.slot_type = 'logical' AND s.plugin = 'pgoutput' AND s.database = current_database(), s.active,
    coalesce(s.wal_status, 'lost'), s.confirmed_flush_lsn::text,
    coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), s.confirmed_flush_lsn), 0)::bigint,
    (SELECT a.detail ->> 'fence' FROM "{schema}".audit AS a
      WHERE a.act IN ('make-connector-slot', 'make connector slot') AND a.detail ->> 'slot' = s.slot_name ORDER BY a.id DESC LIMIT 1)
  FROM pg_replication_slots AS s WHERE s.slot_name = %(slot)s
"""

SHARDS = """
SELECT r.shard, r.owner, r.token IS NOT NULL AND r.lease_until > clock_timestamp(), r.horizon::text
  FROM "{schema}".relay AS r ORDER BY r.shard
"""

HOLDS = """
SELECT count(*) FROM "{schema}".relay_hold WHERE state <> 'ended'
"""

OLDER = """
SELECT count(*) FROM "{schema}".relay AS r CROSS JOIN LATERAL (
    SELECT 1 FROM "{schema}".outbox AS o
     WHERE o.xid >= pg_snapshot_xmin(r.horizon) AND o.xid < %(fence)s::xid8
       AND NOT pg_visible_in_snapshot(o.xid, r.horizon) LIMIT {count}) AS row
"""
"""
Committed rows below the fence that a horizon lacks, counted up to a bound.

Those whose transaction ended only after the slot stood are counted too: they are in the slot, and waiting for the relay
to publish them costs nothing.
"""

MARK = """
SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text
"""
"""The statement's snapshot is taken before it runs: what is visible in it committed before that position of the log."""

CONFIRMED = """
SELECT s.confirmed_flush_lsn >= %(at)s::pg_lsn, s.confirmed_flush_lsn::text,
    pg_wal_lsn_diff(%(at)s::pg_lsn, s.confirmed_flush_lsn)::bigint
  FROM pg_replication_slots AS s WHERE s.slot_name = %(slot)s
"""

LOCKED = f"""
SELECT r.shard, r.owner, r.token IS NOT NULL AND r.lease_until > clock_timestamp(), r.horizon::text,
    pg_snapshot_xmax(r.horizon) <= pg_snapshot_xmax(%(horizon)s::pg_snapshot)
        AND (r.incarnation IS NULL OR r.incarnation = {INCARNATION})
  FROM "{{schema}}".relay AS r ORDER BY r.shard FOR UPDATE
"""
"""Locked, so that no relay takes the lease meanwhile; whoever takes it afterwards reads the new horizon."""

MOVE = f"""
UPDATE "{{schema}}".relay SET horizon = %(horizon)s::pg_snapshot, target = NULL, progress = 0,
    token = NULL, owner = NULL, lease_until = NULL, seq_high = greatest(seq_high, {DRAWN}),
    incarnation = {INCARNATION}, saved_at = clock_timestamp()
"""

AUDIT = """
INSERT INTO "{schema}".audit (actor, act, detail)
VALUES (%(actor)s, 'move-horizon-to-connector', jsonb_build_object('slot', %(slot)s::text, 'horizon', %(horizon)s::text))
"""
