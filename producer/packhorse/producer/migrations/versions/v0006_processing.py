"""
Make the tables that keep order through failures (parked keys, retries, crash-loops, pauses), and part the inbox by id.

The inbox becomes a partitioned table whose default partition is the table that was there: no row moves, rights and owner go
along. Runs before the code that needs it; the version before it goes on working on these tables.
"""

from alembic import context, op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None
phase = "before"

INBOX = """
ALTER TABLE "{schema}".inbox RENAME TO inbox_default;
ALTER TABLE "{schema}".inbox_default RENAME CONSTRAINT inbox_pkey TO inbox_default_pkey;
ALTER INDEX "{schema}".inbox_open RENAME TO inbox_default_open;
ALTER TABLE "{schema}".inbox_default DROP COLUMN payload_digest, ADD COLUMN digest text;
CREATE TABLE "{schema}".inbox (LIKE "{schema}".inbox_default INCLUDING DEFAULTS INCLUDING CONSTRAINTS)
    PARTITION BY RANGE (message_id);
COMMENT ON TABLE "{schema}".inbox IS
    'That a group has dealt with a message, and how; one partition a day (UTC) by the time in UUIDv7 ids';
COMMENT ON COLUMN "{schema}".inbox.digest IS 'Of the payload: an id used twice for other bytes is found out';
COMMENT ON TABLE "{schema}".inbox_default IS
    'Inbox rows of ids without a time, of times without a partition, and of the time before there were partitions';
ALTER TABLE "{schema}".inbox ADD PRIMARY KEY (message_id, group_id, topic);
CREATE INDEX inbox_open ON "{schema}".inbox (group_id, outcome) WHERE outcome NOT IN ('done', 'skipped');
ALTER TABLE "{schema}".inbox ATTACH PARTITION "{schema}".inbox_default DEFAULT;
DO $body$
DECLARE
    had record;
BEGIN
    SELECT c.relowner::regrole AS owner, c.relowner = p.relowner AS same INTO had FROM pg_class AS c, pg_class AS p
     WHERE c.oid = '"{schema}".inbox_default'::regclass AND p.oid = '"{schema}".inbox'::regclass;
    IF NOT had.same THEN
        EXECUTE format('ALTER TABLE "{schema}".inbox OWNER TO %s', had.owner);
    END IF;
    FOR had IN SELECT a.privilege_type AS right,
            CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role,
            CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END AS options
          FROM pg_class AS c CROSS JOIN aclexplode(c.relacl) AS a
         WHERE c.oid = '"{schema}".inbox_default'::regclass AND a.grantee <> c.relowner LOOP
        EXECUTE format('GRANT %s ON "{schema}".inbox TO %s%s', had.right, had.role, had.options);
    END LOOP;
END
$body$;
"""

WATERMARK = """
ALTER TABLE "{schema}".watermark ADD COLUMN first_at timestamptz NOT NULL DEFAULT '-infinity';
ALTER TABLE "{schema}".watermark ALTER COLUMN first_at SET DEFAULT clock_timestamp();
COMMENT ON COLUMN "{schema}".watermark.first_at IS
    'Since when the group knows this topic id: an inbox row that is older is of an earlier topic of that name';
"""

