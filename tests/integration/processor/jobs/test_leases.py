"""Leases of jobs: who is killed, frozen or late, who takes over, and what is refused to whom."""

import os
import signal
import threading
from typing import Any

import psycopg
import pytest
from tests.support.jobs import JobGround, working, write
from tests.support.jobs_child import job_child
from tests.support.processing_child import until_dead
from tests.support.wait import eventually

from packhorse.core.errors import OwnershipLost
from packhorse.processor import JobCancelled, JobContext, Retry
from packhorse.processor.signals import Point

STEAL = """
UPDATE packhorse.job SET token = gen_random_uuid(), worker = gen_random_uuid(), lease_until = clock_timestamp() + interval '1 hour',
    changed_at = clock_timestamp(), changed_by = 'worker', attempt = attempt + 1 WHERE id = %s RETURNING 1"""


@pytest.mark.case("J-01")
@pytest.mark.case("J-04")
def test_what_a_killed_worker_had_in_hand_runs_again_after_its_lease(jobs: JobGround) -> None:
    """Two run and four are fetched: fails when an offset passes a job that has not ended, or a lease outlives its worker for ever."""
    jobs.make_topics(working(jobs.namespace))
    ids = [jobs.submit(n, "lingers").id for n in range(6)]
    running = "SELECT count(*) FROM packhorse.job WHERE state = 'running'"
    with job_child(jobs, lease=3) as process:
        eventually(lambda: jobs.rows(running) == [(2,)], what="two run", timeout=40)
        workers = {row[0] for row in jobs.rows("SELECT worker FROM packhorse.job WHERE state = 'running'")}
        os.kill(process.pid, signal.SIGKILL)
        until_dead(process)
    assert jobs.rows(running) == [(2,)]
    with jobs.processing(working(jobs.namespace), job_lease=3):
        for one in ids:
            jobs.until_state(one, "succeeded", timeout=60)
    assert sorted(jobs.results()) == list(range(6))
    taken_over = [one for one in ids if ("running", "lease-over") in jobs.reasons(one)]
    assert len(taken_over) == 2
    again = jobs.rows(
        "SELECT DISTINCT worker FROM packhorse.job_transition WHERE after = 'running' AND job_id = ANY(%s) AND reason = 'lease-over'",
        taken_over,
    )
    assert {row[0] for row in again}.isdisjoint(workers)


@pytest.mark.case("J-02")
@pytest.mark.parametrize("fails", [False, True])
def test_a_worker_whose_lease_is_gone_writes_nothing_when_it_ends_late(jobs: JobGround, fails: bool) -> None:
    """Fails when the end of a run is written without its token: the later end, or a late failure, would win."""
    began, go, ended = threading.Event(), threading.Event(), threading.Event()

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        began.set()
        go.wait(60)
        ended.set()
        if fails:
            raise ValueError("late")
        return write(job, ctx)

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    handle = jobs.submit(1)
    with jobs.processing(app) as running:
        assert began.wait(20)
        assert jobs.rows(STEAL, handle.id) == [(1,)]
        go.set()
        assert ended.wait(20)
        eventually(lambda: running.composed.plant.runs.all() == [], what="the run is forgotten")
    assert jobs.job(handle.id, "state, result, error") == ("running", None, None)
    assert jobs.results() == []
    assert jobs.outcome(handle.id) is None


@pytest.mark.case("J-02")
def test_a_worker_whose_lease_is_gone_keeps_no_checkpoint_and_no_step(jobs: JobGround) -> None:
    """Fails when a checkpoint or a step is written without the token."""
    began, go = threading.Event(), threading.Event()
    met: list[type[BaseException]] = []

    def body(job: Any, ctx: JobContext) -> None:
        began.set()
        go.wait(60)
        for keep in (lambda: ctx.checkpoint({"page": 1}), lambda: ctx.step("one", lambda: 1), ctx.check):
            try:
                keep()
            except OwnershipLost as error:
                met.append(type(error))

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    handle = jobs.submit(1)
    with jobs.processing(app):
        assert began.wait(20)
        jobs.rows(STEAL, handle.id)
        go.set()
        eventually(lambda: len(met) == 3, what="all three are refused")
    assert met == [OwnershipLost] * 3
    assert jobs.job(handle.id, "checkpoint") == (None,)
    assert jobs.rows("SELECT 1 FROM packhorse.job_step") == []


