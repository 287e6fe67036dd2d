"""
A runner of a redrive in a process of its own, to be killed: `python -m tests.support.redrive_child ID POINT COUNT`.

At the COUNT-th time that it comes to POINT it kills itself with SIGKILL.
"""

import os
import signal
import subprocess
import sys

from packhorse.console.redriving.shell import Point, RedriveShell
from packhorse.console.running.postgres import Leases, lasting
from packhorse.console.running.sql import REDRIVES
from packhorse.console.running.working import stoppable, work
from packhorse.console.settings import ConsoleSettings


def killed_at(redrive_id: int, point: Point, count: int, environ: dict[str, str]) -> int:
    """Run a child until it is dead or done, and return its status."""
    argv = [sys.executable, "-m", "tests.support.redrive_child", str(redrive_id), point.value, str(count)]
    return subprocess.run(argv, env=os.environ | environ, timeout=60, check=False).returncode


def main(redrive_id: int, point: Point, count: int) -> None:
    """Work on the redrive, and die."""
    left = [count]

    def dies(at: Point) -> None:
        left[0] -= at is point
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    settings = ConsoleSettings.load({})
    with lasting(settings) as database, lasting(settings) as beside, stoppable() as stop:
        leases = Leases(database, REDRIVES)
        work(
            redrive_id,
            what="redrive",
            leases=leases,
            renewing=Leases(beside, REDRIVES),
            begin=lambda lease: RedriveShell(database, leases, lease, signal=dies),
            tell=lambda text: None,
            stop=stop,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]), Point(sys.argv[2]), int(sys.argv[3]))
