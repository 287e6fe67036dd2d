"""What effects and steps are named by, and what errors of theirs carry."""

import copy
import pickle
from typing import Any
from uuid import UUID

import pytest

from packhorse.core.errors import UsageError
from packhorse.processor.jobs.effects.model import EffectInDoubt
from packhorse.processor.jobs.naming import checked_name


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "a\0", "a\u202eb", 7, None])
def test_what_names_nothing_is_refused_without_being_printed_raw(name: Any) -> None:
    with pytest.raises(UsageError, match="1 to 200") as refused:
        checked_name(name, what="step")
    assert str(refused.value).isprintable()
    assert checked_name("x" * 200, what="step") == "x" * 200


def test_a_doubt_can_be_copied_and_pickled() -> None:
    error = EffectInDoubt(UUID(int=1), "charge", "why")
    for made in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert str(made) == str(error)
        assert (made.job_id, made.key) == (error.job_id, error.key)
