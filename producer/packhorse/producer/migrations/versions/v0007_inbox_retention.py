"""
Let a role that owns no table make the inbox's day partitions ahead, clean old ones by rows, and drop them: functions.

They run as whoever migrates and decide by themselves whether a row may go. Runs before the code that needs it.
"""

from alembic import context, op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None
phase = "before"

STATE = """
ALTER TABLE "{schema}".inbox_retention ADD COLUMN discarded_from timestamptz NOT NULL DEFAULT '-infinity';
COMMENT ON TABLE "{schema}".inbox_retention IS
    'One row a group: closed inbox rows that changed before kept_from may be gone, discarded ones before discarded_from. The
row without a name says who works and what the last run left behind';
"""

PARTITIONS = """
CREATE FUNCTION "{schema}".inbox_bound(day date) RETURNS uuid LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $body$
    SELECT (lpad(to_hex((day - date '1970-01-01') * 86400000::bigint), 12, '0') || repeat('0', 20))::uuid
$body$;
COMMENT ON FUNCTION "{schema}".inbox_bound(date) IS 'The least UUIDv7 of a day, UTC';

CREATE FUNCTION "{schema}".inbox_partitions(OUT part regclass, OUT name text, OUT day date, OUT net boolean, OUT bytes bigint)
RETURNS SETOF record LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET DateStyle = 'ISO, YMD' SET lock_timeout = '1s' AS $body$
    SELECT found.oid, found.relname, found.day, found.net, pg_relation_size(found.oid)
      FROM (
        SELECT c.oid, c.relname::text, pg_get_expr(c.relpartbound, c.oid) AS bound,
            pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT' AS net,
            CASE WHEN c.relname ~ '^inbox_[0-9]{{8}}$' THEN to_date(substr(c.relname, 7), 'YYYYMMDD') END AS day
          FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
         WHERE i.inhparent = '"{schema}".inbox'::regclass) AS found
     WHERE found.net OR found.bound = format('FOR VALUES FROM (''%s'') TO (''%s'')',
        "{schema}".inbox_bound(found.day), "{schema}".inbox_bound(found.day + 1))
$body$;
COMMENT ON FUNCTION "{schema}".inbox_partitions() IS
    'The inbox''s day partitions and its default one (net); partitions of another form are somebody else''s';
"""

