"""The way of a message as a timeline: its order, every outcome, and nothing that is not a fact."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.support.console_facts import NOON, act, hold, inbox_row, outbox_row, quarantined
from tests.support.explained import (
    HEAD,
    MEMBER,
    MESSAGES,
    MINUTE,
    NOW,
    OTHER,
    PAIR,
    PLACE,
    VIEWER,
    G,
    T,
    around,
    fixed,
    redriven,
    resting,
    waiting,
)

from packhorse.console.facts import Facts, FailedAttempt, Outcome, State
from packhorse.console.pages.steps import Mark, Step
from packhorse.console.pages.way import MOVING, RESTING, Branch, Mood, Way, way_of
from packhorse.console.pages.wording import first, told_of
from packhorse.console.truth.explaining import explain
from packhorse.console.truth.groups import Redrive, group_status
from packhorse.console.truth.status import NOT_ASKED, status_of

pytestmark = pytest.mark.case("X-02")
UNKNOWN = [name for name in MESSAGES if name.startswith("unknown")]


def way(name: str) -> Way:
    known, search = MESSAGES[name]
    return way_of(status_of(known, search))


def names(steps: tuple[Step, ...]) -> list[str]:
    return [step.name for step in steps]


def only(facts: Facts) -> Branch:
    (branch,) = way_of(status_of(facts, NOT_ASKED)).branches
    return branch


@pytest.mark.parametrize("name", MESSAGES)
def test_what_was_stands_in_the_order_of_its_times_and_what_comes_next_stands_last(name: str) -> None:
    """Fails when an act or attempt is told before what came before it, or something follows what has not happened yet."""
    found = way(name)
    for steps in (found.trunk, *(branch.steps for branch in found.branches)):
        past = [step for step in steps if step.mark is not Mark.NEXT]
        assert steps == (*past, *(step for step in steps if step.mark is Mark.NEXT))
        times = [step.at for step in past if step.at is not None]
        assert times == sorted(times)


@pytest.mark.case("X-01")
@pytest.mark.parametrize("name", UNKNOWN)
def test_an_id_that_nobody_knows_has_no_way_and_nothing_comes_next(name: str) -> None:
    """Fails when an id that was never committed looks as if something would come of it."""
    found = way(name)
    assert (found.trunk, found.branches, found.mood) == ((), (), Mood.IDLE)


@pytest.mark.parametrize("name", MESSAGES)
def test_each_branch_has_the_words_of_its_own_group(name: str) -> None:
    """Fails when the way of one group stands beside the words of another."""
    known, search = MESSAGES[name]
    status = status_of(known, search)
    explanation = explain(status, VIEWER, schema="packhorse")
    told = told_of(way_of(status), explanation, is_job=status.job is not None, here="/messages/x")
    assert told.message.about == f"message {status.id}"
    assert [each.words.about for each in told.branches] == [
        f"group {each.branch.group}, topic {each.branch.topic}" for each in told.branches
    ]
    assert (told.job is not None) is (status.job is not None and status.known)


@pytest.mark.parametrize(
    ("name", "last", "mood", "look_again"),
    [
        ("done", "Done", Mood.GOOD, None),
        ("done after a redrive", "Done, after a redrive", Mood.GOOD, None),
        ("skipped, expired", "Skipped", Mood.GOOD, None),
        ("skipped by the handler", "Skipped", Mood.GOOD, None),
        ("discarded", "Discarded", Mood.IDLE, None),
        ("discarded and erased", "Erased", Mood.IDLE, None),
        ("retry, due soon", "Attempt 3", Mood.WARN, MOVING),
        ("parked behind a retry", "Its turn", Mood.WARN, RESTING),
        ("parked, the key gone", "Its turn", Mood.WARN, RESTING),
        ("quarantine", "A person decides", Mood.WARN, RESTING),
        ("quarantine, a member of a redrive", "Its turn in a redrive", Mood.WARN, RESTING),
        ("uncertain", "A person decides", Mood.BAD, RESTING),
        ("redrive asked", "Attempt 6", Mood.BUSY, MOVING),
        ("redrive sent", "Attempt 6", Mood.BUSY, MOVING),
        ("redriven, failed, goes again", "Attempt 7", Mood.BUSY, MOVING),
        ("tried, no outcome on record", "No outcome on record", Mood.WARN, RESTING),
        ("published, not delivered yet", "Delivery", Mood.BUSY, MOVING),
        ("published, its place is not known", "Whether it was delivered", Mood.IDLE, RESTING),
        ("published, below the watermark", "Read before", Mood.GOOD, None),
        ("job: uncertain", "A person decides", Mood.BAD, RESTING),
        ("job: succeeded", "Done", Mood.GOOD, None),
    ],
)
def test_each_outcome_has_its_end_its_colour_and_its_pace(
    name: str, last: str, mood: Mood, look_again: int | None
) -> None:
    """Fails when a page stands still while something moves, asks for ever after the end, or is calm about what a person has to see."""
    found = way(name)
    assert (found.branches[0].steps[-1].name, found.mood, found.look_again) == (last, mood, look_again)


@pytest.mark.parametrize(
    ("name", "steps", "mood", "look_again"),
    [
        ("recorded, a relay is at work", ["Recorded", "Publication"], Mood.BUSY, MOVING),
        ("held for a person", ["Recorded", "Kept back by hold 12", "Release of the hold"], Mood.BAD, RESTING),
        (
            "held until the broker is mended",
            ["Recorded", "Kept back by hold 12", "Release of the hold"],
            Mood.BUSY,
            RESTING,
        ),
        (
            "given up before it was published",
            ["Recorded", "Given up before it was published"],
            Mood.IDLE,
            None,
        ),
        ("published, groups elsewhere", ["Recorded", "Published"], Mood.IDLE, RESTING),
        ("edited: the copy", ["Made as an edited copy", "Published"], Mood.GOOD, None),
        ("job: waits for its time", ["Outbox row", "Publication"], Mood.BUSY, MOVING),
        ("job: cancelled", ["Recorded", "Published"], Mood.IDLE, None),
        ("job: running", ["Recorded", "Published"], Mood.BUSY, MOVING),
    ],
)
def test_the_way_to_the_topic(name: str, steps: list[str], mood: Mood, look_again: int | None) -> None:
    """Fails when a message that is held, given up or not written yet looks published."""
    found = way(name)
    assert (names(found.trunk), found.mood, found.look_again) == (steps, mood, look_again)
    marks = {step.name: step.mark for step in found.trunk}
    assert marks.get("Publication", Mark.NEXT) is Mark.NEXT
    assert marks.get("Outbox row", Mark.NEXT) is Mark.NEXT


def test_a_row_that_was_written_twice_says_so_and_one_that_may_go_again_too() -> None:
    (step, _) = way("recorded twice").trunk
    assert (step.mark, step.said[1][:13]) == (Mark.WARN, "2 outbox rows")
    facts = fixed(recorded=outbox_row(), holds=(hold(code="republish"),))
    kept = way_of(status_of(facts, NOT_ASKED)).trunk[1]
    assert "it may have been published before" in kept.said


@pytest.mark.case("O-07")
@pytest.mark.parametrize(
    ("facts", "done", "said"),
    [
        (redriven(), [True, False, False], "a running processor of the group sends the original bytes"),
        (redriven(sent=NOW), [True, True, False], "by the outcome of its next attempt, good or bad"),
        (redriven(sent=NOW, attempt=7), [True, True, False], "it has failed again; attempt 7 is next"),
    ],
)
def test_asked_sent_and_proved_are_three_things(facts: Facts, done: list[bool], said: str) -> None:
    """Fails when an order counts as sent, or a confirmed copy as proof."""
    (step,) = [step for step in only(facts).steps if step.stages]
    assert (step.name, step.by, step.why) == ("Redrive asked for", "ann (role ops)", "fixed")
    assert [stage.is_done for stage in step.stages] == done
    assert next(stage.said for stage in step.stages if not stage.is_done) == said


@pytest.mark.case("O-07")
@pytest.mark.parametrize(
    ("outcome", "state", "wrong"),
    [
        (Outcome.DONE, State.REDRIVEN, False),
        (Outcome.QUARANTINE, State.QUARANTINED, True),
        (Outcome.DISCARDED, State.DISCARDED, False),
    ],
)
def test_a_proof_is_an_outcome_and_may_be_a_bad_one(outcome: Outcome, state: State, wrong: bool) -> None:
    """Fails when a redrive that failed again looks like one that went well."""
    facts = fixed(
        inbox=(inbox_row(outcome=outcome, attempt=7, changed_at=NOW),),
        quarantined=(quarantined(state=state, redrives=1, redrive_sent_at=NOW),),
        acts=(act(detail={"attempt": 6}),),
    )
    (step,) = [step for step in only(facts).steps if step.stages]
    proof = step.stages[-1]
    assert (proof.is_done, proof.went_wrong) == (True, wrong)
    assert outcome.value in proof.said


@pytest.mark.case("O-08")
def test_a_message_that_goes_round_has_one_history() -> None:
    """Fails when the attempts of before a redrive are lost, an earlier redrive borrows the stages of the last, or the order is another."""

    def failed(number: int, minute: int) -> FailedAttempt:
        at = NOON + minute * MINUTE
        return FailedAttempt(**PAIR, attempt=number, failed_at=at, reason="failed", error="E", due_at=None)

    facts = fixed(
        inbox=(inbox_row(outcome=Outcome.QUARANTINE, attempt=3, reason="attempts-exhausted"),),
        attempts=(failed(1, 0), failed(2, 12), failed(3, 22)),
        quarantined=(quarantined(redrives=2, attempts=3, quarantined_at=NOON + 23 * MINUTE),),
        acts=(
            act(at=NOON + 10 * MINUTE, why="try", detail={"attempt": 2}),
            act(at=NOON + 20 * MINUTE, why="fixed", actor="bob (role ops)", detail={"attempt": 3}),
        ),
    )
    steps = only(facts).steps
    assert names(steps) == [
        "Delivered",
        "Attempt 1 failed",
        "Redrive asked for",
        "Attempt 2 failed",
        "Redrive asked for",
        "Attempt 3 failed",
        "Came to quarantine, the last time",
        "A person decides",
    ]
    assert [(step.why, bool(step.stages)) for step in steps if step.by] == [("try", False), ("fixed", True)]


def test_a_retry_says_where_its_copy_stands_and_what_besides_time_holds_it() -> None:
    """Fails when a pause, or that nobody works, is left out of what comes next."""
    last = only(MESSAGES["retry, paused by a person, its handler stopped"][0]).steps[-1]
    assert last.said[0] == "in tier 5m; its copy is at 2/7, 3 before it"
    assert last.said[1].startswith("partition 2 of airline.aircraft is paused by ann")
    gone = only(MESSAGES["retry, overdue, nobody works"][0]).steps[-1]
    assert gone.said == (
        "in tier 5m; its copy is not known to be sent, a running processor sends it",
        "no processor of the group is alive",
    )
    assert only(waiting(around=around())).steps[-1].at == NOW + 4 * MINUTE, "the inbox row says when"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("parked behind quarantine", f"when the head, message {HEAD}, is finished, and what waits before it"),
        ("parked, the key paused", "once somebody lets its key go on"),
        ("parked, drained now", "box:42 runs the followers of its key now, in order"),
        ("parked, about to go on", "the head is finished: a running processor looks, mostly within seconds"),
        (
            "parked, the key gone",
            "its key is not parked any more: a running processor runs it at its next look",
        ),
    ],
)
def test_a_follower_says_what_it_waits_for(name: str, said: str) -> None:
    assert only(MESSAGES[name][0]).steps[-1].said == (said,)


def test_runs_are_told_once_something_of_them_has_happened() -> None:
    """Fails when a preview that nobody has confirmed stands in the way of a message, or a run that is underway does not."""
    running = replace(MEMBER, state="asked", asked_at=NOW - MINUTE)
    steps = only(resting(around=around(memberships=(running,)))).steps
    (step,) = [step for step in steps if step.name == "Member of a redrive"]
    assert (step.said, step.by) == (
        ("redrive 7, which is running; here it is asked",),
        "bob (role ops)",
    )
    previewed = replace(MEMBER, run_state="previewed")
    assert "Member of a redrive" not in names(only(resting(around=around(memberships=(previewed,)))).steps)
    assert names(way("replayed, done once more").branches[0].steps)[-1] == "Done once more by a replay"


def test_acts_are_steps_of_their_group_and_those_of_none_stand_on_the_way_to_the_topic() -> None:
    """Fails when an act of one group is told of another, or one without a group is told of nobody."""
    acts = (
        act(act="unmask", why="a customer asks", at=NOON + MINUTE),
        act(act="relay release", group=None, topic=None, why="mended"),
        act(act="discard", group="billing"),
    )
    found = way_of(status_of(resting(acts=acts), NOT_ASKED))
    assert names(found.trunk) == ["Recorded", "Relay release", "Given up", "Published"]
    assert "Personal fields shown to a person" in names(found.branches[0].steps)


def test_the_branch_that_was_asked_for_comes_first() -> None:
    known, search = MESSAGES["done by one group, on its way to another"]
    status = status_of(known, search)
    told = told_of(
        way_of(status), explain(status, VIEWER, schema="packhorse"), is_job=False, here="/messages/x"
    )
    assert [each.branch.group for each in first(told, None, None)] == ["figures", "billing"]
    assert [each.branch.group for each in first(told, "billing", T)] == ["billing", "figures"]
    assert [each.branch.group for each in first(told, "nobody", None)] == ["figures", "billing"]


def test_a_button_to_the_page_itself_is_left_out_but_the_search_is_not() -> None:
    """Fails when "look" on a message's page leads to that page, or nothing leads to a look into the topic."""
    known, search = MESSAGES["published, its place is not known"]
    status = status_of(known, search)
    told = told_of(
        way_of(status),
        explain(status, VIEWER, schema="packhorse"),
        is_job=False,
        here=f"/messages/{status.id}",
    )
    leads = [each.lead for each in told.branches[0].words.can if each.lead is not None]
    assert [lead.href for lead in leads] == [f"/messages/{status.id}?search=true"]


