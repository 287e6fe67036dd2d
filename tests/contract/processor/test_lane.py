"""What a batch may expect of its lane, held on the simulation's lane and on the product's with a real database."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from tests.contract.processor.grounds import FakeGround, Ground, RealGround, delivery, member
from tests.simulation.processor.lane import Deed
from tests.support.databases import fresh_database

from packhorse.core.errors import BrokerUnavailable, DatabaseUnavailable
from packhorse.local.settings import Endpoints
from packhorse.processor.member.fence import Fence
from packhorse.processor.outcomes import Outcome
from packhorse.processor.running.endings import Contention, GivenUp
from packhorse.processor.running.work import (
    Begin,
    CommitTransaction,
    CountDeliveries,
    Failure,
    Known,
    LookUp,
    MoveWatermark,
    Result,
    RollBack,
    RollBackToSavepoint,
    RunHandler,
    Savepoint,
    SendCopies,
    Write,
)


@pytest.fixture(scope="module")
def tables(stack: Endpoints, _template: str) -> Iterator[str]:
    with fresh_database(stack.database_url, _template) as url:
        yield url


@pytest.fixture(params=["simulated", "real"])
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    if request.param == "simulated":
        yield FakeGround()
        return
    real = RealGround(request.getfixturevalue("tables"))
    yield real
    real.close()


def ids(*numbers: int) -> list[UUID]:
    return [UUID(int=n) for n in numbers]


def done(n: int, row: object = None) -> Result:
    return Result(delivery(n), Outcome.DONE, 1, row=row)  # type: ignore[arg-type]


def run(ground: Ground, n: int) -> RunHandler:
    return RunHandler(member(n, ground.app))  # type: ignore[attr-defined]


def known(ground: Ground, *numbers: int) -> Known:
    found: Known = ground.ask(LookUp(ids(*numbers)))[0]
    return found


def test_without_a_watermark_nothing_is_known(ground: Ground) -> None:
    assert known(ground, 1).position is None


@pytest.mark.case("P-31")
def test_a_watermark_moves_by_compare_and_set(ground: Ground) -> None:
    """Fails when MOVE_WATERMARK leaves out the old value."""
    assert ground.first_watermark(5)
    assert not ground.first_watermark(6)
    assert ground.ask(MoveWatermark(5, 9, 3), MoveWatermark(5, 7, 3), MoveWatermark(9, 12, 3)) == [
        True,
        False,
        True,
    ]
    assert known(ground).position == 12
    assert known(ground).same


def test_a_watermark_is_adopted_by_compare_and_set(ground: Ground) -> None:
    ground.first_watermark(5)
    assert not ground.adopt_watermark(4, 4)
    assert ground.adopt_watermark(5, 8)
    assert known(ground).position == 8


@pytest.mark.case("P-14")
def test_a_handlers_writes_and_its_inbox_row_are_one_transaction(ground: Ground) -> None:
    """Fails when the lane commits before `Write`, or rolls back nothing."""
    ground.first_watermark(0)
    ground.ask(Begin(), run(ground, 1), Write([done(1)]), RollBack())
    assert ground.effects() == []
    assert known(ground, 1).rows == {}
    ground.ask(Begin(), run(ground, 1), Write([done(1)]), CommitTransaction())
    assert ground.effects() == ids(1)
    row = known(ground, 1, 2).rows
    assert list(row) == ids(1)
    assert row[UUID(int=1)].outcome is Outcome.DONE


@pytest.mark.case("P-13")
def test_the_second_owner_of_a_message_is_told(ground: Ground) -> None:
    """Fails when the inbox row has no primary key: both would be True."""
    ground.first_watermark(0)
    first = ground.ask(Begin(), run(ground, 1), Write([done(1)]), CommitTransaction())
    second = ground.ask(Begin(), run(ground, 1), Write([done(1)]), RollBack(), lane=1)
    assert first[2] is True
    assert second[2] is False
    assert ground.effects() == ids(1)


@pytest.mark.case("P-10")
def test_a_fenced_job_commits_nothing(ground: Ground) -> None:
    """Fails when the lane does not ask the fence before it commits."""
    ground.first_watermark(0)
    fence = Fence()
    fence.up = True
    answers = ground.ask(Begin(), Write([done(1)]), CommitTransaction(), RollBack(), fence=fence)
    assert isinstance(answers[2], GivenUp)
    assert known(ground, 1).rows == {}


def test_a_retry_counts_up_and_waits_by_the_databases_clock(ground: Ground) -> None:
    ground.first_watermark(0)
    failed = Result(delivery(1), Outcome.RETRY, 1, reason="failed", failed_as="failed", delay=30.0)
    ground.ask(Begin(), Write([failed]), CommitTransaction())
    row = known(ground, 1).rows[UUID(int=1)]
    assert (row.outcome, row.attempt, row.state) == (Outcome.RETRY, 2, None)
    assert 25 < row.due_in <= 30
    assert 0 <= row.age < 5
    stale = row._replace(attempt=3)
    answers = ground.ask(Begin(), Write([done(1, stale)]), RollBack())
    assert answers[1] is False
    again = done(1, row)._replace(attempt=2)
    assert ground.ask(Begin(), Write([again]), CommitTransaction())[1] is True
    row = known(ground, 1).rows[UUID(int=1)]
    assert (row.outcome, row.attempt) == (Outcome.DONE, 2)


@pytest.mark.case("P-08")
def test_a_quarantined_message_is_uncopied_until_the_broker_confirms(ground: Ground) -> None:
    """Fails when SendCopies records the copy before it is sent."""
    ground.first_watermark(0)
    stopped = Result(delivery(1), Outcome.QUARANTINE, 1, reason="permanent", failed_as="permanent")
    ground.ask(Begin(), Write([stopped]), CommitTransaction())
    row = known(ground, 1).rows[UUID(int=1)]
    assert (row.outcome, row.attempt, row.state, row.copied) == (
        Outcome.QUARANTINE,
        1,
        "quarantined",
        False,
    )
    ground.ask(SendCopies([delivery(1)]), SendCopies([delivery(1)]))
    assert ground.copies() == ids(1)
    assert known(ground, 1).rows[UUID(int=1)].copied


@pytest.mark.case("P-08")
def test_a_copy_that_is_not_confirmed_stays_uncopied(ground: Ground) -> None:
    ground.first_watermark(0)
    stopped = Result(delivery(1), Outcome.QUARANTINE, 0, reason="undecodable")
    ground.ask(Begin(), Write([stopped]), CommitTransaction())
    ground.lose_copies()
    assert isinstance(ground.ask(SendCopies([delivery(1)]))[0], BrokerUnavailable)
    assert not known(ground, 1).rows[UUID(int=1)].copied


def test_a_savepoint_undoes_one_member_alone(ground: Ground) -> None:
    ground.first_watermark(0)
    ground.script.deeds[UUID(int=2)] = (Deed.FAILS, 1)
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
    assert answers[2].failure is None
    assert answers[4].failure is Failure.TEMPORARY
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
    ground.first_watermark(0)
    ground.script.deeds[UUID(int=1)] = (deed, 1)
    ran = ground.ask(Begin(), run(ground, 1), RollBack())[1]
    assert (ran.failure, ran.reason, ran.touched) == (failure, reason, True)


def test_what_follows_a_lost_connection_says_that_the_database_is_away(ground: Ground) -> None:
    ground.first_watermark(0)
    ground.script.deeds[UUID(int=1)] = (Deed.CUTS, 1)
    answers = ground.ask(Begin(), run(ground, 1), Write([done(1)]))
    assert isinstance(answers[2], DatabaseUnavailable)
    assert ground.effects() == []


def test_deliveries_of_duplicates_are_counted(ground: Ground) -> None:
    ground.first_watermark(0)
    ground.ask(Begin(), Write([done(1)]), CommitTransaction())
    assert ground.ask(CountDeliveries(ids(1, 1, 9))) == [None]


@pytest.mark.case("P-13")
def test_a_lock_time_out_on_anothers_open_transaction_is_contention(tables: str) -> None:
    """The real lane alone: the simulation's scheduler waits instead. Fails when 55P03 is not classed."""
    ground = RealGround(tables)
    ground.first_watermark(0)
    ground.ask(Begin(), Write([done(1)]))
    answers = ground.ask(Begin(), Write([done(1)]), RollBack(), lane=1)
    ground.close()
    assert isinstance(answers[1], Contention)
