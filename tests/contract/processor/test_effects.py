"""The record of effects and steps: one suite for the simulated tables and for a real database."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar
from uuid import UUID

import psycopg
import pytest
from tests.contract.processor.parties import STORE, Beside, Party, waits
from tests.simulation.processor.effects.database import QUERIES, Database, Job

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import DatabaseUnavailable, OwnershipLost, UsageError
from packhorse.processor.jobs.effects.calling import AsyncEffects, Effects
from packhorse.processor.jobs.effects.model import (
    CANT_TELL,
    DID_NOT_HAPPEN,
    EffectConflict,
    EffectInDoubt,
    EffectState,
    Happened,
    effect_of,
    idempotency_key,
)
from packhorse.processor.jobs.effects.table import EffectTable
from packhorse.processor.jobs.ledger import Ledger
from packhorse.processor.jobs.steps_done import AsyncDoneSteps, DoneSteps
from packhorse.processor.policy import Later
from packhorse.processor.storing.postgres import settings_of
from packhorse.processor.storing.steps import Steps

T = TypeVar("T")
JOB, MINE, YOURS = UUID(int=900), UUID(int=1), UUID(int=2)


@dataclass(frozen=True)
class Run:
    """A run of the job."""

    token: UUID = MINE
    attempt: int = 1
    lost: bool = False
    job_id: UUID = JOB


class Ground(Protocol):
    """What the suite needs of a database."""

    def run(self, steps: Steps[T]) -> T: ...
    def take_over(self, token: UUID) -> None: ...
    def end(self) -> None:
        """End the job, and leave the token where it is: the fence does not stand on that alone."""

    def age(self, seconds: float) -> None: ...
    def effect(self) -> tuple[Any, ...] | None: ...
    def resolve(self, state: str, answer: str | None) -> None: ...
    def steps(self) -> list[tuple[str, Any]]: ...


class Simulated:
    """The tables of the simulation."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.database = Database(lambda: self.now)
        self.database.tables.jobs[JOB] = Job(JOB, "running", 1, MINE)
        self.run = self.database.run

    def take_over(self, token: UUID) -> None:
        jobs = self.database.tables.jobs
        jobs[JOB] = replace(jobs[JOB], token=token, attempt=jobs[JOB].attempt + 1)

    def end(self) -> None:
        jobs = self.database.tables.jobs
        jobs[JOB] = replace(jobs[JOB], state="succeeded")

    def age(self, seconds: float) -> None:
        self.now += seconds

    def effect(self) -> tuple[Any, ...] | None:
        row = self.database.tables.effects.get((JOB, "charge"))
        if row is None:
            return None
        return row.state, row.calls, row.attempt, row.idempotency_key, row.answer

    def resolve(self, state: str, answer: str | None) -> None:
        effects = self.database.tables.effects
        effects[JOB, "charge"] = replace(effects[JOB, "charge"], state=state, answer=answer)

    def steps(self) -> list[tuple[str, Any]]:
        return sorted((name, text) for (_, name), text in self.database.tables.steps.items())


