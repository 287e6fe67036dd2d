"""
Random schedules over the product's own leases, keeper, effects and steps: nothing outside happens twice, nothing in silence.

With a verify that can tell, or an outside system that honours idempotency keys, no effect happens twice. Without, none is called
again after a call that nobody knows of, unless a person has decided. A run that has lost its job writes nothing, and the first
final state stands. What a restore forgets is called again under the same idempotency key, and that alone may happen twice.

A failure prints its seed and what happened; `fault_of(seed, theme=…)` runs it again.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest
from tests.simulation.processor.effects.plants import PLANTS
from tests.simulation.processor.effects.world import World, fault_of

SEEDS = int(os.environ.get("PACKHORSE_TEST_SEEDS", "1000"))
BLOCK = 50
SHARES = {"": 0.7, "late": 0.3}
"""How many of all seeds each theme gets: in "late" requests arrive as late as they may, at systems that honour no key."""
ENOUGH = 4_000
"""A planted error must show within so many seeds of its theme."""
BLOCKS = [
    (theme, first)
    for theme, share in SHARES.items()
    for first in range(0, max(BLOCK, int(SEEDS * share)), BLOCK)
]


@pytest.mark.case("J-02")
@pytest.mark.case("J-03")
@pytest.mark.case("J-05")
@pytest.mark.case("J-08")
@pytest.mark.parametrize(("theme", "first"), BLOCKS)
def test_no_schedule_doubles_an_effect_or_calls_one_in_silence(theme: str, first: int) -> None:
    """
    Kills, freezes and thaws, lost and late answers, outages and restores at every step.

    Each change in plants.py makes it fail, as the test below shows.
    """
    faults = [
        fault for seed in range(first, first + BLOCK) if (fault := fault_of(seed, theme=theme)) is not None
    ]
    assert not faults, "\n\n".join(faults[:3])


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_error_is_found(plant: Callable[[], Any]) -> None:
    for seed in range(ENOUGH):
        with plant():
            if fault_of(seed, theme=PLANTS[plant]) is not None:
                return
    raise AssertionError(f"the planted error was not found in {ENOUGH} schedules")


def test_the_schedules_bring_what_they_are_for() -> None:
    """Fails when faults do not happen any more: then no schedule would find anything."""
    seen = ""
    for theme in SHARES:
        for seed in range(150):
            world = World(seed, theme=theme)
            assert world.run() is None
            seen += "\n".join(world.story)
    for what in (
        "is killed",
        "freezes",
        "restored",
        "database down",
        "has lost job",
        "nothing to end",
        "uncertain",
        "later",
        "DID_NOT_HAPPEN",
        "CANT_TELL",
        "Happened",
        "in doubt, which stops for",
        "a person says",
        "is cancelled",
        ": late",
        ": refused",
    ):
        assert what in seen, what
