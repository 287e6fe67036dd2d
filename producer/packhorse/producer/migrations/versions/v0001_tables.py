"""
Make all tables: outbox, schema_version, relay, inbox, watermark, failed_attempt, quarantined_message, audit.

Runs before the code that needs it. Needs CREATE on the database schema and no superuser.
"""

from alembic import context, op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None
phase = "before"

OUTBOX = """
CREATE TABLE "{schema}".outbox (
    id uuid NOT NULL,
    aggregatetype text NOT NULL,
    aggregateid text,
    type text NOT NULL,
    schema_version text NOT NULL,
    payload bytea,
    traceparent text,
    tracestate text,
    correlation_id text,
    causation_id text,
    origin text,
    actor text,
    tenant text,
    expires_at text,
    headers jsonb,
    created_at timestamp NOT NULL DEFAULT (clock_timestamp() AT TIME ZONE 'UTC'),
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    seq bigint GENERATED ALWAYS AS IDENTITY (CACHE 1)
) PARTITION BY RANGE (created_at);
COMMENT ON TABLE "{schema}".outbox IS
    'Messages written in their transactions; append-only; one partition a day (UTC)';
COMMENT ON COLUMN "{schema}".outbox.seq IS
    'Order inside one target of the relay; cache 1, so that a writer that locks its key first draws in commit order';
CREATE INDEX outbox_xid_seq ON "{schema}".outbox (xid, seq);
CREATE INDEX outbox_seq ON "{schema}".outbox (seq);
CREATE INDEX outbox_id ON "{schema}".outbox (id);
CREATE TABLE "{schema}".outbox_default PARTITION OF "{schema}".outbox DEFAULT;
"""

REFUSE_CHANGE = """
CREATE FUNCTION "{schema}".refuse_change() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    RAISE EXCEPTION '% on %.% is refused: the outbox is append-only, and a changed row would never be published',
        TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Emit a new message instead. Published days are emptied by TRUNCATE of their own partition.';
END
$body$;
CREATE TRIGGER refuse_change BEFORE UPDATE OR DELETE ON "{schema}".outbox
    FOR EACH ROW EXECUTE FUNCTION "{schema}".refuse_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON "{schema}".outbox
    FOR EACH STATEMENT EXECUTE FUNCTION "{schema}".refuse_change();
"""

LOCK_KEYS = """
CREATE FUNCTION "{schema}".lock_keys(slots int[]) RETURNS int[] LANGUAGE plpgsql AS $body$
DECLARE
    class CONSTANT int := 1346454347;
    later CONSTANT boolean := coalesce(current_setting('packhorse.locked', true), '') <> '';
    slot int;
    busy int[] := '{{}}';
BEGIN
    PERFORM set_config('packhorse.locked', '1', true);
    FOR slot IN SELECT DISTINCT s FROM unnest(slots) AS s ORDER BY s LOOP
        IF NOT later THEN
            PERFORM pg_advisory_xact_lock(class, slot);
        ELSIF NOT pg_try_advisory_xact_lock(class, slot) THEN
            busy := busy || slot;
        END IF;
    END LOOP;
    RETURN busy;
END
$body$;
COMMENT ON FUNCTION "{schema}".lock_keys(int[]) IS
    'Lock key slots until the transaction ends. The first call of a transaction waits, in slot order, so that no two can
deadlock; a later one only tries and returns the slots that others hold';
"""

SCHEMA_VERSION = """
CREATE TABLE "{schema}".schema_version (
    subject text,
    version int,
    fingerprint text NOT NULL,
    schema_id int NOT NULL,
    schema text NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (subject, version)
);
COMMENT ON TABLE "{schema}".schema_version IS
    'The registry''s id of each schema version; filled by `packhorse schemas register`';
"""

RELAY = """
CREATE TABLE "{schema}".relay (
    shard smallint PRIMARY KEY,
    epoch bigint NOT NULL DEFAULT 0,
    token uuid,
    owner text,
    lease_until timestamptz,
    horizon pg_snapshot NOT NULL,
    target pg_snapshot,
    progress bigint NOT NULL DEFAULT 0,
    incarnation text,
    published bigint NOT NULL DEFAULT 0,
    saved_at timestamptz,
    trouble text,
    trouble_since timestamptz
);
COMMENT ON TABLE "{schema}".relay IS 'One row a shard: its lease, its horizon, and the target it works towards';
COMMENT ON COLUMN "{schema}".relay.progress IS 'seq up to which every row of the target is confirmed by the broker';
INSERT INTO "{schema}".relay (shard, horizon) VALUES (0, '1:1:');
"""

