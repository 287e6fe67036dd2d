"""
Make the tables of operators' acts: who may do what, frozen sets of redrives, replays, counts, notes and notices of quarantine.
What people did can only be added to.

Runs before the code that needs it; the version before it goes on working, and what it quarantines is counted too. Whoever
quarantines or parks waits while it counts and makes its indexes: 6 s for 300,000 quarantined and 100,000 parked messages, as measured
on two busy cores. All else goes on.
"""

from alembic import context, op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None
phase = "before"

OPERATOR = """
CREATE TABLE "{schema}".operator (
    kind text CHECK (kind IN ('role', 'token')),
    name text,
    role text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    personal boolean NOT NULL DEFAULT false,
    edit boolean NOT NULL DEFAULT false,
    token_hash bytea UNIQUE CHECK ((token_hash IS NOT NULL) = (kind = 'token')),
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    made_by text NOT NULL,
    expires_at timestamptz,
    PRIMARY KEY (kind, name)
);
COMMENT ON TABLE "{schema}".operator IS
    'Who may see and act: roles of the database (and whoever is a member of them), and holders of tokens';
COMMENT ON COLUMN "{schema}".operator.personal IS 'May see fields that their schema marks personal';
COMMENT ON COLUMN "{schema}".operator.edit IS 'May send an edited copy of a quarantined message';
COMMENT ON COLUMN "{schema}".operator.token_hash IS 'SHA-256 of the token, which itself is kept nowhere';
CREATE FUNCTION "{schema}".operator_standing(wanted bytea, hold boolean, OUT name text, OUT role text, OUT personal boolean,
    OUT edit boolean, OUT expired boolean) RETURNS record LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    owner CONSTANT oid := (SELECT c.relowner FROM pg_class AS c WHERE c.oid = '"{schema}".operator'::regclass);
BEGIN
    IF hold THEN
        PERFORM FROM "{schema}".operator AS o WHERE CASE WHEN wanted IS NOT NULL THEN o.token_hash = wanted
            ELSE o.kind = 'role' AND o.name IN (SELECT r.rolname FROM pg_roles AS r WHERE pg_has_role(session_user, r.oid, 'USAGE'))
            END ORDER BY o.kind, o.name FOR SHARE;
    END IF;
    IF wanted IS NOT NULL THEN
        SELECT o.name, o.role, o.personal, o.edit, coalesce(o.expires_at <= clock_timestamp(), false)
          INTO name, role, personal, edit, expired
          FROM "{schema}".operator AS o WHERE o.kind = 'token' AND o.token_hash = wanted;
        RETURN;
    END IF;
    SELECT CASE max(CASE o.role WHEN 'admin' THEN 3 WHEN 'operator' THEN 2 ELSE 1 END)
               WHEN 3 THEN 'admin' WHEN 2 THEN 'operator' WHEN 1 THEN 'viewer' END,
           coalesce(bool_or(o.personal), false), coalesce(bool_or(o.edit), false)
      INTO role, personal, edit
      FROM "{schema}".operator AS o JOIN pg_roles AS r ON r.rolname = o.name
     WHERE o.kind = 'role' AND pg_has_role(session_user, r.oid, 'USAGE')
       AND (o.expires_at IS NULL OR o.expires_at > clock_timestamp());
    name := session_user;
    expired := false;
    IF pg_has_role(session_user, owner, 'USAGE') THEN
        role := 'admin';
        personal := true;
        edit := true;
    END IF;
END
$body$;
COMMENT ON FUNCTION "{schema}".operator_standing(bytea, boolean) IS
    'What the holder of a token (by its hash), or without one the role that is connected, may do. With hold its rows stay
locked to the end of the transaction, so that a right cannot be withdrawn beneath an act. Who owns the tables may do all. No role: nothing';
"""

