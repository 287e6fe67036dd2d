"""What pages of jobs say: sums, the way of one, what an act is offered as, and how far it has come."""

from datetime import timedelta
from typing import Any

import pytest
from tests.support.console_facts import ID, NOON, act, inbox_row, job, quarantined
from tests.support.explained_jobs import NOW, PAIR, effect, of_job

from packhorse.console.facts import Act, Outcome, State
from packhorse.console.jobs.deciding import check_cancelled_as_seen
from packhorse.console.jobs.model import counts_of
from packhorse.console.pages import job_offers, job_stages, jobs
from packhorse.console.truth.jobs import JobFacts
from packhorse.console.truth.status import NOT_ASKED, Status, status_of
from packhorse.core.errors import OwnershipLost, UsageError
from packhorse.core.jobs import JobState
from packhorse.core.rights import Role, Standing
from packhorse.producer.jobs.reading import Transition

OPERATOR = Standing(name="olga", role=Role.OPERATOR)
VIEWER = Standing(name="vera", role=Role.VIEWER)


def change(before: str | None, after: str, *, minutes: int = 0, **given: Any) -> Transition:
    """Return a change of state, so many minutes after noon."""
    values = {"actor": "worker", "reason": None, "attempt": 1, "worker": None, **given}
    at = NOON + timedelta(minutes=minutes)
    return Transition(at=at, before=before and JobState(before), after=JobState(after), **values)  # type: ignore[arg-type]


def known(besides: dict[str, Any] | None = None, **given: Any) -> tuple[Status, JobFacts]:
    """Return the status of a job's message, and the job's facts."""
    status = status_of(of_job(besides, **given), NOT_ASKED)
    assert status.job is not None
    return status, status.job


def redriven(outcome: Outcome, job_state: str, *, state: State = State.REDRIVEN, sent: bool = True) -> Any:
    """Return how far a redrive of the job is said to be, whose message stands so."""
    at = NOON if sent else None
    held = quarantined(**PAIR, key=None, state=state, redrives=1, redrive_sent_at=at, reason="rejected")
    besides = {"inbox": (inbox_row(**PAIR, outcome=outcome),), "quarantined": (held,), "acts": (act(**PAIR),)}
    return job_stages.redrive_stages(*known(besides, state=job_state, reason="redriven"))


def test_counts_are_added_up_by_state_and_say_what_is_not_exact() -> None:
    """Fails when a sum that holds a number that is not exact is shown as exact, or jobs are left out of it."""
    open_ = [("quarantined", "a.A", 10), ("quarantined", "b.B", 3), ("uncertain", "b.B", 1)]
    tally = jobs.tally_of(counts_of(open_, most=10, succeeded=2, looked=4, look=5, believed=0))
    sums = [(each.state, each.jobs, each.exact, each.kind) for each in tally.sums]
    assert sums == [
        ("succeeded", 2, True, ""),
        ("quarantined", 13, False, "warn"),
        ("uncertain", 1, True, "bad"),
    ]
    assert tally.states == (JobState.QUARANTINED, JobState.UNCERTAIN)
    assert dict(tally.types) == {"a.A": ((10, False), None), "b.B": ((3, True), (1, True))}
    assert tally.said == "counted up to 10"


def test_the_way_of_a_job_has_its_changes_and_what_people_did_in_their_order() -> None:
    """Fails when an act of a person, or the reason of a change, is left out, or what is bad looks good."""
    facts = JobFacts(
        job=job(state="uncertain"),
        transitions=(
            change(None, "accepted", actor="app", attempt=0),
            change("accepted", "running", minutes=1, worker=ID),
            change("running", "running", minutes=2, attempt=2),
            change("running", "uncertain", minutes=3, reason="uncertain"),
            change("uncertain", "retrying", minutes=5, reason="redriven", actor="olga"),
        ),
    )
    decided = act(
        at=NOON + timedelta(minutes=4),
        act="job-resolve",
        detail={"effect": "charge", "verdict": "did-not-happen"},
    )
    way = jobs.way_of(facts, (decided,))
    assert [(each.kind, each.title) for each in way] == [
        ("", "Accepted"),
        ("", "Running"),
        ("", "Taken over by another worker"),
        ("bad", "Uncertain"),
        ("person", "An effect was decided by ann (role ops)"),
        ("warn", "Retrying: redriven"),
    ]
    assert way[1].said == ("by worker, attempt 1", f"worker {ID}")
    assert way[4].said == ("effect charge: did not happen", "fixed")
    assert (
        jobs.way_of(JobFacts(job=job()), (act(act="new-act", why=None),))[0].title
        == "new-act by ann (role ops)"
    )


