"""What every retention has of its database: one connection of its own while a turn lasts, each statement a transaction."""

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import errors as pg

from packhorse.core.errors import NotReady
from packhorse.core.naming import checked_identifier
from packhorse.processor.storing import postgres

LOCK_MS = 1_000


class Kept:
    """
    Send statements, and take turns by them; each raises DatabaseUnavailable, NotReady or Contention as `postgres.translated` says.

    Args:
        what: What is kept small, as errors name it.
        claim: The statement that takes the turn, for *by* and *every*.
        renew: The statement that gives a sign of life, for *by*.
        answer_ms: Longest time for one statement.
        planned: Settings of the planner, as SET takes them.
    """

    def __init__(
        self, url: str, schema: str, *, what: str, claim: str, renew: str, answer_ms: int, planned: str = ""
    ) -> None:
        self._schema = checked_identifier(schema, what="database schema")
        self._conninfo = postgres.settings_of(url, idle_ms=60_000, lock_ms=LOCK_MS)
        self._what = what
        self._claim, self._renew = claim, renew
        self._set = (
            f"SET statement_timeout = {answer_ms}; SET synchronous_commit = local; SET jit = off; {planned}"
        )
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    def claim(self, by: str, every: float) -> bool:
        """Take the turn; False: another process has it, or had one less than *every* seconds ago."""
        return bool(self.rows(self._claim, by=by, every=every))

    def renew(self, by: str) -> bool:
        """Give a sign of life; False: another process has taken the turn."""
        return bool(self.rows(self._renew, by=by))

    def rows(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """Run *statement* and return its rows; connects where no connection is held."""
        with self._named():
            connection = self._held()
            cursor = connection.execute(statement.format(schema=self._schema).encode(), values)
            return cursor.fetchall() if cursor.description is not None else []

    def cancel(self) -> None:
        """Cancel what runs, from another thread."""
        connection = self._connection
        if connection is not None and not connection.closed:
            with contextlib.suppress(psycopg.Error):
                connection.cancel_safe(timeout=1)

    def close(self) -> None:
        """Let the connection go; the next step makes another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        with postgres.translated():
            try:
                yield
            except pg.UndefinedFunction as error:
                raise NotReady(
                    f"database schema {self._schema} has no functions for the {self._what}'s retention; run `packhorse migrate up`"
                ) from error
            except pg.InsufficientPrivilege as error:
                raise NotReady(
                    f"this database role may not keep the {self._what} in {self._schema} small; "
                    "`packhorse migrate sql --grants processor=ROLE` prints what it needs"
                ) from error

    def _held(self) -> "psycopg.Connection[tuple[Any, ...]]":
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._conninfo, autocommit=True, prepare_threshold=None)
            self._connection.execute(self._set.encode())
        return self._connection
