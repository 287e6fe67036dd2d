"""Two thousand quick jobs that fail now and then, two workers of which one is killed again and again: each job ends once."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from subprocess import Popen
from uuid import UUID

import psycopg
import pytest
from tests.support.job_histories import faults, history_of
from tests.support.jobs import JobGround, working
from tests.support.jobs_child import job_child, starts
from tests.support.relay import relays
from tests.support.wait import eventually

from packhorse.producer import JobDraft, Outbox

COUNT, KILLS, LEASE = 2_000, 4, 9.0
"""The lease is longer than the session: whoever has the partition then meets jobs that a dead worker still seems to run."""
SUCCEEDED = "SELECT count(*) FROM packhorse.job WHERE state = 'succeeded'"


def accepted_by(jobs: JobGround) -> Iterator[tuple[UUID, int]]:
    """Submit all in transactions of some hundreds; yield the id of each with its number."""
    with psycopg.connect(jobs.database) as connection:
        for first in range(0, COUNT, 500):
            drafts = [JobDraft(input=jobs.report(n=n, what="wanders")) for n in range(first, first + 500)]
            handles = Outbox(origin="tests").submit_many(connection, drafts)
            connection.commit()
            yield from ((handle.id, first + at) for at, handle in enumerate(handles))


def _have_begun(folder: Path, count: int) -> bool:
    return len(starts(folder)) >= count


@pytest.mark.case("J-01")
@pytest.mark.timeout(300)
def test_each_of_many_jobs_ends_once_whoever_is_killed(wide_jobs: JobGround, tmp_path: Path) -> None:
    """
    The seed is printed when it fails; JOBS_SEED asks for another than the first.

    Fails when the ends of a chunk and their messages are not one transaction, when what was claimed and not run stays with the dead
    worker, or a run that failed is recorded for another one.
    """
    jobs, seed = wide_jobs, int(os.environ.get("JOBS_SEED", "1"))
    chance = Random(seed)
    jobs.make_topics(working(jobs.namespace))
    accepted = dict(accepted_by(jobs))
    stops = sorted(chance.sample(range(COUNT // 20, COUNT), KILLS))
    with ExitStack() as running:
        road = relays(tmp_path, database=jobs.database, bootstrap=jobs.kafka, namespace=jobs.namespace)
        running.enter_context(road).start()

        def worker() -> "Popen[str]":
            child = job_child(jobs, lease=LEASE, folder=tmp_path, QUICK_JOBS="1")
            return running.enter_context(child)

        workers = [worker(), worker()]
        for stop in stops:
            said = f"seed {seed}: {stop} bodies have begun"
            eventually(partial(_have_begun, tmp_path, stop), what=said, timeout=60)
            at = chance.randrange(2)
            workers[at].kill()
            workers[at] = worker()
        eventually(
            lambda: jobs.rows(SUCCEEDED) == [(COUNT,)], what=f"seed {seed}: all have succeeded", timeout=90
        )
    begun = starts(tmp_path)
    history = history_of(jobs, accepted, begun)
    wrong = faults(history)
    assert not wrong, f"seed {seed}, killed at {stops}: {len(wrong)} wrong\n" + "\n".join(wrong[:20])
    changes = sum(map(len, history.transitions.values()))
    print(
        f"seed {seed}: {len(begun)} bodies of {COUNT} jobs, {changes} changes of state, {len({one.process for one in begun})} processes"
    )
