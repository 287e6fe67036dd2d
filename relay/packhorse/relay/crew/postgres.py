"""The roster in the database, through a connection of its own."""

import contextlib
from typing import Any
from uuid import UUID

import psycopg

from packhorse.core.errors import PackhorseError
from packhorse.relay.crew import sql
from packhorse.relay.crew.duties import Roster, ShardSeen
from packhorse.relay.postgres.connection import Reach, connect, translated


class PostgresRoster:
    """
    Say that this process lives, and see who else does; one thread.

    Raises DatabaseUnavailable when no answer comes within *patience* seconds, StatementFailed, NotReady.
    """

    def __init__(self, url: str, schema: str, *, token: UUID, name: str, patience: float) -> None:
        self._url = url
        self._sql = {each: getattr(sql, each).format(schema=schema) for each in ("SEEN", "FORGET", "ROSTER")}
        self._values = {"token": token, "name": name, "patience": patience}
        self._reach = Reach(connect=max(patience / 2, 1.0), answer=max(patience / 2, 1.0))
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._several = False

    def look(self) -> Roster:
        """Return the shards and the count of processes; a lone shard needs nobody to know of this one."""
        if self._several:
            self._execute("SEEN")
        rows = self._execute("ROSTER")
        self._several = len(rows) > 1
        shards = tuple(
            ShardSeen(shard=shard, leased=leased, takeable=free) for shard, leased, free, _ in rows
        )
        return Roster(shards=shards, members=1 + (rows[0][3] if rows else 0))

    def leave(self) -> None:
        """Say that this process is gone, if there is an answer; close the connection."""
        if self._several:
            with contextlib.suppress(PackhorseError):
                self._execute("FORGET")
        if self._connection is not None:
            self._connection.close()

    def _execute(self, name: str) -> list[tuple[Any, ...]]:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._url, self._reach)
        with translated(self._connection):
            cursor = self._connection.execute(self._sql[name], self._values)
            return cursor.fetchall() if cursor.description else []