class Real:
    """A real database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.party = Party(url)
        self.party.connection.execute(
            "INSERT INTO packhorse.job (id, type, version, topic, state, attempt, changed_by, worker, token, lease_until, input)"
            " VALUES (%s, 'test.Report', 1, 'test.reports', 'accepted', 0, 'app', NULL, NULL, NULL, ''::bytea)",
            (JOB,),
        )
        self.take_over(MINE)

    def run(self, steps: Steps[T]) -> T:
        return self.party.run(steps)

    def take_over(self, token: UUID) -> None:
        take_over(self.party.connection, token)

    def end(self) -> None:
        self.party.connection.execute(
            "UPDATE packhorse.job SET state = 'succeeded' WHERE id = %s",
            (JOB,),
        )

    def age(self, seconds: float) -> None:
        self.party.connection.execute(
            "UPDATE packhorse.job_effect SET intended_at = intended_at - %s * interval '1 s'", (seconds,)
        )

    def effect(self) -> tuple[Any, ...] | None:
        rows = self.party.fetch(
            "SELECT state, calls, attempt, idempotency_key, answer::text FROM packhorse.job_effect WHERE job_id = %s",
            JOB,
        )
        return rows[0] if rows else None

    def resolve(self, state: str, answer: str | None) -> None:
        self.party.connection.execute(
            "UPDATE packhorse.job_effect SET state = %s, answer = %s::jsonb, changed_by = 'ops'",
            (state, answer),
        )

    def steps(self) -> list[tuple[str, Any]]:
        found = self.party.fetch(
            "SELECT name, result::text FROM packhorse.job_step WHERE job_id = %s ORDER BY name", JOB
        )
        return [tuple(row) for row in found]

    def close(self) -> None:
        self.party.roll_back()
        self.party.connection.execute("DELETE FROM packhorse.job_effect")
        self.party.connection.execute("DELETE FROM packhorse.job_step")
        self.party.connection.execute("DELETE FROM packhorse.job")
        self.party.close()


def take_over(connection: psycopg.Connection[Any], token: UUID) -> None:
    connection.execute(
        "UPDATE packhorse.job SET state = 'running', attempt = attempt + 1, token = %s, worker = %s, "
        "lease_until = clock_timestamp() + interval '30 s', changed_at = clock_timestamp(), changed_by = 'worker' WHERE id = %s",
        (token, token, JOB),
    )


@pytest.fixture(params=["simulated", "real"])
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    """Provide tables in which MINE runs the job."""
    if request.param == "simulated":
        yield Simulated()
        return
    real = Real(request.getfixturevalue("tables"))
    try:
        yield real
    finally:
        real.close()


class Side:
    """The other side: notes what it is asked for, and answers as it is told."""

    def __init__(self, answer: Any = "ok", says: Any = DID_NOT_HAPPEN) -> None:
        self.calls: list[str] = []
        self.questions: list[str] = []
        self.answer, self.says = answer, says

    def call(self, key: str) -> Any:
        self.calls.append(key)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def verify(self, key: str) -> Any:
        self.questions.append(key)
        return self.says


def no_pause(seconds: float) -> None:
    """Take no time."""


def effects(
    ground: Ground, run: Run | None = None, execute: Any = None, clock: Any = SYSTEM_CLOCK
) -> Effects:
    return Effects(run or Run(), execute or ground.run, clock, queries=QUERIES, pause=no_pause)


def steps(ground: Ground, run: Run | None = None) -> DoneSteps:
    return DoneSteps(run or Run(), ground.run, queries=QUERIES, pause=no_pause)


def crashed(ground: Ground, side: Side, **more: Any) -> None:
    """Die between call and answer, and let another worker take the job over."""
    told, side.answer = side.answer, KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        effects(ground).call("charge", side.call, **more)
    side.answer = told
    ground.take_over(YOURS)


AGAIN = Run(token=YOURS, attempt=2)
WANTED = effect_of(JOB, "charge")


def test_an_effect_is_on_record_before_its_call_and_answered_after_it(ground: Ground) -> None:
    """Fails when intent and call are swapped: then the call sees no intent."""
    seen: list[Any] = []

    def call(key: str) -> dict[str, Any]:
        seen.append(ground.effect())
        return {"id": key, "cents": (1, 2)}

    answer = effects(ground).call("charge", call)
    key = idempotency_key(JOB, "charge")
    assert answer == {"id": key, "cents": [1, 2]}
    assert seen == [("intended", 1, 1, key, None)]
    found = ground.effect()
    assert found is not None
    assert found[:2] == ("answered", 1)


def test_an_answered_effect_is_given_and_never_called_again(ground: Ground) -> None:
    side = Side({"n": 1})
    effects(ground).call("charge", side.call)
    ground.take_over(YOURS)
    assert effects(ground, AGAIN).call("charge", side.call) == {"n": 1}
    assert len(side.calls) == 1


@pytest.mark.case("J-08")
def test_a_death_between_call_and_answer_is_for_a_person_without_verify(ground: Ground) -> None:
    """Fails when an intent without an answer is called again."""
    side = Side()
    crashed(ground, side)
    for _ in range(2):
        with pytest.raises(EffectInDoubt, match="packhorse job resolve"):
            effects(ground, AGAIN).call("charge", side.call)
    found = ground.effect()
    assert found is not None
    assert (found[0], len(side.calls)) == ("uncertain", 1)


@pytest.mark.case("J-08")
def test_a_no_is_believed_when_the_call_can_not_be_on_its_way(ground: Ground) -> None:
    """Fails when a "no" is believed at once, or the next call gets another idempotency key."""
    side = Side()
    crashed(ground, side, verify=side.verify)
    with pytest.raises(Later) as wait:
        effects(ground, AGAIN).call("charge", side.call, verify=side.verify)
    assert 30 < wait.value.after <= 35
    assert len(side.calls) == 1
    ground.age(36)
    assert effects(ground, AGAIN).call("charge", side.call, verify=side.verify) == "ok"
    found = ground.effect()
    assert found is not None
    assert found[:3] == ("answered", 2, 2)
    assert len(set(side.calls + side.questions)) == 1


def test_a_no_counts_from_the_last_intent_and_by_its_time_out(ground: Ground) -> None:
    """Fails when a further intent keeps the time or the time-out of the first one."""
    side = Side()
    crashed(ground, side, verify=side.verify)
    ground.age(36)
    side.answer = TimeoutError("no answer")
    for timeout in ("60s", "1s"):
        with pytest.raises(TimeoutError if timeout == "60s" else Later) as ended:
            effects(ground, AGAIN).call("charge", side.call, verify=side.verify, timeout=timeout)
    assert isinstance(ended.value, Later)
    assert 60 < ended.value.after <= 65
    assert len(side.calls) == 2


def test_an_effect_that_stands_otherwise_than_it_was_read_is_left_as_it_is(ground: Ground) -> None:
    """Fails when a write does not look at state and number of calls: it would take back what was written in between."""
    table = EffectTable(queries=QUERIES, run=Run())
    assert ground.run(table.intend(WANTED, None, None))
    assert ground.run(table.change("charge", 1, EffectState.DID_NOT_HAPPEN))
    before = ground.run(table.read("charge"))
    assert ground.run(table.intend(WANTED, before, "no"))
    assert not ground.run(table.intend(WANTED, before, "no"))
    assert not ground.run(table.change("charge", 1, EffectState.ANSWERED, answer="1"))
    assert ground.run(table.change("charge", 2, EffectState.ANSWERED, answer="2"))
    assert not ground.run(table.change("charge", 2, EffectState.UNCERTAIN))
    found = ground.effect()
    assert found is not None
    assert (*found[:2], found[4]) == ("answered", 2, "2")


def test_one_run_may_come_back_to_an_effect(ground: Ground) -> None:
    """Fails when a key stays in hand after its call."""
    side = Side(ConnectionRefusedError("no"))
    made = effects(ground)
    with pytest.raises(ConnectionRefusedError):
        made.call("charge", side.call, refused=(ConnectionRefusedError,))
    side.answer = 7
    assert [made.call("charge", side.call) for _ in range(2)] == [7, 7]
    assert len(side.calls) == 2


def test_a_yes_counts_at_once_and_its_answer_stands(ground: Ground) -> None:
    side = Side(says=Happened({"id": 7}))
    crashed(ground, side, verify=side.verify)
    for _ in range(2):
        assert effects(ground, AGAIN).call("charge", side.call, verify=side.verify) == {"id": 7}
    assert (len(side.calls), len(side.questions)) == (1, 1)
    found = ground.effect()
    assert found is not None
    assert found[:2] == ("happened", 1)


def test_who_can_not_tell_leaves_it_to_a_person(ground: Ground) -> None:
    side = Side(says=CANT_TELL)
    crashed(ground, side, verify=side.verify)
    ground.age(36)
    with pytest.raises(EffectInDoubt, match="can't tell"):
        effects(ground, AGAIN).call("charge", side.call, verify=side.verify)


@pytest.mark.parametrize(
    ("state", "answer", "calls"),
    [("happened", '"by hand"', 1), ("happened", None, 1), ("did-not-happen", None, 2)],
)
def test_what_a_person_says_is_believed(ground: Ground, state: str, answer: str | None, calls: int) -> None:
    side = Side("by hand" if answer or calls == 2 else None)
    crashed(ground, side)
    with pytest.raises(EffectInDoubt):
        effects(ground, AGAIN).call("charge", side.call)
    ground.resolve(state, answer)
    assert effects(ground, AGAIN).call("charge", side.call) == side.answer
    assert len(side.calls) == calls
    assert len(set(side.calls)) == 1


def test_a_refused_call_is_made_again_in_the_next_attempt(ground: Ground) -> None:
    side = Side(ConnectionRefusedError("no"))
    with pytest.raises(ConnectionRefusedError):
        effects(ground).call("charge", side.call, refused=(ConnectionRefusedError,))
    side.answer = "ok"
    assert effects(ground).call("charge", side.call, refused=(ConnectionRefusedError,)) == "ok"
    assert len(side.calls) == 2


def test_any_other_error_of_a_call_leaves_its_intent_unanswered(ground: Ground) -> None:
    """Fails when an error of a call counts as a "no"."""
    side = Side(TimeoutError("no answer"))
    with pytest.raises(TimeoutError):
        effects(ground).call("charge", side.call, refused=(ConnectionRefusedError,))
    with pytest.raises(EffectInDoubt):
        effects(ground).call("charge", side.call, refused=(ConnectionRefusedError,))
    assert len(side.calls) == 1


def test_the_same_key_with_other_arguments_is_refused(ground: Ground) -> None:
    side = Side()
    effects(ground).call("charge", side.call, arguments={"cents": 1})
    with pytest.raises(EffectConflict, match="other arguments"):
        effects(ground).call("charge", side.call, arguments={"cents": 2})
    assert len(side.calls) == 1


def test_an_answer_that_can_not_be_kept_is_known_to_have_happened(ground: Ground) -> None:
    """Fails when a mistake in what is returned leads to a second call."""
    side = Side(object())
    with pytest.raises(UsageError, match="answer of effect charge"):
        effects(ground).call("charge", side.call)
    assert effects(ground).call("charge", side.call) is None
    assert len(side.calls) == 1


@pytest.mark.case("J-02")
@pytest.mark.parametrize("lost", ["taken over", "ended"])
def test_a_run_that_lost_its_job_calls_nothing_and_records_nothing(ground: Ground, lost: str) -> None:
    """Fails when a write of an effect or a step is not under the fence."""
    ground.take_over(YOURS) if lost == "taken over" else ground.end()
    side = Side()
    with pytest.raises(OwnershipLost):
        effects(ground).call("charge", side.call)
    with pytest.raises(OwnershipLost):
        steps(ground).step("read", lambda: side.call(""))
    with pytest.raises(OwnershipLost):  # though nobody has looked before
        ground.run(EffectTable(queries=QUERIES, run=Run()).intend(WANTED, None, None))
    assert (side.calls, ground.effect(), ground.steps()) == ([], None, [])


@pytest.mark.case("J-02")
def test_an_answer_or_a_result_after_the_take_over_is_not_written(ground: Ground) -> None:
    def call(*key: str) -> str:
        ground.take_over(YOURS)
        return "late"

    with pytest.raises(OwnershipLost):
        effects(ground).call("charge", call)
    with pytest.raises(OwnershipLost):
        steps(ground, Run(token=YOURS)).step("read", lambda: ground.take_over(MINE))
    found = ground.effect()
    assert found is not None
    assert (found[0], ground.steps()) == ("intended", [])


def test_a_run_that_knows_that_it_is_lost_does_not_call(ground: Ground) -> None:
    side = Side()
    with pytest.raises(OwnershipLost):
        effects(ground, Run(lost=True)).call("charge", side.call)
    assert side.calls == []


class SlowClock:
    """A clock on which each look takes *seconds*."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.at = seconds, 0.0

    def monotonic(self) -> float:
        self.at += self.seconds
        return self.at

    def now(self) -> Any:
        return SYSTEM_CLOCK.now()


