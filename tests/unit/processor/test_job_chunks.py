"""A chunk of jobs, asked request by request: nobody but these tests answers."""

from collections.abc import Callable, Collection, Mapping
from typing import Any
from uuid import UUID

import pytest
from tests.support.accounts import AmountMoved

from packhorse.core.errors import DatabaseUnavailable
from packhorse.core.jobs import JobState
from packhorse.processor import JobContext, Processor
from packhorse.processor.handlers import Handler
from packhorse.processor.jobs.deciding import JobRow
from packhorse.processor.jobs.runs import JobRun, Phase
from packhorse.processor.outcomes import Outcome
from packhorse.processor.record import Record, Stream, delivery_of
from packhorse.processor.running.endings import Contention, Down
from packhorse.processor.running.faults import ERROR_MAX
from packhorse.processor.running.hands import FULL_HANDS, FullHands, Hands
from packhorse.processor.running.jobends import MOST_TRIES, Ended
from packhorse.processor.running.jobwork import FIRST_PORTION, run_jobs
from packhorse.processor.running.judging import after_run, crashed, in_doubt
from packhorse.processor.running.requests import (
    Begin,
    ClaimJobs,
    CommitTransaction,
    DecodeAll,
    FindDoubts,
    FinishJobs,
    HadJob,
    LookUpJobs,
    RecordJobs,
    ReleaseJobs,
    RollBack,
    RunJob,
    Write,
)
from packhorse.processor.running.verdict import Attempt
from packhorse.processor.running.work import RETURNED, Failure, Member, Ran

STREAM = Stream(topic="bank.account", topic_id=UUID(int=1), source="bank.account")


def body(job: AmountMoved, ctx: JobContext) -> None:
    raise NotImplementedError


def handler() -> Handler:
    app = Processor("g")
    app.job(AmountMoved, quick=True)(body)
    return app.jobs[0]


def members(count: int) -> list[Member]:
    declared, found = handler(), []
    for n in range(1, count + 1):
        headers = (("id", str(UUID(int=n)).encode()), ("type", b"bank.AmountMoved"))
        record = Record("bank.account", 0, n, None, 0, None, b"x", headers)
        found.append(Member(delivery_of(record, STREAM), handler=declared))
    return found


class Lane:
    """Answer as a lane would; *but* says what a kind of request gets instead, or which error it meets."""

    def __init__(self, *, took: float = 0.0, **but: Any) -> None:
        self.but, self.took, self.now = but, took, 0.0
        self.hands: Hands = FULL_HANDS
        self.together = False
        self.asked: list[Any] = []
        self.runs: dict[UUID, JobRun] = {}

    def how(self) -> Attempt:
        return Attempt(
            jitter=lambda: 0.0, clock=lambda: self.now, time=0.2, hands=self.hands, together=self.together
        )

    def names(self) -> list[str]:
        return [type(one).__name__ for one in self.asked]

    def released(self) -> list[UUID]:
        return [run.job_id for one in self.asked if isinstance(one, ReleaseJobs) for run in one.runs]

    def drive(self, found: list[Member]) -> Ended | None:
        chunk = run_jobs(found, self.how(), "g")
        try:
            request = next(chunk)
            while True:
                self.asked.append(request)
                answer = self.answer(request)
                request = chunk.throw(answer) if isinstance(answer, Exception) else chunk.send(answer)
        except StopIteration as end:
            ended: Ended | None = end.value
            return ended

    def answer(self, request: Any) -> Any:
        special: Callable[[Any], Any] | None = self.but.get(type(request).__name__)
        if special is not None and (answer := special(request)) is not None:
            return answer
        match request:
            case ClaimJobs(some, _):
                for member in some:
                    job_id = member.delivery.id
                    self.runs[job_id] = JobRun(job_id, UUID(int=job_id.int + 1_000), member.attempt)
                return {m.delivery.id: HadJob(self.runs[m.delivery.id], b"input", 0.0) for m in some}
            case DecodeAll(payloads, _):
                return [AmountMoved(account="a", amount=1)] * len(payloads)
            case RunJob():
                self.now += self.took
                return RETURNED
            case FinishJobs(ends) | RecordJobs(ends):
                return frozenset(result.delivery.id for result, _ in ends)
            case FindDoubts():
                return {}
            case Write():
                return True
            case _:
                return None


def failing(request: Any) -> Any:
    """Let the second body fail for good."""
    is_second = request.member.delivery.record.offset == 2
    return Ran(Failure.PERMANENT, "failed", "no") if is_second else None