@pytest.mark.case("J-03")
@pytest.mark.case("J-05")
def test_a_job_is_with_one_worker_while_partitions_move(wide_jobs: JobGround) -> None:
    """A second member comes while a body runs: fails when the partition's new owner runs the job beside the first."""
    jobs = wide_jobs
    began, go = threading.Semaphore(0), threading.Event()
    runs: list[int] = []

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        runs.append(job.n)
        began.release()
        go.wait(60)
        return write(job, ctx)

    apps = [working(jobs.namespace, body=body) for _ in range(2)]
    jobs.make_topics(apps[0])
    ids = [jobs.submit(n).id for n in range(4)]
    with jobs.processing(apps[0], concurrency=4):
        for _ in range(4):
            assert began.acquire(timeout=30)
        with jobs.processing(apps[1], concurrency=4) as second:
            second.until_assigned()
            go.set()
            for one in ids:
                jobs.until_state(one, "succeeded", timeout=60)
    assert sorted(runs) == [0, 1, 2, 3]
    assert sorted(jobs.results()) == [0, 1, 2, 3]
    assert all(jobs.history(one) == ["accepted", "running", "succeeded"] for one in ids)


@pytest.mark.case("J-06")
def test_a_lease_is_renewed_while_a_body_blocks_the_event_loop(jobs: JobGround) -> None:
    """Fails when heartbeats run in the body's thread or in the event loop."""
    began, go = threading.Event(), threading.Event()

    async def body(job: Any, ctx: Any) -> None:
        began.set()
        go.wait(60)

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    handle = jobs.submit(1)
    with jobs.processing(app, job_lease=3):
        assert began.wait(20)
        first = jobs.job(handle.id, "lease_until")[0]
        eventually(lambda: jobs.job(handle.id, "lease_until")[0] > first, what="the lease is renewed")
        assert jobs.job(handle.id)[0] == "running"
        go.set()
        jobs.until_state(handle.id, "succeeded")


def test_a_worker_that_stops_gives_its_jobs_back_at_once(jobs: JobGround) -> None:
    """Fails when a job waits for the end of its lease although its worker has left in order."""

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        ctx.checkpoint({"seen": (ctx.state or {"seen": 0})["seen"] + 1})
        while ctx.attempt == 1 and ctx.state["seen"] == 1:
            ctx.check()
            threading.Event().wait(0.02)
        return write(job, ctx)

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    handle = jobs.submit(3)
    with jobs.processing(app, job_lease=3_000):
        jobs.until_state(handle.id, "running")
    assert jobs.job(handle.id, "state, token, checkpoint") == ("accepted", None, {"seen": 1})
    with jobs.processing(app, job_lease=3_000):
        jobs.until_state(handle.id, "succeeded")
    assert jobs.job(handle.id, "attempt") == (1,)
    assert jobs.results() == [3]


def test_a_body_that_does_not_stop_is_left_when_the_time_to_drain_is_over(jobs: JobGround) -> None:
    """Fails when its lease is kept: the job would wait for the end of it; or when what it does later is written."""
    go = threading.Event()
    left: list[str] = []

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        go.wait(60)
        try:
            ctx.checkpoint({"late": True})
        except OwnershipLost:
            left.append("refused")
        return {"n": -1}

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    handle = jobs.submit(1)
    with jobs.processing(app, job_lease=3_000, drain_timeout=0.2):
        jobs.until_state(handle.id, "running")
    assert jobs.job(handle.id)[0] == "accepted"
    go.set()
    eventually(lambda: left == ["refused"], what="the late one is refused")
    with jobs.processing(working(jobs.namespace)):
        jobs.until_state(handle.id, "succeeded")
    assert jobs.job(handle.id, "result, checkpoint") == ({"n": 1}, None)


def test_a_job_that_kills_its_process_ends_in_quarantine(jobs: JobGround) -> None:
    """Fails when the deaths of a job's workers are not counted, or counted while it only waits for a lease."""
    jobs.make_topics(working(jobs.namespace))
    handle = jobs.submit(1, "kills")
    for _ in range(6):
        with job_child(jobs, lease=3) as process:
            ended = eventually(
                lambda: process.poll() is not None or jobs.job(handle.id)[0] == "quarantined",
                what="it died, or the job is in quarantine",
                timeout=60,
            )
            assert ended
        if jobs.job(handle.id)[0] == "quarantined":
            break
    assert jobs.job(handle.id)[::2] == ("quarantined", "crashed")


