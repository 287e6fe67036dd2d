# mypy: ignore-errors
"""
Celery 5.7 on a server that speaks Redis; runs in an environment of its own: `celery_app.py worker | submit … | pace …`.

Tuned as its documentation says: `worker_prefetch_multiplier` 128 for "many short-running tasks" (userguide/optimizing, "Prefetch
Limits"), `task_acks_late` so that a task that was begun is done again after a crash, as by all others here (the same page, "Reserve one
task at a time"), the default pool with a process for each processor, or none at all (userguide/concurrency), a connection kept for submitting
(`broker_pool_limit`, the same page), no gossip between workers. Its results are kept in the same server; there is no history.
"""

import json
import os
import sys
import time

from celery import Celery
from talk import serve

REDIS, RESULTS, STARTS = (
    os.environ["BENCH_REDIS"],
    os.environ["BENCH_RESULTS"],
    os.environ.get("BENCH_STARTS"),
)
POOL, CONCURRENCY = os.environ.get("BENCH_POOL", "prefork"), int(os.environ.get("BENCH_CONCURRENCY", "2"))

app = Celery("bench", broker=REDIS, backend=RESULTS)
app.conf.update(
    task_acks_late=True, worker_prefetch_multiplier=128, result_expires=86_400, task_default_queue="work",
    worker_hijack_root_logger=False, broker_connection_retry_on_startup=True,
)  # fmt: skip
starts = os.open(STARTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if STARTS else -1


@app.task(name="work")
def run(n):
    if STARTS:
        os.write(starts, f"{n} {time.time()}\n".encode())


def submit(numbers):
    for n in numbers:
        run.delay(n)


def finished():
    """Print when each result was written, as each says; seconds since the epoch."""
    from datetime import datetime

    client = app.backend.client
    keys = list(client.scan_iter("celery-task-meta-*", count=10_000))
    found = [
        json.loads(value) for at in range(0, len(keys), 1_000) for value in client.mget(keys[at : at + 1_000])
    ]
    print(json.dumps(sorted(datetime.fromisoformat(one["date_done"]).timestamp() for one in found)))


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "WARNING"]
        app.worker_main(
            ["worker", "--pool", POOL, "--concurrency", str(CONCURRENCY), "-n", f"{os.getpid()}@%h", *quiet]
        )
    elif sys.argv[1] == "finished":
        finished()
    else:
        serve(submit, sys.argv[1:])
