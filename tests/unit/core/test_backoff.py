"""Growing delays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.core.backoff import Backoff, delay_after
from packhorse.core.errors import SettingsError


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_delay_grows_never_shrinks_and_jitter_only_lengthens(failure: int, jitter: float) -> None:
    policy = Backoff()

    plain = delay_after(failure, policy, jitter=0.0)

    assert plain <= delay_after(failure + 1, policy, jitter=0.0) <= policy.longest
    assert plain <= delay_after(failure, policy, jitter=jitter) <= plain * (1 + policy.spread)


@pytest.mark.parametrize("wrong", [{"first": 0.0}, {"longest": 0.01}, {"factor": 0.5}, {"spread": -0.1}])
def test_a_policy_that_can_not_wait_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match="not allowed"):
        Backoff(**wrong)
