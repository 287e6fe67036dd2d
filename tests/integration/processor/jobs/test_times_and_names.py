"""Times of jobs (not before, expiry, time-outs, deadlines), names of which one waits or runs, and who gets lanes."""

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.support.jobs import JobGround, working, write
from tests.support.processing import GROUP
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.processor import AsyncJobContext, JobContext, Processor, Retry
from packhorse.producer import Outbox


def soon(seconds: float) -> Any:
    """Return a time that is so many seconds from now."""
    return SYSTEM_CLOCK.now() + timedelta(seconds=seconds)


def test_a_job_waits_for_its_time_and_is_sent_once_by_one_of_many_workers(wide_jobs: JobGround) -> None:
    """Fails when a job is sent before it is due, or by each worker that sees it due."""
    jobs = wide_jobs
    apps = [working(jobs.namespace) for _ in range(2)]
    jobs.make_topics(apps[0])
    ids = [jobs.submit(n, not_before=soon(2), carry=False).id for n in range(5)]
    assert jobs.carry() == 0
    with jobs.processing(apps[0]), jobs.processing(apps[1]):
        eventually(
            lambda: jobs.rows("SELECT count(*) FROM packhorse.outbox") == [(5,)],
            what="all five are in the outbox",
        )
        assert jobs.carry() == 5
        for one in ids:
            jobs.until_state(one, "succeeded")
    early = "SELECT 1 FROM packhorse.job WHERE started_at < not_before"
    assert jobs.rows(early) == []
    assert jobs.rows("SELECT 1 FROM packhorse.job_due") == []


def test_a_job_that_is_cancelled_before_its_time_is_never_sent(jobs: JobGround) -> None:
    """Fails when what waits for its time outlives its job."""
    handle = jobs.submit(1, not_before=soon(60))
    jobs.cancel(handle.id)
    assert jobs.job(handle.id)[0] == "cancelled"
    assert jobs.rows("SELECT 1 FROM packhorse.job_due") == []


def test_no_body_starts_after_the_expiry(jobs: JobGround) -> None:
    """Fails when a job whose time has passed is run, or stays accepted."""
    app = working(jobs.namespace)
    jobs.make_topics(app)
    handle = jobs.submit(1, expires_at=soon(0.3), carry=False)
    eventually(
        lambda: jobs.rows("SELECT 1 FROM packhorse.job WHERE expires_at < clock_timestamp()"),
        what="its time has passed",
    )
    jobs.carry()
    with jobs.processing(app):
        jobs.until_state(handle.id, "expired")
    assert jobs.results() == []
    assert jobs.history(handle.id) == ["accepted", "expired"]
    assert jobs.outcome(handle.id) == ("skipped", 0, "expired", 1)


def test_a_job_that_is_cancelled_before_it_runs_is_not_run(jobs: JobGround) -> None:
    """Fails when the message of a cancelled job is run, or its state moves on."""
    app = working(jobs.namespace)
    jobs.make_topics(app)
    handle = jobs.submit(1)
    jobs.cancel(handle.id, actor="ada")
    with jobs.processing(app):
        eventually(lambda: jobs.outcome(handle.id), what="its message is dealt with")
    assert jobs.outcome(handle.id) == ("skipped", 0, "cancelled", 1)
    assert jobs.history(handle.id) == ["accepted", "cancelled"]
    assert jobs.results() == []


def test_a_body_that_outlasts_its_time_out_is_asked_to_stop_and_has_failed(jobs: JobGround) -> None:
    """Fails when a time-out does not reach the body, or is not charged."""

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        while ctx.attempt == 1:
            ctx.check()
            threading.Event().wait(0.02)
        return write(job, ctx)

    app = working(jobs.namespace, body=body, timeout="300ms")
    jobs.make_topics(app)
    handle = jobs.submit(1)
    with jobs.processing(app):
        jobs.until_state(handle.id, "succeeded")
    assert ("retrying", "timeout") in jobs.reasons(handle.id)


def _sleeps(connection: Any) -> Any:
    return connection.execute("SELECT pg_sleep(120)")


async def _asleep(connection: Any) -> None:
    await asyncio.Event().wait()  # which nobody sets


