"""
Let a role that owns no table make day partitions ahead, empty old ones and drop them: functions, and what they left behind.

The functions run as whoever migrates; `packhorse migrate sql` grants them to the relay alone. They decide by themselves
whether a row may go, so nobody who may call them can lose one. Runs before the code that needs it.
"""

from alembic import context, op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None
phase = "before"

STATE = """
CREATE TABLE "{schema}".retention (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    ran_at timestamptz,
    ran_by text,
    keep_days int,
    overdue jsonb NOT NULL DEFAULT '[]'
);
COMMENT ON TABLE "{schema}".retention IS
    'One row: when retention ran last, and which partitions it had to keep past their time and why';
INSERT INTO "{schema}".retention DEFAULT VALUES;
"""

PARTITIONS = """
CREATE FUNCTION "{schema}".day_partitions(OUT part regclass, OUT name text, OUT day date, OUT net boolean, OUT bytes bigint)
RETURNS SETOF record LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET DateStyle = 'ISO, YMD' SET lock_timeout = '1s' AS $body$
    SELECT found.oid, found.relname, found.day, found.net, pg_relation_size(found.oid)
      FROM (
        SELECT c.oid, c.relname::text, pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT' AS net,
            CASE WHEN c.relname ~ '^outbox_[0-9]{{8}}$' THEN
                (regexp_match(pg_get_expr(c.relpartbound, c.oid), '^FOR VALUES FROM \\(''([0-9-]{{10}}) 00.00.00''\\) TO'))[1]::date
            END AS day, pg_get_expr(c.relpartbound, c.oid) AS bound
          FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
         WHERE i.inhparent = '"{schema}".outbox'::regclass) AS found
     WHERE found.net OR (found.relname = 'outbox_' || to_char(found.day, 'YYYYMMDD')
        AND found.bound = format('FOR VALUES FROM (''%s 00:00:00'') TO (''%s 00:00:00'')', found.day, found.day + 1))
$body$;
COMMENT ON FUNCTION "{schema}".day_partitions() IS
    'The outbox''s day partitions and its default one (net); partitions of another form are somebody else''s';
"""

MAKE = """
CREATE FUNCTION "{schema}".make_day_partition(wanted date, patience int DEFAULT 50) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' AS $body$
DECLARE
    today CONSTANT date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    name CONSTANT text := 'outbox_' || to_char(wanted, 'YYYYMMDD');
    net regclass;
    there boolean;
BEGIN
    IF wanted < today OR wanted > today + 400 THEN
        RAISE EXCEPTION 'no partition is made for %: allowed are today (%) and the 400 days after it', wanted, today
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM set_config('lock_timeout', greatest(patience, 1) || 'ms', true);
    PERFORM set_config('synchronous_commit', 'local', true);  -- no lock is held until a standby has answered
    IF NOT pg_try_advisory_xact_lock(1346454349, hashtext('{schema}'))
        OR NOT pg_try_advisory_xact_lock(1346454348, hashtext('{schema}')) THEN  -- the second is that of `packhorse migrate up`
        RETURN 'elsewhere';
    END IF;
    BEGIN
        SELECT p.part INTO net FROM "{schema}".day_partitions() AS p WHERE p.net;
        SELECT EXISTS (SELECT FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
            WHERE i.inhparent = '"{schema}".outbox'::regclass AND c.relname = name) INTO there;
        IF there THEN
            RETURN 'there';
        END IF;
        IF net IS NOT NULL THEN
            IF pg_relation_size(net) > 16777216 THEN  -- attaching reads it whole while its writers wait
                RETURN 'large';
            END IF;
            EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE created_at >= $1 AND created_at < $2)', net)
                INTO there USING wanted::timestamp, (wanted + 1)::timestamp;
            IF there THEN
                RETURN 'net';
            END IF;
        END IF;
        EXECUTE format('CREATE TABLE IF NOT EXISTS "{schema}".%I '
            '(LIKE "{schema}".outbox INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)', name);
        EXECUTE format('ALTER TABLE "{schema}".outbox ATTACH PARTITION "{schema}".%I FOR VALUES FROM (%L) TO (%L)',
            name, wanted, wanted + 1);
    EXCEPTION
        WHEN lock_not_available THEN
            RETURN 'busy';
        WHEN check_violation THEN
            RETURN 'net';
    END;
    RETURN 'made';
END
$body$;
COMMENT ON FUNCTION "{schema}".make_day_partition(date, int) IS
    'Make and attach one day partition: made, there, net (its rows lie in the default partition already and stay there), large
(the default partition is too large to be read under a lock), busy (no lock within patience, in milliseconds), elsewhere';
"""

