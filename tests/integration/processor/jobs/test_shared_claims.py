"""Jobs that share a claim although their type declares nothing: none waits for another that takes long."""

import asyncio
import threading
from collections import Counter
from typing import Any

import psycopg
import pytest
from tests.support.jobs import JobGround, working, write
from tests.support.wait import eventually

from packhorse.processor import AsyncJobContext, JobContext
from packhorse.processor.member import pacing

pytestmark = pytest.mark.usefixtures("trusting")
MANY = 40
SHARED = "SELECT max(cardinality(offsets)) FROM packhorse.in_hand"
STATES = "SELECT state, count(*) FROM packhorse.job GROUP BY state ORDER BY state"
TWICE = "SELECT 1 FROM packhorse.inbox WHERE deliveries > 1"


@pytest.fixture
def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let jobs share claims whatever was seen of them: how long a body takes is not for a test to rely on."""
    monkeypatch.setattr(pacing, "CALM", 1)
    monkeypatch.setattr(pacing, "MOMENT", 1e6)


class Bodies:
    """Bodies of jobs that say how often each ran; those that are to take long wait until they may go on."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.runs: Counter[int] = Counter()

    def __call__(self, job: Any, ctx: JobContext) -> dict[str, int]:
        self.runs[job.n] += 1
        if job.what == "long" and ctx.attempt == 1:
            self.go.wait(60)
        return write(job, ctx)

    def plain(self, job: Any, ctx: JobContext) -> None:
        """Write nothing with the success: ends are recorded together."""
        self.runs[job.n] += 1
        if job.what == "long" and ctx.attempt == 1:
            self.go.wait(60)

    async def awaiting(self, job: Any, ctx: AsyncJobContext) -> None:
        """Do the same in the event loop."""
        self.runs[job.n] += 1
        while job.what == "long" and not self.go.is_set():
            await asyncio.sleep(0.01)


def submit(jobs: JobGround, long: int) -> list[Any]:
    """Submit MANY jobs, of which number *long* takes long, and put them on the topic together."""
    ids = [jobs.submit(n, "long" if n == long else "", carry=False).id for n in range(MANY)]
    jobs.carry()
    return ids


@pytest.mark.parametrize("kind", ["writes", "plain", "async"])
def test_one_that_takes_long_keeps_none_of_those_waiting_that_were_claimed_with_it(
    jobs: JobGround, kind: str
) -> None:
    """
    Fails when a body that takes long has others in its lane: neither would those before it be on record, nor those behind it run.
    """
    bodies = Bodies()
    body: Any = {"writes": bodies, "plain": bodies.plain, "async": bodies.awaiting}[kind]
    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    ids = submit(jobs, MANY - 6)
    with jobs.processing(app, concurrency=2):
        eventually(
            lambda: dict(jobs.rows(STATES)) == {"running": 1, "succeeded": MANY - 1},
            what="all but the long one have succeeded",
        )
        assert jobs.job(ids[MANY - 6])[0] == "running"
        assert jobs.rows(SHARED)[0][0] > 1
        bodies.go.set()
        jobs.until_state(ids[MANY - 6], "succeeded")
    assert set(bodies.runs.values()) == {1}
    assert jobs.rows(TWICE) == []


def test_ends_are_recorded_and_the_rest_given_back_while_all_lanes_are_busy(jobs: JobGround) -> None:
    """Fails when ends wait for a lane that is free, or jobs that wait for one are told as running."""
    bodies = Bodies()
    app = working(jobs.namespace, body=bodies.plain)
    jobs.make_topics(app)
    ids = submit(jobs, MANY - 6)
    with jobs.processing(app, concurrency=1):
        eventually(
            lambda: jobs.job(ids[MANY - 6])[0] == "running" and dict(jobs.rows(STATES))["running"] == 1,
            what="the long one alone is running",
        )
        before = dict(jobs.rows(STATES))
        assert before["succeeded"] == sum(bodies.runs.values()) - 1
        assert before["succeeded"] + before.get("accepted", 0) == MANY - 1
        assert jobs.rows(SHARED)[0][0] > 1
        bodies.go.set()
        eventually(lambda: dict(jobs.rows(STATES)) == {"succeeded": MANY}, what="all have succeeded")
    assert set(bodies.runs.values()) == {1}


def test_one_that_does_not_come_back_leaves_the_others_alone(jobs: JobGround) -> None:
    """Fails when what was handed on is taken for the lane's that is left: ends that others have recorded would be run again."""
    bodies = Bodies()
    app = working(jobs.namespace, body=bodies, timeout="300ms")
    jobs.make_topics(app)
    ids = submit(jobs, MANY - 6)
    with jobs.processing(app, concurrency=2):
        for one in ids:
            jobs.until_state(one, "succeeded", timeout=40)
        bodies.go.set()
    assert bodies.runs.pop(MANY - 6) == 2
    assert set(bodies.runs.values()) == {1}
    assert sorted(jobs.results()) == list(range(MANY))


def test_a_write_that_takes_long_keeps_no_end_waiting(jobs: JobGround) -> None:
    """Fails when ends that are written apart wait for one another's locks."""

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        if job.what == "long":
            ctx.on_success(lambda connection: connection.execute("SELECT pg_advisory_xact_lock(7)"))
        return write(job, ctx)

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    ids = submit(jobs, MANY - 6)
    with psycopg.connect(jobs.database) as other:
        other.execute("SELECT pg_advisory_xact_lock(7)")
        with jobs.processing(app, concurrency=2):
            eventually(
                lambda: dict(jobs.rows(STATES)) == {"running": 1, "succeeded": MANY - 1},
                what="all others have succeeded",
            )
            other.rollback()
            jobs.until_state(ids[MANY - 6], "succeeded")
    assert sorted(jobs.results()) == list(range(MANY))


def test_an_end_that_waits_for_a_callers_lock_keeps_no_other_waiting(jobs: JobGround) -> None:
    """Fails when ends that share a transaction wait for whoever has locked one of their rows: he may take his time."""
    with psycopg.connect(jobs.database) as caller:

        def body(job: Any, ctx: JobContext) -> None:
            if job.what == "long":
                caller.execute("SELECT FROM packhorse.job WHERE id = %s FOR NO KEY UPDATE", (ctx.id,))

        app = working(jobs.namespace, body=body)
        jobs.make_topics(app)
        ids = submit(jobs, MANY // 2)
        with jobs.processing(app, concurrency=1):
            eventually(
                lambda: dict(jobs.rows(STATES)) == {"running": 1, "succeeded": MANY - 1},
                what="all others have succeeded",
            )
            caller.rollback()
            jobs.until_state(ids[MANY // 2], "succeeded")
    assert jobs.rows(SHARED)[0][0] > 1
