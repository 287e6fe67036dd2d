"""How soon a body begins: from the call that submits a job to the first line of its body, at a fixed rate on a system that is idle."""

import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.jobs.contestants import Contestant
from bench.jobs.ground import Ground, Place
from bench.jobs.runs import Child, stores, working
from bench.relay.probe import cpu_seconds
from bench.relay.runs import Stuck

WARM = 2.0
"""Seconds at the fixed rate that are not counted."""
FIRST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """
    In milliseconds; `core` and `database` are parts of one processor.

    Attributes:
        core: Of the workers, and the relay.
        unseen: Jobs that did not begin.
    """

    p50: float
    p99: float
    core: float
    database: float
    unseen: int


def started(ground: Ground, contestant: Contestant, place: Place, rate: float, seconds: float) -> Started:
    """Submit *rate* jobs a second, each in a transaction of its own, and look when each begins."""
    contestant.before(place)
    file = place.folder / "starts"
    ground.checkpoint()
    with working(ground, contestant, place, settings={"BENCH_STARTS": str(file)}) as children:
        until_first(contestant, place, file, children)
        return at_pace(ground, contestant, place, file, children, rate, seconds)


def at_pace(
    ground: Ground, contestant: Contestant, place: Place, file: Path, children: Sequence[Child], rate: float,
    seconds: float,
) -> Started:  # fmt: skip
    """Submit at a fixed rate to workers that run, and tell how soon the bodies begin."""
    first = FIRST + len(begun(file)) * 10
    pace(contestant, place, first, rate, WARM)
    cpu, database, since = sum(cpu_seconds(child.pid) for child in children), stores(ground), time.monotonic()
    told = pace(contestant, place, first + FIRST, rate, seconds)
    took = time.monotonic() - since
    cpu, database = sum(cpu_seconds(child.pid) for child in children) - cpu, stores(ground) - database
    until = time.monotonic() + 10
    while not told.keys() <= (seen := begun(file)).keys() and time.monotonic() < until:
        time.sleep(0.1)
    waits = sorted((seen[n] - at) * 1000 for n, at in told.items() if n in seen)
    if not waits:
        raise Stuck(f"none of {len(told)} jobs began")
    return Started(
        p50=_at(waits, 0.5), p99=_at(waits, 0.99), core=cpu / took, database=database / took,
        unseen=len(told) - len(waits),
    )  # fmt: skip


def _at(values: list[float], part: float) -> float:
    return values[min(int(len(values) * part), len(values) - 1)]


def begun(file: Path) -> dict[int, float]:
    """Return when each body that has told so first began, by the job's number; seconds since the epoch."""
    found: dict[int, float] = {}
    if file.exists():
        for line in file.read_text().splitlines():
            number, at = line.split()[:2]
            found.setdefault(int(number), float(at))
    return found


def pace(contestant: Contestant, place: Place, first: int, rate: float, seconds: float) -> dict[int, float]:
    """Submit at a fixed rate; return when each submission began, by the job's number."""
    command = [*contestant.submitter(), "pace", str(first), str(rate), str(seconds)]
    done = subprocess.run(
        command,
        env=contestant.environment(place),
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds + 60,
    )
    if done.returncode:
        raise Stuck(f"{contestant.name} submits nothing\n{done.stderr[-1_500:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def until_first(contestant: Contestant, place: Place, file: Path, children: Sequence[Child]) -> None:
    """Submit a job now and then until one has begun: the workers have started."""
    until, number = time.monotonic() + 60, 1
    while not begun(file):
        pace(contestant, place, number, 1, 1)
        number += 1
        if time.monotonic() > until or any(child.poll() is not None for child in children):
            raise Stuck(f"no job began within 60 s, exit status {[child.poll() for child in children]}")
        time.sleep(0.2)
