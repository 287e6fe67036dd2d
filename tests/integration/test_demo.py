"""The main job at a small size, on the real stack: kills, outage and poison included."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.topics import removed_topics

from packhorse.local.settings import Endpoints

CHECKOUT = Path(__file__).parents[2]
SOURCE = "airline.aircraft"


@pytest.fixture
def _no_topics(stack: Endpoints) -> Iterator[None]:
    """Remove the demo's topics, before and after: it refuses a broker that has them."""
    with removed_topics(stack.kafka_bootstrap, SOURCE):
        yield


@pytest.mark.usefixtures("_no_topics")
@pytest.mark.timeout(120)
def test_the_demo_adds_up(stack: Endpoints, tmp_path: Path) -> None:
    """
    300 flights end to end, with an outage, a refusal, poison, and SIGKILL of relay and processor: every figure equal.

    Fails when a handler's result and its inbox row are not one transaction, when the relay's horizon passes a row that
    was not sent, when the order of a key is lost (followers of what is in quarantine run before it is redriven), or when
    a key stays parked behind what is done.
    """
    done = subprocess.run(
        [sys.executable, "-m", "examples.flights", "--flights", "300", "--folder", str(tmp_path)],
        cwd=CHECKOUT,
        env={**os.environ, **stack.variables()},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    for expected in ("figures of airports", "figures of aircraft", "nothing lost, nothing twice", "p99"):
        assert expected in done.stdout
    assert "DIFFERS" not in done.stdout
    assert "`make demo SERVE=1` shows it alive" in done.stdout.splitlines()[-1]
    assert "nothing waits for ever" in done.stdout
    assert "was in quarantine (refused); done, and" in done.stdout
    assert done.stdout.count("is killed (SIGKILL)") == 2
    for reason in ("no-distance", "undecodable", "unknown-schema", "attempts-exhausted"):
        assert f"in quarantine: {reason}" in done.stdout