def test_a_place_is_told_once_it_is_known_and_a_redrive_without_a_time_all_the_same() -> None:
    facts = fixed(
        inbox=(inbox_row(outcome=Outcome.RETRY, attempt=7),),
        quarantined=(quarantined(state=State.REDRIVEN, redrives=1),),
        acts=(act(detail={"attempt": 6}),),
    )
    status = status_of(facts, NOT_ASKED)
    assert group_status(facts, G, T).redrive is Redrive.SENT
    (step,) = [step for step in way_of(status).branches[0].steps if step.stages]
    assert step.stages[1].said == "for its attempt has run"
    published = way_of(status).trunk[-1]
    assert published.said == (f"stands at {PLACE.topic}/{PLACE.partition}/{PLACE.offset}",)


def test_what_became_of_an_edited_message_names_its_copy() -> None:
    steps = way("edited: the parent").branches[0].steps
    assert steps[-1].said[-1] == f"its edited copy, message {OTHER}, stands in its place"
    until = [text for step in way("discarded").branches[0].steps for text in step.said if "had back" in text]
    assert until == ["it may be had back until 2026-10-30 12:00:00 UTC, or longer"]


def test_a_step_that_put_itself_off_is_no_failure() -> None:
    later: dict[str, Any] = {"reason": "later", "error": None}
    attempt = FailedAttempt(**PAIR, attempt=1, failed_at=NOON + timedelta(seconds=1), due_at=None, **later)
    steps = only(waiting(attempts=(attempt,))).steps
    assert (steps[1].name, steps[1].mark) == ("Attempt 1 was put off by its handler", Mark.PLAIN)
