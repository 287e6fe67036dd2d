"""How many jobs may share a claim, by what was seen of their type."""

from packhorse.processor.member.pacing import CALM, MOMENT, MOST, Paces
from packhorse.processor.partition.events import Took


def test_a_type_shares_claims_once_it_was_quick_for_long_and_then_more_and_more() -> None:
    paces, seen = Paces(), []
    for _ in range(9 * CALM):
        seen.append(paces.most("t"))
        paces.learn("t", Took(bodies=1, seconds=1e-5, longest=1e-5))
    assert seen[: CALM + 1] == [1] * CALM + [2]
    assert seen == sorted(seen)
    assert seen[-1] == MOST
    assert paces.most("other") == 1


def test_one_that_took_long_makes_its_type_a_slow_one_again() -> None:
    """Fails when jobs go on to be claimed with others after one of their type has kept those waiting."""
    paces = Paces()
    paces.learn("t", Took(bodies=20 * CALM, seconds=0.1, longest=0.001))
    assert paces.most("t") == MOST
    paces.learn("t", Took(bodies=MOST, seconds=1.0, longest=2 * MOMENT))
    assert paces.most("t") == 1
    paces.learn("t", Took(bodies=CALM - 1, seconds=0.1, longest=0.001))
    assert paces.most("t") == 1


def test_no_more_share_a_claim_than_take_a_moment_together() -> None:
    """Fails when jobs of some milliseconds are run one behind another by one lane while others have nothing to do."""
    paces = Paces()
    paces.learn("t", Took(bodies=20 * CALM, seconds=20 * CALM * MOMENT / 4, longest=MOMENT / 2))
    assert paces.most("t") == 4
    for _ in range(50):
        paces.learn("t", Took(bodies=4, seconds=4 * MOMENT * 0.9, longest=MOMENT))
    assert paces.most("t") == 1


def test_what_is_written_with_a_success_counts_among_what_a_body_takes() -> None:
    took = Took().and_one(0.001).and_one(0.003).and_more(0.02)
    assert (took.bodies, round(took.seconds, 3), took.longest) == (2, 0.024, 0.003)