def test_a_call_that_would_begin_late_is_not_made(ground: Ground) -> None:
    """Fails when a process that was frozen behind the intent goes on with the call."""
    side = Side()
    with pytest.raises(Later):
        effects(ground, clock=SlowClock(6.0)).call("charge", side.call)
    found = ground.effect()
    assert found is not None
    assert (side.calls, found[0]) == ([], "did-not-happen")
    assert effects(ground).call("charge", side.call) == "ok"


class Losing:
    """Loses the answers to some transactions: those that were committed, or that were not."""

    def __init__(self, run: Callable[..., Any], lose: dict[int, str]) -> None:
        self._run, self._lose, self.count = run, lose, 0

    def __call__(self, steps: Steps[T]) -> T:
        self.count += 1
        how = self._lose.get(self.count)
        if how == "before":
            raise DatabaseUnavailable("cut")
        result: T = self._run(steps)
        if how == "after":
            raise DatabaseUnavailable("cut")
        return result


@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize("at", [2, 3])
def test_a_lost_answer_of_the_database_costs_no_certainty(ground: Ground, at: int, how: str) -> None:
    """Transactions: 1 looks, 2 records the intent, 3 the answer. Fails when a try that was committed is taken for none."""
    side = Side()
    losing = Losing(ground.run, {at: how, at + 1: how})
    assert effects(ground, execute=losing).call("charge", side.call) == "ok"
    found = ground.effect()
    assert found is not None
    assert (found[:2], len(side.calls)) == (("answered", 1), 1)


