"""
Random schedules over the relay's real core and shell: nothing lost, first arrivals of each key in commit order.

A failure names its seed: `fault_of(seed)` replays it, and `World(seed).story` says which faults came when.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from tests.simulation.relay.plants import (
    CORE_PLANTS,
    ORDER_PLANTS,
    SHARD_PLANTS,
    THEME_OF,
    WORLD_PLANTS,
    Plant,
)
from tests.simulation.relay.world import fault_of

SEEDS = 1_000
BLOCK = 100
ENOUGH = 600
"""A planted error must show within so many seeds; the rarest shows in one of a hundred."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.case("R-01")
@pytest.mark.case("R-02")
@pytest.mark.case("R-03")
@pytest.mark.case("R-04")
@pytest.mark.case("R-07")
@pytest.mark.case("R-12")
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_no_schedule_loses_or_swaps_a_row(first: int) -> None:
    """Each change in plants.py makes it fail, as the tests below show."""
    faults = [fault for seed in range(first, first + BLOCK) if (fault := fault_of(seed)) is not None]
    assert faults == []


@pytest.mark.case("R-19")
@pytest.mark.case("R-20")
@pytest.mark.parametrize("plant", WORLD_PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_error_around_the_core_is_found(plant: Plant) -> None:
    assert any(fault_of(seed, plant, theme=THEME_OF.get(plant)) for seed in range(ENOUGH))


@pytest.mark.parametrize("planted", CORE_PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_error_in_the_core_is_found(planted: Callable[[], AbstractContextManager[None]]) -> None:
    with planted():
        assert any(fault_of(seed) for seed in range(ENOUGH))


@pytest.mark.case("R-13")
@pytest.mark.parametrize("planted", SHARD_PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_error_in_a_change_of_shards_is_found(
    planted: Callable[[], AbstractContextManager[object]],
) -> None:
    with planted():
        assert any(fault_of(seed, theme="shards") for seed in range(ENOUGH))


@pytest.mark.parametrize("planted", ORDER_PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_error_in_ranges_that_go_again_is_found(
    planted: Callable[[], AbstractContextManager[object]],
) -> None:
    with planted():
        assert any(fault_of(seed, theme="orders") for seed in range(ENOUGH))


@pytest.mark.case("R-02")
def test_without_a_key_lock_rows_swap_and_none_is_lost() -> None:
    """Order is what the writer's lock gives; that nothing is lost needs no lock."""
    faults = [fault for seed in range(300) if (fault := fault_of(seed, lock_keys=False))]
    assert any("arrived" in fault for fault in faults), (
        "unlocked writers must show a swap, or the lock proves nothing"
    )
    assert not [fault for fault in faults if "lost" in fault or "no end" in fault]
