"""
Random schedules over the product's own core: the desk, the decisions, the batch. The histories must hold P2, P3 and P4.

A failure prints its seed and what happened; `history(seed)` runs it again.
"""

import pytest
from tests.simulation.processor import plants
from tests.simulation.processor.check import history
from tests.simulation.processor.world import Plan, World

from packhorse.core.errors import BrokerUnavailable
from packhorse.processor.member.desk import Desk
from packhorse.processor.partition import deciding, ordering
from packhorse.processor.partition.events import (
    Fetched,
)

SEEDS_A_TEST = 120
TO_BITE = 400


@pytest.mark.case("P-01")
@pytest.mark.case("P-02")
@pytest.mark.case("P-10")
@pytest.mark.case("P-13")
@pytest.mark.case("P-17")
@pytest.mark.case("P-31")
@pytest.mark.case("P-32")
@pytest.mark.parametrize("first", range(0, 960, SEEDS_A_TEST))
def test_every_schedule_ends_with_each_message_done_once_and_in_order(first: int) -> None:
    """
    Crashes, freezes, rebalances, lost answers, outages and restores at every step; failing, contending, poisonous messages.

    The planted changes below, each of them, make schedules fail.
    """
    wrong = [found for seed in range(first, first + SEEDS_A_TEST) if (found := history(seed))]
    assert not wrong, "\n\n".join(wrong[:3])


def test_schedules_without_faults_end_quickly() -> None:
    """Nothing is stuck that no fault explains."""
    assert not [found for seed in range(40) if (found := history(seed, Plan(faults=0, restores=0)))]


def bites(world_class: type[World] = World, plan: Plan | None = None) -> str:
    """Return what the checker finds first; fail when it finds nothing."""
    for seed in range(TO_BITE):
        if found := history(seed, plan, world_class):
            return found
    raise AssertionError(f"the planted error was not found in {TO_BITE} schedules")


@pytest.mark.case("P-01")
def test_a_commit_before_the_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "_next_commit", plants.commit_what_was_read)
    assert "was durable" in bites()


@pytest.mark.case("P-02")
def test_a_watermark_that_jumps_a_gap_is_found() -> None:
    assert "lost" in bites(plants.rewritten(plants.jump_the_gap))


@pytest.mark.case("P-13")
def test_a_result_without_its_inbox_row_is_found() -> None:
    assert "twice" in bites(plants.rewritten(plants.without_inbox_rows), Plan(deeds=False))


@pytest.mark.case("P-14")
def test_a_failure_that_is_not_rolled_back_is_found() -> None:
    assert bites(plants.rewritten(plants.without_roll_back))


@pytest.mark.case("P-08")
def test_an_offset_that_passes_an_unconfirmed_copy_is_found() -> None:
    assert "lost" in bites(plants.rewritten(plants.unchanged, deaf=BrokerUnavailable))


@pytest.mark.case("P-31")
def test_memory_that_outlives_a_reconnect_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Desk, "voided", plants.stay_deaf)
    assert "no end" in bites()


def test_a_stale_fetch_that_is_believed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of the old position that comes after a seek must not count as the next one."""
    monkeypatch.setitem(deciding._REACTIONS, Fetched, plants.believe)
    assert "lost" in bites(plan=Plan(faults=14))
