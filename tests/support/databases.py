"""Fresh databases in milliseconds: copies of a template."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.local.settings import DATABASE_VARIABLE

MIGRATE = ("-m", "packhorse.cli.main", "migrate", "up")


def unique_name(prefix: str) -> str:
    """Return a name that nobody else has: lower-case letters, digits and underscores."""
    return f"{prefix}_{SYSTEM_CHANCE.token().hex[:12]}"


def with_database(url: str, database: str) -> str:
    """
    Return *url* with another database.

    >>> with_database("postgresql://a@h:1/old?x=1", "new")
    'postgresql://a@h:1/new?x=1'
    """
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))


@contextmanager
def fresh_database(server_url: str, template: str = "template0") -> Iterator[str]:
    """Create a database on the server of *server_url* from *template*, yield its URL and drop it."""
    name = unique_name("test")
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
    _execute(server_url, create)
    try:
        yield with_database(server_url, name)
    finally:
        _execute(server_url, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def make_tables(url: str) -> None:
    """Make Packhorse's tables, the way a user does."""
    path = {name: value for name, value in os.environ.items() if name == "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, *MIGRATE],
        env={DATABASE_VARIABLE: url, **path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"packhorse migrate up: status {done.returncode}\n{done.stdout}{done.stderr}"


def _execute(url: str, statement: sql.Composed) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)
