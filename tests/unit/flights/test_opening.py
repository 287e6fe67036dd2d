"""What a person types to open the console on what the demo has made."""

from pathlib import Path

import pytest

from examples.common.surroundings import Surroundings
from examples.flights.serving.opening import commands

URL = "postgresql://postgres@127.0.0.1:20001/flights_1"
FOLDER = Path("/home/ann/my demo")
VARIABLES = {
    "PACKHORSE_DATABASE_URL": URL,
    "PACKHORSE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:20002",
    "PACKHORSE_REGISTRY_URL": "http://127.0.0.1:20003",
    "PACKHORSE_NAMESPACE": "airline",
}


def printed(*, own: bool, runs: bool) -> list[str]:
    around = Surroundings(own=own, database_url=URL, variables=VARIABLES)
    return [line.strip() for line in commands(around, FOLDER, runs=runs)]


def test_a_stack_that_was_stopped_is_started_again_and_stopped_in_the_end() -> None:
    """Fails when the folder is not quoted, or the environment of the stack hides the demo's own database."""
    path, *rest = printed(own=True, runs=False)
    assert path.startswith("export PATH=")
    assert rest == [
        "export PACKHORSE_DEV_DIR='/home/ann/my demo'",
        "packhorse dev up",
        'eval "$(packhorse dev env)"',
        f"export PACKHORSE_DATABASE_URL={URL}",
        "export PACKHORSE_NAMESPACE=airline",
        "packhorse console",
        "packhorse dev down",
    ]


def test_a_stack_that_runs_is_not_started_again() -> None:
    assert "packhorse dev up" not in printed(own=True, runs=True)


@pytest.mark.parametrize("runs", [True, False])
def test_services_of_somebody_else_are_named_and_left_alone(*, runs: bool) -> None:
    lines = printed(own=False, runs=runs)
    assert not [line for line in lines if "packhorse dev" in line]
    assert set(lines) > {f"export {name}={value}" for name, value in VARIABLES.items()}
    assert lines[-1] == "packhorse console"
