"""What a handler may declare and raise about its retries, and what follows a failed attempt."""

import contextlib
import copy
import pickle
import traceback
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.core.errors import PackhorseError, SettingsError
from packhorse.processor import Later, Quarantine, Retry, Skip
from packhorse.processor.policy import Again, Stop, after_failure, policy_of
from packhorse.processor.tiers.ladder import tier_seconds

LADDERS = st.lists(st.sampled_from(["0s", "500ms", "5s", "1m", "90s", "10m", "1h"]), min_size=1, max_size=5)
POLICIES = st.builds(
    Retry, delays=LADDERS, attempts=st.integers(1, 9), budget=st.sampled_from([0, "1s", "1m", "1h", "1d"])
)
JITTERS = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize(
    ("given_", "about"),
    [
        ({"attempts": 0}, "attempts=0"),
        ({"attempts": 2.5}, "attempts=2.5"),
        ({"delays": []}, "delays"),
        ({"delays": "5s"}, "a list such as"),
        ({"delays": ["soon"]}, "'soon' is no duration"),
        ({"delays": {"5s"}}, "a list such as"),
        ({"budget": True}, "True is no duration"),
        ({"budget": -1}, "-1 is no duration"),
        ({"budget": float("nan")}, "nan is no duration"),
        ({"budget": 10**400}, "is no duration"),
        ({"delays": ["367d"]}, "at most 366 days"),
        ({"after": "5m", "attempts": 3}, "after= when it is raised.* and attempts= when it is the handler's"),
        ({"text": "why", "delays": ["1s"], "budget": 1}, "a text when .* and delays=, budget= when"),
        ({"text": ["1s", "5s"]}, "a policy takes delays="),
    ],
)
def test_arguments_that_make_no_sense_together_are_refused_by_name(
    given_: dict[str, Any], about: str
) -> None:
    with pytest.raises(SettingsError, match=about):
        Retry(**given_)


@pytest.mark.parametrize("after", ["0s", 0.5, -1, "soon"])
def test_later_has_a_least_wait(after: Any) -> None:
    """Fails when it may be 0: a message that charges no attempt would go round without a pause."""
    with pytest.raises(SettingsError, match="Later"):
        Later(after=after)


def test_what_can_only_be_raised_is_no_policy() -> None:
    assert policy_of(None) == Retry()
    assert policy_of(Retry(attempts=2)).attempts == 2
    for wrong in (Retry(after="5m"), Retry("why"), ["5s"]):
        with pytest.raises(SettingsError, match="is no policy"):
            policy_of(wrong)  # type: ignore[arg-type]


def test_attempts_reach_every_delay_unless_declared() -> None:
    """Fails when the default stays 5 with a ladder of seven: its last tiers would never be used."""
    assert Retry(delays=["1s"]).attempts == 5
    assert Retry(delays=[1, 2, 3, 4, 5, 6, 7]).attempts == 8


def test_a_policy_is_a_value() -> None:
    assert Retry(delays=["60s"], budget="1h") == Retry(delays=("1m",), budget=timedelta(hours=1))
    assert hash(Retry(delays=["60s"])) == hash(Retry(delays=["1m"]))
    assert Retry(attempts=3) != Retry(attempts=4)
    assert Retry(after="5m") == Retry(after=300)
    assert Retry(after="5m") != Retry(after="6m")
    assert Retry() != object()
    assert repr(Retry(delays=["1s"], attempts=2)) == "Retry(delays=('1s',), attempts=2, budget='1d')"
    assert repr(Retry("why", after="5m")) == "Retry('why', after='5m')"
    assert repr(Later(after="5m")) == "Later(after='5m')"
    with pytest.raises(AttributeError):
        Retry().attempts = 7  # type: ignore[misc]


RAISED = [
    Retry(),
    Retry("why"),
    Retry(after="5m"),
    Retry(delays=["1s"], attempts=2, budget=9),
    Later("why", after=5),
    Quarantine("no-such-airport", "why"),
    Skip("why"),
]


@contextlib.contextmanager
def noted() -> Iterator[None]:
    try:
        yield
    except PackhorseError as raised:
        raised.add_note("seen")
        raise


def raise_from_another(error: PackhorseError) -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(noted())
        try:
            int("first")
        except ValueError as first:
            raise error from first


