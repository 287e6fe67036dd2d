"""
A worker of jobs in a process of its own, to be killed and frozen: `python -m tests.support.jobs_child NAMESPACE [POINT COUNT]`.

What a job says happens in it:

    lingers      it runs until the process ends
    kills        it ends its process with SIGKILL
    kills last   it fails twice; its last attempt ends its process with SIGKILL, the first time
    waits        it goes on when the file `go` is in the folder
    wanders      it fails, kills its process or takes a while, by its number and attempt

Each start of a body is a line in the file `runs` of the folder, which outlives a kill and costs no transaction. A body that has waited
tries all that it may write, and puts into the file `refused` what it was refused.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import Popen
from threading import Event
from typing import Any, NamedTuple
from uuid import UUID

from tests.support.jobs import JobGround, working, write
from tests.support.processing_child import QUICK, running

from packhorse.processor import JobContext, Retry
from packhorse.processor.daemon import run
from packhorse.processor.settings import ProcessorSettings
from packhorse.processor.signals import Point

ATTEMPTS = 3
_FOLDER = "JOBS_CHILD_FOLDER"


class Start(NamedTuple):
    """A body that began."""

    id: UUID
    attempt: int
    process: int


def job_child(
    ground: JobGround,
    point: Point | None = None,
    count: int = 1,
    *,
    lease: float = 30,
    folder: Path | None = None,
    **environ: str,
) -> AbstractContextManager["Popen[str]"]:
    """Run a child meanwhile."""
    at = [] if point is None else [point.value, str(count)]
    own = {"PACKHORSE_PROCESSOR_JOB_LEASE": str(lease)} | ({} if folder is None else {_FOLDER: str(folder)})
    return running(
        "tests.support.jobs_child", ground.namespace, *at, environ=ground.environ | QUICK | own | environ
    )


def starts(folder: Path) -> list[Start]:
    """Return the bodies that began in children with this *folder*."""
    file = folder / "runs"
    lines = file.read_text().splitlines() if file.exists() else []
    return [Start(UUID(id_), int(attempt), int(process)) for id_, attempt, process in map(str.split, lines)]


def body(job: Any, ctx: JobContext) -> dict[str, int]:
    """Do what the job says."""
    folder = Path(os.environ[_FOLDER]) if _FOLDER in os.environ else None
    if folder is not None:
        _append(folder / "runs", f"{ctx.id} {ctx.attempt} {os.getpid()}")
    if job.what == "kills":
        _die()
    while job.what == "lingers":
        Event().wait(1.0)
    if job.what == "wanders":
        wander(job.n, ctx)
    if job.what == "kills last" and folder is not None:
        if ctx.attempt < ATTEMPTS:
            raise ValueError("not yet")
        if not (folder / "killed").exists():
            (folder / "killed").touch()
            _die()
    if job.what == "waits" and folder is not None:
        while not (folder / "go").exists():
            Event().wait(0.05)
        _try_all(ctx, folder / "refused")
    return write(job, ctx)


def wander(n: int, ctx: JobContext) -> None:
    """Fail one time of five at each attempt but the last, and take a while one time of a hundred; a job that is repeated is the same."""
    dice = (n * 2_654_435_761 + ctx.attempt * 40_503) % 1_000
    if dice < 200 and ctx.attempt < ATTEMPTS:
        raise ValueError("wanders")
    if dice >= 990:
        Event().wait(0.3)


def _try_all(ctx: JobContext, file: Path) -> None:
    tries: dict[str, Callable[[], object]] = {
        "checkpoint": lambda: ctx.checkpoint({"late": True}),
        "step": lambda: ctx.step("late", lambda: _append(file, "called")),
        "effect": lambda: ctx.effect("late", lambda _: _append(file, "called")),
        "check": ctx.check,
    }
    ctx.progress(99, 100, "late")
    for name, call in tries.items():
        try:
            call()
        except Exception as error:  # noqa: BLE001 told to the test
            _append(file, f"{name} {type(error).__name__}")
        else:
            _append(file, f"{name} went through")
    _append(file, "ended")


def _append(file: Path, line: str) -> None:
    with file.open("a") as out:
        out.write(f"{line}\n")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(namespace: str, point: str = "", count: str = "1") -> None:
    """Run the child."""
    left = [int(count)]

    def kill(reached: Point) -> None:
        if reached.value == point:
            left[0] -= 1
            if left[0] == 0:
                _die()

    retry = Retry(attempts=ATTEMPTS, delays=["100ms"])
    quick = "QUICK_JOBS" in os.environ
    app = working(namespace, body=body, retry=retry, quick=quick)
    run(app, ProcessorSettings.load({}, environ=os.environ), signal=kill)


if __name__ == "__main__":
    main(*sys.argv[1:])
