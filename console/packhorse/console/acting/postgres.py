"""
One database for the whole service: looks that see one snapshot, and acts whose right, effect and audit row are one transaction.

Whatever room acts does so through `Database.acting`, so that no act can be without its right and its record.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from psycopg.rows import dict_row, tuple_row
from psycopg.sql import SQL, Identifier
from psycopg.types.json import Jsonb

from packhorse.console.acting import sql
from packhorse.console.acting.person import Person
from packhorse.console.connecting.postgres import (
    Connection,
    connected,
    patiently,
    translated,
    where_of,
)
from packhorse.core.errors import AlreadyDone, DatabaseUnavailable
from packhorse.core.ids import time_of
from packhorse.core.moments import zulu
from packhorse.core.rights import Right, Standing, standing_of
from packhorse.processor.storing.steps import Answer, Steps
from packhorse.producer.standing import question_of

T = TypeVar("T")
Lend = Callable[[], AbstractContextManager[Connection]]
"""Hands out a connection in autocommit for the time of one transaction."""
CLOCKS = timedelta(hours=1)
"""By how much the clocks of console and database may differ: what a form did is looked for from so long before it was shown."""
NOBODY = Standing(name="", role=None)
"""Whose rights nobody has asked for."""


class Rows:
    """The statements of one transaction."""

    def __init__(self, cursor: psycopg.Cursor[Any], schema: str, standing: Standing) -> None:
        self._cursor = cursor
        self._schema = schema
        self.standing = standing

    @property
    def connection(self) -> Connection:
        """Return the connection, in this transaction, for what applications and other parts do in it; they must not end it."""
        return self._cursor.connection

    def all(self, statement: str, values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Run *statement* and return its rows by name."""
        return self._run(statement, values).fetchall()

    def first(self, statement: str, values: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Run *statement* and return its first row; None when there is none."""
        return self._run(statement, values).fetchone()

    def count(self, statement: str, values: Mapping[str, Any] | None = None) -> int:
        """Run *statement* and return how many rows it touched."""
        return self._run(statement, values).rowcount

    def carry(self, steps: Steps[T]) -> T:
        """Run *steps*, which the processor's daemon has too, in this transaction, and return their result."""
        cursor, answer = self._cursor.connection.cursor(row_factory=tuple_row), None
        try:
            while True:
                text, parameters = next(steps) if answer is None else steps.send(answer)
                cursor.execute(text, parameters)
                answer = Answer(cursor.fetchall() if cursor.description else (), cursor.rowcount)
        except StopIteration as ended:
            result: T = ended.value
            return result
        finally:
            cursor.close()

    def _run(self, statement: str, values: Mapping[str, Any] | None) -> psycopg.Cursor[Any]:
        return self._cursor.execute(SQL(statement).format(schema=Identifier(self._schema)), values or {})


class Acting(Rows):
    """One act: its statements and its record, which are committed together or not at all."""

    def __init__(
        self,
        cursor: psycopg.Cursor[Any],
        schema: str,
        standing: Standing,
        actor: str,
        *,
        once: UUID | None = None,
    ) -> None:
        super().__init__(cursor, schema, standing)
        self.actor = actor
        self.recorded = False
        self._once = once

    def check_new(self) -> None:
        """
        Check that the form which asks has done nothing yet; who sends it at the same moment waits until this act is over.

        Raises:
            AlreadyDone: It has; says what and when.
        """
        if self._once is None:
            return
        self.all(sql.TURN, {"turn": f"{self._schema}.once.{self._once}"})
        if done := self.all(sql.DONE_BY, form(self._once)):
            raise AlreadyDone(
                f"this form was sent before, and what it asks for was done then: {done[0]['act']} at {zulu(done[0]['at'])}; "
                "nothing was done now"
            )

    def left_alone(self) -> None:
        """Say that all was as it was wanted: nothing was changed, so nothing goes on the record."""
        self.recorded = True

    def record(
        self,
        act: str,
        *,
        why: str | None,
        group: str | None = None,
        topic: str | None = None,
        message_id: UUID | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> datetime:
        """Put the act on the record and return when; *detail* names what was acted on and has no text of a payload."""
        once = {} if self._once is None else {"once": str(self._once)}
        values = {
            "actor": self.actor,
            "act": act,
            "group": group,
            "topic": topic,
            "id": message_id,
            "detail": Jsonb({**(detail or {}), **once}),
            "why": why,
        }
        at: datetime = self.all(sql.WRITE_ACT, values)[0]["at"]
        self.recorded = True
        return at


class Database:
    """
    The database of one service.

    Args:
        lend: Where connections come from: one alone for a command, a pool for a server.
        schema: Database schema of Packhorse's tables.
        timeout: Seconds after which a statement is given up.
    """

    def __init__(self, lend: Lend, *, schema: str, timeout: float) -> None:
        self._lend = lend
        self.schema = schema
        self.timeout = timeout

    @contextmanager
    def reading(
        self,
        person: Person,
        *,
        right: Right | None = None,
        doing: str = "look",
        timeout: float | None = None,
    ) -> Iterator[Rows]:
        """
        Look at one snapshot, in a transaction that only reads.

        The holder of a token and a user need the right to see. A role of the database sees what Postgres lets it read, and needs
        *right* only where one is given.

        Raises:
            Forbidden: The person may not look, or is a user without rights.
            NotSignedIn: The token is unknown or expired.
            DatabaseUnavailable, NotReady: The database does not answer; a table or right is missing.
        """
        with self._transaction(timeout, "REPEATABLE READ, READ ONLY") as cursor:
            standing = NOBODY
            if not person.is_role or right is not None:
                standing = self._standing(cursor, person, hold=False)
                standing.check(right or Right.SEE, doing=doing)
            yield Rows(cursor, self.schema, standing)

    def standing(self, person: Person) -> Standing:
        """Return what *person* may do now; raises what `reading` does."""
        with self._transaction(None, "REPEATABLE READ, READ ONLY") as cursor:
            return self._standing(cursor, person, hold=False)

    @contextmanager
    def acting(
        self,
        person: Person,
        right: Right,
        *,
        doing: str,
        turn: str | None = None,
        timeout: float | None = None,
    ) -> Iterator[Acting]:
        """
        Act in one transaction: the right is checked and locked first, the block acts and records, and the commit makes all of
        it true at once. A crash before the commit leaves nothing; a right that is withdrawn is withdrawn before or after.

        Acts of one *turn* come one after another: it is waited for before the right is looked up, so that who withdraws
        rights and whose right is withdrawn don't wait for each other in a ring.

        A person who sends a form by its number acts by it once: the number stands in the act's record.

        Raises:
            AlreadyDone: The form has acted; nothing was done.
            Forbidden: The person has not *right*, or is a user without any; nothing was done.
            NotSignedIn: The token is unknown or expired.
            DatabaseUnavailable, NotReady: Nothing was done, unless the text says that the commit was on its way.
            AssertionError: The block acted without a record.
        """
        committing = False
        try:
            with self._transaction(timeout, "READ COMMITTED") as cursor:
                if turn is not None:
                    cursor.execute(sql.TURN, {"turn": f"{self.schema}.{turn}"})
                standing = self._standing(cursor, person, hold=True)
                standing.check(right, doing=doing)
                act = Acting(cursor, self.schema, standing, person.actor(standing), once=person.once)
                act.check_new()
                cursor.execute(sql.ACT_AS, {"actor": act.actor})
                yield act
                assert act.recorded, f"the act {doing!r} was not put on the record"
                committing = True
        except DatabaseUnavailable as error:
            if not committing:
                raise
            raise DatabaseUnavailable(
                f"{error} The commit was on its way: whether the act to {doing} stands is not known; look how things stand "
                "before you ask for it again"
            ) from error

    @contextmanager
    def working(self, *, timeout: float | None = None) -> Iterator[Rows]:
        """Write what no person asks for at this moment: the progress of a run that was confirmed before, or a preview's pages."""
        with self._transaction(timeout, "READ COMMITTED") as cursor:
            yield Rows(cursor, self.schema, NOBODY)

    @contextmanager
    def _transaction(self, timeout: float | None, mode: str) -> Iterator[psycopg.Cursor[Any]]:
        with (
            self._lend() as connection,
            translated(where_of(connection), self.schema),
            patiently(connection, timeout or self.timeout),
            connection.transaction(),
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {mode}".encode())
            cursor.execute(sql.LIMITS, {"timeout": f"{int((timeout or self.timeout) * 1000)}ms"})
            yield cursor

    def _standing(self, cursor: psycopg.Cursor[Any], person: Person, *, hold: bool) -> Standing:
        statement, values = question_of(person, hold=hold)
        row = cursor.execute(SQL(statement).format(schema=Identifier(self.schema)), values).fetchone()
        assert row is not None
        found = (row["name"], row["role"], row["personal"], row["edit"], row["expired"])
        return standing_of(found, by_token=person.token_hash is not None, signed_in=person.signed_in)


def form(once: UUID) -> dict[str, Any]:
    """Return the values of `sql.DONE_BY` for the form of that number, a UUIDv7."""
    shown_at = time_of(once)
    assert shown_at is not None, "Person has checked it"
    return {"once": str(once), "since": shown_at - CLOCKS}


@contextmanager
def opened(url: str, *, schema: str, timeout: float) -> Iterator[Database]:
    """
    Connect, hand out the database over that one connection, and close.

    Raises:
        SettingsError: *url* is no connection string.
        DatabaseUnavailable: The database does not answer within *timeout* seconds, or refuses us.
    """
    with connected(url, timeout=timeout) as connection:
        yield Database(lambda: nullcontext(connection), schema=schema, timeout=timeout)
