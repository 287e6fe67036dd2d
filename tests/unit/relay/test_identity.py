"""The judgement on a saved position, over all kinds of facts."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.relay.identity.facts import Facts, Memory, Rows, Signs
from packhorse.relay.identity.judge import Kind, judge, standing, wants_signs

HERE, LATER, ELSEWHERE = "7/00000001", "7/00000002", "8/00000001"
SAME = Facts(
    shard=0,
    saved=HERE,
    here=HERE,
    horizon="90:100:",
    counter=200,
    reached=True,
    epoch=3,
    published=40,
    saved_at="2026-05-04T10:00:00Z",
)
QUIET = Signs(sequence=40, highest=40)
SOME = Rows(count=2, first_id="an-id", first_seq=41)


def test_the_same_server_is_not_looked_at_and_nothing_is_said() -> None:
    assert not wants_signs(SAME)
    verdict = judge(SAME, None, Memory(epoch=3, published=40))
    assert (verdict.kind, verdict.refusal, verdict.text) == (Kind.SAME, None, None)


@pytest.mark.case("R-08")
@pytest.mark.parametrize("here", [HERE, LATER, ELSEWHERE])
def test_a_horizon_out_of_reach_is_refused_on_every_server(here: str) -> None:
    facts = replace(SAME, here=here, reached=False)
    assert not wants_signs(facts), "no row need be read to know"
    refusal = judge(facts, None).refusal
    assert refusal is not None
    assert "90:100:" in refusal
    assert "packhorse relay adopt" in refusal


@pytest.mark.case("R-08")
@pytest.mark.parametrize(
    ("signs", "said"),
    [
        (replace(QUIET, swallowed=SOME), "2 rows (first: id an-id, seq 41) were written after the last save"),
        (replace(QUIET, ahead=replace(SOME, more=True)), "at least 2 rows"),
        (replace(QUIET, sequence=7), "stands at 7 and seq 40 was drawn already"),
        (replace(QUIET, running=1), "1 open transactions"),
    ],
)
@pytest.mark.parametrize("here", [LATER, ELSEWHERE])
def test_each_sign_that_ids_mean_something_else_is_refused_and_named(
    here: str, signs: Signs, said: str
) -> None:
    facts = replace(SAME, here=here)
    assert wants_signs(facts)
    refusal = judge(facts, signs).refusal
    assert refusal is not None
    assert said in refusal
    assert HERE in refusal
    assert here in refusal


@pytest.mark.case("R-08")
def test_another_system_whose_rows_agree_is_taken_on_without_alarm() -> None:
    verdict = judge(replace(SAME, here=ELSEWHERE), QUIET)
    assert (verdict.kind, verdict.refusal, verdict.alarm) == (Kind.SERVER, None, False)
    assert "pg_upgrade" in (verdict.text or "")


@pytest.mark.case("R-08")
def test_another_timeline_goes_on_and_says_what_may_be_gone_since_when() -> None:
    verdict = judge(replace(SAME, here=LATER), QUIET)
    assert (verdict.kind, verdict.refusal, verdict.alarm) == (Kind.TIMELINE, None, True)
    assert "verify --since '2026-05-04T10:00:00Z'" in (verdict.text or "")


@pytest.mark.parametrize("memory", [Memory(epoch=4, published=0), Memory(epoch=3, published=41)])
def test_counts_that_are_lower_than_remembered_say_that_the_database_went_back(memory: Memory) -> None:
    verdict = judge(SAME, None, memory)
    assert (verdict.kind, verdict.refusal, verdict.alarm) == (Kind.WENT_BACK, None, True)


def test_a_position_of_a_version_that_did_not_say_its_server_is_taken_as_this_servers() -> None:
    """Its rows can't be told from others: seq_high was not kept then."""
    facts = replace(SAME, saved=None)
    assert judge(facts, replace(QUIET, ahead=Rows())).kind is Kind.FIRST
    assert judge(facts, replace(QUIET, ahead=SOME)).refusal is not None


@given(
    here=st.sampled_from([HERE, LATER, ELSEWHERE]),
    reached=st.booleans(),
    swallowed=st.integers(0, 2),
    ahead=st.integers(0, 2),
    running=st.integers(0, 2),
    sequence=st.integers(38, 42),
)
def test_a_known_position_is_trusted_on_another_server_only_without_any_sign(
    here: str, reached: bool, swallowed: int, ahead: int, running: int, sequence: int
) -> None:
    signs = Signs(
        running=running,
        swallowed=Rows(count=swallowed),
        ahead=Rows(count=ahead),
        sequence=sequence,
        highest=40,
    )
    facts = replace(SAME, here=here, reached=reached)
    verdict = judge(facts, signs if wants_signs(facts) else None)
    quiet = here == HERE or not (swallowed or ahead or running or sequence < 40)
    assert (verdict.refusal is None) is (reached and quiet)


def test_the_status_names_the_server_and_what_it_was_before() -> None:
    assert standing(SAME) == "system 7, timeline 1"
    moved = replace(SAME, here=LATER, before=HERE, moved_age=7200.0, moved_saved_at="2026-05-04T10:00:00Z")
    assert "timeline 2, taken on 2.0 h ago instead of timeline 1" in standing(moved)
    assert "packhorse relay verify" in standing(moved)
    other = replace(moved, here=ELSEWHERE)
    assert standing(other) == "system 8, timeline 1, taken on 2.0 h ago instead of system 7"
