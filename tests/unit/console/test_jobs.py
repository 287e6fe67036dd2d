"""Decisions about jobs, their filters, pages and counts."""

from datetime import timedelta
from uuid import UUID

import pytest
from tests.support.console_facts import ID, NOON, job
from tests.support.explained_jobs import NOW, OTHER, effect, of_job

from packhorse.console.jobs.deciding import (
    Verdict,
    cancelling_words,
    check_cancellable,
    check_redrivable,
    check_resolvable,
    chosen_effect,
    redrive_warnings,
)
from packhorse.console.jobs.model import Filter, Position, counts_of, page_of, position_from
from packhorse.console.jobs.shell import answer_from
from packhorse.console.truth.jobs import job_standing
from packhorse.core.errors import OwnershipLost, UnknownId, UsageError
from packhorse.core.jobs import JobState

ENDED = ("succeeded", "cancelled", "expired", "discarded")


@pytest.mark.parametrize("state", JobState)
def test_what_can_be_cancelled_is_what_waits_or_runs(state: JobState) -> None:
    """Fails when a state is let through, or refused without the act that ends it."""
    one = job(state=state)
    if state in {"accepted", "retrying", "running"}:
        check_cancellable(one)
    elif state in ENDED:
        with pytest.raises(OwnershipLost, match=f"is {state} already, since 2026-08-01T12:00:00Z by app"):
            check_cancellable(one)
    else:
        with pytest.raises(UsageError, match=f"packhorse quarantine discard {ID}"):
            check_cancellable(one)


@pytest.mark.parametrize("state", JobState)
def test_what_can_be_sent_back_is_what_rests(state: JobState) -> None:
    one = job(state=state)
    if state in {"quarantined", "uncertain"}:
        check_redrivable(one)
        return
    with pytest.raises((UsageError, OwnershipLost), match="nothing was done"):
        check_redrivable(one)


def test_a_job_that_was_sent_back_says_by_whom() -> None:
    with pytest.raises(OwnershipLost, match="already, by ann"):
        check_redrivable(job(state="retrying", reason="redriven", changed_by="ann"))


@pytest.mark.case("J-08")
def test_who_cancels_is_told_what_it_comes_to_and_which_effects_stay_in_doubt() -> None:
    """Fails when a job that waits for its next run, which would ask the outside system, is taken away without a word of it."""
    (waits,) = cancelling_words(job(state="accepted"), ())
    assert "taken back at once" in waits
    runs, doubt = cancelling_words(job(state="running"), (effect(key="mail-1"), effect(key="mail-2")))
    assert "is asked to stop" in runs
    assert "(mail-1, mail-2): once it is cancelled no run asks" in doubt


def test_who_sends_back_what_has_expired_is_told_that_no_run_begins() -> None:
    """Fails when the order is taken without a word: the job would end as expired, for good."""
    late = job(state="quarantined", expires_at=NOW - timedelta(hours=1))
    (told,) = redrive_warnings(late, NOW)
    assert "has passed: no run begins" in told
    early = job(state="quarantined", expires_at=NOW + timedelta(hours=1))
    assert redrive_warnings(early, NOW) == ()


def test_the_effect_that_is_meant_is_the_only_one_or_is_named() -> None:
    """Fails when one of several is guessed, or what somebody decided is decided again."""
    one, two = effect("a"), effect("b")
    assert chosen_effect(ID, (one,), None, None) is one
    assert chosen_effect(ID, (one, two), two, "b") is two
    with pytest.raises(UsageError, match="--effect: a, b"):
        chosen_effect(ID, (one, two), None, None)
    with pytest.raises(UnknownId, match="no effect in doubt"):
        chosen_effect(ID, (), None, None)
    with pytest.raises(UnknownId, match="has no effect c"):
        chosen_effect(ID, (one,), None, "c")
    with pytest.raises(OwnershipLost, match="it is happened by ann since"):
        chosen_effect(ID, (), effect("a", state="happened", changed_by="ann"), "a")


def test_a_no_counts_only_after_the_calls_own_time_out() -> None:
    """Fails when a person may say that nothing happened while the call may still be on its way."""
    one, late = job(state="uncertain"), effect(intended_at=NOW, timeout=30)
    check_resolvable(one, late, Verdict.HAPPENED, calls=1, now=NOW)
    with pytest.raises(UsageError, match="may be on its way until 2026-08-01T13:00:35Z"):
        check_resolvable(one, late, Verdict.DID_NOT_HAPPEN, calls=1, now=NOW + timedelta(seconds=34))
    check_resolvable(one, late, Verdict.DID_NOT_HAPPEN, calls=1, now=NOW + timedelta(seconds=35))


