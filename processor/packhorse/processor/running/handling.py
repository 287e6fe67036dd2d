"""How `def` handlers are run: what they are lent, their time-outs, and how a run is judged by where it left its transaction."""

from typing import TYPE_CHECKING, Any, NamedTuple

from packhorse.processor.context import Context
from packhorse.processor.jobs.runs import JobRun
from packhorse.processor.member.fence import NO_FENCE, Fence
from packhorse.processor.plant import Plant
from packhorse.processor.running.batching import Batch as Together
from packhorse.processor.running.batching import BatchContext, answers
from packhorse.processor.running.deadlines import Deadline
from packhorse.processor.running.lanework import (
    around,
    broken,
    ended_at,
    failed_at,
    timed_out,
    together,
    wrote,
)
from packhorse.processor.running.resources import Lent
from packhorse.processor.running.work import (
    Failure,
    Member,
    Ran,
)
from packhorse.processor.signals import Point
from packhorse.processor.storing import postgres

if TYPE_CHECKING:
    from packhorse.processor.storing.sqlalchemy import Sessions


class On(NamedTuple):
    """What a handler is run on: the lane's connection, the transaction's id, and what says that it counts for nothing."""

    connection: postgres.GuardedConnection
    xid: str
    fence: Fence


class Handling:
    """
    Run handlers on one lane's connection; for its thread.

    Raises StatementFailed where another member's queued statement turns out to have failed.
    """

    def __init__(self, plant: Plant, deadline: Deadline) -> None:
        self._plant = plant
        self._deadline = deadline
        self._sessions: Sessions | None = None

    def one(self, on: On, member: Member, *, sync: bool) -> Ran:
        """Run *member* by itself, also where its handler takes batches."""
        if member.handler is None or member.handler.kind == "one":
            return self._handler(on, member, sync=sync)
        answer = self.batch(on, [member])
        return answer if isinstance(answer, Ran) else answer[0]

    def _handler(self, on: On, member: Member, *, sync: bool) -> Ran:
        plant, handler, connection = self._plant, member.handler, on.connection
        assert handler is not None
        lent = Lent(connection, self.sessions, plant.outbox, member)
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
            ran = failed_at(connection, error, member, touched=touched, fence=on.fence)
        finally:
            fired = self._deadline.stop()
            lent.drop()
        return self._judged(on, ran, member, fired=fired)

    def _judged(self, on: On, ran: Ran | None, member: Member, *, fired: bool) -> Ran:
        """Return how a run has ended, once its time-out and what others have queued are looked at."""
        connection, handler = on.connection, member.handler
        if connection.closed:
            return Ran(Failure.CONNECTION, "", "the connection was lost")
        blamed = connection.pipe.failed
        if blamed is not None and blamed.member is not member:
            raise blamed
        if fired and handler is not None:
            return timed_out(handler)
        return broken(postgres.was_committed(connection, on.xid)) if ran is None else ran

    def batch(self, on: On, members: list[Member]) -> list[Ran] | Ran:
        """Run the batch handler of *members*; return how each ended, or how all did when it failed."""
        plant, handler, connection = self._plant, members[0].handler, on.connection
        assert handler is not None
        batch: Together[Any] = Together(members, group=plant.app.group, log=plant.log)
        lent = Lent(connection, self.sessions, plant.outbox, members[0])
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
            ran = failed_at(connection, error, members[0], touched=True, fence=on.fence)
        finally:
            fired = self._deadline.stop()
            batch.close()
            lent.drop()
        judged = self._judged(on, ran, members[0], fired=fired)
        return judged if judged.failure is not None else answers(batch, handler, touched=judged.touched)

    def writes(self, on: On, member: Member, run: JobRun) -> Ran:
        """
        Do in the transaction what the body of a job wants written with its success; return how that ended.

        It has the time-out of the job for itself: a write that hangs holds the job's row, its names and the lane.
        """
        handler = member.handler
        assert handler is not None
        lent = Lent(on.connection, self.sessions, self._plant.outbox, member)
        self._deadline.start(handler.timeout)
        try:
            for write in run.writes:
                write(lent.connection)
            if run.drafts:
                lent.emit(run.drafts)
            lent.settle(sync=True)
            ran = ended_at(on.connection, member, touched=True)
        except BaseException as error:  # noqa: BLE001 it is the application's code
            ran = failed_at(on.connection, error, member, touched=True, fence=NO_FENCE)
        finally:
            fired = self._deadline.stop()
            lent.drop()
        return wrote(ran, handler, fired=fired)

    def sessions(self) -> "Sessions":
        """Return what makes sessions, made when it is first asked for."""
        if self._sessions is None:
            from packhorse.processor.storing.sqlalchemy import Sessions

            self._sessions = Sessions(self._plant.conninfo)
        return self._sessions
