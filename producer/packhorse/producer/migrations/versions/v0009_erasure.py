"""
Let an admin erase what a person's messages hold: rows of the outbox that are published go through one function, and through no other way.

Runs before the code that needs it; the version before it goes on working. Changing or deleting a row by hand stays refused.
"""

from alembic import context, op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None
phase = "before"

REFUSE_CHANGE = """
CREATE OR REPLACE FUNCTION "{schema}".refuse_change() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    -- purge_outbox alone leaves its mark, in its own transaction, and runs as whoever owns the table
    IF TG_OP = 'DELETE' AND current_setting('packhorse.purging', true) = pg_current_xact_id()::text
        AND current_user = (SELECT pg_get_userbyid(c.relowner) FROM pg_class AS c WHERE c.oid = TG_RELID) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '% on %.% is refused: the outbox is append-only, and a changed row would never be published',
        TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Emit a new message instead. Published days are emptied by TRUNCATE of their own partition.';
END
$body$;
"""

FATES = """
CREATE FUNCTION "{schema}".outbox_fates(wanted uuid[]) RETURNS TABLE (id uuid, aggregatetype text, seq bigint, fate text)
LANGUAGE plpgsql STABLE ROWS 200 SET search_path = pg_catalog, pg_temp SET jit = off AS $body$
DECLARE
    sane boolean := EXISTS (SELECT FROM "{schema}".relay) AND NOT EXISTS (SELECT FROM "{schema}".relay AS r
        WHERE pg_snapshot_xmax(r.horizon) > pg_snapshot_xmax(pg_current_snapshot())
           OR r.incarnation <> (SELECT system_identifier FROM pg_control_system())::text || '/' ||
                substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8));
    streams boolean := EXISTS (SELECT FROM "{schema}".relay AS r WHERE r.mode = 'cdc');
BEGIN
    RETURN QUERY
    SELECT o.id, o.aggregatetype, o.seq, CASE
        WHEN EXISTS (SELECT FROM "{schema}".relay_hold AS h
            WHERE h.state <> 'ended' AND h.aggregatetype = o.aggregatetype AND NOT pg_visible_in_snapshot(o.xid, h.horizon)
              AND CASE h.scope WHEN 'row' THEN h.message_id = o.id WHEN 'key' THEN h.aggregateid = o.aggregateid ELSE true END
            ) THEN 'held'
        WHEN sane AND NOT EXISTS (SELECT FROM "{schema}".relay AS r WHERE NOT pg_visible_in_snapshot(o.xid, r.horizon))
            THEN 'published'
        WHEN streams THEN 'streamed'
        ELSE 'unpublished' END
      FROM "{schema}".outbox AS o WHERE o.id = ANY (wanted);
END
$body$;
COMMENT ON FUNCTION "{schema}".outbox_fates(uuid[]) IS
    'How rows of the outbox stand: published by every shard; held; streamed: not published, and a stream may have them in hand; unpublished';
"""

PURGE_OUTBOX = """
CREATE FUNCTION "{schema}".purge_outbox(wanted uuid[], unpublished boolean DEFAULT false, OUT id uuid, OUT aggregatetype text,
    OUT seq bigint, OUT fate text, OUT gone boolean) RETURNS SETOF record LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' SET jit = off AS $body$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'purge_outbox needs READ COMMITTED: it must see what was committed before it got its lock'
            USING ERRCODE = 'invalid_transaction_state';
    END IF;
    -- No relay saves, holds or takes a range back meanwhile: each does so under its shard's row.
    PERFORM FROM "{schema}".relay AS r ORDER BY r.shard FOR SHARE;
    PERFORM set_config('packhorse.purging', pg_current_xact_id()::text, true);
    RETURN QUERY
    WITH looked AS MATERIALIZED (
        SELECT f.* FROM "{schema}".outbox_fates(wanted) AS f
    ), went AS (
        DELETE FROM "{schema}".outbox AS o USING looked AS l
         WHERE o.id = l.id AND o.seq = l.seq AND (l.fate = 'published' OR l.fate = 'unpublished' AND unpublished)
        RETURNING o.id, o.seq
    )
    SELECT l.id, l.aggregatetype, l.seq, l.fate, w.seq IS NOT NULL FROM looked AS l
      LEFT JOIN went AS w ON w.id = l.id AND w.seq = l.seq ORDER BY l.seq;
    PERFORM set_config('packhorse.purging', '', true);
END
$body$;
COMMENT ON FUNCTION "{schema}".purge_outbox(uuid[], boolean) IS
    'Delete rows of the outbox that every shard has published and no open hold keeps; with unpublished also those that are not
published yet, unless a stream carries them. Returns the fate of each row that is there, and whether it is gone';
"""

MARK = """
CREATE TABLE "{schema}".purge_secret (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    salt bytea NOT NULL
);
COMMENT ON TABLE "{schema}".purge_secret IS
    'What is hashed with a subject, so that the record of a purge names nobody and tells only who asks with the name';
INSERT INTO "{schema}".purge_secret (salt)
VALUES (sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')));
CREATE FUNCTION "{schema}".purge_mark(subject text) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
    SELECT encode(sha256(s.salt || sha256(s.salt || convert_to(subject, 'UTF8'))), 'hex') FROM "{schema}".purge_secret AS s
$body$;
COMMENT ON FUNCTION "{schema}".purge_mark(text) IS 'What stands for a subject on the record of its purge';
REVOKE ALL ON "{schema}".purge_secret FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION "{schema}".purge_mark(text), "{schema}".purge_outbox(uuid[], boolean),
    "{schema}".outbox_fates(uuid[]) FROM PUBLIC;
"""


def upgrade() -> None:
    """Let one function delete rows of the outbox; keep a salt for what stands for a subject."""
    schema = context.config.attributes["schema"]
    for part in (REFUSE_CHANGE, FATES, PURGE_OUTBOX, MARK):
        op.execute(part.format(schema=schema))
