"""A lane's connection with one table, and handlers run on it one after another, as a lane runs them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import psycopg

from packhorse.processor.running.resources import AsyncLent, Lent
from packhorse.processor.storing import postgres
from packhorse.processor.storing.postgres import AsyncGuardedConnection, GuardedConnection
from packhorse.producer import Outbox

TABLE = "CREATE TABLE IF NOT EXISTS lent (n int PRIMARY KEY, what text); TRUNCATE lent"
OUTBOX = Outbox(origin="tests")


class Lane:
    """Runs functions that take a `Lent`, each as the handler of one member, in one transaction."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection: GuardedConnection = postgres.connect(url)
        self._sessions: Any = None

    def sessions(self) -> Any:
        if self._sessions is None:
            from packhorse.processor.storing.sqlalchemy import Sessions

            self._sessions = Sessions(self.url)
        return self._sessions

    def begin(self) -> None:
        postgres.begin(self.connection)

    def handle(self, function: Callable[[Lent], Any], member: object = None) -> Lent:
        """Run *function*; what it raises goes on, after everything was taken back."""
        lent = Lent(self.connection, self.sessions, OUTBOX, member)
        try:
            function(lent)
            lent.settle()
        finally:
            lent.drop()
        return lent

    def commit(self) -> None:
        postgres.command(self.connection, b"COMMIT")

    def roll_back(self) -> None:
        postgres.command(self.connection, b"ROLLBACK")

    def rows(self) -> list[int]:
        """Return what is durable."""
        with psycopg.connect(self.url) as connection:
            return [row[0] for row in connection.execute("SELECT n FROM lent ORDER BY n")]


class AsyncLane:
    """As `Lane`, for `async def` handlers."""

    def __init__(self, url: str, connection: AsyncGuardedConnection) -> None:
        self.url = url
        self.connection = connection

    async def begin(self) -> None:
        await postgres.abegin(self.connection)

    async def handle(self, function: Callable[[AsyncLent], Any], member: object = None) -> AsyncLent:
        lent = AsyncLent(self.connection, lambda: cast("Any", None), OUTBOX, member)
        try:
            await function(lent)
            await lent.settle()
        finally:
            await lent.drop()
        return lent

    async def commit(self) -> None:
        await postgres.acommand(self.connection, b"COMMIT")

    async def roll_back(self) -> None:
        await postgres.acommand(self.connection, b"ROLLBACK")

    async def rows(self) -> list[int]:
        async with await psycopg.AsyncConnection.connect(self.url) as connection:
            return [
                row[0] for row in await (await connection.execute("SELECT n FROM lent ORDER BY n")).fetchall()
            ]


@contextmanager
def lane_on(url: str) -> Iterator[Lane]:
    """Lend a lane on the database *url*, with an empty table."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(TABLE)
    lane = Lane(url)
    try:
        yield lane
    finally:
        lane.connection.end()
