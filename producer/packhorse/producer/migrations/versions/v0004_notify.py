"""
Give the function by which a commit may wake the relay; no trigger calls it until `packhorse relay notify on` makes one.

Runs before the code that needs it; the version before it goes on working on these tables.
"""

from alembic import context, op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None
phase = "before"

WAKE = """
CREATE FUNCTION "{schema}".wake_relay() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM pg_notify('packhorse_' || TG_TABLE_SCHEMA, '');
    RETURN NULL;
END
$body$;
COMMENT ON FUNCTION "{schema}".wake_relay() IS
    'Wakes a relay that listens, when the transaction commits; makes commits of the whole server wait for each other';
"""


def upgrade() -> None:
    """Make the function."""
    op.execute(WAKE.format(schema=context.config.attributes["schema"]))