def test_a_database_that_stays_away_ends_the_attempt(ground: Ground) -> None:
    side = Side()
    losing = Losing(ground.run, dict.fromkeys(range(3, 100), "before"))
    with pytest.raises(DatabaseUnavailable):
        effects(ground, execute=losing).call("charge", side.call)
    assert 10 < losing.count < 30
    with pytest.raises(EffectInDoubt):
        effects(ground).call("charge", side.call)
    assert len(side.calls) == 1


def test_one_run_calls_an_effect_from_one_place_at_a_time(ground: Ground) -> None:
    made = effects(ground)
    with pytest.raises(UsageError, match="two keys"):
        made.call("charge", lambda key: made.call("charge", lambda key: "inner"))


def test_what_is_no_verdict_is_refused(ground: Ground) -> None:
    side = Side(says=False)
    crashed(ground, side)
    with pytest.raises(UsageError, match="returned a bool"):
        effects(ground, AGAIN).call("charge", side.call, verify=side.verify)


def test_a_step_that_is_done_is_never_run_again(ground: Ground) -> None:
    side = Side([1, "two"])
    assert steps(ground).step("read", lambda: side.call("")) == [1, "two"]
    ground.take_over(YOURS)
    assert steps(ground, AGAIN).step("read", lambda: side.call("")) == [1, "two"]
    assert len(side.calls) == 1


