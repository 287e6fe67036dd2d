"""Waking by NOTIFY: the port `Wakes`, and the trigger that sends it."""

from typing import Any

import psycopg

from packhorse.core.errors import DatabaseUnavailable, NotReady, SettingsError
from packhorse.relay.errors import StatementFailed
from packhorse.relay.postgres.connection import Reach, connect, translated
from packhorse.relay.postgres.pooled import PooledConnection
from packhorse.relay.waking import sql

TRIES = 10
QUIET = 10.0
"""Seconds without a wake-up after which the server is asked whether it is there: packets may vanish without a reset."""
LONGEST_SCHEMA = 53
"""A channel's name has 63 bytes at most; a longer one would fail the INSERT of a business transaction."""


class PostgresWakes:
    """Be the port `Wakes`; one thread at a time."""

    def __init__(self, url: str, schema: str, *, reach: Reach | None = None) -> None:
        self._url = url
        self._schema = schema
        self._reach = reach or Reach()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._quiet = 0.0

    def check(self) -> bool:
        """
        Connect and listen; return whether `packhorse relay notify on` was run.

        Raises:
            NotReady: A pooler is in between: the session that listens would be lent to others.
            DatabaseUnavailable: No connection, or no answer.
        """
        connection = self._listen()
        with translated(connection):
            row = connection.execute(sql.SWITCHED.format(schema=self._schema)).fetchone()
        return row is not None and bool(row[0])

    def wait(self, seconds: float) -> bool:
        if self._connection is None or self._connection.closed:
            self._listen()
            return True
        with translated(self._connection):
            woken = bool(list(self._connection.notifies(timeout=seconds, stop_after=1)))
            self._quiet = 0.0 if woken else self._quiet + seconds
            if self._quiet >= QUIET:
                self._connection.execute(sql.ALIVE)
                self._quiet = 0.0
        return woken

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _listen(self) -> psycopg.Connection[tuple[Any, ...]]:
        self._quiet = 0.0
        connection = connect(self._url, self._reach)
        if isinstance(connection, PooledConnection):
            connection.close()
            raise NotReady(
                "PACKHORSE_RELAY_LISTEN needs a session of its own, and this address leads to a pooler; name the server "
                "itself in PACKHORSE_RELAY_REPLICATION_URL, or do without: polling needs no session"
            )
        self._connection = connection
        with translated(connection):
            connection.execute(sql.NAME)
            connection.execute(sql.LISTEN.format(schema=self._schema))
        return connection


def switch(url: str, schema: str, *, on: bool) -> bool:
    """
    Make the trigger, or drop it; return whether that changed anything. Needs the rights of the outbox's owner.

    Writers wait for its lock for a second at most; it gives way and is tried again.

    Raises:
        SettingsError: The database schema's name is too long for a channel.
        NotReady: The tables or the rights are missing.
        DatabaseUnavailable: No connection, or writers held their locks through all tries.
    """
    if on and len(schema) > LONGEST_SCHEMA:
        raise SettingsError(
            f"database schema {schema}: {len(schema)} characters, and waking allows {LONGEST_SCHEMA}"
        )
    statement = (sql.ON if on else sql.OFF).format(schema=schema)
    with connect(url, Reach()) as connection:
        with translated(connection):
            row = connection.execute(sql.SWITCHED.format(schema=schema)).fetchone()
        if row == (on,):
            return False
        for _ in range(TRIES):
            try:
                with translated(connection), connection.transaction():
                    connection.execute(sql.GIVE_WAY)
                    connection.execute(statement)
            except StatementFailed as error:
                if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                    raise
            except NotReady as error:
                if not isinstance(error.__cause__, psycopg.errors.InsufficientPrivilege):
                    raise
                raise NotReady(
                    f"the trigger is the matter of the role that owns {schema}.outbox; run it as that one"
                ) from error
            else:
                return True
    raise DatabaseUnavailable(
        f"transactions held {schema}.outbox through {TRIES} tries of a second each; try again, or look for a long one"
    )
