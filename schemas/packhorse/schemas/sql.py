"""The statements of this part; {schema} is the database schema of Packhorse's tables."""

from typing import Final

READ_VERSIONS: Final = """
SELECT subject, version, fingerprint, schema_id FROM {schema}.schema_version
"""

WRITE_VERSION: Final = """
INSERT INTO {schema}.schema_version (subject, version, fingerprint, schema_id, schema)
VALUES (%(subject)s, %(version)s, %(fingerprint)s, %(schema_id)s, %(schema)s)
ON CONFLICT (subject, version) DO UPDATE SET schema_id = EXCLUDED.schema_id, registered_at = now()
WHERE schema_version.fingerprint = EXCLUDED.fingerprint
RETURNING schema_id
"""
"""Gives no row when the version is there with another fingerprint: a released version never changes."""

LIMIT_STATEMENT = "SELECT set_config('statement_timeout', %(milliseconds)s, true)"
"""Bound what follows in this transaction."""