def test_ends_as_most_are_one_statement_with_their_messages() -> None:
    """Fails when a job that succeeds costs round trips that it need not."""
    lane = Lane()
    ended = lane.drive(members(2))
    assert lane.names() == ["ClaimJobs", "DecodeAll", "RunJob", "RunJob", "RecordJobs"]
    assert ended is not None
    assert [result.outcome for result in ended.results] == [Outcome.DONE] * 2
    record = lane.asked[-1]
    assert isinstance(record, RecordJobs)
    assert {run.job_id for _, run in record.ends} == {UUID(int=1), UUID(int=2)}


def test_other_ends_and_their_messages_are_written_between_one_begin_and_one_commit() -> None:
    lane = Lane(RunJob=failing)
    ended = lane.drive(members(2))
    assert lane.names() == [
        *("ClaimJobs", "DecodeAll", "RunJob", "RunJob"),
        *("Begin", "FinishJobs", "FindDoubts", "Write", "CommitTransaction"),
    ]
    assert ended is not None
    assert [result.outcome for result in ended.results] == [Outcome.DONE, Outcome.QUARANTINE]
    commit = lane.asked[-1]
    assert isinstance(commit, CommitTransaction)
    assert {run.job_id for run in commit.runs} == {UUID(int=1), UUID(int=2)}


@pytest.mark.case("J-08")
def test_what_stops_for_good_while_an_effect_is_in_doubt_waits_for_a_person() -> None:
    """Fails when it is one failure among others, or the effects are looked at before the run can write no more of them."""
    lane = Lane(RunJob=failing, FindDoubts=lambda request: {UUID(int=2): ("charge", "\x1bmail")})
    ended = lane.drive(members(2))
    assert lane.names()[4:] == [
        *("Begin", "FinishJobs", "FindDoubts", "RollBack"),
        *("Begin", "FinishJobs", "Write", "CommitTransaction"),
    ]
    assert [list(one.ids) for one in lane.asked if isinstance(one, FindDoubts)] == [[UUID(int=2)]]
    assert ended is not None
    assert [(result.outcome, result.reason) for result in ended.results] == [
        (Outcome.DONE, None),
        (Outcome.QUARANTINE, "uncertain"),
    ]
    assert (
        ended.results[1].error
        == "no; it stops for failed, and nobody knows whether effects charge, \\x1bmail happened"
    )


@pytest.mark.case("J-08")
def test_what_is_stopped_without_a_run_is_asked_for_doubts_too() -> None:
    """Fails when a job that killed its processes, maybe in a call, is one failure among others."""
    lane = Lane(FindDoubts=lambda request: {UUID(int=1): ("charge",)})
    (member,) = members(1)
    member.result = crashed(member, 3)
    ended = lane.drive([member])
    assert ended is not None
    assert [result.reason for result in ended.results] == ["uncertain"]


def test_the_doubt_about_many_effects_leaves_room_for_the_error() -> None:
    stopped = after_run(members(1)[0], Ran(Failure.PERMANENT, "permanent", "E" * ERROR_MAX), jitter=0.0)
    found = in_doubt(stopped, ["e" * 200] * 5)
    assert found.error is not None
    assert len(found.error) <= ERROR_MAX
    assert found.error.startswith("E" * 100)
    assert found.error.endswith("…, … happened")


def test_what_was_had_is_given_back_when_what_was_not_can_not_be_asked_about() -> None:
    """Fails when an error between the claim and the first body leaves jobs running that nobody works on."""

    def claim(request: Any) -> Any:
        run = JobRun(UUID(int=1), UUID(int=1_001), 1)
        return {UUID(int=1): HadJob(run, b"input", 0.0)}

    lane = Lane(ClaimJobs=claim, LookUpJobs=lambda request: DatabaseUnavailable("away"))
    with pytest.raises(DatabaseUnavailable):
        lane.drive(members(2))
    assert lane.released() == [UUID(int=1)]


def test_what_ran_is_recorded_and_the_rest_given_back_when_a_body_says_that_a_system_is_down() -> None:
    def run(request: Any) -> Any:
        return Ran(Failure.DOWN, "down", "away") if request.member.delivery.record.offset == 2 else None

    lane = Lane(RunJob=run)
    with pytest.raises(Down):
        lane.drive(members(3))
    assert set(lane.released()) == {UUID(int=2), UUID(int=3)}
    (record,) = [one for one in lane.asked if isinstance(one, RecordJobs)]
    assert [result.delivery.id for result, _ in record.ends] == [UUID(int=1)]


