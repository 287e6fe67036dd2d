"""Jobs as they are declared, decided and counted; pure."""

from typing import Any
from uuid import UUID

import pytest
from tests.support.accounts import AccountOpened, AmountMoved

from packhorse.core.errors import OwnershipLost, UsageError
from packhorse.core.jobs import JobState
from packhorse.processor import AsyncJobContext, Context, JobContext, Processor, Retry
from packhorse.processor.jobs.deciding import LOOK_AGAIN, End, JobRow, Wait, not_had, state_after
from packhorse.processor.jobs.runs import JobRun, Phase, Runs, abandon
from packhorse.processor.jobs.values import BadValue, json_of
from packhorse.processor.member.rationing import Ration, Rations, job_lanes
from packhorse.processor.outcomes import Outcome, Reason

JOB, TOKEN = UUID(int=1), UUID(int=2)


def body(job: AmountMoved, ctx: JobContext) -> None: ...


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"timeout": 0}, "more than zero"),
        ({"deadline": "0s"}, r": deadline='0s' is not allowed: more than zero"),
        ({"deadline": "soon"}, ": deadline 'soon' is no duration"),
        ({"lanes": 0}, "from 1"),
        ({"quick": 1}, "True or False"),
        ({"keep": "1s"}, "60 s or more"),
        ({"keep": "1d", "keep_result": "2d"}, "keep_result is longer than keep"),
        ({"priorities": ["urgent"]}, "'high', 'normal', 'low'"),
        ({"priorities": []}, "'high', 'normal', 'low'"),
        ({"after_deadline": "drop"}, "'quarantine' or 'expire'"),
        ({"contact": "Ann Smith"}, "payments-oncall"),
        ({"retry": Retry(budget=0)}, "more than zero"),
        ({"ordering": "key"}, "ordering= is no option"),
        ({"isolation": "group"}, "isolation= is no option"),
    ],
)
def test_what_can_not_be_declared_of_a_job_is_an_error_where_it_is_declared(options: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Processor("g").job(AmountMoved, **options)(body)


def test_a_body_takes_the_context_of_its_kind() -> None:
    def wrong(job: AmountMoved, ctx: Context) -> None: ...
    def other(job: AmountMoved, ctx: AsyncJobContext) -> None: ...

    for function, names in ((wrong, "Context"), (other, "AsyncJobContext")):
        with pytest.raises(UsageError, match=f"asks for {names}"):
            Processor("g").job(AmountMoved)(function)  # type: ignore[arg-type]


def test_a_type_has_one_body_or_one_handler() -> None:
    app = Processor("g")
    app.job(AmountMoved)(body)
    with pytest.raises(UsageError, match="already"):
        app.handler(AmountMoved)(lambda message, ctx: None)


def test_the_topics_of_a_job_are_those_of_its_priorities() -> None:
    app = Processor("g")
    app.job(AmountMoved, priorities=["low", "high"])(body)
    topic = AmountMoved.__packhorse__.topic
    assert app.topics == (f"{topic}.high", f"{topic}.low")
    assert app.ranks == {f"{topic}.high": -1, f"{topic}.low": 1}
    assert set(app.tiers(f"{topic}.low")) == {"0s", "5s", "1m", "10m"}


def row(state: JobState, **more: Any) -> JobRow:
    known: dict[str, Any] = {
        "group": "g",
        "lease_left": None,
        "cancel_asked": False,
        "token": None,
        "one_running": None,
    }
    return JobRow(JOB, state, **{**known, **more})


@pytest.mark.parametrize("lease", [20.0, 0.4, 0.0])
def test_a_job_of_another_worker_is_looked_at_again_before_its_lease_is_over(lease: float) -> None:
    found = not_had(row(JobState.RUNNING, lease_left=lease, token=TOKEN), "g")
    assert isinstance(found, Wait)
    assert 0 < found.seconds <= LOOK_AGAIN


@pytest.mark.parametrize("more", [{"cancel_asked": True}, {"expired": True}])
def test_a_lease_is_not_cut_short_for_a_cancelling_or_an_expiry(more: dict[str, bool]) -> None:
    """The worker that runs it is asked to stop; its message is not decided beside it."""
    assert isinstance(not_had(row(JobState.RUNNING, lease_left=5.0, **more), "g"), Wait)
    over = not_had(row(JobState.RUNNING, lease_left=-1.0, **more), "g")
    assert isinstance(over, End)
    assert state_after(over.outcome, over.reason) in {JobState.CANCELLED, JobState.EXPIRED}


@pytest.mark.parametrize(
    "state", [s for s in JobState if s not in {JobState.ACCEPTED, JobState.RUNNING, JobState.RETRYING}]
)
def test_what_is_over_or_waits_for_a_person_is_no_work(state: JobState) -> None:
    found = not_had(row(state), "g")
    assert isinstance(found, End)
    assert found.outcome is Outcome.SKIPPED


def test_a_job_of_another_group_and_one_that_is_not_there_are_told_apart() -> None:
    other = not_had(row(JobState.ACCEPTED, group="h"), "g")
    assert isinstance(other, End)
    assert (other.outcome, other.reason) == (Outcome.SKIPPED, Reason.OTHER_GROUP.value)
    missing = not_had(None, "g")
    assert isinstance(missing, End)
    assert (missing.outcome, missing.reason) == (Outcome.QUARANTINE, Reason.NO_JOB.value)


def test_a_run_that_is_left_by_its_lane_is_lost_and_its_lease_is_nobodys() -> None:
    runs, run = Runs(), JobRun(JOB, TOKEN, 1)
    runs.enter(run)
    abandon(run)
    assert runs.held() == []
    assert runs.of(JOB) is run
    assert run.phase is Phase.IDLE
    with pytest.raises(OwnershipLost, match="taken over"):
        run.check_held()


def test_a_later_run_of_a_job_is_not_forgotten_with_an_earlier_one() -> None:
    runs, first, second = Runs(), JobRun(JOB, TOKEN, 1), JobRun(JOB, UUID(int=3), 2)
    runs.enter(first)
    runs.enter(second)
    runs.forget([first])
    assert runs.of(JOB) is second


def test_runs_that_begin_while_the_process_ends_are_asked_to_stop() -> None:
    runs, early, late = Runs(), JobRun(JOB, TOKEN, 1), JobRun(UUID(int=9), TOKEN, 1)
    runs.enter(early)
    runs.stop()
    runs.enter(late)
    assert (early.cancel, late.cancel) == ("stopping", "stopping")


@pytest.mark.parametrize("value", [object(), {"x": float("nan")}, "a\0b", {1, 2}, "\ud800"])
def test_what_is_no_json_is_refused_without_its_value(value: object) -> None:
    with pytest.raises(BadValue) as error:
        json_of(value, what="the result", most=100)
    assert "the result" in str(error.value)
    assert repr(value) not in str(error.value)


def test_text_that_only_looks_like_an_escape_is_kept() -> None:
    assert json_of(r"a\u0000", what="the result", most=100) == r'"a\\u0000"'


def test_what_is_too_large_names_size_and_limit() -> None:
    with pytest.raises(BadValue, match="102 bytes as JSON, the limit is 100"):
        json_of("x" * 100, what="checkpoint", most=100)


@pytest.fixture
def two() -> Processor:
    app = Processor("g")
    app.job(AmountMoved)(body)
    app.job(AccountOpened, lanes=2)(lambda job, ctx: None)
    return app


def test_types_of_long_jobs_leave_a_lane_to_others_unless_they_say_how_many_they_have(two: Processor) -> None:
    assert sorted(job_lanes(two.all_handlers, 5).each.values()) == [2, 4]
    assert sorted(job_lanes(two.all_handlers, 1).each.values()) == [1, 1]
    alone = Processor("g")
    alone.job(AmountMoved)(body)
    assert job_lanes(alone.all_handlers, 5) == Ration()


def test_long_jobs_of_several_types_leave_a_lane_together_where_there_is_short_work() -> None:
    """Fails when each may have all lanes but one: two types would have them all, and a message waits for hours."""
    ration = Ration(each={"declared": 1}, together={"a", "b"}, most=3)
    rations = Rations(ration)
    for number, gate in enumerate(["a", "b", "declared"]):
        rations.begun(number, gate)
    assert rations.full == {"declared"}
    rations.begun(3, "a")
    assert rations.full == {"declared", "a", "b"}
    assert rations.ended(1)
    assert rations.full == {"declared"}
    app = Processor("g")
    app.job(AmountMoved)(body)
    app.handler(AccountOpened)(lambda message, ctx: None)
    found = job_lanes(app.all_handlers, 4)
    assert (len(found.together), found.most, found.each) == (1, 3, {})


def test_a_ration_that_is_used_up_is_had_again_when_a_chunk_ends() -> None:
    rations = Rations(Ration(each={"long": 2}))
    rations.begun(1, "long")
    rations.begun(2, "short")
    rations.begun(3, None)
    assert rations.full == frozenset()
    rations.begun(4, "long")
    assert rations.full == {"long"}
    assert not rations.ended(2)
    assert rations.ended(1)
    assert rations.full == frozenset()
    assert not rations.ended(1)
