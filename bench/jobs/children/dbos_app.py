# mypy: ignore-errors
"""
DBOS 3.4; runs in an environment of its own: `dbos_app.py prepare | worker | submit … | pace …`.

Tuned as its documentation says: a queue with `worker_concurrency` ("recommended for most use cases", tutorials/queue-tutorial), a short
`polling_interval_sec` of the queue and as many `max_executor_threads` and connections (`sys_db_pool_size`) as workflows run at once
(reference/configuration, production/checklist), an `executor_id` for each process (reference/queues), submitting in the caller's
transaction (`enqueue_in_transaction`, reference/client). A workflow without steps: its row is all the history that is kept.
"""

import logging
import os
import signal
import sys
import threading
import time

import sqlalchemy
from dbos import DBOS, DBOSClient
from talk import serve

DATABASE, STARTS = os.environ["BENCH_DATABASE"], os.environ.get("BENCH_STARTS")
CONCURRENCY = int(os.environ.get("BENCH_CONCURRENCY", "100"))
POLL = float(os.environ.get("BENCH_POLL", "0.01"))
starts = os.open(STARTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if STARTS else -1


@DBOS.workflow(name="work")
def run(n: int) -> None:
    if STARTS:
        os.write(starts, f"{n} {time.time()}\n".encode())


def launched():
    DBOS(
        config={
            "name": "bench", "system_database_url": DATABASE, "executor_id": str(os.getpid()), "application_version": "1",
            "sys_db_pool_size": CONCURRENCY, "max_executor_threads": CONCURRENCY, "log_level": "WARNING",
        }
    )  # fmt: skip
    DBOS.launch()
    DBOS.register_queue("work", worker_concurrency=CONCURRENCY, polling_interval_sec=POLL)


def submitting():
    client = DBOSClient(system_database_url=DATABASE, application_name="bench")
    options = {"workflow_name": "work", "queue_name": "work"}
    engine = sqlalchemy.create_engine(DATABASE.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:

        def submit(numbers):
            with connection.begin():
                for n in numbers:
                    client.enqueue_in_transaction(connection, options, n)

        serve(submit, sys.argv[1:])


if __name__ == "__main__":
    logging.disable(logging.INFO)
    if sys.argv[1] in {"prepare", "worker"}:
        launched()
        if sys.argv[1] == "worker":
            ended = threading.Event()
            signal.signal(signal.SIGTERM, lambda *_: ended.set())
            ended.wait()
        DBOS.destroy()
    else:
        submitting()
