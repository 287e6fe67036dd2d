"""What the server itself asks. `{schema}` is the database schema of Packhorse's tables."""

HELD = """
SELECT EXISTS (SELECT 1 FROM {schema}.operator WHERE kind = 'token' AND (expires_at IS NULL OR expires_at > clock_timestamp()))
    AS "any"
"""
"""Whether anybody holds a token that is good now."""

READY = """
SELECT 1 AS ready FROM {schema}.operator_standing(NULL, false)
"""
"""The database answers and has the tables that every request needs."""
