"""A lane for `def` handlers: one connection in one thread; it does what batches ask for, one request after another."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from uuid import UUID

from packhorse.core.errors import DatabaseUnavailable, PackhorseError
from packhorse.processor.copies import CopiesMissed
from packhorse.processor.jobs.runs import JobRun, Phase, abandon
from packhorse.processor.member.fence import Fence
from packhorse.processor.partition.events import ChunkEnded
from packhorse.processor.plant import Plant
from packhorse.processor.running.asking import claims_in, runs_in, steps_of
from packhorse.processor.running.endings import Contention
from packhorse.processor.running.faults import describe
from packhorse.processor.running.handling import Handling, On
from packhorse.processor.running.job_handling import run_body
from packhorse.processor.running.lanework import (
    Chunks,
    all_decoded,
    copies_sent,
    decoded,
    drive,
    forgotten,
    left_by,
    round_sent,
)
from packhorse.processor.running.link import Link
from packhorse.processor.running.requests import (
    Begin,
    ClaimJobs,
    CommitTransaction,
    Decode,
    DecodeAll,
    MarkStart,
    RecordJobs,
    ReleaseJobs,
    Request,
    RollBack,
    RollBackToSavepoint,
    RunBatch,
    RunHandler,
    RunJob,
    RunWrites,
    Savepoint,
    SendKept,
    SendRound,
    Write,
)
from packhorse.processor.running.work import Member, Ran, Work
from packhorse.processor.signals import Point
from packhorse.processor.storing import postgres
from packhorse.processor.storing.steps import COMMIT, ROLLBACK
from packhorse.processor.storing.store import Place


class Lane:
    """One connection to the database and what is done on it; for one thread, apart from `cancel`."""

    def __init__(self, plant: Plant, stuck: Callable[[], None] = lambda: None) -> None:
        self._plant = plant
        self._link = Link(plant)
        self._deadline = plant.deadlines.slot(self._time_out, stuck)
        self._gone = Fence()
        self._id = plant.chance.message_id(plant.clock.now())
        self._handling = Handling(plant, self._deadline)
        self._fence = Fence()
        self._work: Work | None = None
        self._has_marked = False
        self._xid = ""
        self._taken: Sequence[int] = ()
        self._job: JobRun | None = None
        self._runs: Sequence[JobRun] = ()

    def is_fresh(self) -> bool:
        """Connect if needed; return whether that was a reconnect, so that what is remembered counts for nothing."""
        return self._link.is_fresh()

    def run(self, batch: Chunks, work: Work, fence: Fence) -> ChunkEnded:
        """Do what *batch* asks for until it has ended."""
        self._work, self._fence, self._has_marked, self._taken, self._runs = work, fence, False, (), ()
        try:
            ended = drive(batch, self._execute)
            if self._link.is_lost:
                self._plant.claims.lose(self)
            if self._has_marked:
                steps = forgotten(self._plant, work)
                with suppress(PackhorseError):
                    postgres.run(self._link.connection(), steps)
            return ended
        finally:
            self._work, self._runs = None, ()
            self._plant.claims.forget(self)

    def cancel(self) -> None:
        """
        Ask the server to end the statement that runs; from any thread, best effort, bounded.

        Bodies of jobs go on, and the recording of their ends too, unless the process ends: leases say whose they are, whoever has
        the partition.
        """
        if self._job is None and (not self._runs or self._plant.runs.stopping):
            self._link.cancel()

    def _time_out(self) -> None:
        if (run := self._job) is not None:
            run.cancel = run.cancel or "timeout"
        else:
            self._link.cancel()

    def abandon(self, mine: Callable[[Sequence[JobRun]], list[JobRun]] = list) -> None:
        """Let what still runs count for nothing, of jobs those that are *mine*: its handler does not come back. From any thread."""
        self._gone.up = True
        for run in mine(self._runs):
            abandon(run)
        self._plant.deadlines.forget(self._deadline)
        self._link.terminate(left_by(self, self._plant))

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back by the server."""
        self._link.close()

    def _execute(self, request: Request) -> object:
        try:
            return self._answer(request)
        except DatabaseUnavailable:
            self.close()
            raise

    def _answer(self, request: Request) -> object:
        match request:
            case RunHandler(member, sync):
                return self._handling.one(self._on(), member, sync=sync)
            case RunBatch(members):
                return self._handling.batch(self._on(), members)
            case DecodeAll(_, in_hand):
                self._take(in_hand)
                return all_decoded(request, self._plant)
            case Decode():
                return decoded(request, self._plant)
            case Begin() | Savepoint() | RollBackToSavepoint() | RollBack() | CommitTransaction():
                self._transact(request)
            case SendKept(ids):
                self._send_kept(ids)
            case SendRound(deliveries):
                round_sent(deliveries, self._plant, self._here)
            case RunJob() | RunWrites() | ClaimJobs() | RecordJobs() | ReleaseJobs():
                return self._of_job(request)
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
            case CommitTransaction(runs):
                self._commit(runs)

    def _of_job(self, request: RunJob | RunWrites | ClaimJobs | RecordJobs | ReleaseJobs) -> object:
        match request:
            case RunJob(member, run):
                return self._run_job(member, run)
            case RunWrites(member, run):
                return self._handling.writes(self._on(), member, run)
            case ClaimJobs(_, in_hand):
                self._take(in_hand)
                answer = self._store(request)
                self._runs = runs_in(answer)
                return answer
            case RecordJobs():
                self._plant.signal(Point.BEFORE_RESULT)
                self._gone.check()
                answer = self._store(request)
                self._plant.signal(Point.AFTER_RESULT)
                return answer
            case ReleaseJobs():
                with suppress(PackhorseError):  # they stay leases that nobody works under
                    self._store(request)
                return None

    def _run_job(self, member: Member, run: JobRun) -> Ran:
        self._gone.check()
        self._job = run
        try:
            return run_body(self._plant, self._deadline, member, run)
        finally:
            self._job = None
            if run.lost and run.phase is not Phase.IDLE:
                self._plant.runs.forget([run])

    def _on(self) -> On:
        return On(self._held(), self._xid, self._fence)

    @property
    def _here(self) -> Work:
        assert self._work is not None
        return self._work

    def _held(self) -> postgres.GuardedConnection:
        held = self._link.held
        if held is None or held.closed:
            raise DatabaseUnavailable("the connection was lost")
        return held

    def _take(self, in_hand: Sequence[int]) -> None:
        """Put on record what is in hand, once for each chunk."""
        if not in_hand or in_hand == self._taken:
            return
        plant, work = self._plant, self._here
        spot = work.stream.topic_id, work.partition
        steps = plant.store.take_in_hand(
            self._id, plant.member, spot, in_hand, alone=len(work.deliveries) == 1
        )
        postgres.run(self._held(), steps)
        self._taken = in_hand

    def _begin(self, in_hand: Sequence[int]) -> None:
        self._take(in_hand)
        connection = self._held()
        self._xid = postgres.begin(connection)

    def _store(self, request: Request) -> object:
        self._has_marked = self._has_marked or isinstance(request, MarkStart)
        try:
            answer = postgres.run(self._held(), steps_of(request, self._plant, self._here, self._xid))
        except postgres.UniqueViolation:
            if isinstance(request, Write | RecordJobs):
                return False
            raise
        except postgres.IntegrityError as error:
            # A day partition that is attached in this instant refuses a row of its day that was bound for the default one.
            raise Contention(f"a statement was refused: {describe(error)}") from error
        if claims := claims_in(answer):
            self._plant.claims.enter(self, self._here.stream.source, *claims)
        return answer

    def _commit(self, runs: Sequence[JobRun]) -> None:
        self._plant.signal(Point.BEFORE_RESULT)
        if not runs:
            self._fence.check()
        self._gone.check()
        try:
            postgres.command(self._held(), COMMIT)
        except postgres.IntegrityError as error:
            raise Contention(f"the commit was refused: {describe(error)}") from error
        self._plant.runs.forget(runs)
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