PARKING = """
CREATE TABLE "{schema}".parked_key (
    group_id text,
    topic text,
    key_hash text,
    key bytea,
    partition int NOT NULL,
    head_id uuid,
    token bigint NOT NULL DEFAULT 0,
    drainer text,
    lease_until timestamptz,
    paused boolean NOT NULL DEFAULT false,
    parked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    wake_at timestamptz,
    PRIMARY KEY (group_id, topic, key_hash)
);
COMMENT ON COLUMN "{schema}".parked_key.wake_at IS 'When somebody should look whether its head is finished';
COMMENT ON TABLE "{schema}".parked_key IS
    'Keys whose head has failed, or that a person paused: later messages of the key wait behind it';
CREATE INDEX parked_key_partition ON "{schema}".parked_key (group_id, topic, partition);
CREATE INDEX parked_key_head ON "{schema}".parked_key (head_id);
CREATE INDEX parked_key_number ON "{schema}".parked_key ((('x' || left(key_hash, 16))::bit(64)::bigint));
CREATE INDEX parked_key_wake ON "{schema}".parked_key (group_id, wake_at) WHERE wake_at IS NOT NULL;
CREATE TABLE "{schema}".parked_message (
    group_id text,
    topic text,
    message_id uuid,
    key_hash text NOT NULL,
    topic_age int NOT NULL,
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
    parked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (message_id, group_id, topic)
);
COMMENT ON TABLE "{schema}".parked_message IS
    'Followers of parked keys, byte for byte as they arrived; headers are [[name, base64 or null], ...]';
COMMENT ON COLUMN "{schema}".parked_message.topic_age IS
    'How many other topic ids the group knew by that name: a topic that was made anew comes after';
CREATE INDEX parked_message_order ON "{schema}".parked_message (group_id, topic, key_hash, topic_age, "offset");
CREATE TABLE "{schema}".retry_message (
    group_id text,
    topic text,
    message_id uuid,
    attempt int NOT NULL,
    tier text NOT NULL,
    due_at timestamptz NOT NULL,
    spent float8 NOT NULL DEFAULT 0,
    key_hash text,
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
    reason text,
    error text,
    first_failed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    sent_at timestamptz,
    sent_partition int,
    sent_offset bigint,
    resend_at timestamptz,
    resends int NOT NULL DEFAULT 0,
    PRIMARY KEY (message_id, group_id, topic)
);
COMMENT ON TABLE "{schema}".retry_message IS
    'Messages that wait for their next attempt, byte for byte as they arrived; headers are [[name, base64 or null], ...]';
COMMENT ON COLUMN "{schema}".retry_message.spent IS 'Seconds charged to the budget: planned waits and runs so far';
CREATE INDEX retry_message_due ON "{schema}".retry_message (group_id, due_at);
ALTER TABLE "{schema}".quarantined_message ADD COLUMN key_hash text, ADD COLUMN history jsonb;
COMMENT ON COLUMN "{schema}".quarantined_message.key_hash IS 'Of the key that it keeps parked; null: order does not bind it';
CREATE INDEX quarantined_message_redriven ON "{schema}".quarantined_message
    (group_id, topic, partition, "offset", message_id, coalesce(redrive_sent_at, '-infinity')) WHERE state = 'redriven';
CREATE INDEX quarantined_message_uncopied ON "{schema}".quarantined_message (group_id, topic, partition, "offset", message_id)
    WHERE state = 'quarantined' AND copy_offset IS NULL;
"""

RUNNING = """
CREATE TABLE "{schema}".in_hand (
    group_id text,
    lane uuid,
    topic_id uuid NOT NULL,
    partition int NOT NULL,
    offsets bigint[] NOT NULL,
    alone boolean NOT NULL DEFAULT false,
    member uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (group_id, lane)
);
COMMENT ON TABLE "{schema}".in_hand IS
    'What each lane has in hand; after a crash these messages are run one by one';
CREATE INDEX in_hand_partition ON "{schema}".in_hand (group_id, topic_id, partition);
CREATE TABLE "{schema}".started (
    group_id text,
    topic_id uuid,
    partition int,
    "offset" bigint,
    starts int NOT NULL DEFAULT 1,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (group_id, topic_id, partition, "offset")
);
COMMENT ON TABLE "{schema}".started IS 'Messages that run one by one after a crash: how often each was begun';
CREATE TABLE "{schema}".pause (
    group_id text,
    topic text DEFAULT '',
    partition int DEFAULT -1,
    paused_by text NOT NULL,
    why text,
    paused_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (group_id, topic, partition)
);
COMMENT ON TABLE "{schema}".pause IS
    'What people paused: a group (no topic), a topic of it (partition -1), or one partition';
CREATE TABLE "{schema}".processor_member (
    group_id text,
    member uuid,
    host text NOT NULL,
    pid int NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    status jsonb NOT NULL DEFAULT '{{}}',
    PRIMARY KEY (group_id, member)
);
COMMENT ON TABLE "{schema}".processor_member IS 'Processor processes that live, and how each says it is';
"""

RETENTION = """
CREATE TABLE "{schema}".inbox_retention (
    group_id text PRIMARY KEY,
    kept_from timestamptz NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ran_by text,
    detail jsonb NOT NULL DEFAULT '{{}}'
);
COMMENT ON TABLE "{schema}".inbox_retention IS
    'One row a group: closed inbox rows of before kept_from may be gone';
"""


def upgrade() -> None:
    """Part the inbox; make the tables."""
    schema = context.config.attributes["schema"]
    for part in (INBOX, WATERMARK, PARKING, RUNNING, RETENTION):
        op.execute(part.format(schema=schema))
