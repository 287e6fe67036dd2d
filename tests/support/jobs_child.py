"""
A worker of jobs in a process of its own, to be killed: `python -m tests.support.jobs_child NAMESPACE [POINT COUNT]`.

A job that says "lingers" runs until the process ends, one that says "kills" ends it with SIGKILL.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import PIPE, STDOUT, Popen
from threading import Event
from typing import Any

from tests.support.jobs import JobGround, working, write
from tests.support.processing_child import QUICK

from packhorse.processor import JobContext
from packhorse.processor.daemon import run
from packhorse.processor.settings import ProcessorSettings
from packhorse.processor.signals import Point


@contextmanager
def job_child(
    ground: JobGround, point: Point | None = None, count: int = 1, *, lease: float = 30
) -> Iterator["Popen[str]"]:
    """Run a child meanwhile; it is killed at the end of the block, if it still runs."""
    at = [] if point is None else [point.value, str(count)]
    process = Popen(
        [sys.executable, "-m", "tests.support.jobs_child", ground.namespace, *at],
        env=os.environ | ground.environ | QUICK | {"PACKHORSE_PROCESSOR_JOB_LEASE": str(lease)},
        stdout=PIPE,
        stderr=STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def body(job: Any, ctx: JobContext) -> dict[str, int]:
    """Do what the job says."""
    if job.what == "kills":
        os.kill(os.getpid(), signal.SIGKILL)
    while job.what == "lingers":
        Event().wait(1.0)
    return write(job, ctx)


def main(namespace: str, point: str = "", count: str = "1") -> None:
    """Run the child."""
    left = [int(count)]

    def kill(reached: Point) -> None:
        if reached.value == point:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    run(working(namespace, body=body), ProcessorSettings.load({}, environ=os.environ), signal=kill)


if __name__ == "__main__":
    main(*sys.argv[1:])
