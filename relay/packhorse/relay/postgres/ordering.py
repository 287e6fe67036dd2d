"""Orders of people to the relay: one connection, and one transaction each, with who may and who did in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import psycopg

from packhorse.core.errors import DatabaseUnavailable, NotReady
from packhorse.core.person import Person
from packhorse.core.rights import Right
from packhorse.relay import sql as relay_sql
from packhorse.relay.errors import StatementFailed
from packhorse.relay.orders import sql
from packhorse.relay.orders.model import SCANNED
from packhorse.relay.postgres.acting import allowed
from packhorse.relay.postgres.connection import Reach, connect, translated


class Statements:
    """
    The statements about orders on one connection, in whatever transaction is open there.

    Args:
        scanned: Rows of the outbox that one count of what waits goes through.
    """

    def __init__(self, connection: psycopg.Connection[Any], schema: str, *, scanned: int = SCANNED) -> None:
        self._connection = connection
        self._schema = schema
        self.scanned = scanned

    def rows(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """Run *statement* and return its rows; raises the driver's errors."""
        return self.execute(statement, values).fetchall()

    def execute(self, statement: str, values: dict[str, object]) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run *statement*; raises the driver's errors."""
        mine = ""
        if "{mine}" in statement:
            shards = self._connection.execute(sql.SHARDS.format(schema=self._schema).encode()).fetchone()
            assert shards is not None
            if shards[0] > 1:
                mine = relay_sql.MINE.format(shards=shards[0], shard=values["shard"])
        text = statement.format(schema=self._schema, mine=mine, scanned=self.scanned)
        return self._connection.execute(text.encode(), values)


class Ordering:
    """
    Be the base of what reads for people and leaves their orders, over one connection.

    Every method raises DatabaseUnavailable when the database does not answer, and NotReady when a table or right is missing;
    then nothing was changed.
    """

    def __init__(self, url: str, schema: str, *, reach: Reach | None = None) -> None:
        """Connect."""
        self._schema = schema
        self._connection = connect(url, reach or Reach())
        self._statements = Statements(self._connection, schema)

    def __enter__(self) -> Self:
        """Hand itself out."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._connection.close()

    @contextmanager
    def _ordering(self, person: Person, doing: str) -> Iterator[str]:
        """
        Run the block in one transaction, durable when it is over, once the right is checked and locked; hand out who acts.

        Raises:
            Forbidden: *person* may not do what *doing* says.
        """
        with self._translated(), self._connection.transaction():
            self._rows(sql.LIMITS)
            yield allowed(self._connection, self._schema, person, Right.ACT, doing=doing)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            with translated(self._connection):
                yield
        except StatementFailed as error:
            raise DatabaseUnavailable(f"{error}; nothing was changed, try again") from error
        except NotReady as error:
            if isinstance(error.__cause__, psycopg.errors.InsufficientPrivilege):
                said = str(error).partition("; `packhorse")[0]
                raise NotReady(
                    f"{said}; `packhorse migrate sql --grants operator=ROLE` prints the rights"
                ) from error
            raise

    def _rows(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        return self._statements.rows(statement, **values)

    def _execute(self, statement: str, values: dict[str, object]) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._statements.execute(statement, values)
