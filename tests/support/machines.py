"""How long the state machines of the simulations go on: the same list of steps on every machine and in every run."""

from hypothesis import HealthCheck, Phase, settings

SETTINGS = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
UNSHRUNK = settings(SETTINGS, phases=[Phase.generate])
"""Enough to see a planted error; which steps show it shortest is nobody's question then."""
