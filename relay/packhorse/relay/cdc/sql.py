"""SQL about slots and publications, and the commands of the replication protocol. `{schema}` is the database schema."""

SERVER = """
SELECT current_setting('wal_level'), pg_is_in_recovery(), current_user::text,
    coalesce((SELECT r.rolreplication OR r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user), false),
    (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())::bigint,
    current_setting('max_replication_slots')::int, (SELECT count(*) FROM pg_replication_slots)::int,
    (SELECT setting::bigint * 1024 * 1024 FROM pg_settings WHERE name = 'max_slot_wal_keep_size'),
    current_setting('wal_block_size')::int, (SELECT setting::bigint FROM pg_settings WHERE name = 'wal_segment_size'),
    current_setting('synchronous_standby_names') <> ''
"""
"""What the server and the role allow; max_slot_wal_keep_size is negative when nothing bounds what a slot holds."""

IDENTITY = """
SELECT (SELECT c.system_identifier::text FROM pg_control_system() AS c),
    ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int, current_database()::text
"""
"""The same three facts that IDENTIFY_SYSTEM tells on the replication connection."""

PUBLICATION = """
SELECT p.pubinsert, p.pubupdate OR p.pubdelete OR p.pubtruncate, p.pubviaroot, p.puballtables, r.oid IS NOT NULL,
    r.prqual IS NOT NULL, r.prattrs IS NOT NULL,
    (SELECT count(*) FROM pg_publication_rel AS o WHERE o.prpubid = p.oid AND o.oid IS DISTINCT FROM r.oid)::int
        + (SELECT count(*) FROM pg_publication_namespace AS n WHERE n.pnpubid = p.oid)::int,
    p.oid::text || ' ' || p.xmin::text || ' ' || coalesce(r.xmin::text, '-')
  FROM pg_publication AS p
  LEFT JOIN pg_publication_rel AS r ON r.prpubid = p.oid AND r.prrelid = to_regclass('"{schema}".outbox')
 WHERE p.pubname = %(publication)s
"""
"""How the publication is defined; the last column is another after every change of that."""

MARK = """
SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text,
    (SELECT p.oid::text || ' ' || p.xmin::text || ' ' || coalesce(r.xmin::text, '-') FROM pg_publication AS p
      LEFT JOIN pg_publication_rel AS r ON r.prpubid = p.oid AND r.prrelid = to_regclass('"{schema}".outbox')
     WHERE p.pubname = %(publication)s), current_setting('synchronous_standby_names') <> ''
"""
"""The snapshot is the statement's own, taken before it runs; the position is read while it runs, hence after."""

SLOT = """
SELECT s.slot_type = 'logical' AND s.plugin = 'pgoutput' AND NOT s.temporary AND NOT s.two_phase,
    s.datoid::bigint, s.active_pid, s.wal_status, s.confirmed_flush_lsn::text,
    pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)::bigint,
    pg_wal_lsn_diff(pg_current_wal_flush_lsn(), s.confirmed_flush_lsn)::bigint, to_jsonb(s) ->> 'invalidation_reason'
  FROM pg_replication_slots AS s WHERE s.slot_name = %(slot)s
"""
"""Through jsonb, because the column invalidation_reason is younger than the oldest server that we work with."""

OTHER_SLOTS = """
SELECT s.slot_name::text, s.active, coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn), 0)::bigint
  FROM pg_replication_slots AS s
 WHERE s.datoid = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
   AND s.plugin = 'pgoutput' AND s.slot_name LIKE 'packhorse\\_%%' AND s.slot_name <> %(slot)s
 ORDER BY 3 DESC, 1
"""
"""Slots of ours that nobody may be reading: left by a rename of the schema, another number of shards, another mode."""

MAKE_SLOT = "SELECT 1 FROM pg_create_logical_replication_slot(%(slot)s, 'pgoutput')"

INSERT_POSITION = "SELECT pg_current_wal_insert_lsn()::text"

FENCE = "SELECT pg_current_xact_id()::text::bigint"

ADVANCE = "SELECT 1 FROM pg_replication_slot_advance(%(slot)s, %(at)s::pg_lsn)"

DROP_SLOT = (
    "SELECT pg_drop_replication_slot(s.slot_name) FROM pg_replication_slots AS s WHERE s.slot_name = %(slot)s"
)

END_READER = """
SELECT pg_terminate_backend(s.active_pid, 2000) FROM pg_replication_slots AS s
 WHERE s.slot_name = %(slot)s AND s.active_pid = %(pid)s
"""
"""End the server process of a connection that we have left; it may not have noticed yet. Waits for its end."""

OLDEST_WRITER = """
SELECT w.* FROM (
    (SELECT 'process ' || a.pid, coalesce(extract(epoch FROM clock_timestamp() - a.xact_start), 0)::bigint AS age
       FROM pg_stat_activity AS a WHERE a.backend_xid IS NOT NULL AND a.pid <> pg_backend_pid())
    UNION ALL
    (SELECT 'prepared transaction ' || p.transaction, extract(epoch FROM clock_timestamp() - p.prepared)::bigint
       FROM pg_prepared_xacts AS p)) AS w
 ORDER BY w.age DESC LIMIT 1
"""
"""Who a new slot waits for: it is made only when every transaction that ran at its beginning is over."""

MAKE_PUBLICATION = """
CREATE PUBLICATION "{publication}" FOR TABLE "{schema}".outbox
    WITH (publish = 'insert', publish_via_partition_root = true)
"""

IDENTIFY_SYSTEM = "IDENTIFY_SYSTEM"

START_REPLICATION = """
START_REPLICATION SLOT "{slot}" LOGICAL {at} (proto_version '1', publication_names '"{publication}"', binary 'true')
"""

SHARDS = 'SELECT r.shard::int FROM "{schema}".relay AS r'

RECORD_DROP = """
INSERT INTO "{schema}".audit (actor, act, detail, why) VALUES (%(actor)s, 'drop-slot', %(detail)s::jsonb, %(why)s)
"""

MAY_PUBLISH = """
SELECT pg_get_userbyid(c.relowner), pg_has_role(c.relowner, 'USAGE'), current_database()::text,
    has_database_privilege(current_database(), 'CREATE')
  FROM pg_class AS c WHERE c.oid = to_regclass('"{schema}".outbox')
"""
"""Whom the outbox belongs to, and whether this role may make a publication of it."""
