"""How long a job lies still when its worker is killed: from `kill -9` to the next beginning of its body."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from bench.jobs.contestants import Contestant
from bench.jobs.ground import Ground
from bench.jobs.runs import working
from bench.jobs.starting import pace
from bench.relay.probe import family
from bench.relay.runs import Stuck

BODY = 300.0
"""Seconds that the job would take."""
WITHIN = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """
    Attributes:
        after: Seconds from the kill to the next beginning.
        lease: Seconds of a lease, which was renewed up to two seconds before.
        session: The broker's session time-out, seconds.
    """

    after: float
    lease: float
    session: float = 6.0


def recovered(ground: Ground, contestant: Contestant, lease: float) -> Recovered:
    """Let two workers stand, kill the one that runs the job, and look when the other begins it."""
    with contestant.standing(ground) as place:
        contestant.before(place)
        file = place.folder / "starts"
        settings = {
            "BENCH_STARTS": str(file),
            "BENCH_BODY": str(BODY),
            "PACKHORSE_PROCESSOR_JOB_LEASE": str(lease),
            # What still runs when the measurement ends is not waited for.
            "PACKHORSE_PROCESSOR_DRAIN_TIMEOUT": "1",
        }
        with working(ground, contestant, place, 2, settings) as children:
            pace(contestant, place, 1, 1, 1)
            _, pid = _begun(file, 1)
            victim = next(child for child in children if pid in family(child.pid))
            time.sleep(3)  # its lease was renewed
            os.kill(victim.pid, signal.SIGKILL)
            killed = time.time()
            again, _ = _begun(file, 2)
    return Recovered(after=again - killed, lease=lease)


def _begun(file: Path, times: int) -> tuple[float, int]:
    """Wait until bodies have begun so many times; return when the last did, and its process."""
    until = time.monotonic() + WITHIN
    while time.monotonic() < until:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) >= times:
            _, at, pid = lines[times - 1].split()
            return float(at), int(pid)
        time.sleep(0.05)
    raise Stuck(f"no beginning number {times} within {WITHIN:g} s")