@pytest.mark.parametrize(
    ("given", "besides", "said"),
    [
        ({}, {}, ("Accepted", "idle")),
        ({"state": "succeeded"}, {}, ("Succeeded", "")),
        ({"state": "running", "lease_until": NOON}, {}, ("Running, its lease is over", "bad")),
        (
            {"state": "running", "lease_until": NOW + timedelta(minutes=1), "cancel_asked_at": NOON},
            {},
            ("Running, asked to stop", "busy"),
        ),
        ({"state": "quarantined", "reason": "rejected"}, {}, ("Quarantined, rejected", "warn")),
        ({"state": "uncertain"}, {}, ("Uncertain, an outside effect may or may not have happened", "bad")),
        ({}, {"message_lost": True}, ("Accepted, its message is not known any more", "bad")),
    ],
)
def test_one_line_says_how_a_job_stands_and_what_is_wrong_stands_out(
    given: dict[str, Any], besides: dict[str, Any], said: tuple[str, str]
) -> None:
    """Fails when accepted is shown as done, or a job that nobody works on looks well."""
    assert jobs.headline_of(JobFacts(job=job(**given), **besides), NOW) == said


def test_an_effect_is_in_doubt_for_people_once_no_worker_deals_with_it() -> None:
    """Fails when a call on its way alarms somebody, or one that nobody knows of does not."""
    runs, rests = (
        JobFacts(job=job(state="running")),
        JobFacts(job=job(state="uncertain"), effects=(effect(),)),
    )
    begun = effect(state="intended")
    assert jobs.stands_of(begun, runs) == ("called, no answer on record yet", "busy")
    assert jobs.stands_of(begun, rests) == ("in doubt", "bad")
    assert jobs.stands_of(effect(state="did-not-happen"), rests) == ("did not happen", "")
    assert jobs.stands_of(effect(state="answered"), rests) == ("answered", "good")
    assert (jobs.decidable(rests), jobs.decidable(runs)) == (True, False)


@pytest.mark.parametrize(
    ("given", "share", "said"),
    [
        ({}, None, []),
        ({"progress_done": 7, "progress_total": 12}, 7 / 12, ["7 of 12 (58%)"]),
        (
            {"progress_done": 13, "progress_total": 12, "progress_text": "over"},
            1.0,
            ["13 of 12 (100%)", "over"],
        ),
        ({"progress_done": 3, "progress_total": None}, None, ["3"]),
        ({"progress_done": 0, "progress_total": 0}, None, ["0 of 0"]),
    ],
)
def test_progress_is_what_the_job_says_and_never_more_than_all(
    given: dict[str, Any], share: float | None, said: list[str]
) -> None:
    facts = JobFacts(job=job(state="running", **given))
    assert (jobs.share_of(facts), list(jobs.progress_words(facts))) == (share, said)