MAKE = """
CREATE FUNCTION "{schema}".make_inbox_partition(wanted date, patience int DEFAULT 50) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' AS $body$
DECLARE
    today CONSTANT date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    name CONSTANT text := 'inbox_' || to_char(wanted, 'YYYYMMDD');
    low CONSTANT uuid := "{schema}".inbox_bound(wanted);
    high CONSTANT uuid := "{schema}".inbox_bound(wanted + 1);
    net regclass;
    bytes bigint;
    few bigint;
BEGIN
    IF wanted < today OR wanted > today + 400 THEN
        RAISE EXCEPTION 'no partition is made for %, allowed are today (%) and the 400 days after it', wanted, today
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM set_config('lock_timeout', greatest(patience, 1) || 'ms', true);
    PERFORM set_config('synchronous_commit', 'local', true);  -- no lock is held until a standby has answered
    IF NOT pg_try_advisory_xact_lock(1346454351, hashtext('{schema}'))
        OR NOT pg_try_advisory_xact_lock(1346454348, hashtext('{schema}')) THEN  -- the second is that of `packhorse migrate up`
        RETURN 'elsewhere';
    END IF;
    IF EXISTS (SELECT FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = '"{schema}".inbox'::regclass AND c.relname = name) THEN
        RETURN 'there';
    END IF;
    SELECT p.part, p.bytes INTO net, bytes FROM "{schema}".inbox_partitions() AS p WHERE p.net;
    BEGIN
        IF net IS NOT NULL THEN
            EXECUTE format('SELECT count(*) FROM (SELECT FROM %s WHERE message_id >= $1 AND message_id < $2 LIMIT 1001) AS r', net)
                INTO few USING low, high;
            -- Rows of today are being written; those of a later day come from clocks that are ahead, and are few.
            IF few > 1000 OR (few > 0 AND wanted = today) THEN
                RETURN 'net';
            END IF;
            IF bytes > 16 * 1024 * 1024 AND NOT "{schema}".inbox_fenced(net, low, high) THEN
                RETURN 'large';
            END IF;
        END IF;
        EXECUTE format('CREATE TABLE IF NOT EXISTS "{schema}".%I '
            '(LIKE "{schema}".inbox INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)', name);
        IF few > 0 THEN
            EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', net);
            EXECUTE format('WITH gone AS (DELETE FROM %s WHERE message_id >= $1 AND message_id < $2 RETURNING *) '
                'INSERT INTO "{schema}".%I SELECT * FROM gone', net, name) USING low, high;
        END IF;
        EXECUTE format('ALTER TABLE "{schema}".inbox ATTACH PARTITION "{schema}".%I FOR VALUES FROM (%L) TO (%L)',
            name, low, high);
    EXCEPTION
        WHEN lock_not_available THEN
            RETURN 'busy';
        WHEN check_violation THEN
            RETURN 'net';
    END;
    RETURN 'made';
END
$body$;
COMMENT ON FUNCTION "{schema}".make_inbox_partition(date, int) IS
    'Make and attach one day partition: made, there, net (rows of that day lie in the default partition and stay there), large
(the default partition is too large to be read under a lock; see fence_inbox), busy (no lock within patience, in
milliseconds), elsewhere';
"""

FENCE = """
CREATE FUNCTION "{schema}".inbox_fenced(net regclass, low uuid, high uuid) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $body$
    SELECT EXISTS (SELECT FROM pg_constraint AS c
        CROSS JOIN LATERAL regexp_matches(pg_get_constraintdef(c.oid), '''([0-9a-f-]{{36}})''::uuid', 'g')
            WITH ORDINALITY AS m (found, n)
     WHERE c.conrelid = net AND c.conname = 'inbox_fence' AND c.convalidated
    HAVING min(m.found[1]::text) FILTER (WHERE m.n = 1) <= low::text
       AND max(m.found[1]::text) FILTER (WHERE m.n = 2) >= high::text)
$body$;
COMMENT ON FUNCTION "{schema}".inbox_fenced(regclass, uuid, uuid) IS
    'Whether a validated constraint proves that the default partition has no row of a range';

CREATE FUNCTION "{schema}".fence_inbox(act text, first date DEFAULT NULL, last date DEFAULT NULL, patience int DEFAULT 50)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' AS $body$
DECLARE
    today CONSTANT date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    net regclass;
    valid boolean;
BEGIN
    PERFORM set_config('lock_timeout', greatest(patience, 1) || 'ms', true);
    PERFORM set_config('synchronous_commit', 'local', true);
    IF NOT pg_try_advisory_xact_lock(1346454351, hashtext('{schema}')) THEN
        RETURN 'elsewhere';
    END IF;
    SELECT p.part INTO net FROM "{schema}".inbox_partitions() AS p WHERE p.net;
    SELECT c.convalidated INTO valid FROM pg_constraint AS c WHERE c.conrelid = net AND c.conname = 'inbox_fence';
    BEGIN
        CASE act
        WHEN 'raise' THEN
            IF first < today + 2 OR last < first THEN
                RAISE EXCEPTION 'no fence is raised from % to %, it begins on % at the earliest', first, last, today + 2
                    USING ERRCODE = 'invalid_parameter_value';
            END IF;
            IF valid IS NOT NULL THEN
                RETURN 'there';
            END IF;
            EXECUTE format('ALTER TABLE %s ADD CONSTRAINT inbox_fence CHECK (message_id < %L OR message_id >= %L) NOT VALID',
                net, "{schema}".inbox_bound(first), "{schema}".inbox_bound(last + 1));
        WHEN 'prove' THEN
            IF valid IS NULL THEN
                RETURN 'gone';
            END IF;
            EXECUTE format('ALTER TABLE %s VALIDATE CONSTRAINT inbox_fence', net);
        WHEN 'lower' THEN
            IF valid IS NULL THEN
                RETURN 'gone';
            END IF;
            EXECUTE format('ALTER TABLE %s DROP CONSTRAINT inbox_fence', net);
        END CASE;
    EXCEPTION
        WHEN lock_not_available THEN
            RETURN 'busy';
        WHEN check_violation THEN
            RETURN 'net';
    END;
    RETURN 'done';
END
$body$;
COMMENT ON FUNCTION "{schema}".fence_inbox(text, date, date, int) IS
    'For a large default partition: raise a constraint that it has no row of days to come, prove it without locking anybody
out, lower it when the days have their partitions. While it stands, an id from a clock that is two days ahead is refused';
"""

