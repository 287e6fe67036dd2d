"""Fresh databases in milliseconds: copies of a template."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
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
    """
    Create a database on the server of *server_url* from *template*, yield its URL and drop it.

    A template with tables is made anew when its day is over: the partitions in it are those of the days that followed it.
    """
    if _MADE_ON.get(template, _today()) != _today():
        _execute(server_url, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(template)))
        _fill_template(server_url, template)
    name = unique_name("test")
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
    _execute(server_url, create)
    try:
        yield with_database(server_url, name)
    finally:
        _execute(server_url, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


_MADE_ON: dict[str, date] = {}
"""The day on which each template with tables was made, in UTC."""


@contextmanager
def template_with_tables(server_url: str) -> Iterator[str]:
    """Make a database with Packhorse's tables to copy from, yield its name and drop it."""
    name = unique_name("template")
    _fill_template(server_url, name)
    try:
        yield name
    finally:
        del _MADE_ON[name]
        _execute(server_url, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _fill_template(server_url: str, name: str) -> None:
    _MADE_ON[name] = _today()
    _execute(server_url, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    make_tables(with_database(server_url, name))


def _today() -> date:
    return SYSTEM_CLOCK.now().date()


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
