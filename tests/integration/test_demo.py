"""The main job at a small size, on the real stack: kills, outage and poison included."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.support.wait import eventually

from packhorse.local.settings import Endpoints

CHECKOUT = Path(__file__).parents[2]
SOURCE = "airline.aircraft"


@pytest.fixture
def _no_topics(stack: Endpoints) -> Iterator[None]:
    """Remove the demo's topics, before and after: it refuses a broker that has them."""
    _remove_topics(stack)
    yield
    _remove_topics(stack)


def _remove_topics(stack: Endpoints) -> None:
    admin = AdminClient({"bootstrap.servers": stack.kafka_bootstrap})
    if found := _topics(admin):
        for removed in admin.delete_topics(found).values():
            removed.result()
    eventually(lambda: not _topics(admin), what="the topics are removed")


def _topics(admin: AdminClient) -> list[str]:
    """Return the source, its tiers and its quarantine, as far as they exist."""
    return [name for name in admin.list_topics(timeout=10).topics if name.startswith(SOURCE)]


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
    assert "nothing waits for ever" in done.stdout
    assert "was in quarantine (refused); done, and" in done.stdout
    assert done.stdout.count("is killed (SIGKILL)") == 2
    for reason in ("no-distance", "undecodable", "unknown-schema", "attempts-exhausted"):
        assert f"in quarantine: {reason}" in done.stdout