LOOK = """
CREATE FUNCTION "{schema}".inbox_watermark(OUT group_id text, OUT topic text, OUT partition int, OUT "offset" bigint,
    OUT first_at timestamptz)
RETURNS SETOF record LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $body$
    SELECT w.group_id, w.topic, w.partition, min(w."offset"), w.first_at FROM "{schema}".watermark AS w
      JOIN (SELECT n.group_id, n.topic, n.partition, max(n.first_at) AS first_at FROM "{schema}".watermark AS n
             GROUP BY n.group_id, n.topic, n.partition) AS newest
        ON (newest.group_id, newest.topic, newest.partition, newest.first_at) = (w.group_id, w.topic, w.partition, w.first_at)
     GROUP BY w.group_id, w.topic, w.partition, w.first_at
$body$;
COMMENT ON FUNCTION "{schema}".inbox_watermark() IS
    'The watermark of each group, topic and partition; of a topic that was made anew that of the newest';

CREATE FUNCTION "{schema}".inbox_spent(outcome text, changed_at timestamptz, "offset" bigint, kept_from timestamptz,
    discarded_from timestamptz, mark bigint, first_at timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE AS $body$
    SELECT coalesce(CASE WHEN outcome IN ('done', 'skipped') THEN changed_at < kept_from
                         WHEN outcome = 'discarded' THEN changed_at < least(kept_from, discarded_from) ELSE false END
        AND ("offset" < mark OR changed_at < first_at), false)
$body$;
COMMENT ON FUNCTION "{schema}".inbox_spent(text, timestamptz, bigint, timestamptz, timestamptz, bigint, timestamptz) IS
    'Whether an inbox row may go: closed, old, and below the watermark of its partition or of an earlier topic of that name';

CREATE FUNCTION "{schema}".kept_inbox_row(part regclass, day date) RETURNS jsonb LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET max_parallel_workers_per_gather = 0 AS $body$
DECLARE
    found jsonb;
BEGIN
    EXECUTE format($look$
        SELECT jsonb_build_object('id', i.message_id, 'group', i.group_id, 'topic', i.topic, 'outcome', i.outcome)
          FROM %s AS i
          LEFT JOIN "{schema}".inbox_retention AS g ON g.group_id = i.group_id
           AND g.kept_from >= ($1 + 1)::timestamp AT TIME ZONE 'UTC' AND g.kept_from <= now() - interval '1 day'
          LEFT JOIN "{schema}".inbox_watermark() AS w
            ON w.group_id = i.group_id AND w.topic = i.topic AND w.partition = i.partition
         WHERE NOT "{schema}".inbox_spent(i.outcome, i.changed_at, i."offset", g.kept_from, g.discarded_from, w."offset",
            w.first_at)
         LIMIT 1 $look$, part) INTO found USING day;
    RETURN found;
END
$body$;
COMMENT ON FUNCTION "{schema}".kept_inbox_row(regclass, date) IS 'A row of a day partition that may not go, as JSON';
"""

