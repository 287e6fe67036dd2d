"""Jobs from their submission to their end, on the real broker and the real database."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.jobs import JobGround, working, write
from tests.support.wait import eventually

from packhorse.processor import AsyncJobContext, JobContext, Quarantine, Retry, Skip


def test_a_job_succeeds_with_its_result_and_what_it_writes(jobs: JobGround) -> None:
    """Fails when the end of the job and what its body writes are two transactions, or a state is not on record."""
    app = working(jobs.namespace)
    jobs.make_topics(app)
    handle = jobs.submit(7, tenant="north", actor="ada")
    assert jobs.job(handle.id) == ("accepted", 0, None)
    with jobs.processing(app):
        jobs.until_state(handle.id, "succeeded")
    assert jobs.history(handle.id) == ["accepted", "running", "succeeded"]
    assert jobs.job(handle.id, "result, attempt, worker, token, lease_until, changed_by") == (
        {"n": 7},
        1,
        None,
        None,
        None,
        "worker",
    )
    assert jobs.results() == [7]
    assert jobs.outcome(handle.id) == ("done", 1, None, 1)


@pytest.mark.parametrize("quick", [False, True])
def test_many_jobs_are_each_done_once(jobs: JobGround, quick: bool) -> None:
    """Fails when a chunk of jobs loses one, or runs one twice."""
    app = working(jobs.namespace, quick=quick)
    jobs.make_topics(app)
    ids = [jobs.submit(n, carry=False).id for n in range(40)]
    assert jobs.carry() == 40
    with jobs.processing(app):
        eventually(
            lambda: jobs.rows("SELECT 1 FROM packhorse.job WHERE state = 'succeeded' HAVING count(*) = 40"),
            what="all have succeeded",
        )
    assert sorted(jobs.results()) == list(range(40))
    assert all(jobs.history(one) == ["accepted", "running", "succeeded"] for one in ids)


def test_a_job_that_fails_is_retried_and_then_waits_for_a_person(jobs: JobGround) -> None:
    """Fails when a failed run leaves the job running, or its message and its state tell different stories."""
    app = working(jobs.namespace, retry=Retry(attempts=2, delays=["100ms"]))
    jobs.make_topics(app)
    bad, once = jobs.submit(1, "fails"), jobs.submit(2, "fails once")
    with jobs.processing(app):
        jobs.until_state(bad.id, "quarantined")
        jobs.until_state(once.id, "succeeded")
    assert jobs.history(bad.id) == ["accepted", "running", "retrying", "running", "quarantined"]
    assert jobs.history(once.id) == ["accepted", "running", "retrying", "running", "succeeded"]
    state, error = jobs.job(bad.id, "reason, error")
    assert state == "attempts-exhausted"
    assert "ValueError" in error
    assert "fails: 1" not in error
    assert jobs.outcome(bad.id) == ("quarantine", 2, "attempts-exhausted", 2)


def test_a_body_says_how_it_ends(jobs: JobGround) -> None:
    """Fails when Skip or Quarantine of a body are taken for failures that may pass."""

    def body(job: Any, ctx: JobContext) -> None:
        raise Skip("nothing to report") if job.n == 1 else Quarantine("no-such-account")

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    skipped, stopped = jobs.submit(1), jobs.submit(2)
    with jobs.processing(app):
        jobs.until_state(skipped.id, "cancelled")
        assert jobs.until_state(stopped.id, "quarantined") == ("quarantined", 1, "no-such-account")


def test_what_a_body_returns_must_be_kept(jobs: JobGround) -> None:
    """Fails when a result that is no JSON takes the lane down, or is tried again and again."""

    def body(job: Any, ctx: JobContext) -> object:
        return object() if job.n == 1 else "x" * 100_000

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    ids = [jobs.submit(n).id for n in (1, 2)]
    with jobs.processing(app):
        for one in ids:
            assert jobs.until_state(one, "quarantined") == ("quarantined", 1, "bad-result")


def test_an_async_body_keeps_its_place_and_writes_with_its_success(jobs: JobGround) -> None:
    """Fails when a checkpoint is not there for the next run, or what an async body writes is not in the transaction."""
    seen: list[Any] = []

    async def body(job: Any, ctx: AsyncJobContext) -> int:
        seen.append(ctx.state)
        if ctx.state is None:
            await ctx.checkpoint({"page": 3})
            raise ValueError("once")

        async def row(connection: Any) -> None:
            await connection.execute("INSERT INTO result (id, n) VALUES (%s, %s)", (ctx.id, job.n))

        ctx.on_success(row)
        return int(ctx.state["page"])

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    handle = jobs.submit(5)
    with jobs.processing(app):
        jobs.until_state(handle.id, "succeeded")
    assert seen == [None, {"page": 3}]
    assert jobs.job(handle.id, "result, checkpoint") == (3, None)
    assert jobs.results() == [5]


def test_no_transaction_is_open_while_a_body_runs(jobs: JobGround) -> None:
    """Fails when the body of a job runs between the beginning of a transaction and its end."""
    began, go = threading.Event(), threading.Event()

    def body(job: Any, ctx: JobContext) -> None:
        began.set()
        go.wait(60)

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    handle = jobs.submit(1)
    with jobs.processing(app):
        assert began.wait(20)
        assert jobs.job(handle.id)[0] == "running"
        found = jobs.rows(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%%'"
        )
        assert found == []
        go.set()


def test_progress_is_seen_while_a_body_runs(jobs: JobGround) -> None:
    """Fails when progress is written at the end alone, or not then."""
    go = threading.Event()

    def body(job: Any, ctx: JobContext) -> None:
        ctx.progress(3, 10, "reading pages")
        go.wait(20)
        ctx.progress(10, 10)

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    handle = jobs.submit(1)
    with jobs.processing(app):
        eventually(
            lambda: (
                jobs.job(handle.id, "progress_done, progress_total, progress_text")
                == (3, 10, "reading pages")
            ),
            what="its progress is there",
        )
        go.set()
        jobs.until_state(handle.id, "succeeded")
    assert jobs.job(handle.id, "progress_done, progress_total") == (10, 10)


def test_steps_that_are_done_are_not_run_again(jobs: JobGround) -> None:
    """Fails when a step's result is not on record before the body goes on."""
    ran: list[str] = []

    def step(name: str) -> Callable[[], str]:
        def run() -> str:
            ran.append(name)
            return f"done {name}"

        return run

    def body(job: Any, ctx: JobContext) -> list[str]:
        found = [ctx.step("fetch", step("fetch"))]
        if ctx.attempt == 1:
            raise ValueError("between the steps")
        return [*found, ctx.step("store", step("store"))]

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    handle = jobs.submit(1)
    with jobs.processing(app):
        jobs.until_state(handle.id, "succeeded")
    assert ran == ["fetch", "store"]
    assert jobs.job(handle.id, "result") == (["done fetch", "done store"],)


