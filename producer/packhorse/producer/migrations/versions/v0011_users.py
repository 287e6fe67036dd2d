"""
Let rights be given to users: people whom a trusted proxy has signed in, by the name that it vouches for.

Runs before the code that needs it; the version before it goes on working, and what it asks, `operator_standing`, stays as it is.
Rights of users are given once that version is gone: it can't list them.
"""

from alembic import context, op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None
phase = "before"

KIND = """
ALTER TABLE "{schema}".operator DROP CONSTRAINT operator_kind_check,
    ADD CONSTRAINT operator_kind_check CHECK (kind IN ('role', 'token', 'user'));
COMMENT ON TABLE "{schema}".operator IS
    'Who may see and act: roles of the database (and whoever is a member of them), holders of tokens, and users, whom a trusted proxy
signs in';
"""

# A function of its own: what sees no users goes on by the grants that it has, and a name can't be taken for the hash of a token.
STANDING = """
CREATE FUNCTION "{schema}".user_standing(wanted text, hold boolean, OUT name text, OUT role text, OUT personal boolean,
    OUT edit boolean, OUT expired boolean) RETURNS record LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    IF hold THEN
        PERFORM FROM "{schema}".operator AS o WHERE o.kind = 'user' AND o.name = wanted FOR SHARE;
    END IF;
    SELECT o.name, o.role, o.personal, o.edit, coalesce(o.expires_at <= clock_timestamp(), false)
      INTO name, role, personal, edit, expired
      FROM "{schema}".operator AS o WHERE o.kind = 'user' AND o.name = wanted;
END
$body$;
COMMENT ON FUNCTION "{schema}".user_standing(text, boolean) IS
    'What the user of a name may do, whoever is connected. With hold its row stays locked to the end of the transaction, so that a right
cannot be withdrawn beneath an act. No name: nobody has given it rights. That it is the user who asks, the caller has to know';
REVOKE EXECUTE ON FUNCTION "{schema}".user_standing(text, boolean) FROM PUBLIC;
"""


def upgrade() -> None:
    """Allow users, and say what one may do."""
    schema = context.config.attributes["schema"]
    for part in (KIND, STANDING):
        op.execute(part.format(schema=schema))
