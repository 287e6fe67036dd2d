"""
Let several relays share the shards, and let their number change.

Runs before the code that needs it; the version before it goes on working on these tables.
"""

from alembic import context, op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None
phase = "before"

SHARDS = """
ALTER TABLE "{schema}".relay ADD COLUMN shards_wanted smallint CHECK (shards_wanted > 0);
COMMENT ON COLUMN "{schema}".relay.shards_wanted IS 'How many shards there will be, while that changes';
CREATE TABLE "{schema}".relay_member (
    token uuid PRIMARY KEY,
    name text NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE "{schema}".relay_member IS
    'Relay processes that live: how many share the shards. A hint; who owns a shard is what its lease says';
"""


def upgrade() -> None:
    """Add shards_wanted; make relay_member."""
    op.execute(SHARDS.format(schema=context.config.attributes["schema"]))
