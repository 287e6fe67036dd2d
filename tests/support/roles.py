"""Roles of the database's server, made for a test and dropped after it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from tests.support.databases import unique_name

from packhorse.producer.grants import grants


class Roles:
    """Make roles; *connection* is the owner's, in autocommit."""

    def __init__(self, connection: psycopg.Connection[Any], url: str) -> None:
        self._connection = connection
        self._url = url
        self._made: list[str] = []

    def make(self, purpose: str | None = None, *, member_of: str | None = None) -> str:
        """Make a role that may log in and return its name; with the grants of *purpose*, and a member of another one."""
        name = unique_name("role")
        self._connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
        self._made.append(name)
        if member_of is not None:
            self._connection.execute(
                sql.SQL("GRANT {} TO {}").format(sql.Identifier(member_of), sql.Identifier(name))
            )
        if purpose is not None:
            self.grant(purpose, name)
        return name

    def grant(self, purpose: str, role: str) -> None:
        """Give *role* the grants of *purpose*, as an administrator of the database does."""
        for statement in grants("packhorse", [(purpose, role)]):
            self._connection.execute(statement.encode())

    def url(self, role: str) -> str:
        """Return where *role* connects."""
        return make_conninfo(self._url, user=role)

    def drop(self) -> None:
        """Drop all that were made."""
        for name in reversed(self._made):
            self._connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(name)))
            self._connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


@contextmanager
def roles_of(connection: psycopg.Connection[Any], url: str) -> Iterator[Roles]:
    """Hand out a maker of roles, and drop what it made at the end of the block."""
    made = Roles(connection, url)
    try:
        yield made
    finally:
        made.drop()
