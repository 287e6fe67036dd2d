"""Jobs on the whole road, through the real relay, with a kill -9 at each place that is bad for it."""

import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from tests.support.job_histories import faults, history_of
from tests.support.jobs import JobGround, working
from tests.support.jobs_child import job_child, starts
from tests.support.processing_child import until_dead
from tests.support.relay import Relays, relays
from tests.support.topics import records
from tests.support.wait import eventually

from packhorse.processor.signals import Point
from packhorse.producer import Outbox

LEASE = 3.0


@pytest.fixture
def relaying(wide_jobs: JobGround, tmp_path: Path) -> Iterator[Relays]:
    """Provide relays of the ground's database."""
    jobs = wide_jobs
    with relays(tmp_path, database=jobs.database, bootstrap=jobs.kafka, namespace=jobs.namespace) as made:
        yield made


@pytest.mark.case("B-01")
@pytest.mark.case("R-04")
@pytest.mark.case("P-13")
def test_jobs_are_done_once_whatever_is_killed_on_their_way(
    wide_jobs: JobGround, relaying: Relays, tmp_path: Path
) -> None:
    """
    The relay dies before it publishes, and again before its horizon moves; a worker after a result and before the watermark; a
    worker in the last attempt of a job; one with a job in the middle.

    Fails when a job is lost, done twice, or ends otherwise than its history says: say, when the end of a job is recorded without
    its token, or a death counts as an attempt.
    """
    jobs = wide_jobs
    jobs.make_topics(working(jobs.namespace))
    accepted = {jobs.submit(n, carry=False).id: n for n in range(8)}
    accepted |= {jobs.submit(n, "fails once", carry=False).id: n for n in (20, 21)}
    last = jobs.submit(30, "kills last", carry=False).id
    accepted[last] = 30
    _rolled_back(jobs)

    assert relaying.start("fetched", "1").ended() == -signal.SIGKILL
    assert records(jobs.kafka, jobs.topic) == []
    assert relaying.start("confirmed", "1").ended() == -signal.SIGKILL
    relaying.start()
    published = eventually(
        lambda: _all_twice(jobs, accepted), what="what was published and not saved comes again", timeout=40
    )

    with job_child(jobs, Point.AFTER_RESULT, lease=LEASE, folder=tmp_path) as worker:
        assert until_dead(worker, timeout=60) == -signal.SIGKILL
    with job_child(jobs, lease=LEASE, folder=tmp_path) as worker:
        assert until_dead(worker, timeout=60) == -signal.SIGKILL
    assert jobs.job(last, "state, attempt") == ("running", 3)
    with job_child(jobs, lease=LEASE, folder=tmp_path):
        done = "SELECT count(*) FROM packhorse.job WHERE state = 'succeeded'"
        eventually(lambda: jobs.rows(done) == [(len(accepted),)], what="all have succeeded", timeout=60)
        eventually(
            lambda: _passed(jobs) == [published] * 2, what="marks and offsets have passed all", timeout=30
        )

    assert faults(history_of(jobs, accepted, starts(tmp_path))) == []
    tried = [one.attempt for one in starts(tmp_path) if one.id == last]
    # The first kill, which another job brings about, may come between its first run and the record of that: then that run counts for nothing.
    assert tried in ([1, 2, 3, 3], [1, 1, 2, 3, 3])
    assert jobs.job(last, "attempt") == (3,)


def _rolled_back(jobs: JobGround) -> UUID:
    with psycopg.connect(jobs.database) as connection:
        handle = Outbox(origin="tests").submit(connection, jobs.report(n=99))
        connection.rollback()
    return handle.id


def _passed(jobs: JobGround) -> list[int]:
    """Return how many records lie below the watermarks, and below the committed offsets."""
    asked = (jobs.watermark, jobs.committed)
    return [sum(ask(partition) or 0 for partition in (0, 1)) for ask in asked]


def _all_twice(jobs: JobGround, accepted: dict[UUID, int]) -> int:
    """Return how many records stand on the topic, once all jobs do, some of them twice."""
    found = records(jobs.kafka, jobs.topic)
    whole = {UUID(record.id) for record in found} == accepted.keys()
    return len(found) if whole and len(found) > len(accepted) else 0
