"""Messages at a fixed rate: from the call that sends one to its durable result."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass

from bench.processor.contestants import Contestant
from bench.processor.ground import Ground, Place
from bench.processor.runs import running
from bench.processor.watcher import watched_results
from bench.relay.probe import cpu_seconds
from bench.relay.runs import Stuck

WARM = 2.0
"""Seconds at the fixed rate that are not counted."""
FIRST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """
    In milliseconds; `core` and `database` are parts of one processor.

    Attributes:
        unseen: Messages without a result.
    """

    p50: float
    p99: float
    p999: float
    core: float
    database: float
    unseen: int


def latency(ground: Ground, contestant: Contestant, rate: int, seconds: float) -> Latency:
    """Send *rate* messages a second and look when each result is durable."""
    with ground.standing(ground.empty("avro")) as place:
        contestant.before(place)
        ground.checkpoint()
        with watched_results(place) as seen, running(contestant, place) as children:
            _first_result(place, seen, children[0])
            _write(place, FIRST, rate, WARM)
            cpu, database = cpu_seconds(children[0].pid), cpu_seconds(ground.processes["postgres"])
            began = time.monotonic()
            sent = _write(place, 2 * FIRST, rate, seconds)
            took = time.monotonic() - began
            cpu = (cpu_seconds(children[0].pid) - cpu) / took
            database = (cpu_seconds(ground.processes["postgres"]) - database) / took
            until = time.monotonic() + 5
            while not sent.keys() <= seen.keys() and time.monotonic() < until:
                time.sleep(0.05)
            waits = sorted((seen[n] - at) * 1000 for n, at in sent.items() if n in seen)
    if not waits:
        raise Stuck(f"{contestant.name}: none of {len(sent)} messages had a result")
    return Latency(
        p50=_at(waits, 0.5), p99=_at(waits, 0.99), p999=_at(waits, 0.999), core=cpu, database=database,
        unseen=len(sent) - len(waits),
    )  # fmt: skip


def _at(values: list[float], part: float) -> float:
    return values[min(int(len(values) * part), len(values) - 1)]


def _write(place: Place, first: int, rate: int, seconds: float) -> dict[int, float]:
    command = [
        sys.executable,
        "-m",
        "bench.processor.children.writer",
        str(place.filled.schema_id),
        str(first),
    ]
    done = subprocess.run(
        [*command, str(rate), str(seconds)], env={**place.environment()}, capture_output=True, text=True, check=True,
        timeout=seconds + 60,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def _first_result(place: Place, seen: dict[int, float], child: "subprocess.Popen[str]") -> None:
    """Send one message now and then until one has a result: the contestant has started."""
    until, number = time.monotonic() + 60, 0
    while not seen:
        _write(place, number, 1, 1)
        number += 1
        if time.monotonic() > until or child.poll() is not None:
            raise Stuck(f"no result within 60 s, exit status {child.poll()}")