CLEAN = """
CREATE FUNCTION "{schema}".clean_inbox_partition(wanted text, after_id uuid, after_group text, after_topic text,
    step int DEFAULT 1000) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' SET jit = off SET enable_seqscan = off AS $body$
DECLARE
    target record;
    answer jsonb;
BEGIN
    PERFORM set_config('synchronous_commit', 'local', true);
    IF NOT pg_try_advisory_xact_lock(1346454351, hashtext('{schema}')) THEN
        RETURN jsonb_build_object('outcome', 'elsewhere');
    END IF;
    SELECT p.* INTO target FROM "{schema}".inbox_partitions() AS p WHERE p.name = wanted;
    IF target IS NULL THEN
        RETURN jsonb_build_object('outcome', 'gone');
    END IF;
    EXECUTE format($step$
        WITH seen AS MATERIALIZED (
            SELECT i.message_id, i.group_id, i.topic, i.partition, i."offset", i.outcome, i.changed_at FROM %1$s AS i
             WHERE (i.message_id, i.group_id, i.topic) > ($1, $2, $3)
             ORDER BY i.message_id, i.group_id, i.topic LIMIT $4
        ), spent AS MATERIALIZED (
            SELECT s.message_id, s.group_id, s.topic FROM seen AS s
              JOIN "{schema}".inbox_retention AS g ON g.group_id = s.group_id AND g.kept_from <= now() - interval '1 day'
              JOIN "{schema}".inbox_watermark() AS w
                ON w.group_id = s.group_id AND w.topic = s.topic AND w.partition = s.partition
             WHERE "{schema}".inbox_spent(s.outcome, s.changed_at, s."offset", g.kept_from, g.discarded_from, w."offset",
                w.first_at)
               AND ($5 IS NULL OR g.kept_from >= ($5 + 1)::timestamp AT TIME ZONE 'UTC')
        ), held AS MATERIALIZED (
            -- the condition once more, on the row as it is under its lock
            SELECT i.ctid FROM %1$s AS i JOIN spent AS s USING (message_id, group_id, topic)
             WHERE i.outcome IN ('done', 'skipped', 'discarded') FOR UPDATE OF i SKIP LOCKED
        ), gone AS (
            DELETE FROM %1$s AS i WHERE i.ctid = ANY (ARRAY(SELECT h.ctid FROM held AS h)) RETURNING 1
        )
        SELECT jsonb_build_object('outcome', 'cleaned', 'seen', (SELECT count(*) FROM seen), 'removed', (SELECT count(*) FROM gone),
            'after', (SELECT jsonb_build_array(s.message_id, s.group_id, s.topic) FROM seen AS s
                       ORDER BY s.message_id DESC, s.group_id DESC, s.topic DESC LIMIT 1)) $step$, target.part)
        INTO answer USING after_id, after_group, after_topic, least(greatest(step, 1), 10000), target.day;
    RETURN answer;
EXCEPTION WHEN lock_not_available THEN
    RETURN jsonb_build_object('outcome', 'busy');
END
$body$;
COMMENT ON FUNCTION "{schema}".clean_inbox_partition(text, uuid, text, text, int) IS
    'Look at the next rows of a partition, in the order of their ids, and delete those that may go. As JSON: outcome is cleaned
(with how many were seen and removed, and after which row to go on; none seen: that was all), busy, gone, elsewhere';
"""