QUARANTINE = """
ALTER TABLE "{schema}".quarantined_message ADD COLUMN discarded_at timestamptz, ADD COLUMN purged_at timestamptz,
    ADD COLUMN edited_as uuid, ADD COLUMN redrive_refused text;
COMMENT ON COLUMN "{schema}".quarantined_message.purged_at IS 'When key, payload and headers were erased: it cannot be sent again';
COMMENT ON COLUMN "{schema}".quarantined_message.edited_as IS 'The id of the edited copy that took its place';
COMMENT ON COLUMN "{schema}".quarantined_message.redrive_refused IS 'Why the broker did not take the copy of its last redrive';
UPDATE "{schema}".quarantined_message SET discarded_at = clock_timestamp() WHERE state = 'discarded';
CREATE FUNCTION "{schema}".error_site(error text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $body$
    SELECT left(split_part(coalesce(error, ''), ': ', 1), 300)
$body$;
COMMENT ON FUNCTION "{schema}".error_site(text) IS 'Class, code and place of a recorded error, without the text behind them';
CREATE FUNCTION "{schema}".failure_print(group_id text, topic text, type text, reason text, error text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $body$
    SELECT md5(group_id || chr(31) || topic || chr(31) || coalesce(type, '') || chr(31) || reason || chr(31)
        || left(split_part(coalesce(error, ''), ': ', 1), 300))
$body$;
COMMENT ON FUNCTION "{schema}".failure_print(text, text, text, text, text) IS
    'Names a group of failures that have one cause, as far as anybody can tell from group, topic, type, reason and site';
CREATE INDEX quarantined_message_print ON "{schema}".quarantined_message
    ("{schema}".failure_print(group_id, topic, type, reason, error), quarantined_at DESC, message_id DESC);
CREATE INDEX quarantined_message_key ON "{schema}".quarantined_message USING hash (key);
CREATE INDEX quarantined_message_edited_as ON "{schema}".quarantined_message (edited_as) WHERE edited_as IS NOT NULL;
CREATE INDEX parked_message_id ON "{schema}".parked_message (message_id);
CREATE TABLE "{schema}".failure_group (
    print text PRIMARY KEY,
    acknowledged_by text,
    acknowledged_at timestamptz,
    acknowledged_why text,
    contact text,
    told_at timestamptz,
    told_count bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE "{schema}".failure_group IS 'What people and contacts know of a group of failures';
CREATE TABLE "{schema}".failure_note (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    print text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor text NOT NULL,
    note text NOT NULL
);
COMMENT ON TABLE "{schema}".failure_note IS 'What people have written about a group of failures';
CREATE INDEX failure_note_print ON "{schema}".failure_note (print, id);
"""