INBOX = """
CREATE TABLE "{schema}".inbox (
    group_id text,
    topic text,
    message_id uuid,
    outcome text NOT NULL CHECK
        (outcome IN ('done', 'skipped', 'retry', 'parked', 'quarantine', 'uncertain', 'discarded')),
    attempt int NOT NULL DEFAULT 1,
    deliveries int NOT NULL DEFAULT 1,
    partition int NOT NULL,
    "offset" bigint NOT NULL,
    type text,
    due_at timestamptz,
    first_failed_at timestamptz,
    reason text,
    error text,
    payload_digest bytea,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- the id first: one index serves batches and a person's question, and ids of one time lie side by side
    PRIMARY KEY (message_id, group_id, topic)
);
COMMENT ON TABLE "{schema}".inbox IS 'That a group has dealt with a message, and how';
CREATE INDEX inbox_open ON "{schema}".inbox (group_id, outcome) WHERE outcome NOT IN ('done', 'skipped');
"""

WATERMARK = """
CREATE TABLE "{schema}".watermark (
    group_id text,
    topic_id uuid,
    partition int,
    topic text NOT NULL,
    "offset" bigint NOT NULL,
    leader_epoch int,
    incarnation text NOT NULL,
    moved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (group_id, topic_id, partition)
);
COMMENT ON TABLE "{schema}".watermark IS 'Offset below which every result of a group is durable';
"""

QUARANTINE = """
CREATE TABLE "{schema}".failed_attempt (
    group_id text,
    topic text,
    message_id uuid,
    attempt int,
    failed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    reason text NOT NULL,
    error text,
    due_at timestamptz,
    PRIMARY KEY (message_id, group_id, topic, attempt)
);
COMMENT ON TABLE "{schema}".failed_attempt IS 'Each run of a handler that failed';
CREATE TABLE "{schema}".quarantined_message (
    group_id text,
    topic text,
    message_id uuid,
    topic_id uuid NOT NULL,
    partition int NOT NULL,
    "offset" bigint NOT NULL,
    leader_epoch int,
    timestamp_ms bigint,
    key bytea,
    payload bytea,
    headers jsonb NOT NULL,
    type text,
    tenant text,
    reason text NOT NULL,
    error text,
    attempts int NOT NULL,
    first_failed_at timestamptz NOT NULL,
    quarantined_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    state text NOT NULL DEFAULT 'quarantined' CHECK (state IN ('quarantined', 'redriven', 'discarded')),
    copy_partition int,
    copy_offset bigint,
    redrives int NOT NULL DEFAULT 0,
    redrive_sent_at timestamptz,
    PRIMARY KEY (message_id, group_id, topic)
);
COMMENT ON TABLE "{schema}".quarantined_message IS
    'Messages that wait for a person, byte for byte as they arrived; headers are [[name, base64 or null], ...]';
CREATE INDEX quarantined_message_waiting ON "{schema}".quarantined_message (group_id, quarantined_at)
    WHERE state = 'quarantined';
CREATE INDEX quarantined_message_newest ON "{schema}".quarantined_message
    (quarantined_at DESC, message_id DESC, group_id DESC, topic DESC);
"""

AUDIT = """
CREATE TABLE "{schema}".audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor text NOT NULL,
    act text NOT NULL,
    group_id text,
    topic text,
    message_id uuid,
    detail jsonb NOT NULL DEFAULT '{{}}',
    why text
);
COMMENT ON TABLE "{schema}".audit IS 'What people did, to what, and why';
CREATE INDEX audit_message_id ON "{schema}".audit (message_id);
"""


def upgrade() -> None:
    """Make all tables."""
    schema = context.config.attributes["schema"]
    for part in (
        OUTBOX,
        REFUSE_CHANGE,
        LOCK_KEYS,
        SCHEMA_VERSION,
        RELAY,
        INBOX,
        WATERMARK,
        QUARANTINE,
        AUDIT,
    ):
        op.execute(part.format(schema=schema))
