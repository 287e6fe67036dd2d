"""A lane for `def` handlers: one connection in one thread; it does what batches ask for, one request after another."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from packhorse.core.errors import DatabaseUnavailable, PackhorseError
from packhorse.processor.context import Context
from packhorse.processor.member.fence import Fence
from packhorse.processor.partition.events import ChunkEnded
from packhorse.processor.plant import Plant
from packhorse.processor.running.batching import Batch as Together
from packhorse.processor.running.batching import BatchContext, answers
from packhorse.processor.running.endings import Contention
from packhorse.processor.running.faults import describe
from packhorse.processor.running.lanework import (
    COMMIT,
    ROLLBACK,
    SAVEPOINT,
    TO_SAVEPOINT,
    Chunks,
    all_decoded,
    around,
    broken,
    copies_sent,
    decoded,
    drive,
    ended_at,
    failed_at,
    round_sent,
    steps_of,
    together,
)
from packhorse.processor.running.link import Link
from packhorse.processor.running.resources import Lent
from packhorse.processor.running.work import (
    Begin,
    Claimed,
    CommitTransaction,
    Decode,
    DecodeAll,
    Member,
    Ran,
    Request,
    RollBack,
    RollBackToSavepoint,
    RunBatch,
    RunHandler,
    Savepoint,
    SendKept,
    SendRound,
    Work,
    Write,
)
from packhorse.processor.signals import Point
from packhorse.processor.storing import postgres

if TYPE_CHECKING:
    from packhorse.processor.storing.sqlalchemy import Sessions


class Lane:
    """One connection to the database and what is done on it; for one thread, apart from `cancel`."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._link = Link(plant)
        self._id = plant.chance.message_id(plant.clock.now())
        self._sessions: Sessions | None = None
        self._fence = Fence()
        self._work: Work | None = None
        self._xid = ""

    def is_fresh(self) -> bool:
        """Connect if needed; return whether that was a reconnect, so that what is remembered counts for nothing."""
        return self._link.is_fresh()

    def run(self, batch: Chunks, work: Work, fence: Fence) -> ChunkEnded:
        """Do what *batch* asks for until it has ended."""
        self._work, self._fence = work, fence
        try:
            ended = drive(batch, self._execute)
            if work.marked:
                self._forget_start(work)
            return ended
        finally:
            self._work = None
            self._plant.claims.forget(self)

    def cancel(self) -> None:
        """Ask the server to end the statement that runs; from any thread, best effort, bounded."""
        self._link.cancel()

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back by the server."""
        self._link.close()

    def _forget_start(self, work: Work) -> None:
        """Take back that the message was begun: this process has lived through it, however it ended."""
        with suppress(PackhorseError):
            offsets = [delivery.record.offset for delivery in work.deliveries]
            spot = work.stream.topic_id, work.partition
            postgres.run(self._link.connection(), self._plant.store.clear_starts(spot, offsets))

    def _execute(self, request: Request) -> object:
        try:
            return self._answer(request)
        except DatabaseUnavailable:
            self.close()
            raise

    def _answer(self, request: Request) -> object:
        match request:
            case RunHandler(member):
                return self._run_one(member)
            case RunBatch(members):
                return self._run_batch(members)
            case DecodeAll():
                return all_decoded(request, self._plant)
            case Decode():
                return decoded(request, self._plant)
            case Begin() | Savepoint() | RollBackToSavepoint() | RollBack() | CommitTransaction():
                self._transact(request)
            case SendKept(ids):
                self._send_kept(ids)
            case SendRound(deliveries):
                round_sent(deliveries, self._plant, self._here)
            case _:
                return self._store(request)
        return None

    def _transact(
        self, request: Begin | Savepoint | RollBackToSavepoint | RollBack | CommitTransaction
    ) -> None:
        match request:
            case Begin(in_hand):
                self._begin(in_hand)
            case Savepoint():
                postgres.command(self._held(), SAVEPOINT)
            case RollBackToSavepoint():
                postgres.command(self._held(), TO_SAVEPOINT)
            case RollBack():
                self._roll_back()
            case CommitTransaction():
                self._commit()

    @property
    def _here(self) -> Work:
        assert self._work is not None
        return self._work

    def _held(self) -> postgres.GuardedConnection:
        held = self._link.held
        if held is None or held.closed:
            raise DatabaseUnavailable("the connection was lost")
        return held

    def _begin(self, in_hand: Sequence[int]) -> None:
        plant, work, connection = self._plant, self._here, self._held()
        if in_hand:
            spot = work.stream.topic_id, work.partition
            steps = plant.store.take_in_hand(
                self._id, plant.member, spot, in_hand, alone=len(work.deliveries) == 1
            )
            postgres.run(connection, steps)
        self._xid = postgres.begin(connection)

    def _store(self, request: Request) -> object:
        try:
            answer = postgres.run(self._held(), steps_of(request, self._plant, self._here, self._xid))
        except postgres.UniqueViolation:
            if isinstance(request, Write):
                return False
            raise
        if isinstance(answer, Claimed) and answer.claim is not None:
            self._plant.claims.enter(self, self._here.stream.source, answer.claim)
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
        connection = self._link.held
        if connection is None or connection.closed:
            return
        try:
            postgres.command(connection, ROLLBACK)
        except PackhorseError:
            self.close()

    def _send_kept(self, ids: Sequence[UUID]) -> None:
        store, source = self._plant.store, self._here.stream.source
        uncopied = postgres.run(self._held(), store.uncopied(source, ids))
        if uncopied:
            places = copies_sent(uncopied, self._plant)
            postgres.run(self._held(), store.confirm_copies(source, places))

    def _run_one(self, member: Member) -> Ran:
        """Run *member* by itself, also where its handler takes batches."""
        if member.handler is None or member.handler.kind == "one":
            return self._run_handler(member)
        answer = self._run_batch([member])
        return answer if isinstance(answer, Ran) else answer[0]

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

    def _run_batch(self, members: list[Member]) -> list[Ran] | Ran:
        plant, handler, connection = self._plant, members[0].handler, self._held()
        assert handler is not None
        batch: Together[Any] = Together(members, group=plant.app.group, log=plant.log)
        lent = Lent(connection, self._sessions_here, plant.outbox)
        context = BatchContext(batch.answers, lent, log=plant.log)
        plant.signal(Point.ATTEMPT)
        began = plant.clock.monotonic()
        try:
            with together(members, plant):
                handler.function(batch, context)
                batch.close()
                context.settle()
                lent.settle()
            ran = ended_at(connection, members[0], touched=context.touched)
        except BaseException as error:  # noqa: BLE001 every way a handler can end has an outcome
            ran = failed_at(connection, error, members[0], touched=True, fence=self._fence)
        finally:
            batch.close()
            lent.drop()
        if ran is None:
            return broken(postgres.was_committed(connection, self._xid))
        if ran.failure is not None:
            return ran._replace(took=plant.clock.monotonic() - began)
        return answers(batch, members[0].handler, touched=context.touched)

    def _sessions_here(self) -> "Sessions":
        if self._sessions is None:
            from packhorse.processor.storing.sqlalchemy import Sessions

            self._sessions = Sessions(self._plant.conninfo)
        return self._sessions
