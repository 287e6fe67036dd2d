"""
A processor in a process of its own, to be killed: `python -m tests.support.processing_child NAMESPACE [POINT COUNT]`.

At the COUNT-th time that it comes to POINT it kills itself with SIGKILL, in the middle of whatever runs. SLOW in the
environment names a file: while it exists, the handler waits. A message that says "kills" does the same to its process, once
another lane has begun what it may begin; one that says "lingers" takes so long that it is not done by then.
"""

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from threading import Event
from typing import Any

from tests.support.processing import GROUP, Ground, note, noted
from tests.support.wait import eventually

from packhorse.processor import Context, Processor, Retry
from packhorse.processor.daemon import run
from packhorse.processor.settings import ProcessorSettings
from packhorse.processor.signals import Point

QUICK = {"PACKHORSE_PROCESSOR_COMMIT_INTERVAL": "0.05", "PACKHORSE_PROCESSOR_CONCURRENCY": "2"}


@contextmanager
def running(*arguments: str, environ: Mapping[str, str]) -> Iterator["Popen[str]"]:
    """Run `python -m` with *arguments* meanwhile; it is killed at the end of the block, if it still runs."""
    process = Popen(
        [sys.executable, "-m", *arguments],
        env={**os.environ, **environ},
        stdout=PIPE,
        stderr=STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def child(
    ground: Ground, point: Point | None = None, count: int = 1, **environ: str
) -> AbstractContextManager["Popen[str]"]:
    """Run a child meanwhile."""
    at = [] if point is None else [point.value, str(count)]
    return running(
        "tests.support.processing_child", ground.namespace, *at, environ=ground.environ | QUICK | environ
    )


def in_hand(ground: Ground) -> None:
    """Wait until the child's handler has written and waits in its transaction."""
    query = (
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction' "
        "AND query LIKE 'INSERT INTO result%%'"
    )
    eventually(lambda: ground.rows(query), what="the handler runs", timeout=30)


def until_dead(process: "Popen[str]", *, timeout: float = 30.0) -> int:
    """Wait until the child has ended and return its status."""
    eventually(lambda: process.poll() is not None, what="the child has ended", timeout=timeout)
    return int(process.returncode)


def main(namespace: str, point: str = "", count: str = "1") -> None:
    """Run the child."""
    left = [int(count)]

    def kill(reached: Point) -> None:
        if reached.value == point:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    app = Processor(GROUP)
    slow = Path(os.environ["SLOW"]) if "SLOW" in os.environ else None

    @app.handler(noted(namespace), retry=Retry(attempts=2, delays=["100ms"]))
    def handle(message: Any, ctx: Context) -> None:
        note(message, ctx)
        if message.what in {"kills", "lingers"}:
            Event().wait(0.3 if message.what == "kills" else 1.0)
        if message.what == "kills":
            os.kill(os.getpid(), signal.SIGKILL)
        while slow is not None and slow.exists():
            Event().wait(0.02)

    run(app, ProcessorSettings.load({}, environ=os.environ), signal=kill)


if __name__ == "__main__":
    main(*sys.argv[1:])