@pytest.mark.parametrize(("is_async", "hangs"), [(False, _sleeps), (True, _sleeps), (True, _asleep)])
def test_what_comes_with_the_success_is_under_the_time_out_too(
    jobs: JobGround, is_async: bool, hangs: Any
) -> None:
    """Fails when a write of `on_success` that hangs keeps the job's row, its name and the lane, or leaves a part behind."""
    tried: list[int] = []

    def writes(job: Any, ctx: Any) -> dict[str, int]:
        found = write(job, ctx)
        if ctx.attempt == 1:
            tried.append(job.n)
            ctx.on_success(hangs)
        return found

    async def awrites(job: Any, ctx: AsyncJobContext) -> dict[str, int]:
        return writes(job, ctx)

    app = working(jobs.namespace, body=awrites if is_async else writes, timeout="500ms")
    jobs.make_topics(app)
    first = jobs.submit(1, one_running="ledger")
    with jobs.processing(app):
        eventually(lambda: tried, what="its write has begun")
        second = jobs.submit(2, one_running="ledger")
        for one in (first, second):
            jobs.until_state(one.id, "succeeded", timeout=40)
    assert ("retrying", "timeout") in jobs.reasons(first.id)
    assert sorted(jobs.results()) == [1, 2]


def test_a_body_that_does_not_come_back_from_its_time_out_is_replaced(jobs: JobGround) -> None:
    """Fails when its lane waits for it for ever, or what it writes when it comes back counts."""
    go, first = threading.Event(), threading.Event()

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        if ctx.attempt == 1:
            first.set()
            go.wait(60)
            return {"n": -1}
        return write(job, ctx)

    app = working(jobs.namespace, body=body, timeout="200ms")
    jobs.make_topics(app)
    handle = jobs.submit(1)
    with jobs.processing(app):
        jobs.until_state(handle.id, "succeeded", timeout=40)
        assert first.is_set()
        go.set()
    assert jobs.job(handle.id, "result") == ({"n": 1},)
    assert ("retrying", "timeout") in jobs.reasons(handle.id)


@pytest.mark.parametrize(("after", "state"), [("quarantine", "quarantined"), ("expire", "expired")])
def test_a_job_that_outlives_its_deadline_goes_where_its_type_says(
    jobs: JobGround, after: Any, state: str
) -> None:
    """Fails when the deadline counts runs alone, or what becomes of the job is not seen."""
    retry = Retry(attempts=50, delays=["100ms"])
    app = working(jobs.namespace, retry=retry, deadline="500ms", after_deadline=after)
    jobs.make_topics(app)
    handle = jobs.submit(1, "fails")
    with jobs.processing(app):
        jobs.until_state(handle.id, state)
    assert jobs.job(handle.id, "reason") == ("deadline" if after == "quarantine" else "expired",)


@pytest.mark.case("J-09")
def test_of_a_name_one_job_runs_at_a_time_whoever_has_the_others(wide_jobs: JobGround) -> None:
    """Fails when two workers, or two lanes of one, run jobs of one name beside each other."""
    jobs = wide_jobs
    here: Counter[str] = Counter()
    most: Counter[str] = Counter()
    lock = threading.Lock()

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        with lock:
            here[job.what] += 1
            most[job.what] = max(most[job.what], here[job.what])
        threading.Event().wait(0.05)
        with lock:
            here[job.what] -= 1
        return write(job, ctx)

    apps = [working(jobs.namespace, body=body) for _ in range(2)]
    jobs.make_topics(apps[0])
    ids = [jobs.submit(n, name, one_running=name).id for n, name in enumerate(["a", "b", "a", "b", "a", "a"])]
    with jobs.processing(apps[0], concurrency=4), jobs.processing(apps[1], concurrency=4):
        for one in ids:
            jobs.until_state(one, "succeeded", timeout=40)
    assert most == {"a": 1, "b": 1}
    assert sorted(jobs.results()) == list(range(6))
    assert jobs.rows("SELECT 1 FROM packhorse.job_running") == []


@pytest.mark.case("J-09")
def test_of_a_name_one_job_waits_at_most_and_another_may_wait_once_it_runs(jobs: JobGround) -> None:
    """Fails when callers that race make two, or when the name is kept while its job runs."""
    go = threading.Event()

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        go.wait(60)
        return write(job, ctx)

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    barrier = threading.Barrier(4)

    def call(n: int) -> Any:
        barrier.wait(20)
        return jobs.submit(n, one_waiting="nightly", carry=False)

    with ThreadPoolExecutor(4) as pool:
        handles = list(pool.map(call, range(4)))
    assert len({handle.id for handle in handles}) == 1
    assert sum(handle.is_new for handle in handles) == 1
    jobs.carry()
    with jobs.processing(app):
        jobs.until_state(handles[0].id, "running")
        second = jobs.submit(9, one_waiting="nightly", carry=False)
        assert second.is_new
        assert not jobs.submit(10, one_waiting="nightly", carry=False).is_new
        jobs.carry()
        go.set()
        jobs.until_state(second.id, "succeeded")
    assert jobs.rows("SELECT 1 FROM packhorse.job_waiting") == []