LOOKS = """
CREATE FUNCTION "{schema}".unpublished_row(part regclass) RETURNS jsonb LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $body$
DECLARE
    found jsonb;
BEGIN
    EXECUTE format($look$
        SELECT jsonb_build_object('id', l.id, 'aggregatetype', l.aggregatetype, 'seq', l.seq,
                'created_at', l.created_at::text, 'shard', l.shard) FROM (
            SELECT r.shard, l.* FROM "{schema}".relay AS r CROSS JOIN LATERAL (
                SELECT o.id, o.aggregatetype, o.seq, o.created_at FROM %1$s AS o
                 WHERE (o.xid, o.seq) >= (pg_snapshot_xmax(r.horizon), 0::bigint) ORDER BY o.xid, o.seq LIMIT 1) AS l
            UNION ALL
            SELECT r.shard, l.* FROM "{schema}".relay AS r CROSS JOIN LATERAL pg_snapshot_xip(r.horizon) AS x
             CROSS JOIN LATERAL (
                SELECT o.id, o.aggregatetype, o.seq, o.created_at FROM %1$s AS o
                 WHERE (o.xid, o.seq) >= (x, 0::bigint) AND o.xid <= x ORDER BY o.xid, o.seq LIMIT 1) AS l) AS l
        LIMIT 1 $look$, part) INTO found;
    RETURN found;
END
$body$;
COMMENT ON FUNCTION "{schema}".unpublished_row(regclass) IS
    'A committed row of a partition that some shard''s horizon does not have, as JSON; reads a few entries of one index';

CREATE FUNCTION "{schema}".held_row(part regclass) RETURNS jsonb LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_nestloop = off
SET max_parallel_workers_per_gather = 0 SET jit = off AS $body$
DECLARE
    lowest xid8;
    found jsonb;
    name text;
BEGIN
    SELECT c.relname INTO name FROM pg_class AS c WHERE c.oid = part;
    SELECT pg_snapshot_xmin(h.horizon) INTO lowest FROM "{schema}".relay_hold AS h
     WHERE h.state <> 'ended' ORDER BY pg_snapshot_xmin(h.horizon) LIMIT 1;
    IF lowest IS NULL THEN
        RETURN NULL;
    END IF;
    EXECUTE format($look$
        SELECT jsonb_build_object('id', l.id, 'aggregatetype', l.aggregatetype, 'seq', l.seq,
                'created_at', l.created_at::text, 'hold', l.hold) FROM (
            SELECT h.id AS hold, o.* FROM "{schema}".retention AS t CROSS JOIN jsonb_array_elements(t.overdue) AS e
              JOIN "{schema}".relay_hold AS h ON h.id = (e ->> 'hold')::bigint
             CROSS JOIN LATERAL (
                SELECT o.id, o.aggregatetype, o.seq, o.created_at FROM %1$s AS o
                 WHERE o.id = (e ->> 'message_id')::uuid AND NOT pg_visible_in_snapshot(o.xid, h.horizon) LIMIT 1) AS o
             WHERE h.state <> 'ended' AND e ->> 'name' = $2
            UNION ALL
            SELECT h.id, o.* FROM "{schema}".relay_hold AS h CROSS JOIN LATERAL (
                SELECT o.id, o.aggregatetype, o.seq, o.created_at FROM %1$s AS o
                 WHERE o.id = h.message_id AND NOT pg_visible_in_snapshot(o.xid, h.horizon) LIMIT 1) AS o
             WHERE h.state <> 'ended'
            UNION ALL
            SELECT h.id, o.id, o.aggregatetype, o.seq, o.created_at FROM %1$s AS o
              JOIN "{schema}".relay_hold AS h ON h.aggregatetype = o.aggregatetype AND h.aggregateid = o.aggregateid
             WHERE h.state <> 'ended' AND h.scope = 'key'
               AND (o.xid, o.seq) >= ($1, 0::bigint) AND NOT pg_visible_in_snapshot(o.xid, h.horizon)
            UNION ALL
            SELECT h.id, o.id, o.aggregatetype, o.seq, o.created_at FROM %1$s AS o
              JOIN "{schema}".relay_hold AS h ON h.aggregatetype = o.aggregatetype
             WHERE h.state <> 'ended' AND h.scope IN ('partition', 'topic')
               AND (o.xid, o.seq) >= ($1, 0::bigint) AND NOT pg_visible_in_snapshot(o.xid, h.horizon)) AS l
        LIMIT 1 $look$, part) INTO found USING lowest, name;
    RETURN found;
END
$body$;
COMMENT ON FUNCTION "{schema}".held_row(regclass) IS
    'A committed row of a partition that an open hold still has to publish, as JSON; a hold of a Kafka partition counts for
its whole topic. What an earlier run found is looked at first; else all of the partition may be read that is younger than the
oldest open hold';

CREATE FUNCTION "{schema}".row_since(part regclass, looked pg_snapshot) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $body$
DECLARE
    found boolean;
BEGIN
    EXECUTE format($look$
        SELECT EXISTS (SELECT FROM %1$s AS o WHERE (o.xid, o.seq) >= (pg_snapshot_xmax($1), 0::bigint))
            OR EXISTS (SELECT FROM pg_snapshot_xip($1) AS x CROSS JOIN LATERAL (
                SELECT FROM %1$s AS o WHERE (o.xid, o.seq) >= (x, 0::bigint) AND o.xid <= x
                 ORDER BY o.xid, o.seq LIMIT 1) AS l) $look$, part) INTO found USING looked;
    RETURN found;
END
$body$;
COMMENT ON FUNCTION "{schema}".row_since(regclass, pg_snapshot) IS
    'Whether a partition has a row that a snapshot did not show; reads a few entries of one index';

CREATE FUNCTION "{schema}".lock_holder(part regclass) RETURNS jsonb LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $body$
    SELECT jsonb_build_object('pid', l.pid, 'gid', p.gid, 'application', a.application_name,
            'seconds', extract(epoch FROM clock_timestamp() - coalesce(p.prepared, a.xact_start))::bigint,
            'wrote', l.mode = 'RowExclusiveLock')
      FROM pg_locks AS l
      LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
      LEFT JOIN pg_locks AS own ON l.pid IS NULL AND own.pid IS NULL AND own.locktype = 'transactionid'
       AND own.virtualtransaction = l.virtualtransaction
      LEFT JOIN pg_prepared_xacts AS p ON p.transaction = own.transactionid
     WHERE l.locktype = 'relation' AND l.relation = part AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
       AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
     ORDER BY l.mode = 'RowExclusiveLock' DESC, coalesce(p.prepared, a.xact_start) LIMIT 1
$body$;
COMMENT ON FUNCTION "{schema}".lock_holder(regclass) IS
    'Who else has a lock on a table: whoever wrote to it first, then the oldest; NULL when nobody has any more';
"""