DROP = """
CREATE FUNCTION "{schema}".drop_inbox_partition(wanted text, patience int DEFAULT 50, act boolean DEFAULT true) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' AS $body$
DECLARE
    target record;
    net regclass;
    found jsonb;
    bytes bigint;
    oldest xid;
    written boolean;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'drop_inbox_partition needs READ COMMITTED, it must see what was committed before it got its lock'
            USING ERRCODE = 'invalid_transaction_state',
                HINT = 'ALTER ROLE ... SET default_transaction_isolation = ''read committed''';
    END IF;
    PERFORM set_config('lock_timeout', greatest(patience, 1) || 'ms', true);
    PERFORM set_config('synchronous_commit', 'local', true);
    IF NOT pg_try_advisory_xact_lock(1346454351, hashtext('{schema}')) THEN
        RETURN jsonb_build_object('outcome', 'elsewhere');
    END IF;
    SELECT p.* INTO target FROM "{schema}".inbox_partitions() AS p WHERE p.name = wanted AND NOT p.net;
    IF target IS NULL OR target.day >= (clock_timestamp() AT TIME ZONE 'UTC')::date - 1 THEN
        RETURN jsonb_build_object('outcome', CASE WHEN target IS NULL THEN 'gone' ELSE 'young' END);
    END IF;
    SELECT p.part INTO net FROM "{schema}".inbox_partitions() AS p WHERE p.net;
    bytes := pg_total_relation_size(target.part);
    oldest := pg_snapshot_xmin(pg_current_snapshot())::xid;
    BEGIN
        found := "{schema}".kept_inbox_row(target.part, target.day);  -- at leisure, without a lock
        IF found IS NOT NULL THEN
            RETURN jsonb_build_object('outcome', 'kept', 'row', found);
        END IF;
        IF NOT act THEN
            RETURN jsonb_build_object('outcome', 'due');
        END IF;
        -- From here on nobody writes to this old day; everybody still reads it.
        EXECUTE format('LOCK TABLE ONLY %s IN SHARE ROW EXCLUSIVE MODE', target.part);
        -- Whatever the look did not see was written by a transaction that was open then, or younger.
        EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE age(xmin) <= age($1))', target.part) INTO written USING oldest;
        IF written THEN
            found := "{schema}".kept_inbox_row(target.part, target.day);
            IF found IS NOT NULL THEN
                RETURN jsonb_build_object('outcome', 'kept', 'row', found);
            END IF;
        END IF;
        -- One wait alone, for the table that everybody uses; what else DROP locks is asked for without one.
        LOCK TABLE ONLY "{schema}".inbox IN ACCESS EXCLUSIVE MODE;
        EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE NOWAIT', target.part);
        IF net IS NOT NULL THEN
            EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE NOWAIT', net);
        END IF;
        EXECUTE format('DROP TABLE %s', target.part);
    EXCEPTION
        WHEN lock_not_available THEN
            RETURN jsonb_build_object('outcome', 'busy');
        WHEN dependent_objects_still_exist THEN
            RETURN jsonb_build_object('outcome', 'depended', 'text', SQLERRM);
    END;
    RETURN jsonb_build_object('outcome', 'dropped', 'bytes', bytes);
END
$body$;
COMMENT ON FUNCTION "{schema}".drop_inbox_partition(text, int, boolean) IS
    'Drop a day partition in which every row may go. As JSON: outcome is dropped, due (act is false), kept (with a row that may
not go), busy (no lock within patience, in milliseconds), depended (an object of somebody''s needs it), young, gone, elsewhere';
"""

REVOKE = """
REVOKE EXECUTE ON FUNCTION "{schema}".inbox_partitions(), "{schema}".make_inbox_partition(date, int),
    "{schema}".inbox_fenced(regclass, uuid, uuid), "{schema}".fence_inbox(text, date, date, int), "{schema}".inbox_watermark(),
    "{schema}".kept_inbox_row(regclass, date),
    "{schema}".clean_inbox_partition(text, uuid, text, text, int), "{schema}".drop_inbox_partition(text, int, boolean)
    FROM PUBLIC;
"""


def upgrade() -> None:
    """Make the functions."""
    schema = context.config.attributes["schema"]
    for part in (STATE, PARTITIONS, FENCE, MAKE, LOOK, CLEAN, DROP, REVOKE):
        op.execute(part.format(schema=schema))
