"""How much may wait behind parked keys, from numbers alone."""

import pytest

from packhorse.processor.parking.crowding import Bounds, Crowd, crowd

BOUNDS = Bounds(messages=10, size=1000)
HERE, THERE = ("shop.orders", 0), ("shop.orders", 1)


@pytest.mark.case("T-04")
def test_a_partition_is_full_at_either_bound_and_no_other_with_it() -> None:
    """Fails when bytes are not looked at, or one partition's messages count for another."""
    assert set(crowd(Crowd(), {HERE: (10, 1), THERE: (9, 999)}, BOUNDS).full) == {HERE}
    assert set(crowd(Crowd(), {HERE: (1, 1000)}, BOUNDS).full) == {HERE}


def test_there_is_room_again_when_a_tenth_is_gone() -> None:
    """Fails when a partition flutters at its bound."""
    full = crowd(Crowd(), {HERE: (10, 1)}, BOUNDS)
    assert crowd(full, {HERE: (9, 1)}, BOUNDS).full
    assert not crowd(full, {HERE: (8, 1)}, BOUNDS).full
    assert not crowd(full, {}, BOUNDS).full