EMPTY = """
CREATE FUNCTION "{schema}".empty_partition(wanted text, keep date, patience int DEFAULT 50, act boolean DEFAULT true)
RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' SET jit = off AS $body$
DECLARE
    target record;
    looked pg_snapshot;
    holds bigint[];
    found jsonb;
    young boolean := false;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'empty_partition needs READ COMMITTED: it must see what was committed before it got its lock'
            USING ERRCODE = 'invalid_transaction_state',
                HINT = 'ALTER ROLE ... SET default_transaction_isolation = ''read committed''';
    END IF;
    IF keep > (clock_timestamp() AT TIME ZONE 'UTC')::date THEN
        RAISE EXCEPTION 'rows of today are never removed: keep % lies after today', keep
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM set_config('lock_timeout', greatest(patience, 1) || 'ms', true);
    PERFORM set_config('synchronous_commit', 'local', true);  -- no lock is held until a standby has answered
    IF NOT pg_try_advisory_xact_lock(1346454349, hashtext('{schema}')) THEN
        RETURN jsonb_build_object('outcome', 'elsewhere');
    END IF;
    IF NOT EXISTS (SELECT FROM "{schema}".relay)
        OR EXISTS (SELECT FROM "{schema}".relay AS r
            WHERE pg_snapshot_xmax(r.horizon) > pg_snapshot_xmax(pg_current_snapshot())
               OR r.incarnation <> (SELECT system_identifier FROM pg_control_system())::text || '/' ||
                    substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)) THEN
        RETURN jsonb_build_object('outcome', 'no_horizon');
    END IF;
    SELECT p.* INTO target FROM "{schema}".day_partitions() AS p WHERE p.name = wanted;
    IF target IS NULL OR target.bytes = 0 OR target.day >= keep THEN
        RETURN jsonb_build_object('outcome', CASE WHEN target.day >= keep THEN 'young' ELSE 'gone' END);
    END IF;

    -- The long looks, with no lock that anybody feels. What they see is what `looked` sees, or more.
    looked := pg_current_snapshot();
    BEGIN
        IF target.net THEN  -- the newest by number is mostly the youngest; else all are looked at
            EXECUTE format('SELECT coalesce((SELECT created_at >= $1 FROM %1$s ORDER BY seq DESC LIMIT 1), false) '
                'OR EXISTS (SELECT FROM %1$s WHERE created_at >= $1)', target.part) INTO young USING keep::timestamp;
            IF young THEN
                RETURN jsonb_build_object('outcome', 'young');
            END IF;
        END IF;
        found := "{schema}".unpublished_row(target.part);
        IF found IS NOT NULL THEN
            RETURN jsonb_build_object('outcome', 'unpublished', 'row', found);
        END IF;
        SELECT coalesce(array_agg(h.id), '{{}}') INTO holds FROM "{schema}".relay_hold AS h WHERE h.state <> 'ended';
        found := "{schema}".held_row(target.part);
        IF found IS NOT NULL THEN
            RETURN jsonb_build_object('outcome', 'held', 'row', found);
        END IF;
        IF NOT act THEN
            RETURN jsonb_build_object('outcome', 'due');
        END IF;
        EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', target.part);
    EXCEPTION WHEN lock_not_available THEN
        RETURN jsonb_build_object('outcome', 'busy', 'blocker', "{schema}".lock_holder(target.part));
    END;

    -- Under the lock: only what came since, by a few reads of one index. Readers wait meanwhile; writers are elsewhere.
    found := "{schema}".unpublished_row(target.part);
    IF found IS NOT NULL THEN
        RETURN jsonb_build_object('outcome', 'unpublished', 'row', found);
    END IF;
    IF "{schema}".row_since(target.part, looked) OR EXISTS (SELECT FROM "{schema}".relay_hold AS h
            WHERE h.state <> 'ended' AND NOT h.id = ANY (holds)) THEN
        RETURN jsonb_build_object('outcome', 'changed');
    END IF;
    SELECT jsonb_build_object('outcome', 'emptied', 'bytes', pg_total_relation_size(target.part)) INTO found;
    EXECUTE format('TRUNCATE TABLE ONLY %s', target.part);
    RETURN found;
END
$body$;
COMMENT ON FUNCTION "{schema}".empty_partition(text, date, int, boolean) IS
    'Truncate a partition whose days all lie before keep, if every row in it is published and none is held. As JSON: outcome is
emptied, due (act is false), unpublished or held (with the row), busy (no lock within patience, in milliseconds; with who
has it), changed (something came meanwhile), young, gone (table or rows), elsewhere, no_horizon';
"""