TALLY = """
CREATE TABLE "{schema}".quarantine_tally (
    group_id text,
    topic text,
    type text,
    reason text,
    site text,
    day date,
    state text,
    n bigint NOT NULL,
    first_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL,
    PRIMARY KEY (group_id, topic, type, reason, site, day, state)
);
COMMENT ON TABLE "{schema}".quarantine_tally IS
    'How many quarantined messages there are of each kind, by the day; exact together with quarantine_change';
CREATE TABLE "{schema}".quarantine_tenant_tally (
    group_id text,
    topic text,
    type text,
    tenant text,
    reason text,
    site text,
    state text,
    n bigint NOT NULL,
    first_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL,
    PRIMARY KEY (group_id, topic, type, tenant, reason, site, state)
);
COMMENT ON TABLE "{schema}".quarantine_tenant_tally IS
    'The same by tenant and not by the day: by both there would be as many rows as messages';
CREATE TABLE "{schema}".quarantine_change (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    group_id text NOT NULL,
    topic text NOT NULL,
    type text NOT NULL,
    tenant text NOT NULL,
    reason text NOT NULL,
    site text NOT NULL,
    day date NOT NULL,
    state text NOT NULL,
    n bigint NOT NULL,
    first_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE "{schema}".quarantine_change IS
    'What is to be added to the tallies: rows of their own, so that no writer waits for another';
CREATE FUNCTION "{schema}".tally_quarantine() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO "{schema}".quarantine_change (group_id, topic, type, tenant, reason, site, day, state, n, first_at, last_at)
        SELECT c.group_id, c.topic, coalesce(c.type, ''), coalesce(c.tenant, ''), c.reason, "{schema}".error_site(c.error),
            (c.quarantined_at AT TIME ZONE 'UTC')::date, c.state, count(*), min(c.quarantined_at), max(c.quarantined_at)
          FROM came AS c GROUP BY 1, 2, 3, 4, 5, 6, 7, 8;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO "{schema}".quarantine_change (group_id, topic, type, tenant, reason, site, day, state, n, first_at, last_at)
        SELECT w.group_id, w.topic, coalesce(w.type, ''), coalesce(w.tenant, ''), w.reason, "{schema}".error_site(w.error),
            (w.quarantined_at AT TIME ZONE 'UTC')::date, w.state, -count(*), min(w.quarantined_at), max(w.quarantined_at)
          FROM went AS w GROUP BY 1, 2, 3, 4, 5, 6, 7, 8;
    ELSIF TG_OP = 'UPDATE' THEN
        INSERT INTO "{schema}".quarantine_change (group_id, topic, type, tenant, reason, site, day, state, n, first_at, last_at)
        SELECT b.group_id, b.topic, coalesce(b.type, ''), coalesce(b.tenant, ''), b.reason, "{schema}".error_site(b.error),
            (b.quarantined_at AT TIME ZONE 'UTC')::date, b.state, sum(b.n), min(b.quarantined_at), max(b.quarantined_at)
          FROM (SELECT c.group_id, c.topic, c.type, c.tenant, c.reason, c.error, c.quarantined_at, c.state, 1 AS n FROM came AS c
                UNION ALL
                SELECT w.group_id, w.topic, w.type, w.tenant, w.reason, w.error, w.quarantined_at, w.state, -1 FROM went AS w
               ) AS b
         GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 HAVING sum(b.n) <> 0;
    ELSE
        TRUNCATE "{schema}".quarantine_tally, "{schema}".quarantine_tenant_tally, "{schema}".quarantine_change;
    END IF;
    RETURN NULL;
END
$body$;
CREATE TRIGGER tally_insert AFTER INSERT ON "{schema}".quarantined_message REFERENCING NEW TABLE AS came
    FOR EACH STATEMENT EXECUTE FUNCTION "{schema}".tally_quarantine();
CREATE TRIGGER tally_update AFTER UPDATE ON "{schema}".quarantined_message REFERENCING OLD TABLE AS went NEW TABLE AS came
    FOR EACH STATEMENT EXECUTE FUNCTION "{schema}".tally_quarantine();
CREATE TRIGGER tally_delete AFTER DELETE ON "{schema}".quarantined_message REFERENCING OLD TABLE AS went
    FOR EACH STATEMENT EXECUTE FUNCTION "{schema}".tally_quarantine();
CREATE TRIGGER tally_truncate AFTER TRUNCATE ON "{schema}".quarantined_message
    FOR EACH STATEMENT EXECUTE FUNCTION "{schema}".tally_quarantine();
INSERT INTO "{schema}".quarantine_tally (group_id, topic, type, reason, site, day, state, n, first_at, last_at)
SELECT q.group_id, q.topic, coalesce(q.type, ''), q.reason, "{schema}".error_site(q.error),
    (q.quarantined_at AT TIME ZONE 'UTC')::date, q.state, count(*), min(q.quarantined_at), max(q.quarantined_at)
  FROM "{schema}".quarantined_message AS q GROUP BY 1, 2, 3, 4, 5, 6, 7;
INSERT INTO "{schema}".quarantine_tenant_tally (group_id, topic, type, tenant, reason, site, state, n, first_at, last_at)
SELECT q.group_id, q.topic, coalesce(q.type, ''), coalesce(q.tenant, ''), q.reason, "{schema}".error_site(q.error), q.state,
    count(*), min(q.quarantined_at), max(q.quarantined_at)
  FROM "{schema}".quarantined_message AS q GROUP BY 1, 2, 3, 4, 5, 6, 7;
CREATE FUNCTION "{schema}".fold_quarantine(step int DEFAULT 5000) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    folded bigint;
    lost boolean;
BEGIN
    IF NOT pg_try_advisory_xact_lock(1346454352, hashtext('{schema}')) THEN
        RETURN 0;
    END IF;
    WITH gone AS (
        DELETE FROM "{schema}".quarantine_change AS c
         -- only folds delete, one at a time: what is not seen yet has its turn later, whatever its id
         WHERE c.id <= (SELECT max(f.id) FROM (SELECT n.id FROM "{schema}".quarantine_change AS n ORDER BY n.id
                        LIMIT least(greatest(step, 1), 100000)) AS f)
        RETURNING c.*
    ), by_day AS (
        INSERT INTO "{schema}".quarantine_tally AS t (group_id, topic, type, reason, site, day, state, n, first_at, last_at)
        SELECT g.group_id, g.topic, g.type, g.reason, g.site, g.day, g.state, sum(g.n), min(g.first_at), max(g.last_at)
          FROM gone AS g GROUP BY 1, 2, 3, 4, 5, 6, 7
        ON CONFLICT (group_id, topic, type, reason, site, day, state) DO UPDATE
        SET n = t.n + EXCLUDED.n, first_at = least(t.first_at, EXCLUDED.first_at), last_at = greatest(t.last_at, EXCLUDED.last_at)
    ), by_tenant AS (
        INSERT INTO "{schema}".quarantine_tenant_tally AS t
            (group_id, topic, type, tenant, reason, site, state, n, first_at, last_at)
        SELECT g.group_id, g.topic, g.type, g.tenant, g.reason, g.site, g.state, sum(g.n), min(g.first_at), max(g.last_at)
          FROM gone AS g GROUP BY 1, 2, 3, 4, 5, 6, 7
        ON CONFLICT (group_id, topic, type, tenant, reason, site, state) DO UPDATE
        SET n = t.n + EXCLUDED.n, first_at = least(t.first_at, EXCLUDED.first_at), last_at = greatest(t.last_at, EXCLUDED.last_at)
    )
    SELECT count(*), coalesce(bool_or(g.n < 0), false) INTO folded, lost FROM gone AS g;
    IF lost THEN
        DELETE FROM "{schema}".quarantine_tally WHERE n = 0;
        DELETE FROM "{schema}".quarantine_tenant_tally WHERE n = 0;
    END IF;
    RETURN folded;
END
$body$;
COMMENT ON FUNCTION "{schema}".fold_quarantine(int) IS
    'Add what has changed to the counts, one caller at a time; return how many changes that were';
"""