@pytest.mark.parametrize("error", RAISED, ids=repr)
def test_what_a_handler_raises_is_an_exception_like_any_other(error: PackhorseError) -> None:
    """
    Fails when the policy is a frozen dataclass (contextlib and tracebacks could not set what they set), or when a class
    that is called with other arguments than its args can't be unpickled.
    """

    with pytest.raises(type(error)) as caught:
        raise_from_another(error)
    assert caught.value is error
    assert isinstance(error.__cause__, ValueError)
    assert "seen" in "".join(traceback.format_exception(error))
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert (str(again), repr(again)) == (str(error), repr(error))
        assert again.__notes__ == error.__notes__
        for name in ("after", "attempts", "reason"):
            assert getattr(again, name, None) == getattr(error, name, None)
        if isinstance(error, Retry):
            assert again == error


def test_the_bare_class_can_be_raised() -> None:
    with pytest.raises(Retry) as caught:
        raise Retry
    assert (caught.value.after, str(caught.value)) == (None, "")


@pytest.mark.case("T-08")
@given(POLICIES, st.integers(1, 9), st.floats(0, 100_000), JITTERS, st.none() | st.floats(0, 100_000))
def test_a_wait_is_never_shorter_than_what_was_declared_or_asked_for(
    policy: Retry, tries: int, spent: float, jitter: float, after: float | None
) -> None:
    """Fails when jitter may shorten, or a wait is rounded down to a tier."""
    match after_failure(tries, spent, policy, jitter=jitter, after=after):
        case Again(delay=delay, tier=tier):
            wanted = policy.delay_seconds[min(tries, len(policy.delays)) - 1] if after is None else after
            assert wanted <= delay <= max(wanted, tier_seconds(tier)) * 1.1
            assert delay >= tier_seconds(tier)
            assert tier in policy.tiers
            longer = [t for t in policy.tiers if tier_seconds(t) > tier_seconds(tier)]
            assert tier_seconds(tier) + 1e-6 >= wanted or not longer
        case Stop(reason=reason):
            assert reason in {"attempts-exhausted", "budget-exhausted"}


@pytest.mark.case("T-09")
@given(POLICIES, JITTERS, st.lists(st.floats(0, 1000), min_size=12, max_size=12))
def test_a_bug_that_fails_every_time_ends_in_quarantine(
    policy: Retry, jitter: float, runs: list[float]
) -> None:
    """Fails when attempts are compared with `>` (one run too many), or the budget is not looked at."""
    spent = 0.0
    for tries, run in enumerate(runs, start=1):
        spent += run
        step = after_failure(tries, spent, policy, jitter=jitter)
        if isinstance(step, Stop):
            break
        spent += step.delay
        assert spent <= policy.budget_seconds + 0.1 * step.delay
    else:
        pytest.fail("it never stops")
    assert tries <= policy.attempts
    assert (step.reason == "attempts-exhausted") == (tries == policy.attempts)


@given(POLICIES, JITTERS, st.floats(1_000, 10_000))
def test_later_charges_no_attempt_and_is_bounded_by_the_budget(
    policy: Retry, jitter: float, after: float
) -> None:
    """Fails when an uncharged run is stopped by attempts, or when waits that are asked for may go on for ever."""
    spent, rounds = 0.0, 0
    while isinstance(
        step := after_failure(policy.attempts + 5, spent, policy, jitter=jitter, after=after, charged=False),
        Again,
    ):
        spent += step.delay
        rounds += 1
        assert rounds <= 1 + policy.budget_seconds / 1_000
    assert step == Stop(reason="budget-exhausted")
    assert spent >= policy.budget_seconds


def test_a_longer_wait_than_the_longest_tier_goes_round_in_that_one_and_may_outlast_the_budget_once() -> None:
    policy = Retry(delays=["5s", "1m"], budget="10m")
    assert after_failure(1, 0.0, policy, jitter=0.0, after=7200) == Again(delay=7200, tier="1m")
    assert after_failure(2, 7200.0, policy, jitter=0.0, after=1) == Stop(reason="budget-exhausted")
    assert after_failure(1, 0.0, policy, jitter=0.0, after=7, ladder=("0s", "10s", "1m")) == Again(
        delay=10, tier="10s"
    )


def test_a_server_is_given_the_time_that_it_wants_but_never_less_than_the_ladder_says() -> None:
    """Fails when `Retry-After: 1` shortens a ladder: a server under load would use up the attempts in seconds."""
    policy = Retry(delays=["5s", "1m", "10m"])
    assert after_failure(3, 0.0, policy, jitter=0.0, least=1) == Again(delay=600, tier="10m")
    assert after_failure(1, 0.0, policy, jitter=0.0, least=30) == Again(delay=60, tier="1m")
    assert after_failure(1, 0.0, policy, jitter=0.0, least=30, after=2) == Again(delay=5, tier="5s")
