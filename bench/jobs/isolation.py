"""A type of jobs that keeps its lanes busy beside a small one in the same process: how soon the small ones begin."""

import os
import subprocess
from dataclasses import replace

from bench.jobs.contestants import Contestant
from bench.jobs.ground import Ground
from bench.jobs.runs import working
from bench.jobs.starting import Started, at_pace, until_first
from bench.relay.runs import Stuck

LONG = 2.0
"""Seconds that a job of the busy type takes."""


def beside(ground: Ground, contestant: Contestant, busy: int, rate: float, seconds: float) -> Started:
    """Submit *busy* long jobs of one type at first, then small ones of another at a fixed rate."""
    contestant = replace(contestant, settings={**contestant.settings, "BENCH_BUSY": str(LONG)})
    with ground.standing(types=("work", "busy")) as place:
        contestant.before(place)
        file = place.folder / "starts"
        with working(ground, contestant, place, settings={"BENCH_STARTS": str(file)}) as children:
            until_first(contestant, place, file, children)
            if busy:
                _submitted(contestant.environment(place), contestant, busy)
            return at_pace(ground, contestant, place, file, children, rate, seconds)


def _submitted(environment: dict[str, str], contestant: Contestant, jobs: int) -> None:
    command = [*contestant.submitter(), "pace", "1", str(jobs), "1"]
    environment = {**os.environ, **environment, "BENCH_TYPE": "busy"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise Stuck(f"the long jobs are not submitted\n{done.stderr[-1_500:]}")