REDRIVE = """
CREATE TABLE "{schema}".redrive (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state text NOT NULL DEFAULT 'previewed' CHECK
        (state IN ('previewed', 'running', 'paused', 'halted', 'aborted', 'ended')),
    wanted jsonb NOT NULL,
    checks jsonb NOT NULL DEFAULT '[]',
    members bigint NOT NULL DEFAULT 0,
    rate float8 NOT NULL,
    stages bigint[] NOT NULL,
    stage int NOT NULL DEFAULT 0,
    first_stage int NOT NULL DEFAULT 0,
    most_failures int,
    previewed_by text NOT NULL,
    previewed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    confirmed_by text,
    confirmed_at timestamptz,
    why text,
    said text,
    runner text,
    token bigint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz
);
COMMENT ON TABLE "{schema}".redrive IS
    'Redrives of frozen sets: what a preview froze, who confirmed it, and how far its runner is';
COMMENT ON COLUMN "{schema}".redrive.first_stage IS 'The stage with which the sizes begin: after a halt they begin small again';
COMMENT ON COLUMN "{schema}".redrive.most_failures IS 'Failures in a stage that are borne; null: none in small stages, else a tenth';
COMMENT ON COLUMN "{schema}".redrive.said IS 'Why it was halted, paused or aborted';
CREATE INDEX redrive_open ON "{schema}".redrive (state) WHERE state IN ('running', 'paused', 'halted');
CREATE TABLE "{schema}".redrive_member (
    redrive_id bigint REFERENCES "{schema}".redrive ON DELETE CASCADE,
    ordinal bigint,
    group_id text NOT NULL,
    topic text NOT NULL,
    message_id uuid NOT NULL,
    partition int NOT NULL,
    "offset" bigint NOT NULL,
    key_hash text,
    attempt int NOT NULL,
    redrives int NOT NULL,
    quarantined_at timestamptz NOT NULL,
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'asked', 'good', 'bad', 'moved', 'left')),
    stage int,
    asked_at timestamptz,
    refused boolean NOT NULL DEFAULT false,
    said text,
    PRIMARY KEY (redrive_id, ordinal)
);
COMMENT ON TABLE "{schema}".redrive_member IS 'The frozen members of a redrive, in the order in which they are asked for';
COMMENT ON COLUMN "{schema}".redrive_member.key_hash IS 'Stands for its key, so that those of one key go one after another';
COMMENT ON COLUMN "{schema}".redrive_member.state IS
    'asked: ordered in the tables; good, bad: proved by an outcome; moved: it was no longer as previewed; left: not asked for';
CREATE INDEX redrive_member_waiting ON "{schema}".redrive_member (redrive_id, ordinal) WHERE state = 'waiting';
CREATE INDEX redrive_member_asked ON "{schema}".redrive_member (redrive_id, ordinal) WHERE state = 'asked';
CREATE INDEX redrive_member_key ON "{schema}".redrive_member (key_hash, group_id, topic, redrive_id, ordinal);
CREATE INDEX redrive_member_message ON "{schema}".redrive_member (message_id);
"""

