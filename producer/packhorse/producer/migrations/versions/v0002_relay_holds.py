"""
Give the relay holds, discards, orders of people, and the facts that tell one database server from another.

Runs before the code that needs it; the version before it goes on working on these tables.
"""

from alembic import context, op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None
phase = "before"

RELAY = """
ALTER TABLE "{schema}".relay
    ADD COLUMN seq_high bigint NOT NULL DEFAULT 0,
    ADD COLUMN incarnation_before text,
    ADD COLUMN incarnation_since timestamptz,
    ADD COLUMN incarnation_saved_at timestamptz,
    ADD COLUMN orders bigint NOT NULL DEFAULT 0,
    ADD COLUMN finish boolean NOT NULL DEFAULT false,
    ADD COLUMN mode text NOT NULL DEFAULT 'polling' CHECK (mode IN ('polling', 'cdc')),
    ADD COLUMN mode_cause text,
    ADD COLUMN mode_since timestamptz,
    ADD COLUMN moves bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN "{schema}".relay.seq_high IS
    'How far outbox.seq was drawn when the position was saved: rows above it were written later, so no horizon holds them';
COMMENT ON COLUMN "{schema}".relay.incarnation IS 'Server that the position was saved on: system identifier/timeline';
COMMENT ON COLUMN "{schema}".relay.incarnation_since IS
    'When another server than incarnation_before was taken on; its last save known here was at incarnation_saved_at';
COMMENT ON COLUMN "{schema}".relay.orders IS 'Grows by one with each order that a person leaves for the owner';
COMMENT ON COLUMN "{schema}".relay.finish IS
    'Take no new target, finish the one in work and give the lease back: the shards are about to change';
COMMENT ON COLUMN "{schema}".relay.mode IS 'How the owner reads the outbox; moves counts the changes';
"""

HOLD = """
CREATE TABLE "{schema}".relay_hold (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    shard smallint NOT NULL,
    scope text NOT NULL CHECK (scope IN ('row', 'key', 'partition', 'topic')),
    aggregatetype text NOT NULL,
    aggregateid text,
    partition int,
    partitions int,
    message_id uuid,
    seq bigint,
    code text NOT NULL,
    reason text NOT NULL,
    heals boolean NOT NULL,
    horizon pg_snapshot NOT NULL,
    target pg_snapshot,
    progress bigint NOT NULL DEFAULT 0,
    until bigint,
    resume_horizon pg_snapshot,
    resume_target pg_snapshot,
    resume_progress bigint NOT NULL DEFAULT 0,
    state text NOT NULL DEFAULT 'held' CHECK (state IN ('held', 'releasing', 'ended')),
    asked text CHECK (asked = 'release'),
    asked_at timestamptz,
    tries int NOT NULL DEFAULT 0,
    sent bigint NOT NULL DEFAULT 0,
    rate int CHECK (rate > 0),
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz
);
COMMENT ON TABLE "{schema}".relay_hold IS
    'What the relay leaves out for now: a row, key, partition or topic, with a horizon of its own';
COMMENT ON COLUMN "{schema}".relay_hold.until IS
    'A range that is sent again ends behind this seq; the release then goes on from the resume position';
COMMENT ON COLUMN "{schema}".relay_hold.heals IS 'True: the relay tries again by itself; false: a person orders the release';
-- hashed, since an entry of an index has an end and a key has none
CREATE UNIQUE INDEX relay_hold_open ON "{schema}".relay_hold (shard, scope, hashtextextended(aggregatetype, 0), hashtextextended(
    (CASE scope WHEN 'row' THEN message_id::text WHEN 'key' THEN aggregateid WHEN 'partition' THEN partition::text ELSE '' END), 0))
    WHERE state <> 'ended';
"""

DISCARD = """
CREATE TABLE "{schema}".relay_discard (
    message_id uuid PRIMARY KEY,
    hold_id bigint NOT NULL,
    aggregatetype text NOT NULL,
    seq bigint NOT NULL,
    actor text NOT NULL,
    why text,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE "{schema}".relay_discard IS 'Outbox rows that a person gave up; they are never published';
"""


def upgrade() -> None:
    """Add columns to relay; make relay_hold and relay_discard."""
    schema = context.config.attributes["schema"]
    for part in (RELAY, HOLD, DISCARD):
        op.execute(part.format(schema=schema))
