"""A lane for `def` handlers: one connection in one thread; it does what batches ask for, one request after another."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from packhorse.core.errors import DatabaseUnavailable, PackhorseError
from packhorse.processor.context import Context
from packhorse.processor.copies import CopiesMissed
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
    Chunks,
    all_decoded,
    around,
    broken,
    copies_sent,
    decoded,
    drive,
    ended_at,
    failed_at,
    left_by,
    round_sent,
    steps_of,
    timed_out,
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
    Failure,
    MarkStart,
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
from packhorse.processor.storing.store import Place

if TYPE_CHECKING:
    from packhorse.processor.storing.sqlalchemy import Sessions


class Lane:
    """One connection to the database and what is done on it; for one thread, apart from `cancel`."""

    def __init__(self, plant: Plant, stuck: Callable[[], None] = lambda: None) -> None:
        self._plant = plant
        self._link = Link(plant)
        self._deadline = plant.deadlines.slot(self._link.cancel, stuck)
        self._gone = Fence()
        self._id = plant.chance.message_id(plant.clock.now())
        self._sessions: Sessions | None = None
        self._fence = Fence()
        self._work: Work | None = None
        self._has_marked = False
        self._xid = ""

    def is_fresh(self) -> bool:
        """Connect if needed; return whether that was a reconnect, so that what is remembered counts for nothing."""
        return self._link.is_fresh()

    def run(self, batch: Chunks, work: Work, fence: Fence) -> ChunkEnded:
        """Do what *batch* asks for until it has ended."""
        self._work, self._fence, self._has_marked = work, fence, False
        try:
            ended = drive(batch, self._execute)
            if self._has_marked:
                self._forget_start(work)
            return ended
        finally:
            self._work = None
            self._plant.claims.forget(self)

    def cancel(self) -> None:
        """Ask the server to end the statement that runs; from any thread, best effort, bounded."""
        self._link.cancel()

    def abandon(self) -> None:
        """Let what still runs count for nothing: its handler does not come back. From any thread."""
        self._gone.up = True
        self._plant.deadlines.forget(self._deadline)
        self._link.terminate(left_by(self, self._plant))

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back by the server."""
        self._link.close()

    def _forget_start(self, work: Work) -> None:
        """
        Take back that the message was begun: this process has lived through it, however it ended.

        Only for what this run has marked: one that only waited for another drainer has lived through nothing.
        """
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
            case RunHandler(member, sync):
                return self._run_one(member, sync=sync)
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
                postgres.savepoint(self._held())
            case RollBackToSavepoint():
                postgres.undo(self._held())
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
        self._has_marked = self._has_marked or isinstance(request, MarkStart)
        try:
            answer = postgres.run(self._held(), steps_of(request, self._plant, self._here, self._xid))
        except postgres.UniqueViolation:
            if isinstance(request, Write):
                return False
            raise
        except postgres.IntegrityError as error:
            # A day partition that is attached in this instant refuses a row of its day that was bound for the default one.
            raise Contention(f"a statement was refused: {describe(error)}") from error
        if isinstance(answer, Claimed) and answer.claim is not None:
            self._plant.claims.enter(self, self._here.stream.source, answer.claim)
        return answer

    def _commit(self) -> None:
        self._plant.signal(Point.BEFORE_RESULT)
        self._fence.check()
        self._gone.check()
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
            try:
                places: Sequence[Place] = copies_sent(uncopied, self._plant)
            except CopiesMissed as missed:
                postgres.run(self._held(), store.confirm_copies(source, list(missed.places.values())))
                raise
            postgres.run(self._held(), store.confirm_copies(source, places))

    def _run_one(self, member: Member, *, sync: bool) -> Ran:
        """Run *member* by itself, also where its handler takes batches."""
        if member.handler is None or member.handler.kind == "one":
            return self._run_handler(member, sync=sync)
        answer = self._run_batch([member])
        return answer if isinstance(answer, Ran) else answer[0]

    def _run_handler(self, member: Member, *, sync: bool) -> Ran:
        plant, handler, connection = self._plant, member.handler, self._held()
        assert handler is not None
        lent = Lent(connection, self._sessions_here, plant.outbox, member)
        context = Context(member.delivery, lent, group=plant.app.group, attempt=member.attempt, log=plant.log)
        plant.signal(Point.ATTEMPT)
        self._deadline.start(handler.timeout)
        try:
            with around(member, context, plant):
                if handler.tombstones:
                    handler.function(context)
                else:
                    handler.function(member.message, context)
                lent.settle(sync=sync)
            ran = ended_at(connection, member, touched=context.touched or lent.is_exposed)
        except BaseException as error:  # noqa: BLE001 every way a handler can end has an outcome
            touched = context.touched or lent.is_exposed
            ran = failed_at(connection, error, member, touched=touched, fence=self._fence)
        finally:
            fired = self._deadline.stop()
            lent.drop()
        return self._judged(ran, member, fired=fired)

    def _judged(self, ran: Ran | None, member: Member, *, fired: bool) -> Ran:
        """Return how a run has ended, once its time-out and what others have queued are looked at."""
        connection, handler = self._held_or_lost(), member.handler
        if connection is None:
            return Ran(Failure.CONNECTION, "", "the connection was lost")
        if fired and handler is not None:
            return timed_out(handler)
        blamed = connection.pipe.failed
        if blamed is not None and blamed.member is not member:
            raise blamed
        return broken(postgres.was_committed(connection, self._xid)) if ran is None else ran

    def _held_or_lost(self) -> postgres.GuardedConnection | None:
        held = self._link.held
        return None if held is None or held.closed else held

    def _run_batch(self, members: list[Member]) -> list[Ran] | Ran:
        plant, handler, connection = self._plant, members[0].handler, self._held()
        assert handler is not None
        batch: Together[Any] = Together(members, group=plant.app.group, log=plant.log)
        lent = Lent(connection, self._sessions_here, plant.outbox, members[0])
        context = BatchContext(batch.answers, lent, log=plant.log)
        plant.signal(Point.ATTEMPT)
        self._deadline.start(handler.timeout)
        try:
            with together(members, plant):
                handler.function(batch, context)
                batch.close()
                context.settle()
                lent.settle(sync=True)
            ran = ended_at(connection, members[0], touched=context.touched or lent.is_exposed)
        except BaseException as error:  # noqa: BLE001 every way a handler can end has an outcome
            ran = failed_at(connection, error, members[0], touched=True, fence=self._fence)
        finally:
            fired = self._deadline.stop()
            batch.close()
            lent.drop()
        judged = self._judged(ran, members[0], fired=fired)
        return judged if judged.failure is not None else answers(batch, handler, touched=judged.touched)

    def _sessions_here(self) -> "Sessions":
        if self._sessions is None:
            from packhorse.processor.storing.sqlalchemy import Sessions

            self._sessions = Sessions(self._plant.conninfo)
        return self._sessions