REPLAY = """
CREATE TABLE "{schema}".replay (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state text NOT NULL DEFAULT 'planned' CHECK (state IN ('planned', 'running', 'paused', 'halted', 'stopped', 'ended')),
    group_id text NOT NULL,
    topic text NOT NULL,
    topic_id uuid NOT NULL,
    wanted jsonb NOT NULL,
    checks jsonb NOT NULL DEFAULT '[]',
    again boolean NOT NULL DEFAULT false,
    rate float8 NOT NULL,
    most_failures int NOT NULL DEFAULT 0,
    planned_by text NOT NULL,
    planned_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    confirmed_by text,
    confirmed_at timestamptz,
    why text,
    said text,
    runner text,
    token bigint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz
);
COMMENT ON TABLE "{schema}".replay IS 'Replays of ranges of topics: what was planned, who confirmed it, and how far its runner is';
CREATE INDEX replay_open ON "{schema}".replay (state) WHERE state IN ('running', 'paused', 'halted');
CREATE TABLE "{schema}".replay_partition (
    replay_id bigint REFERENCES "{schema}".replay ON DELETE CASCADE,
    partition int,
    first bigint NOT NULL,
    position bigint NOT NULL,
    past bigint NOT NULL,
    gone bigint NOT NULL DEFAULT 0,
    matches bigint,
    counts jsonb NOT NULL DEFAULT '{{}}',
    PRIMARY KEY (replay_id, partition)
);
COMMENT ON TABLE "{schema}".replay_partition IS
    'A range of one partition, from first to before past as it was planned, and the position up to which it is worked off';
COMMENT ON COLUMN "{schema}".replay_partition.gone IS 'Offsets of the range that were no longer in the log when it was planned';
CREATE TABLE "{schema}".replay_message (
    replay_id bigint REFERENCES "{schema}".replay ON DELETE CASCADE,
    partition int,
    "offset" bigint,
    message_id uuid NOT NULL,
    handed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (replay_id, partition, "offset")
);
COMMENT ON TABLE "{schema}".replay_message IS
    'Messages that a replay has handed to its group and that have no outcome yet; gone once they are counted';
CREATE INDEX replay_message_id ON "{schema}".replay_message (message_id);
ALTER TABLE "{schema}".parked_key ADD COLUMN replay_id bigint, ADD COLUMN barrier bigint;
COMMENT ON COLUMN "{schema}".parked_key.replay_id IS
    'The replay that has more messages of this key to hand over: until then it stays parked, also when nothing waits';
COMMENT ON COLUMN "{schema}".parked_key.barrier IS
    'Of a key that a replay holds: followers from this offset on wait until it lets go';
CREATE INDEX parked_key_replay ON "{schema}".parked_key (replay_id) WHERE replay_id IS NOT NULL;
"""

