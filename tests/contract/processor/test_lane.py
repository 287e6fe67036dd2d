"""What a chunk may expect of its lane, held on the simulated database and on a real one."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from tests.contract.processor.grounds import (
    KEY,
    STORE,
    STREAM,
    FakeGround,
    Ground,
    RealGround,
    behind,
    done,
    failed,
    member,
    move,
    stopped,
)
from tests.simulation.processor.messages import Deed

from packhorse.core.errors import BrokerUnavailable, DatabaseUnavailable
from packhorse.processor.member.fence import Fence
from packhorse.processor.outcomes import Outcome
from packhorse.processor.running.endings import Contention, GivenUp
from packhorse.processor.running.requests import (
    Begin,
    ClaimKey,
    CommitTransaction,
    CountDeliveries,
    LeaveKey,
    LookUp,
    MarkStart,
    ReleaseKeys,
    Request,
    RollBack,
    RollBackToSavepoint,
    RunHandler,
    Savepoint,
    SendKept,
    Write,
)
from packhorse.processor.running.work import (
    Claim,
    Failure,
    InboxRow,
    Known,
    Result,
)


@pytest.fixture(params=["simulated", "real"])
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    made: Ground = (
        FakeGround() if request.param == "simulated" else RealGround(request.getfixturevalue("tables"))
    )
    made.store(STORE.first_watermark(STREAM, 0, 0))
    yield made
    made.close()


def ids(*numbers: int) -> list[UUID]:
    return [UUID(int=n) for n in numbers]


def run(ground: Ground, n: int) -> RunHandler:
    return RunHandler(member(n, ground.app))


def record(ground: Ground, *results: Result, claim: Claim | None = None) -> bool:
    """Record *results* in a transaction of their own; return whether nobody was first."""

    def end(answers: list[Any]) -> Request:
        return CommitTransaction() if answers[-1] else RollBack()

    written: bool = ground.ask(Begin(), Write(list(results), claim), end)[1]
    return written


def known(ground: Ground, *numbers: int) -> Known:
    found: Known = ground.ask(LookUp(ids(*numbers), [KEY]))[0]
    return found


def row_of(ground: Ground, n: int) -> InboxRow:
    return known(ground, n).rows[UUID(int=n)]


@pytest.mark.case("P-31")
def test_a_watermark_moves_by_compare_and_set(ground: Ground) -> None:
    """Fails when MOVE_WATERMARKS leaves out the old value."""
    assert not ground.store(STORE.first_watermark(STREAM, 0, 6))
    moved = [ground.store(move(old, new)) for old, new in ((0, 9), (0, 7), (9, 12))]
    assert [bool(one) for one in moved] == [True, False, True]
    assert known(ground).position == 12
    assert known(ground).same
    assert not ground.store(STORE.adopt_watermark(STREAM, 0, old=4, new=4))
    assert ground.store(STORE.adopt_watermark(STREAM, 0, old=12, new=8))
    mark = ground.store(STORE.read_watermark(STREAM, 0))
    assert (mark.offset, mark.leader_epoch, mark.same) == (8, None, True)


@pytest.mark.case("T-11")
def test_the_starts_of_messages_below_a_watermark_are_forgotten_when_it_moves(ground: Ground) -> None:
    """Fails when they stay: nobody else deletes those of a process that died behind their results."""
    spot = STREAM.topic_id, 0
    elsewhere = STREAM.topic_id, 1
    begun = [(spot, 1), (spot, 8), (spot, 9), (elsewhere, 1)]

    def starts() -> list[int]:
        return [ground.store(STORE.mark_start(where, at)) for where, at in begun]

    assert starts() == [1, 1, 1, 1]
    assert not ground.store(move(4, 9))
    assert starts() == [2, 2, 2, 2]
    assert ground.store(move(0, 9))
    assert starts() == [1, 1, 3, 3]


@pytest.mark.case("P-14")
def test_a_handlers_writes_and_its_inbox_row_are_one_transaction(ground: Ground) -> None:
    """Fails when the lane commits before `Write`, or rolls back nothing."""
    ground.ask(Begin(), run(ground, 1), Write([done(1)]), RollBack())
    assert (ground.effects(), known(ground, 1).rows) == ([], {})
    ground.ask(Begin(), run(ground, 1), Write([done(1)]), CommitTransaction())
    assert ground.effects() == ids(1)
    rows = known(ground, 1, 2).rows
    assert [(one, row.outcome) for one, row in rows.items()] == [(UUID(int=1), Outcome.DONE)]


@pytest.mark.case("P-13")
def test_the_second_owner_of_a_message_is_told(ground: Ground) -> None:
    """Fails when the inbox row has no primary key: both would be True."""
    first = ground.ask(Begin(), run(ground, 1), Write([done(1)]), CommitTransaction())
    second = ground.ask(Begin(), run(ground, 1), Write([done(1)]), RollBack(), lane=1)
    assert (first[2], second[2]) == (True, False)
    assert ground.effects() == ids(1)


@pytest.mark.case("P-13")
def test_an_owner_that_waits_for_another_in_vain_loses_its_turn(ground: Ground) -> None:
    """Fails when 55P03 is not classed."""
    ground.ask(Begin(), Write([done(1)]))
    answers = ground.ask(Begin(), Write([done(1)]), RollBack(), lane=1)
    assert isinstance(answers[1], Contention)
    ground.ask(RollBack())


@pytest.mark.case("P-10")
def test_a_fenced_job_commits_nothing(ground: Ground) -> None:
    """Fails when the lane does not ask the fence before it commits."""
    fence = Fence()
    fence.up = True
    answers = ground.ask(Begin(), Write([done(1)]), CommitTransaction(), RollBack(), fence=fence)
    assert isinstance(answers[2], GivenUp)
    assert known(ground, 1).rows == {}


def test_a_retry_counts_up_and_waits_by_the_databases_clock(ground: Ground) -> None:
    assert record(ground, failed(1))
    row = row_of(ground, 1)
    assert (row.outcome, row.attempt, row.state, row.copied, row.tier) == (
        Outcome.RETRY,
        2,
        None,
        False,
        "5s",
    )
    assert 25 < row.due_in <= 30
    assert 0 <= row.age < 5
    assert row.spent == 30.0
    assert not record(ground, done(1, row._replace(attempt=3)))
    assert record(ground, done(1, row))
    row = row_of(ground, 1)
    assert (row.outcome, row.attempt) == (Outcome.DONE, 2)


@pytest.mark.case("P-08")
@pytest.mark.case("T-23")
@pytest.mark.parametrize("result", [failed(1), stopped(1)], ids=["retry", "quarantine"])
def test_what_waits_is_uncopied_until_the_broker_confirms(ground: Ground, result: Result) -> None:
    """Fails when SendKept records the copy before it is sent."""
    record(ground, result)
    row = row_of(ground, 1)
    assert not row.copied
    ground.ask(SendKept(ids(1)), SendKept(ids(1)))
    assert ground.copies() == [(UUID(int=1), row.attempt)]
    assert row_of(ground, 1).copied


@pytest.mark.case("P-08")
@pytest.mark.case("T-14")
def test_a_copy_that_is_not_confirmed_stays_uncopied(ground: Ground) -> None:
    record(ground, failed(1))
    ground.lose_copies()
    assert isinstance(ground.ask(SendKept(ids(1)))[0], BrokerUnavailable)
    assert not row_of(ground, 1).copied


def test_a_savepoint_undoes_one_member_alone(ground: Ground) -> None:
    ground.deeds[UUID(int=2)] = Deed.FAILS
    answers = ground.ask(
        Begin(),
        Savepoint(),
        run(ground, 1),
        Savepoint(),
        run(ground, 2),
        RollBackToSavepoint(),
        Savepoint(),
        run(ground, 3),
        Write([done(1), done(3)]),
        CommitTransaction(),
    )
    assert (answers[2].failure, answers[4].failure) == (None, Failure.TEMPORARY)
    assert ground.effects() == ids(1, 3)


@pytest.mark.parametrize(
    ("deed", "failure", "reason"),
    [
        (Deed.FAILS, Failure.TEMPORARY, "failed"),
        (Deed.STOPS, Failure.PERMANENT, "permanent"),
        (Deed.SKIPS, Failure.SKIP, ""),
        (Deed.CONTENDS, Failure.CONTENTION, "contention"),
        (Deed.CUTS, Failure.CONNECTION, ""),
    ],
)
def test_a_failure_is_told_by_its_kind(ground: Ground, deed: Deed, failure: Failure, reason: str) -> None:
    ground.deeds[UUID(int=1)] = deed
    ran = ground.ask(Begin(), run(ground, 1), RollBack())[1]
    assert (ran.failure, ran.reason) == (failure, reason)


def test_what_follows_a_lost_connection_says_that_the_database_is_away(ground: Ground) -> None:
    ground.deeds[UUID(int=1)] = Deed.CUTS
    answers = ground.ask(Begin(), run(ground, 1), Write([done(1)]))
    assert isinstance(answers[2], DatabaseUnavailable)
    assert ground.effects() == []


def test_deliveries_of_duplicates_are_counted_and_starts_too(ground: Ground) -> None:
    record(ground, done(1))
    assert ground.ask(CountDeliveries(ids(1, 1, 9))) == [None]
    assert ground.ask(MarkStart(1), MarkStart(1)) == [1, 2]
    assert ground.ask(MarkStart(1)) == [1], "who lives through a start takes it back"


@pytest.mark.case("T-01")
def test_a_follower_goes_behind_its_head_and_is_drained_when_that_is_finished(ground: Ground) -> None:
    """Fails when a follower needs no parked key, or a key is let go over its followers."""
    assert not record(ground, behind(2)), "its key is not parked"
    assert record(ground, failed(1))
    assert record(ground, behind(3), behind(2))
    assert known(ground).parked == {KEY: UUID(int=1)}
    released = ground.ask(ReleaseKeys([KEY]))[0]
    assert list(released.heads) == ids(1)
    refused = ground.ask(ClaimKey(KEY))[0]
    assert (refused.claim, refused.head) == (None, UUID(int=1))
    assert record(ground, done(1, row_of(ground, 1)))
    assert list(ground.ask(ReleaseKeys([KEY]))[0].waiting) == [KEY]
    claimed = ground.ask(ClaimKey(KEY))[0]
    assert [one.id for one, _ in claimed.followers] == ids(2, 3)
    busy = ground.ask(ClaimKey(KEY), lane=1)[0]
    assert busy.claim is None
    assert 25 < busy.busy <= 30
    results = [done(n, row) for n, (_, row) in zip((2, 3), claimed.followers, strict=True)]
    assert not record(ground, *results, claim=claimed.claim._replace(token=claimed.claim.token - 1))
    assert record(ground, *results, claim=claimed.claim)
    ground.ask(ReleaseKeys([KEY], [claimed.claim]))
    assert known(ground, 2).parked == {}
    assert known(ground, 2).rows[UUID(int=2)].outcome is Outcome.DONE


def test_a_claim_that_is_left_is_anothers_at_once_and_the_old_token_counts_for_nothing(
    ground: Ground,
) -> None:
    record(ground, failed(1))
    record(ground, behind(2))
    record(ground, done(1, row_of(ground, 1)))
    first = ground.ask(ClaimKey(KEY))[0]
    ground.ask(LeaveKey(first.claim))
    second = ground.ask(ClaimKey(KEY), lane=1)[0]
    assert second.claim.token > first.claim.token
    again = failed(2, first.followers[0][1])
    assert not record(ground, again, claim=first.claim)
    assert record(ground, again, claim=second.claim)
    assert known(ground).parked == {KEY: UUID(int=2)}


@pytest.mark.case("T-23")
def test_a_claim_whose_lane_lost_its_connection_is_left_long_before_its_lease_is_over(ground: Ground) -> None:
    """Fails when the lane forgets it with all others: the key waits for half a minute."""
    record(ground, failed(1))
    record(ground, behind(2))
    record(ground, done(1, row_of(ground, 1)))
    ground.deeds[UUID(int=2)] = Deed.CUTS
    claimed = ground.ask(ClaimKey(KEY), Begin(), run(ground, 2), CommitTransaction())[0]
    assert claimed.claim is not None
    assert ground.ask(ClaimKey(KEY), lane=1)[0].busy > 25
    assert ground.renew() == 0
    second = ground.ask(ClaimKey(KEY), lane=1)[0]
    assert second.claim.token > claimed.claim.token


def test_a_second_head_of_a_key_is_refused(ground: Ground) -> None:
    assert record(ground, failed(1))
    assert not record(ground, failed(2))
    assert not record(ground, stopped(3))
    assert known(ground, 2, 3).rows == {}
