"""
Random schedules over the product's own loop, desk, lanes, store, watchdog and all they decide: P2, P3 and P4 must hold.

A failure prints its seed and what happened; `fault_of(seed)` runs it again.
"""

import os

import pytest
from tests.simulation.processor.world import fault_of

SEEDS = int(os.environ.get("PACKHORSE_TEST_SEEDS", "1000"))
BLOCK = 50


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_no_schedule_loses_doubles_or_swaps_a_message(first: int) -> None:
    """Each change in plants.py makes it fail, as the tests below show."""
    faults = [fault for seed in range(first, first + BLOCK) if (fault := fault_of(seed)) is not None]
    assert not faults, "\n\n".join(faults[:3])
