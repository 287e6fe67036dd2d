"""Callers that race for one request key or one name, on a real database: one waits for the other's end in the unique index."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg import errors as pg
from tests.support.accounts import AmountMoved
from tests.support.wait import eventually

from packhorse.core.errors import RequestKeyConflict
from packhorse.producer import JobDraft, JobHandle, Outbox

T = TypeVar("T")
Connection = psycopg.Connection[Any]
OUTBOX = Outbox(origin="bank")
MOVED = AmountMoved(account="a", amount=5)
OTHER = AmountMoved(account="a", amount=6)
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


class Race:
    """Two callers; the second one's call runs in a thread, for it is about to wait."""

    def __init__(
        self, first: Connection, second: Connection, watch: Connection, pool: ThreadPoolExecutor
    ) -> None:
        self.first, self.second = first, second
        self._watch, self._pool = watch, pool

    def submit_second(self, job: AmountMoved = MOVED, **named: Any) -> "Future[JobHandle[AmountMoved]]":
        """Let the second one submit, and return once it waits for the first."""
        return self.waiting(lambda: OUTBOX.submit(self.second, job, **named))

    def waiting(self, call: Callable[[], T]) -> "Future[T]":
        """Let a thread make a call of the second one's, and return once it waits for the first."""
        going = self._pool.submit(call)
        eventually(lambda: self._watch.execute(WAITING).fetchone() == (1,), what="the second caller waits")
        assert not going.done()
        return going

    def jobs(self) -> int:
        """Return how many jobs are committed."""
        ((found,),) = self._watch.execute("SELECT count(*) FROM packhorse.job").fetchall()
        return int(found)


@pytest.fixture
def race(url: str) -> Iterator[Race]:
    with racing(url) as made:
        yield made


@contextmanager
def racing(url: str) -> Iterator[Race]:
    with (
        psycopg.connect(url) as first,
        psycopg.connect(url) as second,
        psycopg.connect(url, autocommit=True) as watch,
        ThreadPoolExecutor(1) as pool,
    ):
        yield Race(first, second, watch, pool)


NAMED = pytest.mark.parametrize("named", [{"request_key": "k"}, {"one_waiting": "w"}, {"request_key": "k", "one_waiting": "w"}])  # fmt: skip


@NAMED
@pytest.mark.case("J-09")
def test_whoever_comes_second_is_given_the_first_ones_job_once_it_has_committed(
    race: Race, named: dict[str, Any]
) -> None:
    """Fails when a key or name is looked up before the insert, or by the statement that waited: both callers get a job then."""
    mine = OUTBOX.submit(race.first, MOVED, **named)
    going = race.submit_second(**named)
    race.first.commit()
    theirs = going.result(10)
    race.second.commit()
    assert (theirs.id, theirs.is_new) == (mine.id, False)
    assert race.jobs() == 1


@NAMED
def test_whoever_comes_second_is_the_first_once_that_one_has_rolled_back(
    race: Race, named: dict[str, Any]
) -> None:
    """Fails when the second one gives up at the first one's uncommitted row."""
    mine = OUTBOX.submit(race.first, MOVED, **named)
    going = race.submit_second(**named)
    race.first.rollback()
    theirs = going.result(10)
    race.second.commit()
    assert theirs.is_new
    assert theirs.id != mine.id
    assert race.jobs() == 1


def test_another_input_is_a_conflict_once_the_first_one_has_committed_and_leaves_nothing(race: Race) -> None:
    mine = OUTBOX.submit(race.first, MOVED, request_key="k")
    going = race.submit_second(OTHER, request_key="k", one_waiting="w")
    race.first.commit()
    with pytest.raises(RequestKeyConflict) as caught:
        going.result(10)
    assert caught.value.existing == mine.id
    assert OUTBOX.submit(race.second, OTHER, one_waiting="w").is_new, (
        "the transaction is usable, the name free"
    )
    race.second.commit()


@NAMED
def test_in_repeatable_read_the_database_says_that_the_caller_must_try_again(
    race: Race, named: dict[str, Any]
) -> None:
    """Fails when the driver's error is dressed up as something that nobody would repeat the transaction for."""
    race.second.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    race.second.execute("SELECT 1")
    mine = OUTBOX.submit(race.first, MOVED, **named)
    going = race.submit_second(**named)
    race.first.commit()
    with pytest.raises(pg.SerializationFailure):
        going.result(10)
    race.second.rollback()
    again = OUTBOX.submit(race.second, MOVED, **named)
    assert (again.id, again.is_new) == (mine.id, False)


