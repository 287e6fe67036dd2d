"""Runs whose end can't be recorded, or whose message another has dealt with: no job stays with a worker that does nothing for it."""

import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.support.jobs import JobGround, working, write
from tests.support.processing import Running
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.processor import JobContext, Processor, Retry
from packhorse.processor.signals import Point

END_WRITERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND state LIKE 'idle in transaction%%'"""

END_KEEPER = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND query ~ 'SET lease_until|DELETE FROM "packhorse".job_due'"""


class Stop:
    """Hold a processor's threads at a point, the first times that they come to it."""

    def __init__(self, point: Point, times: int) -> None:
        self.inside, self.go = threading.Semaphore(0), threading.Event()
        self._point, self._left, self._lock = point, times, threading.Lock()

    def __call__(self, reached: Point) -> None:
        if reached is not self._point:
            return
        with self._lock:
            self._left -= 1
            if self._left < 0:
                return
        self.inside.release()
        assert self.go.wait(60)


def test_an_end_that_was_not_recorded_before_the_partition_went_does_not_hold_the_job(
    wide_jobs: JobGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when leases of bodies that have ended are renewed for ever: the new owner of the partition would wait for ever."""
    monkeypatch.setattr("packhorse.processor.jobs.keeper.UNRECORDED", 8)
    jobs = wide_jobs
    stop = Stop(Point.BEFORE_RESULT, 2)
    apps = [working(jobs.namespace) for _ in range(2)]
    jobs.make_topics(apps[0])
    with jobs.processing(apps[0], signal=stop, job_lease=3) as first:
        first.until_assigned(2)
        ids = {}
        for partition in (0, 1):
            handle = jobs.submit(partition, carry=False)
            ids[handle.id] = partition
            jobs.carry(partition)
        for _ in range(2):
            assert stop.inside.acquire(timeout=20)
        with jobs.processing(apps[1], job_lease=3) as second:
            second.until_assigned()
            assert len(jobs.rows(END_WRITERS)) == 2
            stop.go.set()
            for one in ids:
                jobs.until_state(one, "succeeded", timeout=30)
            eventually(lambda: first.composed.plant.runs.all() == [], what="nothing is kept of the runs")
    assert sorted(jobs.results()) == [0, 1]


def test_an_end_that_is_recorded_after_the_expiry_of_its_job_stands(jobs: JobGround) -> None:
    """Fails when the expiry of a message is decided without a look at who has its job: neither would ever be recorded."""
    stop = Stop(Point.BEFORE_RESULT, 1)
    app = working(jobs.namespace)
    jobs.make_topics(app)
    expires = SYSTEM_CLOCK.now() + timedelta(seconds=3)
    with jobs.processing(app, signal=stop) as running:
        running.until_assigned()
        handle = jobs.submit(1, expires_at=expires)
        assert stop.inside.acquire(timeout=20)
        past = "SELECT 1 FROM packhorse.job WHERE expires_at < clock_timestamp()"
        eventually(lambda: jobs.rows(past), what="its time has passed")
        assert len(jobs.rows(END_WRITERS)) == 1
        stop.go.set()
        jobs.until_state(handle.id, "succeeded")
    assert jobs.results() == [1]
    assert jobs.history(handle.id) == ["accepted", "running", "succeeded"]


def test_a_long_body_holds_up_no_other_job_when_the_database_was_away(jobs: JobGround) -> None:
    """Fails when the watermark is read again only once no body runs: for hours, nothing else of the partition would begin."""
    go, began = threading.Event(), threading.Event()

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        if job.what == "long":
            began.set()
            assert go.wait(60)
        return write(job, ctx)

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    with jobs.processing(app, job_lease=3):
        long = jobs.submit(1, "long")
        assert began.wait(20)
        until = jobs.job(long.id, "lease_until")
        jobs.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        eventually(lambda: jobs.job(long.id, "lease_until") > until, what="the database is had again")
        for n in (2, 3):
            jobs.until_state(jobs.submit(n).id, "succeeded")
        assert jobs.job(long.id)[0] == "running"
        go.set()
        jobs.until_state(long.id, "succeeded")
        eventually(lambda: jobs.watermark() == 3, what="the watermark has passed all")
    assert jobs.history(long.id) == ["accepted", "running", "succeeded"]
    assert sorted(jobs.results()) == [1, 2, 3]


@pytest.mark.case("P-26")
def test_a_body_that_finds_a_database_of_its_own_away_again_and_again_is_charged_alone(
    jobs: JobGround,
) -> None:
    """Ours is well each time. Fails when nobody is suspected: it would never be charged, and its partition stand still for ever."""

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        if job.what == "away":
            raise psycopg.errors.ConnectionFailure("another database is away")
        if job.what == "ends its connection":
            ctx.on_success(
                lambda connection: connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            )
        return write(job, ctx)

    app = working(jobs.namespace, body=body, retry=Retry(attempts=1))
    jobs.make_topics(app)
    bad = [jobs.submit(1, "away"), jobs.submit(2, "ends its connection")]
    good = jobs.submit(3)
    with jobs.processing(app):
        jobs.until_state(good.id, "succeeded", timeout=40)
        for one in bad:
            assert jobs.until_state(one.id, "quarantined", timeout=60)[2] == "attempts-exhausted"
    assert jobs.rows("SELECT DISTINCT reason FROM packhorse.failed_attempt") == [("connection-lost",)]
    assert jobs.results() == [3]


def test_a_job_that_failed_elsewhere_since_its_message_was_looked_up_is_not_kept(
    wide_jobs: JobGround,
) -> None:
    """
    One message is in two hands, on two partitions, as after a repeat of the relay: one hand has looked at the inbox, the other then
    fails the job, and the first takes it.

    Fails when its run, which can't be recorded, keeps the job: the copy in the tier would wait for its lease for ever.
    """
    jobs = wide_jobs
    runs: Counter[str] = Counter()
    began, go = threading.Event(), threading.Event()

    def worker(name: str) -> Processor:
        def body(job: Any, ctx: JobContext) -> dict[str, int]:
            runs[name] += 1
            if ctx.attempt == 1 and name == holder[0]:
                began.set()
                assert go.wait(60)
                raise ValueError("once")
            return write(job, ctx)

        return working(jobs.namespace, body=body, retry=Retry(attempts=3, delays=["1s"]))

    holder = ["one"]
    apps = [worker("one"), worker("two")]
    jobs.make_topics(apps[0])
    with jobs.processing(apps[0]) as one, jobs.processing(apps[1]) as two, jobs.connected() as other:
        shared = eventually(lambda: _shared(one, two, jobs.topic), what="each has one", timeout=30)
        assert shared is not None
        mine, others = shared
        handle = jobs.submit(5, carry=False)
        jobs.carry(mine)
        assert began.wait(20)
        other.execute("LOCK TABLE packhorse.in_hand IN EXCLUSIVE MODE")
        jobs.carry(others, again=True)
        waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%%in_hand%%'"
        eventually(lambda: jobs.rows(waits), what="the other has looked at the inbox")
        go.set()
        jobs.until_state(handle.id, "retrying")
        other.rollback()
        eventually(lambda: runs["two"] == 1, what="the other has taken it")
        jobs.until_state(handle.id, "succeeded", timeout=30)
    assert jobs.results() == [5]
    assert jobs.job(handle.id, "attempt") == (2,)
    assert ("retrying", "its message was dealt with") in jobs.reasons(handle.id)


def _shared(one: Any, two: Any, topic: str) -> tuple[int, int] | None:
    """Return the partition of *topic* that each reads; None while one has not one."""
    found = [
        [
            at
            for (name, at), state in each.composed.loop.states.items()
            if name == topic and state.position is not None
        ]
        for each in (one, two)
    ]
    return (found[0][0], found[1][0]) if [len(each) for each in found] == [1, 1] else None


def test_a_body_is_waited_for_at_the_end_although_its_partition_was_read_anew(jobs: JobGround) -> None:
    """Only the renewal of leases has lost its connection. Fails when the process waits for what its partitions know to run alone."""
    began = threading.Event()
    runs: list[int] = []

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        runs.append(job.n)
        began.set()
        while not ctx.stopping:
            threading.Event().wait(0.02)
        threading.Event().wait(2.0)  # its work takes so long
        return write(job, ctx)

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    handle = jobs.submit(1)
    with jobs.processing(app, job_lease=3) as running:
        assert began.wait(20)
        eventually(
            lambda: len(jobs.rows(END_KEEPER)) == 1, what="a lease was renewed, and its connection is ended"
        )
        eventually(lambda: _runs_nothing(running), what="the body is let go")
    assert jobs.history(handle.id) == ["accepted", "running", "succeeded"]
    assert runs == [1]


def _runs_nothing(running: Running) -> bool:
    return not any(state.running for state in running.composed.loop.states.values())
