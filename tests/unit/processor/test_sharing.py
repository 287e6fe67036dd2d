"""Whose turn a free lane is: new messages, or those that come again."""

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.processor.member.sharing import LIVE, Sharing


def granted(sharing: Sharing, numbers: Iterator[int], now: float, *work: bool) -> tuple[int, bool] | None:
    """Give a free lane to the first that has work; return the job's number and whether its messages come again."""
    for again in sharing.turns(now):
        if again in work:
            number = next(numbers)
            sharing.begun(number, again=again)
            return number, again
    return None


@given(
    lanes=st.integers(2, 9),
    live=st.booleans(),
    ends=st.lists(st.integers(0, 8), max_size=60),
)
def test_under_two_backlogs_neither_waits_for_the_others_end(lanes: int, live: bool, ends: list[int]) -> None:
    """Fails when one of them may keep all lanes while the other has work, in whatever order lanes come free."""
    sharing, numbers = Sharing(lanes), count()
    if live:
        sharing.arrived(0.0)
    out = [granted(sharing, numbers, 0.0, False, True) for _ in range(lanes)]
    for at in ends:
        number, _ = out.pop(at % lanes) or (-1, False)
        sharing.ended(number)
        out.append(granted(sharing, numbers, 0.0, False, True))
        assert {again for one in out if one for again in one[1:]} == {False, True}
    assert None not in out


@pytest.mark.parametrize(("lanes", "most"), [(1, 1), (2, 1), (3, 1), (4, 2), (9, 4)])
def test_while_messages_come_those_that_come_again_keep_to_half(lanes: int, most: int) -> None:
    """Fails when a redrive has all lanes whenever a new message comes, or none at all, or has half for ever."""
    sharing, numbers = Sharing(lanes), count()
    sharing.arrived(10.0)
    taken = [granted(sharing, numbers, 10.0 + LIVE / 2, True) for _ in range(lanes)]
    assert sum(one is not None for one in taken) == most
    late = [granted(sharing, numbers, 10.0 + LIVE, True) for _ in range(lanes - most)]
    assert all(late)


def test_a_new_message_goes_first_where_lanes_are_equal_by_turns() -> None:
    """Fails when with one lane either goes twice while the other waits."""
    sharing, numbers = Sharing(1), count()
    kinds = []
    for _ in range(6):
        number, again = granted(sharing, numbers, 0.0, False, True) or (-1, True)
        sharing.ended(number)
        kinds.append(again)
    assert kinds == [False, True] * 3


@pytest.mark.parametrize(("lanes", "slow", "quick"), [(2, 1, 1), (3, 1, 1), (4, 1, 1), (8, 3, 1)])
def test_slow_keys_that_come_again_leave_a_lane_to_quick_ones(lanes: int, slow: int, quick: int) -> None:
    """Fails when slow retries have all the lanes of those that come again: quick ones would wait for them beside idle lanes."""
    sharing, numbers = Sharing(lanes), count()
    sharing.arrived(0.0)
    while sharing.bears_slow(0.0, again=True, others_wait=True):
        sharing.begun(next(numbers), again=True, slow=True)
    had = next(numbers)
    for _ in range(quick):
        assert True in sharing.turns(0.0)
        sharing.begun(next(numbers), again=True)
    assert (had, sharing.turns(0.0)) == (slow, (False,))
    # of two lanes one is kept from slow keys at all times
    assert sharing.bears_slow(LIVE, again=True, others_wait=True) is (lanes > 2)
    assert sharing.bears_slow(LIVE, again=True, others_wait=False)


def test_where_no_quick_one_waits_slow_ones_have_the_share() -> None:
    sharing = Sharing(4)
    sharing.arrived(0.0)
    sharing.begun(1, again=True, slow=True)
    assert sharing.bears_slow(0.0, again=True, others_wait=False)
    sharing.begun(2, again=True, slow=True)
    assert not sharing.bears_slow(0.0, again=True, others_wait=False)