def test_to_cancel_what_runs_is_offered_as_asking_and_what_waits_as_done_at_once() -> None:
    """Fails when the two are told alike, the state that was shown does not go back, or a warning is left out."""
    waits = job_offers.cancel_offer(JobFacts(job=job()), NOW, OPERATOR)
    runs = job_offers.cancel_offer(
        JobFacts(
            job=job(state="running", lease_until=NOON, cancel_asked_at=NOON, cancel_asked_by="ann"),
            effects=(effect(),),
        ),
        NOW,
        VIEWER,
    )
    assert (waits.button, waits.hidden, waits.may, waits.warnings) == (
        "Cancel the job",
        {"seen": "accepted"},
        True,
        (),
    )
    assert "that is final" in waits.happens[-1].lower()
    assert (runs.button, runs.hidden, runs.may) == ("Ask it to stop", {"seen": "running"}, False)
    assert "not before" in runs.happens[-1]
    first, second, third = runs.warnings
    assert "ann has asked it to stop already" in first
    assert "lease is over" in second
    assert "1 outside effect may or may not have happened" in third
    with pytest.raises(OwnershipLost):
        job_offers.cancel_offer(JobFacts(job=job(state="succeeded")), NOW, OPERATOR)


@pytest.mark.case("O-02")
def test_what_was_shown_as_cancelled_at_once_is_not_asked_of_a_worker_instead() -> None:
    """Fails when the act is another one than the person was told of."""
    for seen in (None, JobState.ACCEPTED, JobState.RETRYING):
        check_cancelled_as_seen(job(), seen)
    check_cancelled_as_seen(job(state="running"), JobState.RUNNING)
    for seen, now in ((JobState.ACCEPTED, "running"), (JobState.RUNNING, "retrying")):
        with pytest.raises(OwnershipLost, match=f"was {seen} when you looked, and is {now} since"):
            check_cancelled_as_seen(job(state=now), seen)


def test_a_message_that_is_not_lost_is_not_offered_to_be_written_anew() -> None:
    assert job_offers.send_offer(JobFacts(job=job(), message_lost=True), OPERATOR).may
    with pytest.raises(UsageError, match="not lost"):
        job_offers.send_offer(JobFacts(job=job()), OPERATOR)


def test_what_follows_of_a_decision_is_told_and_the_calls_seen_go_back() -> None:
    """Fails when the last decision hides that the job goes on, or an earlier one says that it does."""
    one, two = effect("a", calls=3), effect("b")
    both = JobFacts(job=job(state="uncertain"), effects=(one, two))
    offer = job_offers.resolve_offer(both, one, OPERATOR)
    assert offer.hidden == {"effect": "a", "calls": 3}
    assert offer.happens[1].startswith("Still in doubt is 1 other effect")
    alone = JobFacts(job=job(state="uncertain"), effects=(one,))
    assert "goes on by itself" in job_offers.resolve_offer(alone, one, OPERATOR).happens[1]
    given_up = JobFacts(job=job(state="discarded"), effects=(one,))
    assert job_offers.resolve_offer(given_up, one, OPERATOR).happens[1] == "The job stays discarded."
    assert job_offers.resolve_path(both.job, effect("a/b&c")).endswith("/resolve?effect=a%2Fb%26c")


def test_that_a_call_did_not_happen_is_offered_once_its_own_time_is_over() -> None:
    """Fails when a call that may be on its way is said not to have happened."""
    facts = JobFacts(job=job(state="uncertain"))
    late = effect(intended_at=NOW - timedelta(seconds=36))
    fresh = effect(intended_at=NOW - timedelta(seconds=34))
    assert job_offers.no_before(facts, late, NOW) is None
    assert job_offers.no_before(facts, fresh, NOW) == NOW + timedelta(seconds=1)
    with pytest.raises(UsageError, match="its worker deals with"):
        job_offers.no_before(JobFacts(job=job(state="running")), late, NOW)


