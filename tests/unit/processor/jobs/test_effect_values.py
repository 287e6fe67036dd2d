"""What effects and steps are named by, and what errors of theirs carry."""

import copy
import pickle
from typing import Any
from uuid import UUID

import pytest

from packhorse.core.errors import UsageError
from packhorse.processor.jobs.effects.calling import checked_hands
from packhorse.processor.jobs.effects.model import EffectInDoubt
from packhorse.processor.jobs.naming import checked_name
from packhorse.processor.jobs.values import BadValue, json_of


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "a\0", "a\u202eb", 7, None])
def test_what_names_nothing_is_refused_without_being_printed_raw(name: Any) -> None:
    with pytest.raises(UsageError, match="1 to 200") as refused:
        checked_name(name, what="step")
    assert str(refused.value).isprintable()
    assert checked_name("x" * 200, what="step") == "x" * 200


def test_hands_that_fit_are_taken_before_anything_is_on_record() -> None:
    """Fails when a function that can't be called at all leaves an intent behind: the effect would be in doubt, and nothing happened."""
    assert checked_hands("charge", str.upper, None, ConnectionError) == (ConnectionError,)
    assert checked_hands("charge", lambda key, more=1: key, lambda *key: None, ()) == ()
    for call, verify, refused in (
        (lambda: 1, None, ()),
        (lambda a, b: 1, None, ()),
        (str, 5, ()),
        (str, None, (int,)),
    ):
        with pytest.raises(UsageError, match=r"^effect charge: "):
            checked_hands("charge", call, verify, refused)


@pytest.mark.parametrize(
    ("value", "about"),
    [
        (float("nan"), "number that is not finite"),
        ("\ud800", "surrogate pair"),
        ({("a", "b"): 1}, "key of a type"),
        ([object()], "object or"),
    ],
)
def test_what_json_has_not_is_told_by_its_kind(value: object, about: str) -> None:
    """Fails when somebody who gave a number is told to give numbers."""
    with pytest.raises(BadValue, match=f"^the result is no JSON: it holds .*{about}"):
        json_of(value, what="the result", most=100)


def test_a_doubt_can_be_copied_and_pickled() -> None:
    error = EffectInDoubt(UUID(int=1), "charge", "why")
    for made in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert str(made) == str(error)
        assert (made.job_id, made.key) == (error.job_id, error.key)
