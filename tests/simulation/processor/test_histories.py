"""
Random schedules over the product's own loop, desk, lanes, store, watchdog and all they decide: P2, P3 and P4 must hold.

A failure prints its seed and what happened; `fault_of(seed, theme=…)` runs it again.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest
from tests.simulation.processor.plants import PLANTS, no_watchdog
from tests.simulation.processor.world import fault_of

SEEDS = int(os.environ.get("PACKHORSE_TEST_SEEDS", "1000"))
BLOCK = 50
SHARES = {
    "": 0.3,
    "parking": 0.15,
    "crowds": 0.05,
    "owners": 0.1,
    "losses": 0.1,
    "unwatched": 0.1,
    "races": 0.05,
    "zombies": 0.05,
    "returns": 0.05,
    "restores": 0.05,
    "systems": 0.05,
}
"""How many of all seeds each theme gets."""
ENOUGH = 800
"""A planted error must show within so many seeds of its theme."""
BLOCKS = [
    (theme, first)
    for theme, share in SHARES.items()
    for first in range(0, max(BLOCK, int(SEEDS * share)), BLOCK)
]


@pytest.mark.case("P-01")
@pytest.mark.case("P-02")
@pytest.mark.case("P-08")
@pytest.mark.case("P-10")
@pytest.mark.case("P-13")
@pytest.mark.case("P-17")
@pytest.mark.case("P-19")
@pytest.mark.case("P-23")
@pytest.mark.case("P-31")
@pytest.mark.case("T-01")
@pytest.mark.case("T-03")
@pytest.mark.case("T-20")
@pytest.mark.case("T-23")
@pytest.mark.parametrize(("theme", "first"), BLOCKS)
def test_no_schedule_loses_doubles_or_swaps_a_message(theme: str, first: int) -> None:
    """
    Kills, freezes, rebalances, lost answers, outages and restores at every step; every kind of handler, deed and operator's act.

    Each change in plants.py makes it fail, as the test below shows. Without a watchdog nothing gets stuck either, as long as
    the operator wakes what he has decided about: it is a net, and no part of the protocol.
    """
    faults = [fault for seed in range(first, first + BLOCK) if (fault := _fault(seed, theme)) is not None]
    assert not faults, "\n\n".join(faults[:3])


def _fault(seed: int, theme: str) -> str | None:
    if theme != "unwatched":
        return fault_of(seed, theme=theme)
    with no_watchdog():
        return fault_of(seed, theme=theme)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_error_is_found(plant: Callable[[], Any]) -> None:
    for seed in range(ENOUGH):
        with plant():
            if _fault(seed, PLANTS[plant]) is not None:
                return
    raise AssertionError(f"the planted error was not found in {ENOUGH} schedules")