def test_a_step_that_returned_nothing_is_done_too(ground: Ground) -> None:
    side = Side(None)
    for _ in range(2):
        assert steps(ground).step("read", lambda: side.call("")) is None
    assert len(side.calls) == 1


def test_a_step_that_fails_is_run_again(ground: Ground) -> None:
    side = Side(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        steps(ground).step("read", lambda: side.call(""))
    side.answer = 1
    assert steps(ground).step("read", lambda: side.call("")) == 1


def test_the_first_result_of_a_step_stands(ground: Ground) -> None:
    """Fails when two tasks of a run that do one step at a time go on with two results."""
    inner: list[Any] = []

    def call() -> int:
        if not inner:
            inner.append(None)
            inner[0] = steps(ground).step("read", lambda: 1)
        return 2

    assert steps(ground).step("read", call) == 1
    assert inner == [1]


@pytest.fixture
def pair(tables: str) -> Iterator[tuple[Real, Party]]:
    """Provide a real database with one more connection."""
    real, other = Real(tables), Party(tables)
    try:
        yield real, other
    finally:
        other.close()
        real.close()


TABLE = EffectTable(queries=QUERIES, run=Run())


@pytest.mark.case("J-02", "J-03")
def test_a_take_over_waits_for_an_intent_that_is_being_committed(pair: tuple[Real, Party]) -> None:
    """Fails when the fence looks without a lock: then the intent is committed behind the take-over, and is not seen by it."""
    real, other = pair
    real.party.begin()
    assert real.party.run(TABLE.intend(WANTED, None, None))
    taking = Beside(lambda: take_over(other.connection, YOURS))
    waits(real.party, other)
    real.party.commit()
    taking.get()
    found = other.run(EffectTable(queries=QUERIES, run=AGAIN).read("charge"))
    assert found is not None


@pytest.mark.case("J-02", "J-03")
def test_who_comes_behind_a_take_over_waits_and_writes_nothing(pair: tuple[Real, Party]) -> None:
    """Fails when the fence is looked at in a statement of its own, before the write."""
    real, other = pair
    other.begin()
    take_over(other.connection, YOURS)
    writing = Beside(lambda: real.run(TABLE.intend(WANTED, None, None)))
    waits(other, real.party)
    other.commit()
    assert isinstance(writing.get(), OwnershipLost)
    assert real.effect() is None


def test_two_effects_of_a_job_side_by_side_do_not_wait_for_each_other(pair: tuple[Real, Party]) -> None:
    """Fails when the fence takes the row for itself alone."""
    real, other = pair
    real.party.begin()
    assert real.party.run(TABLE.intend(WANTED, None, None))
    assert other.run(TABLE.intend(effect_of(JOB, "mail"), None, None))
    real.party.commit()


def test_the_intent_is_durable_whatever_the_connection_asks_for(pair: tuple[Real, Party]) -> None:
    """Fails when the statement does not ask for a commit that waits for the log."""
    real, _ = pair
    real.party.connection.execute("SET synchronous_commit = off")
    real.party.begin()
    real.party.run(TABLE.intend(WANTED, None, None))
    assert real.party.fetch("SHOW synchronous_commit") == [("on",)]
    real.party.commit()


def test_a_checkpoint_is_durable_whatever_the_connection_asks_for(pair: tuple[Real, Party]) -> None:
    """Fails when the statement does not ask for a commit that waits for the log."""
    real, _ = pair
    real.party.connection.execute("SET synchronous_commit = off")
    real.party.begin()
    assert real.party.run(STORE.checkpoint_job(JOB, MINE, '{"rows": 3}'))
    assert real.party.fetch("SHOW synchronous_commit") == [("on",)]
    real.party.commit()
    assert real.party.fetch("SELECT checkpoint FROM packhorse.job WHERE id = %s", JOB) == [({"rows": 3},)]
    assert not real.party.run(STORE.checkpoint_job(JOB, YOURS, None))


def test_the_ledger_keeps_no_transaction_open(pair: tuple[Real, Party]) -> None:
    """Fails when what it has run is not committed, or holds the job's row from then on, also after an error."""
    real, _ = pair
    ledger = Ledger(settings_of(real.url, idle_ms=10_000, lock_ms=2_000))
    try:
        assert ledger.run(TABLE.intend(WANTED, None, None))
        assert real.effect() is not None
        take_over(real.party.connection, YOURS)
        with pytest.raises(OwnershipLost):
            ledger.run(TABLE.change("charge", 1, EffectState.ANSWERED))
        take_over(real.party.connection, MINE)
        assert ledger.run(TABLE.change("charge", 1, EffectState.ANSWERED))
    finally:
        ledger.close()


async def aexecuted(ground: Ground, steps: Steps[T]) -> T:
    return ground.run(steps)


async def apause(seconds: float) -> None:
    """Take no time."""


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_async_jobs_have_the_same_effects_and_steps(ground: Ground, kind: str) -> None:
    import asyncio

    side = Side({"n": 1})

    async def call(key: str) -> Any:
        return side.call(key)

    async def verify(key: str) -> Any:
        return side.verify(key)

    async def job(run: Run) -> Any:
        made = AsyncEffects(
            run, lambda steps: aexecuted(ground, steps), SYSTEM_CLOCK, queries=QUERIES, pause=apause
        )
        done = AsyncDoneSteps(run, lambda steps: aexecuted(ground, steps), queries=QUERIES, pause=apause)
        how: Any = (call, verify) if kind == "async def" else (side.call, side.verify)
        step = await done.step("read", lambda: how[0]("step"))
        return step, await made.call("charge", how[0], verify=how[1])

    assert asyncio.run(job(Run())) == ({"n": 1}, {"n": 1})
    assert asyncio.run(job(Run())) == ({"n": 1}, {"n": 1})
    assert side.calls == ["step", idempotency_key(JOB, "charge")]


def test_a_def_job_refuses_what_is_async(ground: Ground) -> None:
    async def call(*key: str) -> None: ...

    with pytest.raises(UsageError, match="async"):
        effects(ground).call("charge", call)
    with pytest.raises(UsageError, match="async"):
        steps(ground).step("read", call)
    assert ground.effect() is None


def test_the_schema_is_checked() -> None:
    from packhorse.core.errors import SettingsError
    from packhorse.processor.storing.sql import queries_for

    with pytest.raises(SettingsError):
        queries_for('x"; DROP TABLE job; --')
