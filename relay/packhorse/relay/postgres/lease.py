"""The lease's row through a connection of its own: the port `LeaseTable`."""

from typing import Any
from uuid import UUID

import psycopg

from packhorse.relay import sql
from packhorse.relay.postgres.connection import Reach, connect, translated


class PostgresLease:
    """Be the port `LeaseTable`; waits for answers no longer than a third of the lease."""

    def __init__(self, url: str, schema: str, *, lease: float, shard: int = 0) -> None:
        self._url = url
        self._reach = Reach(connect=max(lease / 3, 1.0), answer=max(lease / 3, 0.5))
        self._renew = sql.RENEW.format(schema=schema, shard=shard)
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    def renew(self, token: UUID, lease: float) -> int | None:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._url, self._reach)
        with translated(self._connection):
            row = self._connection.execute(self._renew, {"token": token, "lease": lease}).fetchone()
        return None if row is None else int(row[0])

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
