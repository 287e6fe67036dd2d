"""
Packhorse's jobs: `packhorse processor run bench.jobs.children.app:app`.

BENCH_QUICK says whether the jobs are declared quick; BENCH_STARTS names a file that each body tells its beginning;
BENCH_BUSY is the seconds that a job of the second type takes, which is there only then; BENCH_BODY those of the first.
"""

import os
import time
from typing import Any

from bench.jobs.messages import work

from packhorse.processor import JobContext, Processor

NAMESPACE = os.environ["BENCH_NAMESPACE"]
BODY, BUSY = float(os.environ.get("BENCH_BODY", "0")), float(os.environ.get("BENCH_BUSY", "0"))
STARTS = os.environ.get("BENCH_STARTS")
starts = os.open(STARTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if STARTS else -1

app = Processor(os.environ["BENCH_GROUP"])


@app.job(work(NAMESPACE), quick=os.environ.get("BENCH_QUICK") == "1")
def run(job: Any, ctx: JobContext) -> None:
    """Do nothing, or tell when it began, or take its time."""
    del ctx
    if STARTS:
        os.write(starts, f"{job.n} {time.time()} {os.getpid()}\n".encode())
    if BODY:
        time.sleep(BODY)


if BUSY:

    @app.job(work(NAMESPACE, "busy"))
    def busy(job: Any, ctx: JobContext) -> None:
        """Take its time, as a call to somebody else does."""
        del job, ctx
        time.sleep(BUSY)