def test_a_busy_type_leaves_a_lane_for_the_others(jobs: JobGround) -> None:
    """Fails when long jobs of one type may have all lanes: a short one of another type would wait for their end."""
    short = jobs.also("tests.Summary")
    go, running = threading.Event(), threading.Semaphore(0)
    app = Processor(GROUP)

    def long(job: Any, ctx: JobContext) -> None:
        running.release()
        go.wait(60)

    app.job(jobs.report)(long)
    app.job(short)(write)
    jobs.make_topics(app)
    for n in range(6):
        jobs.submit(n)
    with jobs.processing(app, concurrency=3):
        assert running.acquire(timeout=20)
        assert running.acquire(timeout=20)
        handle = jobs.submit_of(short(n=77))
        jobs.until_state(handle.id, "succeeded")
        assert not running.acquire(blocking=False)
        assert jobs.rows("SELECT count(*) FROM packhorse.job WHERE state = 'running'") == [(2,)]
        go.set()
        eventually(
            lambda: jobs.rows("SELECT 1 FROM packhorse.job WHERE state = 'succeeded' HAVING count(*) = 7"),
            what="all have succeeded",
        )
    assert jobs.results() == [77]


def test_urgent_jobs_go_first_and_the_least_urgent_are_done_too(jobs: JobGround) -> None:
    """Fails when priorities share a topic, or when what is urgent is looked at no sooner than the rest."""
    go, began = threading.Event(), threading.Event()
    ran: list[str] = []

    def body(job: Any, ctx: JobContext) -> None:
        began.set()
        go.wait(60)
        ran.append(job.what)

    app = working(jobs.namespace, body=body, priorities=["low", "normal", "high"])
    assert set(app.topics) == {jobs.topic, f"{jobs.topic}.high", f"{jobs.topic}.low"}
    jobs.make_topics(app)
    jobs.submit(0, "first")
    with jobs.processing(app, concurrency=1) as running:
        assert began.wait(20)
        for priority in ("low", "normal", "high"):
            for n in range(10):
                jobs.submit(n, priority, priority=priority)
        eventually(
            lambda: sum(sample.pending for sample in running.composed.plant.board.samples) == 31,
            what="all are read",
        )
        go.set()
        eventually(lambda: len(ran) == 31, what="all have run")
    assert ran[1:9] == [*["high"] * 6, "low", "high"]
    assert ran[1:13].count("high") == 10
    assert ran.count("low") == 10


def test_what_was_claimed_with_one_that_does_not_come_back_is_run_by_another_lane(jobs: JobGround) -> None:
    """Fails when jobs that share a claim stay running although their lane is left, or the lane goes on with them when it comes back."""
    go, back = threading.Event(), threading.Event()
    runs: Counter[int] = Counter()

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        runs[job.n] += 1
        if job.what == "stays" and ctx.attempt == 1:
            go.wait(60)
            back.set()
        return write(job, ctx)

    app = working(jobs.namespace, body=body, quick=True, timeout="300ms")
    jobs.make_topics(app)
    ids = [jobs.submit(n, "stays" if n == 1 else "", carry=False).id for n in range(4)]
    jobs.carry()
    with jobs.processing(app, job_lease=3_000):
        for one in ids:
            jobs.until_state(one, "succeeded", timeout=40)
        counted = dict(runs)
        go.set()
        assert back.wait(20)
    assert dict(runs) == counted
    assert sorted(jobs.results()) == [0, 1, 2, 3]


def test_a_run_waits_for_the_caller_that_was_given_back_its_job(jobs: JobGround) -> None:
    """Fails when a run begins before what the caller has written can be seen, or holds up other jobs meanwhile."""
    app = working(jobs.namespace, quick=True)
    jobs.make_topics(app)
    first, other = jobs.submit(1, one_waiting="nightly", carry=False), jobs.submit(2, carry=False)
    with psycopg.connect(jobs.database) as caller:
        assert not Outbox(origin="tests").submit(caller, jobs.report(n=3), one_waiting="nightly").is_new
        jobs.carry()
        with jobs.processing(app):
            jobs.until_state(other.id, "succeeded")
            assert jobs.job(first.id)[0] == "accepted"
            caller.commit()
            jobs.until_state(first.id, "succeeded")


@pytest.mark.parametrize(("after", "state"), [("quarantine", "quarantined"), ("expire", "expired")])
def test_a_run_ends_with_the_deadline_of_its_job(jobs: JobGround, after: Any, state: str) -> None:
    """Fails when a deadline is looked at before a run alone: a body that hangs would hang for ever."""

    def body(job: Any, ctx: JobContext) -> None:
        while True:
            ctx.check()
            threading.Event().wait(0.02)

    app = working(jobs.namespace, body=body, deadline="600ms", after_deadline=after)
    jobs.make_topics(app)
    handle = jobs.submit(1)
    with jobs.processing(app):
        jobs.until_state(handle.id, state)
    assert jobs.history(handle.id) == ["accepted", "running", state]