AUDIT = """
CREATE INDEX audit_newest ON "{schema}".audit (at DESC, id DESC);
CREATE FUNCTION "{schema}".refuse_forgetting() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    RAISE EXCEPTION '% on %.% is refused: what people did stays on the record', TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'An act that was a mistake is put right by another act, which is on the record too.';
END
$body$;
CREATE TRIGGER refuse_forgetting BEFORE UPDATE OR DELETE OR TRUNCATE ON "{schema}".audit
    FOR EACH STATEMENT EXECUTE FUNCTION "{schema}".refuse_forgetting();
ALTER TABLE "{schema}".audit ADD COLUMN role text;
COMMENT ON COLUMN "{schema}".audit.role IS
    'The role that was connected, as the database knows it: actor is what the client says. Null before there was this column';
CREATE FUNCTION "{schema}".stamp_act() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    -- whoever owns the table could take this trigger off, and loads what a dump has
    IF NOT pg_has_role(session_user, (SELECT c.relowner FROM pg_class AS c WHERE c.oid = TG_RELID), 'USAGE') THEN
        NEW.at := clock_timestamp();
        NEW.role := NULL;
    END IF;
    NEW.role := coalesce(NEW.role, session_user);
    RETURN NEW;
END
$body$;
COMMENT ON FUNCTION "{schema}".stamp_act() IS 'Put on the record which role acts, and when, whatever the client says';
CREATE TRIGGER stamp_act BEFORE INSERT ON "{schema}".audit FOR EACH ROW EXECUTE FUNCTION "{schema}".stamp_act();
"""

PAUSED_KEY = """
ALTER TABLE "{schema}".parked_key ADD COLUMN paused_by text, ADD COLUMN paused_why text, ADD COLUMN paused_at timestamptz;
COMMENT ON COLUMN "{schema}".parked_key.paused_by IS 'Who paused it, where a person did';
"""

OWED = """
DROP INDEX "{schema}".parked_key_partition, "{schema}".quarantined_message_redriven;
CREATE INDEX quarantined_message_unsent ON "{schema}".quarantined_message (group_id, topic, partition, "offset", message_id)
    WHERE state = 'redriven' AND redrive_sent_at IS NULL;
CREATE INDEX quarantined_message_redriven ON "{schema}".quarantined_message
    (group_id, topic, partition, "offset", message_id, redrive_sent_at) WHERE state = 'redriven';
"""

LOOKS = """
CREATE INDEX parked_key_paused ON "{schema}".parked_key (group_id) WHERE paused;
"""

REVOKE = """
REVOKE EXECUTE ON FUNCTION "{schema}".operator_standing(bytea, boolean), "{schema}".fold_quarantine(int),
    "{schema}".tally_quarantine() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION "{schema}".error_site(text), "{schema}".failure_print(text, text, text, text, text) TO PUBLIC;
"""
"""An index calls the last ones as whoever writes: where default privileges give PUBLIC nothing, no processor could quarantine."""


def upgrade() -> None:
    """Make the tables, count what is there, and keep counting."""
    schema = context.config.attributes["schema"]
    for part in (OPERATOR, QUARANTINE, TALLY, REDRIVE, REPLAY, AUDIT, PAUSED_KEY, OWED, LOOKS, REVOKE):
        op.execute(part.format(schema=schema))
