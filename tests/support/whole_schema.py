"""Say in one word what all of Packhorse's tables hold, so that a test can say that nothing has changed."""

from typing import Any

import psycopg
from psycopg import sql

_TABLES = """
SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'packhorse' AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1
"""
_CONTENT = "SELECT count(*) || ' ' || coalesce(md5(string_agg(t::text, chr(10) ORDER BY t::text)), '') FROM packhorse.{} AS t"


def content(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """Return the number of rows and a digest of them, by table."""
    found = {}
    for (name,) in connection.execute(_TABLES).fetchall():
        row = connection.execute(sql.SQL(_CONTENT).format(sql.Identifier(name))).fetchone()
        assert row is not None
        found[name] = row[0]
    return found