def test_nobody_decides_what_a_worker_has_in_hand_or_what_was_called_again() -> None:
    with pytest.raises(UsageError, match="its worker deals with effect charge itself"):
        check_resolvable(job(state="running"), effect(), Verdict.HAPPENED, calls=1, now=NOW)
    with pytest.raises(OwnershipLost, match="called 2 times by now, and 1 when you looked"):
        check_resolvable(job(state="uncertain"), effect(calls=2), Verdict.HAPPENED, calls=1, now=NOW)


@pytest.mark.parametrize(
    ("given", "standing"),
    [
        ({"known": {"due_at": NOW + timedelta(hours=1)}}, "job accepted, waits for its time"),
        ({"known": {"due_at": NOW}}, "job accepted, its time has come"),
        ({}, "job accepted"),
        ({"known": {"runs_instead": OTHER}}, "job accepted, another of its name runs"),
        ({"state": "running", "lease_until": NOW + timedelta(seconds=1)}, "job running"),
        ({"state": "running", "lease_until": NOW}, "job running, its lease is over"),
        (
            {"state": "running", "lease_until": NOW, "cancel_asked_at": NOW},
            "job running, its lease is over, asked to stop",
        ),
        ({"state": "quarantined", "reason": "permanent"}, "job quarantined, permanent"),
        ({"state": "succeeded"}, "job succeeded"),
    ],
)
@pytest.mark.case("X-02")
def test_a_standing_says_no_more_than_is_known(given: dict[str, object], standing: str) -> None:
    """Fails when a lease that is over is told as running, or what waits for its time as what waits for a worker."""
    facts = of_job(**given).job  # type: ignore[arg-type]
    assert facts is not None
    assert job_standing(facts, NOW) == standing


def test_a_list_is_found_by_the_index_where_all_that_is_wanted_is_in_it() -> None:
    """Fails when jobs that have succeeded are left out, or all are looked through for those that are stuck."""
    assert Filter().indexed == ()
    assert Filter(states=frozenset({JobState.SUCCEEDED, JobState.RUNNING})).indexed == ()
    assert Filter(states=frozenset({JobState.RUNNING})).indexed == ("running",)
    long = timedelta(minutes=5)
    assert Filter(stuck=long).indexed == ("accepted", "running", "uncertain")
    assert Filter(stuck=long, states=frozenset(JobState)).indexed == ("accepted", "running", "uncertain")
    with pytest.raises(UsageError, match="not called stuck"):
        Filter(stuck=long, states=frozenset({JobState.SUCCEEDED}))
    with pytest.raises(UsageError, match="--text"):
        Filter(text="")
    with pytest.raises(UsageError, match="is not after --since"):
        Filter(since=NOON, until=NOON)


def test_a_time_that_no_id_can_have_bounds_nothing() -> None:
    assert Filter(since=NOON.replace(year=1970, month=1, day=1)).ids == (None, None)
    low, high = Filter(since=NOON, until=NOW).ids
    assert low is not None
    assert high is not None
    assert low < UUID(int=low.int + 1) < high


def test_a_page_goes_on_behind_its_last_job() -> None:
    rows = [job(id=UUID(int=n)) for n in (3, 2, 1)]
    page = page_of(rows, limit=2)
    assert page.next == Position(id=UUID(int=2))
    assert position_from(page.next.token()) == page.next
    assert page_of(rows, limit=3).next is None
    with pytest.raises(UsageError, match="is no position"):
        position_from("x")


def test_counts_say_which_of_them_are_not_exact() -> None:
    """Fails when a bound or the planner's belief is told as a count."""
    few = counts_of([("running", "a", 2)], most=10, succeeded=3, looked=5, look=10, believed=99)
    assert [(each.state, each.jobs, each.exact) for each in few.counts] == [
        ("running", 2, True),
        ("succeeded", 3, True),
    ]
    assert few.said is None
    many = counts_of([("running", "a", 9)], most=10, succeeded=4, looked=10, look=10, believed=99)
    assert [(each.jobs, each.exact, each.estimated) for each in many.counts] == [
        (9, True, False),
        (90, False, True),
    ]
    assert many.said is not None
    assert "planner" in many.said


@pytest.mark.parametrize(("running", "believed"), [(10, 1_000_000), (9, 0)])
def test_few_that_have_succeeded_beside_very_many_are_told_as_a_bound(running: int, believed: int) -> None:
    """Fails when what is not counted to its end is taken from a belief, and the rest is told as jobs that have succeeded."""
    open_ = [("running", "a", running)]
    found = counts_of(open_, most=10, succeeded=0, looked=10, look=10, believed=believed)
    done = next(each for each in found.counts if each.state == "succeeded")
    assert (done.jobs, done.exact, done.estimated) == (0, False, False)
    assert found.said is not None
    assert "newest 10 jobs" in found.said


@pytest.mark.parametrize("text", ["{secret", "NaN", "[" * 100_000])
def test_an_answer_that_is_no_json_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(UsageError) as error:
        answer_from(text)
    assert text not in str(error.value)