def test_a_follow_up_is_written_with_the_success_alone(jobs: JobGround) -> None:
    """Fails when what a failed run emits is written."""

    def body(job: Any, ctx: JobContext) -> None:
        ctx.emit(jobs.report(n=99), key="k")
        write(job, ctx)

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    handle = jobs.submit(1, "fails once")
    with jobs.processing(app):
        jobs.until_state(handle.id, "succeeded")
    assert jobs.rows("SELECT count(*) FROM packhorse.outbox WHERE aggregateid = 'k'") == [(1,)]


def test_work_in_pieces_goes_on_behind_the_last_one_that_was_done(jobs: JobGround) -> None:
    """Fails when a piece counts before it is done, or the next run begins anew."""
    seen: list[tuple[int, range]] = []

    def body(job: Any, ctx: JobContext) -> None:
        for piece in ctx.chunks(25, size=10):
            seen.append((ctx.attempt, piece))
            if ctx.attempt == 1 and piece.start == 10:
                raise ValueError("in the middle")

    async def abody(job: Any, ctx: AsyncJobContext) -> None:
        seen.extend([(ctx.attempt, piece) async for piece in ctx.chunks(25, size=10)])

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    handle = jobs.submit(1)
    with jobs.processing(app):
        jobs.until_state(handle.id, "succeeded")
    assert seen == [(1, range(10)), (1, range(10, 20)), (2, range(10, 20)), (2, range(20, 25))]
    assert jobs.job(handle.id, "progress_done, progress_total") == (25, 25)
    seen.clear()
    handle = jobs.submit(2)
    with jobs.processing(working(jobs.namespace, body=abody)):
        jobs.until_state(handle.id, "succeeded")
    assert [piece for _, piece in seen] == [range(10), range(10, 20), range(20, 25)]
