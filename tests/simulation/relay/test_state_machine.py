"""
The relay's real core and shell as a Hypothesis state machine: it picks who runs next and which fault comes when.

A failure is shrunk to the shortest list of steps that shows it.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.simulation.relay.plants import CORE_PLANTS
from tests.simulation.relay.world import World, arrivals, commits, judge
from tests.support.machines import SETTINGS, UNSHRUNK


class RelayMachine(RuleBasedStateMachine):
    """Writers, relays, broker and database; P1 is judged from the topic after each step and at the end."""

    world: World | None = None

    @initialize(seed=st.integers(0, 2**32 - 1))
    def begin(self, seed: int) -> None:
        """Begin with the writers of *seed*; faults come by rules alone."""
        self.world = World(seed)
        self.world.faults = 0

    @rule(choices=st.lists(st.integers(0, 999), min_size=1, max_size=25))
    def go_on(self, choices: list[int]) -> None:
        """Let whoever is chosen take a step."""
        world = self.known()
        for choice in choices:
            for process in [process for process in world.processes if process.tasks[0].done]:
                world._bury(process)
            world.now += 0.005
            actions = [action for _, action in world._actions()]
            if actions:
                actions[choice % len(actions)]()

    @rule(
        fault=st.sampled_from(
            [
                "_kill",
                "_freeze",
                "_crash",
                "_cut",
                "_broker_down",
                "_broker_up",
                "_start",
                "_stop",
                "_break_topic",
                "_heal",
                "_backup",
                "_restore",
                "_drop_slot",
                "_republish",
                "_reshard",
            ]
        )
    )
    def strike(self, fault: str) -> None:
        """Let *fault* happen now."""
        world = self.known()
        world.story.append(fault)
        getattr(world, fault)()

    @invariant()
    def first_arrivals_are_what_was_committed_first(self) -> None:
        """On the topic stands of each key a beginning of its commits: no gap, no swap, nothing that was never committed."""
        if self.world is None:
            return
        order = commits(self.world)
        for key, names in arrivals(self.world).items():
            assert names == order.get(key, [])[: len(names)], (key, self.world.story)

    def teardown(self) -> None:
        """Let everything come to rest without further faults, then judge."""
        if self.world is not None:
            self.world.run()
            assert judge(self.world) is None, self.world.story

    def known(self) -> World:
        """Return the world that `begin` has made."""
        assert self.world is not None
        return self.world


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.case("R-04", "R-07", "R-12")
def test_no_steps_lose_or_swap_a_row() -> None:
    """Fails under the planted changes, as the next test shows."""
    run_state_machine_as_test(RelayMachine, settings=SETTINGS)


@pytest.mark.parametrize("planted", CORE_PLANTS, ids=lambda plant: plant.__name__)
def test_the_machine_finds_a_planted_error(planted: Callable[[], AbstractContextManager[None]]) -> None:
    with planted(), pytest.raises(AssertionError):
        run_state_machine_as_test(RelayMachine, settings=UNSHRUNK)