DROP = """
CREATE FUNCTION "{schema}".drop_partition(wanted text, keep date, patience int DEFAULT 50) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' AS $body$
DECLARE
    target record;
    net regclass;
    filled boolean;
BEGIN
    PERFORM set_config('lock_timeout', greatest(patience, 1) || 'ms', true);
    PERFORM set_config('synchronous_commit', 'local', true);  -- no lock is held until a standby has answered
    IF NOT pg_try_advisory_xact_lock(1346454349, hashtext('{schema}')) THEN
        RETURN jsonb_build_object('outcome', 'elsewhere');
    END IF;
    SELECT p.* INTO target FROM "{schema}".day_partitions() AS p WHERE p.name = wanted AND NOT p.net;
    IF target IS NULL OR target.day >= least(keep, (clock_timestamp() AT TIME ZONE 'UTC')::date) THEN
        RETURN jsonb_build_object('outcome', CASE WHEN target IS NULL THEN 'gone' ELSE 'young' END);
    END IF;
    SELECT p.part INTO net FROM "{schema}".day_partitions() AS p WHERE p.net;
    BEGIN
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', target.part) INTO filled;
        IF filled THEN
            RETURN jsonb_build_object('outcome', 'filled');
        END IF;
        -- One wait alone, for the table that writers use; what else DROP locks is asked for without one.
        LOCK TABLE ONLY "{schema}".outbox IN ACCESS EXCLUSIVE MODE;
        EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE NOWAIT', target.part);
        IF net IS NOT NULL THEN
            EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE NOWAIT', net);
        END IF;
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', target.part) INTO filled;
        IF filled THEN
            RAISE object_in_use;
        END IF;
        EXECUTE format('DROP TABLE %s', target.part);
    EXCEPTION
        WHEN lock_not_available THEN
            RETURN jsonb_build_object('outcome', 'busy', 'blocker', "{schema}".lock_holder('"{schema}".outbox'::regclass));
        WHEN object_in_use THEN
            RETURN jsonb_build_object('outcome', 'filled');
        WHEN dependent_objects_still_exist THEN
            RETURN jsonb_build_object('outcome', 'depended', 'text', SQLERRM);
    END;
    RETURN jsonb_build_object('outcome', 'dropped');
END
$body$;
COMMENT ON FUNCTION "{schema}".drop_partition(text, date, int) IS
    'Drop an empty day partition that lies before keep. As JSON: outcome is dropped, busy (no lock within patience, in
milliseconds; writers wait no longer than that), filled, depended (an object of somebody''s needs it), young, gone, elsewhere';
"""

REVOKE = """
REVOKE EXECUTE ON FUNCTION "{schema}".day_partitions(), "{schema}".make_day_partition(date, int),
    "{schema}".unpublished_row(regclass), "{schema}".held_row(regclass), "{schema}".row_since(regclass, pg_snapshot),
    "{schema}".lock_holder(regclass), "{schema}".empty_partition(text, date, int, boolean),
    "{schema}".drop_partition(text, date, int) FROM PUBLIC;
"""


def upgrade() -> None:
    """Make the table retention and the functions."""
    schema = context.config.attributes["schema"]
    for part in (STATE, PARTITIONS, MAKE, LOOKS, EMPTY, DROP, REVOKE):
        op.execute(part.format(schema=schema))
