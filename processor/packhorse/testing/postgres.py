"""Adapter to psycopg: how to connect once more to where a test's connection is."""

from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo


def conninfo_of(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> str:
    """Return a connection string for the server and user of *connection*; it may hold the password."""
    return make_conninfo(connection.info.dsn, password=connection.info.password or None)
