"""What follows for an outside effect from what is known of it."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.core.errors import SettingsError, UsageError
from packhorse.processor.jobs.effects.deciding import (
    Ask,
    Doubt,
    Give,
    Intend,
    PutOff,
    Settle,
    counts_in,
    decide,
)
from packhorse.processor.jobs.effects.model import (
    CANT_TELL,
    DID_NOT_HAPPEN,
    START_WITHIN,
    Effect,
    EffectConflict,
    EffectInDoubt,
    EffectRow,
    EffectState,
    Happened,
    digest_of,
    effect_of,
    idempotency_key,
)

JOB = UUID(int=7)
LATE = 30.0 + START_WITHIN
STATES = st.sampled_from(list(EffectState))


def wanted(*, verifiable: bool = True, arguments: object = None) -> Effect:
    return effect_of(JOB, "charge", arguments=arguments, verifiable=verifiable)


def row(state: str = "intended", **more: Any) -> EffectRow:
    effect = wanted()
    found = EffectRow(
        state=EffectState(state),
        idempotency_key=effect.idempotency_key,
        digest=effect.digest,
        calls=1,
        age=1.0,
        timeout=30.0,
        answer="a",
    )
    return replace(found, **more)


def test_what_nobody_knows_of_is_intended_first() -> None:
    assert decide(None, wanted()) == Intend(1)


@pytest.mark.parametrize("state", ["answered", "happened"])
def test_what_is_answered_is_given_and_never_called(state: str) -> None:
    """Fails when a person's word, or the other side's, counts less than an answer."""
    assert decide(row(state), wanted(verifiable=False)) == Give("a")


def test_what_did_not_happen_is_called_once_more() -> None:
    assert decide(row("did-not-happen", calls=2), wanted()) == Intend(3, "it did not happen")


@pytest.mark.parametrize("state", ["intended", "uncertain"])
def test_an_intent_without_an_answer_is_asked_about(state: str) -> None:
    assert decide(row(state), wanted()) == Ask()


@pytest.mark.case("J-08")
@pytest.mark.parametrize("age", [0.0, 1e9])
def test_an_intent_without_an_answer_and_verify_is_for_a_person(age: float) -> None:
    """Fails when it is called again after any time."""
    assert isinstance(decide(row(age=age), wanted(verifiable=False)), Doubt)


@pytest.mark.case("J-08")
def test_a_no_counts_only_when_the_call_can_not_be_on_its_way_any_more() -> None:
    """Fails when a "no" is believed at once, or without the time in which a call may begin."""
    assert decide(row(age=30.5), wanted(), DID_NOT_HAPPEN) == PutOff(START_WITHIN - 0.5)
    assert decide(row(age=LATE), wanted(), DID_NOT_HAPPEN) == Intend(2, "verify says that it did not happen")


def test_it_is_the_recorded_call_whose_time_out_counts() -> None:
    """Fails when a job that is deployed anew with a shorter one believes a "no" too early."""
    assert counts_in(row(timeout=300.0, age=LATE)) == 300.0 - 30.0
    assert decide(row(timeout=300.0, age=LATE), wanted(), DID_NOT_HAPPEN) == PutOff(270.0)


def test_a_clock_that_went_back_only_makes_it_wait_longer() -> None:
    assert decide(row(age=-60.0), wanted(), DID_NOT_HAPPEN) == PutOff(LATE + 60.0)


def test_a_yes_counts_at_once() -> None:
    assert decide(row(age=0.0), wanted(), Happened({"id": 1})) == Settle({"id": 1})


def test_who_can_not_tell_is_asked_again_until_it_is_time() -> None:
    assert isinstance(decide(row(age=1.0), wanted(), CANT_TELL), PutOff)
    assert isinstance(decide(row(age=LATE), wanted(), CANT_TELL), Doubt)


@given(state=STATES, age=st.floats(-1e6, 1e6), verdict=st.sampled_from([None, DID_NOT_HAPPEN, CANT_TELL]))
def test_other_arguments_are_refused_whatever_is_known(state: EffectState, age: float, verdict: Any) -> None:
    with pytest.raises(EffectConflict, match="another key"):
        decide(row(state, age=age), wanted(arguments={"cents": 2}), verdict)


@pytest.mark.case("J-08")
@given(
    state=STATES,
    age=st.floats(-1e6, 1e6),
    verifiable=st.booleans(),
    verdict=st.sampled_from([None, DID_NOT_HAPPEN, CANT_TELL, Happened()]),
)
def test_a_call_is_made_again_only_after_a_no_that_counts(
    state: EffectState, age: float, verifiable: bool, verdict: Any
) -> None:
    """Fails when any other way leads to a second call."""
    decision = decide(row(state, age=age), wanted(verifiable=verifiable), verdict)
    if isinstance(decision, Intend):
        believed = verifiable and verdict is DID_NOT_HAPPEN and age >= LATE
        assert state == "did-not-happen" or (state in {"intended", "uncertain"} and believed)


def test_the_idempotency_key_depends_on_job_and_key_alone() -> None:
    """Fails when attempt, arguments or time get into it."""
    one = effect_of(JOB, "charge", arguments=1).idempotency_key
    assert one == effect_of(JOB, "charge", arguments=2, timeout="1s").idempotency_key
    assert one not in {idempotency_key(JOB, "charge2"), idempotency_key(UUID(int=8), "charge")}
    assert len(idempotency_key(JOB, "ü" * 200)) == 36
    assert idempotency_key(JOB, "ü" * 200).isascii()


def test_the_digest_takes_dicts_in_any_order_and_tells_jobs_apart() -> None:
    assert digest_of(JOB, "k", {"a": 1, "b": 2}) == digest_of(JOB, "k", {"b": 2, "a": 1})
    assert digest_of(JOB, "k", {"a": 1}) != digest_of(UUID(int=8), "k", {"a": 1})


@pytest.mark.parametrize("bad", [{"secret": object()}, float("nan"), {b"secret": 1}, {1, 2}])
def test_arguments_that_json_can_not_carry_are_refused_without_being_told(bad: object) -> None:
    with pytest.raises(UsageError, match="JSON") as refused:
        wanted(arguments=bad)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", "a\0", 7, None])
def test_a_key_that_names_nothing_is_refused(key: Any) -> None:
    with pytest.raises(UsageError, match="1 to 200"):
        effect_of(JOB, key)


@pytest.mark.parametrize("timeout", [0, "0s", -1, "soon", True])
def test_a_time_out_of_nothing_is_refused(timeout: Any) -> None:
    with pytest.raises((UsageError, SettingsError)):
        effect_of(JOB, "charge", timeout=timeout)


def test_the_doubt_says_what_to_do_next() -> None:
    text = str(EffectInDoubt(JOB, "char\x1bge", "why"))
    assert f"packhorse job resolve {JOB} --happened" in text
    assert "\x1b" not in text