@pytest.mark.parametrize("fails", [False, True])
def test_whose_lease_is_gone_is_left_out_and_looked_at_again(fails: bool) -> None:
    """Fails when the message of a job that another has is recorded, or the others of the transaction are lost with it."""
    ours = frozenset({UUID(int=2)})
    lane = Lane(
        FinishJobs=lambda request: ours,
        RecordJobs=lambda request: ours,
        RunJob=failing if fails else lambda request: None,
    )
    ended = lane.drive(members(2))
    assert ended is not None
    assert [result.delivery.id for result in ended.results] == [UUID(int=2)]
    assert set(ended.held) == {1}


@pytest.mark.parametrize("where", ["RecordJobs", "CommitTransaction"])
def test_an_end_that_loses_to_another_transaction_is_written_again_without_its_body(where: str) -> None:
    losses = iter([Contention("lost"), Contention("lost")])
    lane = Lane()
    lane.but[where] = lambda request: next(losses, None)
    if where == "CommitTransaction":
        lane.but["RunJob"] = lambda request: Ran(Failure.PERMANENT, "failed", "no")
    ended = lane.drive(members(1))
    assert ended is not None
    assert len(ended.results) == 1
    assert lane.names().count("RunJob") == 1
    assert lane.names().count("RollBack") == 2


def test_of_ends_that_lose_together_each_is_written_by_itself() -> None:
    """Fails when one whose row somebody has locked keeps the others from being recorded."""

    def record(request: Any) -> Any:
        is_locked = any(result.delivery.id == UUID(int=1) for result, _ in request.ends)
        return Contention("locked") if is_locked else None

    lane = Lane(RecordJobs=record)
    with pytest.raises(Contention):
        lane.drive(members(3))
    counts = [len(one.ends) for one in lane.asked if isinstance(one, RecordJobs)]
    assert counts == [3, *[1] * MOST_TRIES, 1, 1]
    lane = Lane(RecordJobs=lambda request: Contention("all at once") if len(request.ends) > 1 else None)
    ended = lane.drive(members(3))
    assert ended is not None
    assert len(ended.results) == 3


def test_an_end_that_can_not_be_written_now_is_kept() -> None:
    """Fails when the run of a body that has ended is given back: it would run again."""
    lane = Lane(RecordJobs=lambda request: DatabaseUnavailable("away"))
    with pytest.raises(DatabaseUnavailable):
        lane.drive(members(1))
    assert lane.released() == []
    assert lane.runs[UUID(int=1)].phase is Phase.ENDED


def test_a_job_that_another_runs_waits_without_being_recorded() -> None:
    row = JobRow(UUID(int=1), JobState.RUNNING, "g", 20.0, False, UUID(int=7), None)
    lane = Lane(ClaimJobs=lambda request: {}, LookUpJobs=lambda request: {row.id: row})
    ended = lane.drive(members(1))
    assert ended is not None
    assert (ended.results, list(ended.held)) == ([], [1])
    assert not any(isinstance(one, Begin | Write) for one in lane.asked)


def test_no_more_is_claimed_than_the_time_of_a_chunk_bears() -> None:
    """Fails when a whole chunk is claimed at once: what it has no time for would be given back, each with two changes of state."""
    lane = Lane(took=0.02)
    ended = lane.drive(members(5 * FIRST_PORTION))
    assert ended is not None
    assert len([one for one in lane.asked if isinstance(one, ClaimJobs)]) == 1
    assert len(ended.results) + len(lane.released()) == FIRST_PORTION
    assert not any(isinstance(one, RollBack | LookUpJobs) for one in lane.asked)


class LettingGo(FullHands):
    """Have only *kept* from the second body on."""

    def __init__(self, kept: int) -> None:
        self.kept, self.open_ones, self.asked = kept, 0, 0

    def open(self, runs: Mapping[int, JobRun]) -> None:
        self.open_ones = len(runs)

    def take(self, offsets: Collection[int]) -> list[int]:
        self.asked += 1
        return [at for at in offsets if self.asked <= self.kept or at == self.kept]


def test_of_a_chunk_that_was_handed_on_only_the_one_that_took_long_is_recorded() -> None:
    """Fails when a lane begins, records or gives back what others were told to."""
    lane, hands = Lane(), LettingGo(2)
    lane.hands, lane.together = hands, True
    ended = lane.drive(members(5))
    assert hands.open_ones == 5
    assert ended is not None
    assert [result.delivery.record.offset for result in ended.results] == [2]
    assert [one.member.delivery.record.offset for one in lane.asked if isinstance(one, RunJob)] == [1, 2]
    assert lane.released() == []


def test_jobs_that_were_counted_out_are_claimed_at_once() -> None:
    lane = Lane()
    lane.together = True
    lane.drive(members(3 * FIRST_PORTION))
    assert [len(one.members) for one in lane.asked if isinstance(one, ClaimJobs)] == [3 * FIRST_PORTION]
