# mypy: ignore-errors
"""
procrastinate 3.10; runs in an environment of its own: `procrastinate_app.py prepare | worker | submit … | pace …`.

Tuned as its documentation says: `concurrency` so that jobs overlap (howto/production/concurrency), a pool with a connection for each
of them and one more, "the shorter your average job execution time" (discussions, "Mind the size of your PostgreSQL pool"), LISTEN/NOTIFY
on (the default), coroutines rather than threads (discussions, "Asynchronous operations"), submitting on the caller's connection
(howto/production/external_connection) and in batches by `batch_defer` (howto/basics/batch_defer). Finished jobs are kept, as by default.
"""

import asyncio
import logging
import os
import sys
import time

import psycopg
from procrastinate import App, PsycopgConnector, SyncPsycopgConnector
from talk import serve

DATABASE, STARTS = os.environ["BENCH_DATABASE"], os.environ.get("BENCH_STARTS")
CONCURRENCY = int(os.environ.get("BENCH_CONCURRENCY", "20"))
starts = os.open(STARTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if STARTS else -1


async def run(n):
    if STARTS:
        os.write(starts, f"{n} {time.time()}\n".encode())


def app_with(connector):
    app = App(connector=connector)
    return app, app.task(name="work", queue="work")(run)


async def worker():
    app, _ = app_with(PsycopgConnector(conninfo=DATABASE, min_size=CONCURRENCY + 1, max_size=CONCURRENCY + 1))
    async with app.open_async():
        await app.run_worker_async(queues=["work"], concurrency=CONCURRENCY)


def submitting():
    app, task = app_with(SyncPsycopgConnector(conninfo=DATABASE))
    with app.open(), psycopg.connect(DATABASE, autocommit=True) as connection:

        def submit(numbers):
            with connection.transaction():
                given = task.configure(connection=connection)
                if len(numbers) == 1:
                    given.defer(n=numbers[0])
                else:
                    given.batch_defer(*({"n": n} for n in numbers))

        serve(submit, sys.argv[1:])


if __name__ == "__main__":
    logging.disable(logging.INFO)
    if sys.argv[1] == "prepare":
        app, _ = app_with(SyncPsycopgConnector(conninfo=DATABASE))
        with app.open():
            app.schema_manager.apply_schema()
    elif sys.argv[1] == "worker":
        asyncio.run(worker())
    else:
        submitting()
