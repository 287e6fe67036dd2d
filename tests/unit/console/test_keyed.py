"""A pause of one key: what is offered, and how far it is by what the tables say."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.console_facts import NOON
from tests.support.explained import GONE, HEAD, KEYS, MINUTE, NOW, key

from packhorse.console.pages.fastapi.keys import Named, check_same
from packhorse.console.pages.jinja import environment
from packhorse.console.pages.keyed import address, is_through, pause_offer, resume_offer, stages_of
from packhorse.console.truth.keys import KeyFacts
from packhorse.core.errors import UsageError
from packhorse.core.rights import Role, Standing
from packhorse.processor.record import key_hash

FREE = KEYS["key: not parked"]
OPERATOR = Standing(name="olga", role=Role.OPERATOR)
VIEWER = Standing(name="vera", role=Role.VIEWER)
PAUSED: dict[str, Any] = {
    "head": None,
    "head_outcome": None,
    "paused": True,
    "paused_by": "ann (role ops)",
    "paused_at": NOON,
}


def facts(**given: Any) -> KeyFacts:
    return replace(FREE, key=key(**given))


@pytest.mark.case("O-07")
def test_a_pause_is_asked_taken_up_and_proved() -> None:
    """Fails when an order counts as taken up while nobody works, or as proved while somebody runs what waits."""
    assert [stage.is_done for stage in stages_of(facts(**PAUSED), "pause")] == [True, True, True]
    nobody = replace(facts(**PAUSED), crew=GONE)
    assert [stage.is_done for stage in stages_of(nobody, "pause")] == [True, False, False]
    before = facts(**{**PAUSED, "paused_at": NOW + MINUTE})
    assert [stage.is_done for stage in stages_of(before, "pause")] == [True, False, False]
    runs = facts(**PAUSED, drainer="box:42")
    assert [stage.is_done for stage in stages_of(runs, "pause")] == [True, True, False]
    assert "box:42" in stages_of(runs, "pause")[-1].said
    assert (is_through(facts(**PAUSED), "pause"), is_through(runs, "pause")) == (True, False)


@pytest.mark.case("O-07")
def test_a_pause_that_somebody_has_ended_since_is_told_as_that() -> None:
    """Fails when a page goes on saying "asked" of a pause that is not there any more."""
    for now in (FREE, facts(head_outcome="quarantine")):
        (stage,) = stages_of(now, "pause")
        assert (stage.is_done, stage.went_wrong) == (False, True)
        assert is_through(now, "pause")


@pytest.mark.case("O-07")
@pytest.mark.parametrize(
    ("now", "done", "said"),
    [
        (FREE, [True, True, True], "let go"),
        (facts(head_outcome="done", drainer="box:42"), [True, True, False], "17 messages"),
        (facts(head_outcome="done"), [True, False, False], "17 messages"),
        (facts(head_outcome="quarantine"), [True, False], f"its head, message {HEAD}"),
    ],
)
def test_a_resume_is_proved_once_nothing_waits_any_more(now: KeyFacts, done: list[bool], said: str) -> None:
    """Fails when a key that its head still holds looks as if it went on."""
    stages = stages_of(now, "resume")
    assert [stage.is_done for stage in stages] == done
    assert said in stages[-1].said
    assert is_through(now, "resume") is all(done)


def test_a_resume_after_which_somebody_paused_it_again_names_them() -> None:
    (stage,) = stages_of(facts(**PAUSED), "resume")
    assert (stage.went_wrong, stage.said) == (True, "it is paused now, by ann (role ops)")


def test_an_offer_says_what_is_so_already_and_who_may() -> None:
    """Fails when somebody is offered to pause a paused key, or one of a group that nobody knows, without a word."""
    assert pause_offer(FREE, "N1", OPERATOR).warnings == ()
    (told,) = pause_offer(facts(**PAUSED, paused_why="bad import"), "N1", OPERATOR).warnings
    assert told.startswith("It is paused already: bad import.")
    (mistyped,) = pause_offer(replace(FREE, reads=False), "N1", OPERATOR).warnings
    assert "never read" in mistyped
    assert (pause_offer(FREE, "N1", OPERATOR).may, pause_offer(FREE, "N1", VIEWER).may) == (True, False)
    assert pause_offer(FREE, "N1", OPERATOR).hidden["key"] == "N1"
    (idle,) = resume_offer(FREE, key=None, standing=OPERATOR).warnings
    assert idle.startswith("It is not paused")


def test_a_key_that_is_known_by_its_hash_alone_is_resumed_by_it() -> None:
    by_hash = resume_offer(facts(**PAUSED), key=None, standing=OPERATOR)
    assert (by_hash.hidden["key"], by_hash.hidden["key_hash"]) == (None, FREE.key_hash)
    by_key = resume_offer(facts(**PAUSED), key="N1", standing=OPERATOR)
    assert by_key.hidden["since"] == NOON.isoformat()
    assert resume_offer(FREE, key=None, standing=OPERATOR).hidden["since"] == FREE.now.isoformat()
    assert (by_key.hidden["key"], by_key.hidden["key_hash"]) == ("N1", None)
    assert address("g", "a.b", key=None, key_hash="0a", asked="resume").endswith("key_hash=0a&asked=resume")


def test_a_head_that_holds_the_key_besides_is_said_before_it_is_resumed() -> None:
    held = resume_offer(facts(paused=True, head_outcome="quarantine"), key="N1", standing=OPERATOR)
    assert "not all that holds it" in held.happens[-1]


@pytest.mark.parametrize("text", ["N1", "Köln 7", "a\u202eb", "a\u200bb", "a\x1bb"])
def test_a_key_that_a_form_brings_otherwise_than_it_was_previewed_is_not_paused(text: str) -> None:
    """Fails when a page's escapes make the name of another key, and that one is paused."""
    hidden = environment().from_string("{{ key }}").render(key=text)
    named, previewed = Named(group="g", topic="t", key=hidden), key_hash(text.encode())
    if hidden == text:
        check_same(named, previewed)
    else:
        with pytest.raises(UsageError):
            check_same(named, previewed)
