"""What the server itself asks. `{schema}` is the database schema of Packhorse's tables."""

HELD = """
SELECT EXISTS (SELECT 1 FROM {schema}.operator WHERE kind <> 'role' AND (expires_at IS NULL OR expires_at > clock_timestamp()))
    AS "any"
"""
"""Whether anybody could come in: the holder of a token that is good now, or somebody whom a proxy may sign in."""

READY = """
SELECT 1 AS ready FROM {schema}.operator_standing(NULL, false)
"""
"""The database answers and has the tables that every request needs."""
