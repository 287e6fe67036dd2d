"""A lane for `def` handlers: one connection in one thread; it does what batches ask for, one request after another."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

from packhorse.core.errors import DatabaseUnavailable, PackhorseError
from packhorse.processor.context import Context
from packhorse.processor.member.fence import Fence
from packhorse.processor.partition.events import (
    BatchEnded,
)
from packhorse.processor.plant import Plant
from packhorse.processor.running.batch import Batch
from packhorse.processor.running.endings import Contention
from packhorse.processor.running.faults import describe
from packhorse.processor.running.lanework import (
    COMMIT,
    ROLLBACK,
    SAVEPOINT,
    TO_SAVEPOINT,
    around,
    broken,
    copies_sent,
    decoded,
    drive,
    ended_at,
    failed_at,
    ids_of,
    steps_of,
)
from packhorse.processor.running.resources import Lent
from packhorse.processor.running.work import (
    Begin,
    Claimed,
    CommitTransaction,
    Decode,
    Member,
    Ran,
    Request,
    RollBack,
    RollBackToSavepoint,
    RunHandler,
    Savepoint,
    SendCopies,
    SendKept,
    Work,
    Write,
)
from packhorse.processor.signals import Point
from packhorse.processor.storing import postgres

if TYPE_CHECKING:
    from packhorse.processor.storing.sqlalchemy import Sessions


class Lane:
    """
    One connection to the database and what is done on it; for one thread, apart from `cancel`.

    A connection that was lost is made anew at the next need, and the plant is told.
    """

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._connection: postgres.GuardedConnection | None = None
        self._was_connected = False
        self._sessions: Sessions | None = None
        self._fence = Fence()
        self._work: Work | None = None
        self._xid = ""

    def connection(self) -> postgres.GuardedConnection:
        """
        Return the connection, between transactions; connect if there is none.

        Raises:
            DatabaseUnavailable: It can't be had now.
        """
        found = self._connection
        if found is not None and not found.closed:
            if postgres.standing(found) != "none":
                postgres.command(found, ROLLBACK)
            return found
        self._connection = None
        self._connection = postgres.connect(self._plant.conninfo)
        if self._was_connected:
            self._plant.reconnected()
        self._was_connected = True
        return self._connection

    def is_fresh(self) -> bool:
        """Connect if needed; return whether that was a reconnect, so that what is remembered counts for nothing."""
        known = self._was_connected and (self._connection is None or self._connection.closed)
        self.connection()
        return known

    def run(self, batch: Batch, work: Work, fence: Fence) -> BatchEnded:
        """Do what *batch* asks for until it has ended."""
        self._work, self._fence = work, fence
        try:
            return drive(batch, self._execute)
        finally:
            self._work = None
            self._plant.claims.forget(self)

    def cancel(self) -> None:
        """Ask the server to end the statement that runs; from any thread, best effort, bounded."""
        connection = self._connection
        if connection is not None:
            with suppress(Exception):
                connection.cancel_safe(timeout=2.0)

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back by the server."""
        if self._connection is not None:
            self._connection.end()
            self._connection = None

    def _execute(self, request: Request) -> object:
        try:
            return self._answer(request)
        except DatabaseUnavailable:
            self.close()
            raise

    def _answer(self, request: Request) -> object:
        match request:
            case RunHandler(member):
                return self._run_handler(member)
            case Decode():
                return decoded(request, self._plant)
            case Begin():
                self._xid = postgres.begin(self._held())
            case Savepoint():
                postgres.command(self._held(), SAVEPOINT)
            case RollBackToSavepoint():
                postgres.command(self._held(), TO_SAVEPOINT)
            case RollBack():
                self._roll_back()
            case CommitTransaction():
                self._commit()
            case SendCopies(deliveries):
                self._send_copies(ids_of(deliveries))
            case SendKept(ids):
                self._send_copies(ids)
            case _:
                return self._store(request)
        return None

    def _held(self) -> postgres.GuardedConnection:
        if self._connection is None or self._connection.closed:
            raise DatabaseUnavailable("the connection was lost")
        return self._connection

    def _store(self, request: Request) -> object:
        assert self._work is not None
        try:
            answer = postgres.run(self._held(), steps_of(request, self._plant, self._work, self._xid))
        except postgres.UniqueViolation:
            if isinstance(request, Write):
                return False
            raise
        if not isinstance(request, Write) and answer is True:
            self._plant.signal(Point.AFTER_WATERMARK)
        if isinstance(answer, Claimed) and answer.claim is not None:
            self._plant.claims.enter(self, self._work.stream.source, answer.claim)
        return answer

    def _commit(self) -> None:
        self._plant.signal(Point.BEFORE_RESULT)
        self._fence.check()
        try:
            postgres.command(self._held(), COMMIT)
        except postgres.IntegrityError as error:
            raise Contention(f"the commit was refused: {describe(error)}") from error
        self._plant.signal(Point.AFTER_RESULT)

    def _roll_back(self) -> None:
        connection = self._connection
        if connection is None or connection.closed:
            return
        try:
            postgres.command(connection, ROLLBACK)
        except PackhorseError:
            self.close()

    def _send_copies(self, ids: Sequence[UUID]) -> None:
        assert self._work is not None
        store, source = self._plant.store, self._work.stream.source
        uncopied = postgres.run(self._held(), store.uncopied(source, ids))
        if uncopied:
            places = copies_sent(uncopied, self._plant)
            postgres.run(self._held(), store.confirm_copies(source, places))

    def _run_handler(self, member: Member) -> Ran:
        plant, handler, connection = self._plant, member.handler, self._held()
        assert handler is not None
        lent = Lent(connection, self._sessions_here, plant.outbox)
        context = Context(member.delivery, lent, group=plant.app.group, attempt=member.attempt, log=plant.log)
        plant.signal(Point.ATTEMPT)
        try:
            with around(member, context, plant):
                if handler.tombstones:
                    handler.function(context)
                else:
                    handler.function(member.message, context)
                lent.settle()
            ran = ended_at(connection, member, touched=context.touched)
        except BaseException as error:  # noqa: BLE001 every way a handler can end has an outcome
            ran = failed_at(connection, error, member, touched=context.touched, fence=self._fence)
        finally:
            lent.drop()
        if ran is None:
            return broken(postgres.was_committed(connection, self._xid))
        return ran

    def _sessions_here(self) -> "Sessions":
        if self._sessions is None:
            from packhorse.processor.storing.sqlalchemy import Sessions

            self._sessions = Sessions(self._plant.conninfo)
        return self._sessions
