"""
Jobs with an effect on an outside system, in this process or one of their own, which dies or freezes at a named place:
`python -m tests.support.outside_child NAMESPACE URL [before|after|freeze]`.

    before  it is killed after its intent is on record, before the call
    after   it is killed after the call was answered, before that is on record
    freeze  it stops (SIGSTOP) after its intent is on record; the file LOST is made when it finds, thawed, that it has lost its job

A job says in words how it goes: "unverified" has no verify; all other words are for the outside system.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import Popen
from typing import Any
from unittest.mock import patch

import httpx
from tests.support.jobs import JobGround, working, write
from tests.support.outside import Client, Refused
from tests.support.processing_child import QUICK, running

from packhorse.core.errors import OwnershipLost
from packhorse.processor import JobContext, Processor, Retry
from packhorse.processor.daemon import run
from packhorse.processor.jobs.ledger import Ledger
from packhorse.processor.settings import ProcessorSettings
from packhorse.processor.storing.steps import Steps

LEASE = 3.0
TIMEOUT = "1s"


def charging(namespace: str, url: str, at: Callable[[str], object] = lambda place: None) -> Processor:
    """Return a processor whose jobs have one effect on the outside system at *url*; *at* is told where a run is."""
    client = Client(url)

    def body(job: Any, ctx: JobContext) -> dict[str, Any]:
        words = job.what.split()

        def call(key: str) -> dict[str, int]:
            at("before")
            answer = client.do(key, str(job.n), job.what)
            at("after")
            return answer

        answer = ctx.effect(
            "charge",
            call,
            verify=None if "unverified" in words else client.was_done,
            arguments={"n": job.n},
            timeout=TIMEOUT,
            refused=(Refused, httpx.ConnectError),
        )
        return {**write(job, ctx), "answer": answer}

    return working(namespace, body=body, retry=Retry(attempts=5, delays=["100ms", "1s"]))


def charging_child(
    ground: JobGround, url: str, place: str, lost: Path
) -> AbstractContextManager["Popen[str]"]:
    """Run a child meanwhile."""
    environ = QUICK | {"PACKHORSE_PROCESSOR_JOB_LEASE": str(LEASE), "LOST": str(lost)}
    return running(
        "tests.support.outside_child", ground.namespace, url, place, environ=ground.environ | environ
    )


class FreezingLedger:
    """Stop the process once the second transaction of a run, which is its intent, is committed."""

    def __init__(self, lost: Path) -> None:
        self._lost, self._count, self._run = lost, 0, Ledger.run

    def run(self, ledger: Ledger, steps: Steps[Any]) -> Any:
        try:
            result = self._run(ledger, steps)
        except OwnershipLost:
            self._lost.touch()
            raise
        self._count += 1
        if self._count == 2:
            # To this thread: one to the process would first wake another, and this one would run on into its call.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        return result


def main(namespace: str, url: str, place: str = "") -> None:
    """Run the child."""

    def die(reached: str) -> None:
        if reached == place:
            os.kill(os.getpid(), signal.SIGKILL)

    if place == "freeze":
        freezing = FreezingLedger(Path(os.environ["LOST"]))

        def frozen(ledger: Ledger, steps: Steps[Any]) -> Any:
            return freezing.run(ledger, steps)

        patch.object(Ledger, "run", frozen).start()
    run(charging(namespace, url, die), ProcessorSettings.load({}, environ=os.environ))


if __name__ == "__main__":
    main(*sys.argv[1:])