@pytest.mark.case("J-09")
def test_a_job_that_was_given_back_does_not_begin_before_the_caller_has_committed(race: Race) -> None:
    """Fails when the waiting job is looked up without a lock: its run could miss what the caller is about to commit."""
    mine = OUTBOX.submit(race.first, MOVED, one_waiting="w")
    race.first.commit()
    theirs = OUTBOX.submit(race.first, MOVED, one_waiting="w")
    assert theirs.id == mine.id
    going = race.waiting(
        lambda: race.second.execute("UPDATE packhorse.job SET state = 'running', changed_by = 'worker'")
    )
    race.first.commit()
    going.result(10)
    race.second.commit()
    assert OUTBOX.submit(race.first, MOVED, one_waiting="w").is_new


@pytest.mark.case("J-09")
def test_a_caller_that_comes_while_the_waiting_job_begins_gets_a_job_of_its_own(race: Race) -> None:
    """Fails when the name is held to a row that another transaction is deleting."""
    OUTBOX.submit(race.first, MOVED, one_waiting="w")
    race.first.commit()
    race.first.execute("UPDATE packhorse.job SET state = 'running', changed_by = 'worker'")
    going = race.submit_second(one_waiting="w")
    race.first.commit()
    assert going.result(10).is_new
    race.second.commit()
    assert race.jobs() == 2


@pytest.mark.case("J-09")
def test_many_callers_at_once_make_one_job_for_each_key_and_name(url: str) -> None:
    """Fails when a key is looked up before the insert: two callers get a job."""
    keys = [f"k{n}" for n in range(20)]

    def submit_all(seed: int) -> list[JobHandle[AmountMoved]]:
        turned = keys[seed:] + keys[:seed]
        drafts = [JobDraft(input=MOVED, request_key=key, one_waiting=key) for key in turned]
        with psycopg.connect(url) as connection:
            found = OUTBOX.submit_many(connection, drafts)
        return [one for _, one in sorted(zip(turned, found, strict=True))]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(submit_all, range(8)))
    assert {tuple(one.id for one in answer) for answer in answers} == {tuple(one.id for one in answers[0])}
    assert sum(one.is_new for answer in answers for one in answer) == len(keys)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM packhorse.outbox").fetchone() == (len(keys),)


@pytest.mark.parametrize("what", ["request_key", "one_waiting"])
def test_keys_and_names_of_a_call_are_taken_in_one_order_whatever_the_calls(race: Race, what: str) -> None:
    """Fails when they are taken in the order of the call: the second caller would hold b while it waits for a, and deadlock."""

    def draft(name: str) -> JobDraft[AmountMoved]:
        return JobDraft(input=MOVED, **{what: name})  # type: ignore[arg-type]

    mine = OUTBOX.submit_many(race.first, [draft("a")])
    going = race.waiting(lambda: OUTBOX.submit_many(race.second, [draft("b"), draft("a")]))
    mine += OUTBOX.submit_many(race.first, [draft("b")])
    race.first.commit()
    assert [one.id for one in going.result(10)] == [mine[1].id, mine[0].id]


def test_equal_keys_and_names_in_one_call_are_one_job(url: str) -> None:
    drafts = [
        JobDraft(input=MOVED, request_key="a"),
        JobDraft(input=MOVED, request_key="a"),
        JobDraft(input=MOVED, one_waiting="w"),
        JobDraft(input=OTHER, one_waiting="w", request_key="b"),
        JobDraft(input=MOVED),
    ]
    with psycopg.connect(url) as connection:
        a, same_a, w, same_w, alone = OUTBOX.submit_many(connection, drafts)
        assert (same_a.id, same_w.id) == (a.id, w.id)
        assert [one.is_new for one in (a, same_a, w, same_w, alone)] == [True, False, True, False, True]
        connection.commit()
        with pytest.raises(RequestKeyConflict):
            OUTBOX.submit_many(
                connection,
                [
                    JobDraft(input=MOVED, request_key="c", one_waiting="x"),
                    JobDraft(input=MOVED, request_key="a", one_waiting="x"),
                    JobDraft(input=MOVED, request_key="b", one_waiting="x"),
                ],
            )
        connection.commit()
        assert connection.execute("SELECT count(*) FROM packhorse.job").fetchone() == (3,), "all or none"
        assert connection.execute("SELECT count(*) FROM packhorse.job_request").fetchone() == (2,)


def test_in_pipeline_mode_jobs_are_submitted_too(url: str) -> None:
    with psycopg.connect(url) as connection, connection.pipeline():
        first = OUTBOX.submit(connection, MOVED)
        keyed = OUTBOX.submit(connection, MOVED, request_key="k")
        again = OUTBOX.submit_many(
            connection, [JobDraft(input=MOVED, request_key="k"), JobDraft(input=MOVED)]
        )
        assert again[0].id == keyed.id != first.id
        connection.commit()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM packhorse.outbox").fetchone() == (3,)
