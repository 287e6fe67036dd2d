"""
The processor's real desk, decisions and batch as a Hypothesis state machine: it picks the moves and the faults.

A failure is shrunk to the shortest list of steps that shows it.
"""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.simulation.processor import plants
from tests.simulation.processor.check import STEPS, _charges, _effects
from tests.simulation.processor.moves import _crash, _down, _freeze, _revoke, note_watermarks
from tests.simulation.processor.world import Plan, World
from tests.support.machines import SETTINGS, UNSHRUNK


class ProcessorMachine(RuleBasedStateMachine):
    """A group of two, a broker and a database; P2, P3 and P4 are judged from topic, results and quarantine at the end."""

    world_class: type[World] = World
    world: World | None = None

    @initialize(seed=st.integers(0, 2**32 - 1))
    def begin(self, seed: int) -> None:
        """Begin with the messages and handlers of *seed*; faults come by rules, answers get lost by its chance."""
        self.world = self.world_class(seed, Plan(restores=0))
        self.deeds = dict(self.world.script.deeds)

    @rule(choices=st.lists(st.integers(0, 999), min_size=1, max_size=40))
    def go_on(self, choices: list[int]) -> None:
        """Make the chosen moves."""
        world = self.known()
        for choice in choices:
            if world.finished():
                return
            moves = world._moves()
            moves[choice % len(moves)]()
            note_watermarks(world)

    @precondition(lambda self: self.world is not None and self.world.members)
    @rule(which=st.integers(0, 9), freeze=st.booleans())
    def lose_a_member(self, which: int, freeze: bool) -> None:
        """Kill or freeze a member where it stands."""
        world = self.known()
        member = world.members[which % len(world.members)]
        (_freeze if freeze else _crash)(world, member)

    @precondition(lambda self: self.world is not None and self.world.database.up)
    @rule()
    def lose_the_database(self) -> None:
        """Take the database away; a later move brings it back."""
        _down(self.known())

    @rule(partition=st.integers(0, 1))
    def revoke(self, partition: int) -> None:
        """Let the group take a partition away."""
        world = self.known()
        owner = world.owners[partition]
        if owner is not None and not owner.frozen:
            _revoke(world, partition)

    def teardown(self) -> None:
        """Let everything come to rest, then judge."""
        if self.world is None:
            return
        for taken, _ in enumerate(self.world.steps()):
            note_watermarks(self.world)
            assert taken < STEPS, "no end"
        assert [*_effects(self.world, self.deeds), *_charges(self.world, self.deeds)] == [], self.world.trace[
            -40:
        ]

    def known(self) -> World:
        """Return the world that `begin` has made."""
        assert self.world is not None
        return self.world


@pytest.mark.case("P-01", "P-02", "P-10", "P-13", "P-17")
def test_no_steps_lose_double_or_swap_a_message() -> None:
    """Fails under the planted changes, as the next test shows."""
    run_state_machine_as_test(ProcessorMachine, settings=SETTINGS)


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        (plants.rewritten(plants.jump_the_gap), "lost"),
        (plants.rewritten(plants.without_inbox_rows), "twice"),
    ],
    ids=["jump_the_gap", "without_inbox_rows"],
)
def test_the_machine_finds_a_planted_error(planted: type[World], found: str) -> None:
    machine = type("Planted", (ProcessorMachine,), {"world_class": planted})
    with pytest.raises(AssertionError, match=found):
        run_state_machine_as_test(machine, settings=UNSHRUNK)
