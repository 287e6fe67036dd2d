"""Deciding about a redrive: which message, whether it may go, what is said."""

import pytest
from tests.support.console_facts import ID, act, inbox_row, quarantined

from packhorse.console.facts import Outcome, State
from packhorse.console.quarantine.redrive import DISCARD, chosen, previewed
from packhorse.core.acts import MAX_WHY, Actor, checked_why
from packhorse.core.errors import OwnershipLost, SettingsError, UsageError


def test_the_one_message_is_chosen() -> None:
    assert chosen([quarantined()], message_id=ID, group=None, topic=None) == quarantined()


def test_several_groups_ask_for_the_flag_that_tells_them_apart() -> None:
    both = [quarantined(), quarantined(group="billing")]
    with pytest.raises(UsageError, match="--group billing"):
        chosen(both, message_id=ID, group=None, topic=None)
    assert chosen(both, message_id=ID, group="billing", topic=None).group == "billing"


@pytest.mark.parametrize(
    ("rows", "text"), [([], "is not in quarantine of group x"), ([quarantined()], "it is there for figures")]
)
def test_none_that_fits_names_what_there_is(rows: list, text: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(UsageError, match=text):
        chosen(rows, message_id=ID, group="x", topic=None)


def test_a_preview_orders_the_next_attempt_and_nothing_else() -> None:
    preview = previewed(quarantined(), inbox_row(outcome=Outcome.QUARANTINE, attempt=5), None)
    assert (preview.order.attempt, preview.order.redrives) == (5, 0)
    assert "attempt 6" in preview.steps[0]
    assert "airline.aircraft.figures.retry.0s" in preview.steps[1]


@pytest.mark.parametrize(
    ("given", "warning"),
    [
        ({}, "later messages of its key may have gone on"),
        ({"reason": "undecodable"}, "the bytes stay the same"),
        ({"redrives": 2}, "redriven 2 times"),
    ],
)
def test_a_preview_warns(given: dict[str, object], warning: str) -> None:
    preview = previewed(quarantined(**given), inbox_row(outcome=Outcome.QUARANTINE), None)
    assert any(warning in line for line in preview.warnings)


def test_without_a_key_nothing_is_said_about_order() -> None:
    assert previewed(quarantined(key=None), inbox_row(outcome=Outcome.QUARANTINE), None).warnings == ()


@pytest.mark.case("O-02")
def test_the_second_is_told_who_acted_and_when() -> None:
    """Fails when a message that is redriven already may be previewed again, or the actor is left out."""
    with pytest.raises(OwnershipLost, match=r"redrive by ann \(role ops\) at 2026-08-01T12:00:00"):
        previewed(quarantined(state=State.REDRIVEN), inbox_row(outcome=Outcome.RETRY), act())


def test_tables_that_contradict_each_other_are_not_acted_on() -> None:
    with pytest.raises(UsageError, match="its inbox says done"):
        previewed(quarantined(), inbox_row(), None)
    with pytest.raises(UsageError, match="its inbox has no row"):
        previewed(quarantined(), None, None)


@pytest.mark.parametrize("why", ["", "   ", "x" * (MAX_WHY + 1)])
def test_a_reason_is_asked_for(why: str) -> None:
    with pytest.raises(UsageError, match="--why"):
        checked_why(why)


@pytest.mark.case("O-14")
def test_a_claimed_actor_is_recorded_as_claimed() -> None:
    """Fails when --actor replaces the name that the machine and the database know."""
    assert Actor(user="ci", role="ops", claimed="ann").text == "ann (claimed by ci, role ops)"
    with pytest.raises(SettingsError, match="--actor"):
        Actor(user="ci", role="ops", claimed=" ")


def test_a_discard_says_what_goes_on_behind_it() -> None:
    """Fails when what a person lets go with it is not told beforehand."""
    preview = previewed(quarantined(), inbox_row(outcome=Outcome.QUARANTINE), None, act=DISCARD, followers=7)
    assert preview.act == "discard"
    assert any("the 7 messages that wait behind it run" in step for step in preview.steps)
    assert any("never comes about" in line for line in preview.warnings)


@pytest.mark.case("J-08")
def test_who_gives_up_a_job_is_told_which_of_its_effects_may_have_happened() -> None:
    """Fails when somebody is told that a payment never comes about which may have been made, and makes it by hand."""
    row = inbox_row(outcome=Outcome.QUARANTINE)
    (told,) = previewed(quarantined(), row, None, act=DISCARD, in_doubt=["transfer"]).warnings
    assert "may have happened (transfer)" in told
    assert "never comes about" not in told


def test_a_redrive_of_a_head_has_nothing_to_say_against_its_order() -> None:
    preview = previewed(quarantined(), inbox_row(outcome=Outcome.QUARANTINE), None, followers=7)
    assert preview.warnings == ()