@pytest.mark.case("O-07")
def test_to_be_asked_to_stop_is_not_to_have_stopped() -> None:
    """Fails when a worker that was asked is shown as one that has stopped, or the other way round."""
    asked = {"cancel_asked_at": NOON, "cancel_asked_by": "olga", "cancel_why": "<b>"}
    runs = JobFacts(job=job(state="running", **asked))
    assert (job_stages.cancel_title(runs), job_stages.is_open(job_stages.cancel_stages(runs))) == (
        "Asked to stop",
        True,
    )
    assert "&lt;b&gt;" in job_stages.cancel_stages(runs)[0].said
    stopped = JobFacts(job=job(state="cancelled", **asked), transitions=(change("running", "cancelled"),))
    assert job_stages.cancel_title(stopped) == "Stopped by its worker"
    assert job_stages.cancel_stages(stopped)[1].is_done
    at_once = JobFacts(job=job(state="cancelled", **asked), transitions=(change("accepted", "cancelled"),))
    assert job_stages.cancel_title(at_once) == "Cancelled at once"
    late = JobFacts(job=job(state="succeeded", **asked))
    assert job_stages.cancel_title(late) == "Asked to stop, too late"
    assert job_stages.cancel_stages(late)[1].went_wrong
    again = JobFacts(job=job(state="retrying", **asked))
    assert job_stages.is_open(job_stages.cancel_stages(again))
    assert job_stages.cancel_title(JobFacts(job=job())) == "Nothing was asked"
    assert not job_stages.cancel_stages(JobFacts(job=job()))[0].is_done


@pytest.mark.case("O-07")
def test_a_redrive_that_is_asked_is_not_sent_and_one_that_is_sent_is_not_proved() -> None:
    """Fails when a stage is shown that the tables do not have, or a job that failed again looks done."""

    def done(stages: Any) -> list[bool]:
        return [each.is_done for each in stages]

    assert done(redriven(Outcome.RETRY, "retrying", sent=False)) == [True, False, False]
    assert done(redriven(Outcome.RETRY, "retrying")) == [True, True, False]
    assert done(redriven(Outcome.RETRY, "running")) == [True, True, False]
    proved = redriven(Outcome.DONE, "succeeded")
    assert (done(proved), proved[-1].went_wrong) == ([True, True, True], False)
    again = redriven(Outcome.QUARANTINE, "quarantined", state=State.QUARANTINED)
    assert (again[-1].name, again[-1].went_wrong) == ("It did not succeed", True)
    assert done(job_stages.redrive_stages(*known())) == [False]


@pytest.mark.parametrize(
    ("acts", "besides", "given", "done"),
    [
        ((), {}, {}, [False]),
        ((act(act="job-send"),), {"recorded": None}, {}, [True, False, False]),
        ((act(act="job-send"),), {}, {}, [True, True, False]),
        ((act(act="job-send"),), {"recorded": None}, {"state": "running"}, [True, True, True]),
    ],
)
def test_a_message_written_anew_is_proved_by_the_job_that_begins(
    acts: tuple[Act, ...], besides: dict[str, Any], given: dict[str, Any], done: list[bool]
) -> None:
    stages = job_stages.send_stages(*known({"acts": acts, **besides}, **given))
    assert [each.is_done for each in stages] == done


def test_what_is_said_of_an_effect_is_followed_until_the_job_has_an_outcome() -> None:
    """Fails when a job that waits for other decisions is said to go on, or an older redrive is taken for this one's."""
    decided = effect("a", state="happened", changed_by="olga", why="seen")
    acts = (act(**PAIR), act(act="job-resolve", detail={"effect": "a"}))
    held = quarantined(**PAIR, key=None, state=State.QUARANTINED, redrives=1, redrive_sent_at=None)
    base: dict[str, Any] = {"inbox": (inbox_row(**PAIR, outcome=Outcome.QUARANTINE),), "quarantined": (held,)}

    def stages(doubt: tuple[str, ...], history: tuple[Act, ...]) -> list[tuple[str, bool]]:
        effects = (*(effect(key) for key in doubt), decided)
        status, facts = known({**base, "effects": effects, "acts": history}, state="uncertain")
        return [(each.name, each.is_done) for each in job_stages.resolve_stages(status, facts, decided)]

    assert stages(("b",), acts) == [("Said: it happened", True), ("Asked: the job goes on", False)]
    assert stages((), acts) == [("Said: it happened", True)]
    after = (*acts, act(**PAIR))
    assert [name for name, _ in stages((), after)][:2] == ["Said: it happened", "Asked"]
    assert not job_stages.resolve_stages(*known(), effect())[0].is_done
    answered = job_stages.resolve_stages(*known(), effect(state="answered"))
    assert answered[0].name == "Answered"