@pytest.mark.parametrize("point", [Point.BEFORE_RESULT, Point.AFTER_RESULT])
def test_a_kill_around_the_end_of_a_job_leaves_one_result(jobs: JobGround, point: Point) -> None:
    """Fails when the job's end, its result and the inbox row are not one transaction."""
    jobs.make_topics(working(jobs.namespace))
    handle = jobs.submit(1)
    with job_child(jobs, point, lease=3) as process:
        assert until_dead(process) == -signal.SIGKILL
    assert jobs.job(handle.id)[0] == ("running" if point is Point.BEFORE_RESULT else "succeeded")
    with jobs.processing(working(jobs.namespace), job_lease=3):
        jobs.until_state(handle.id, "succeeded", timeout=60)
        eventually(lambda: jobs.watermark() == 1, what="the watermark has passed it", timeout=60)
    assert jobs.results() == [1]
    assert jobs.history(handle.id).count("succeeded") == 1


def test_a_lost_database_at_the_end_of_a_body_does_not_run_it_again(jobs: JobGround) -> None:
    """Fails when the end of a long body is forgotten because it could not be recorded at once."""
    began, go = threading.Event(), threading.Event()
    runs: list[int] = []

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        runs.append(ctx.attempt)
        began.set()
        go.wait(60)
        return write(job, ctx)

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    handle = jobs.submit(4)
    with jobs.processing(app):
        assert began.wait(20)
        jobs.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        go.set()
        jobs.until_state(handle.id, "succeeded")
    assert runs == [1]
    assert jobs.results() == [4]


def test_cancelled_is_raised_where_a_body_looks(jobs: JobGround) -> None:
    """Fails when a body is not told that its job is cancelled, or the job ends otherwise."""
    met: list[str] = []

    def body(job: Any, ctx: JobContext) -> None:
        try:
            while True:
                ctx.check()
                threading.Event().wait(0.02)
        except JobCancelled as error:
            met.append(str(error))
            raise

    app = working(jobs.namespace, body=body, retry=Retry(attempts=2, delays=["100ms"]))
    jobs.make_topics(app)
    handle = jobs.submit(1)
    with jobs.processing(app):
        jobs.until_state(handle.id, "running")
        jobs.cancel(handle.id, why="not wanted any more", actor="ada")
        jobs.until_state(handle.id, "cancelled")
    assert met == ["cancelled"]
    assert jobs.job(handle.id, "changed_by, cancel_why") == ("ada", "not wanted any more")
    assert jobs.outcome(handle.id) == ("skipped", 1, "cancelled", 1)


def test_a_rebalance_ends_no_write_of_a_body_that_has_succeeded(wide_jobs: JobGround) -> None:
    """Its partition goes while it is written: fails when the statement is cancelled with the partition, and the run charged for it."""
    jobs = wide_jobs
    writing = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE %s"

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        ctx.on_success(lambda connection: connection.execute("LOCK TABLE result IN ROW EXCLUSIVE MODE"))
        return write(job, ctx)

    apps = [working(jobs.namespace, body=body) for _ in range(2)]
    jobs.make_topics(apps[0])
    with psycopg.connect(jobs.database) as other:
        other.execute("LOCK TABLE result IN ACCESS EXCLUSIVE MODE")
        ids = [jobs.submit(n).id for n in range(4)]
        with jobs.processing(apps[0], concurrency=4, lock_timeout=30, revoke_timeout=0.2):
            eventually(lambda: jobs.rows(writing, "LOCK TABLE%") == [(4,)], what="four write", timeout=30)
            with jobs.processing(apps[1], concurrency=4) as second:
                second.until_assigned()
                other.commit()
                for one in ids:
                    jobs.until_state(one, "succeeded", timeout=60)
    assert all(jobs.history(one) == ["accepted", "running", "succeeded"] for one in ids)
    assert sorted(jobs.results()) == [0, 1, 2, 3]
