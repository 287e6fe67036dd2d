"""Database and broker go away while bodies of jobs run, and come back: nobody is charged, and no body runs twice for it."""

import threading
from collections import Counter
from typing import Any

import pytest
from tests.support.jobs import JobGround, working, write
from tests.support.processing import Running
from tests.support.stack import PrivateBroker, PrivateDatabase
from tests.support.wait import eventually

from packhorse.local.settings import Endpoints
from packhorse.processor import JobContext


class Bodies:
    """Bodies that wait for a word of the test; each says first what it is about to do."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.begun = threading.Semaphore(0)
        self.go = {name: threading.Event() for name in ("middle", "checkpoint", "step", "end", "fails once")}

    def body(self, job: Any, ctx: JobContext) -> dict[str, int]:
        self.runs[job.what] += 1
        self.begun.release()
        assert self.go[job.what].wait(120)
        if job.what == "checkpoint":
            ctx.checkpoint({"page": 1})
            ctx.checkpoint({"page": 2})
        if job.what == "step":
            ctx.step("one", lambda: self.runs.update(["called"]))
        return write(job, ctx)

    def until_begun(self, count: int) -> None:
        for _ in range(count):
            assert self.begun.acquire(timeout=40)


def _away(running: Running) -> bool:
    return any(state.phase.value == "away" for state in running.composed.loop.states.values())


@pytest.mark.case("P-26")
def test_a_database_that_restarts_under_bodies_runs_none_of_them_twice(
    stack: Endpoints, private_database: PrivateDatabase, topic_prefix: str
) -> None:
    """
    One body is in the middle meanwhile, one keeps a checkpoint, one a step, and one has come to its end.

    Fails when an error of the database comes out of a checkpoint at once, or an end that could not be recorded is forgotten.
    """
    through = JobGround(stack, private_database.url, topic_prefix)
    jobs = JobGround(stack, private_database.direct_url, topic_prefix)
    bodies = Bodies()
    app = working(topic_prefix, body=bodies.body)
    jobs.make_topics(app)
    names = ("middle", "checkpoint", "step", "end")
    ids = [jobs.submit(n, name).id for n, name in enumerate(names)]
    with through.processing(app, concurrency=4) as running:
        bodies.until_begun(4)
        jobs.submit(99, carry=False)  # its commit is flushed, and so are the claims before it
        private_database.kill()
        for name in ("checkpoint", "step", "end"):
            bodies.go[name].set()
        eventually(lambda: _away(running), what="the outage is noticed")
        private_database.start()
        bodies.go["middle"].set()
        for one in ids:
            jobs.until_state(one, "succeeded", timeout=60)
    assert bodies.runs == {**dict.fromkeys(names, 1), "called": 1}
    assert [jobs.history(one) for one in ids] == [["accepted", "running", "succeeded"]] * 4
    assert sorted(jobs.results()) == [0, 1, 2, 3]
    assert jobs.rows("SELECT * FROM packhorse.failed_attempt") == []
    assert {jobs.job(one, "attempt") for one in ids} == {(1,)}


@pytest.mark.case("P-09")
def test_a_broker_that_goes_away_under_bodies_runs_none_of_them_twice(
    stack: Endpoints, database: str, private_kafka: PrivateBroker, topic_prefix: str
) -> None:
    """
    Its clients are cut off for as long as it takes to record two ends, one of them a failure whose copy is then to be sent.

    Fails when the end of a job waits for the broker, or a copy that could not be sent is forgotten.
    """
    through = JobGround(stack, database, topic_prefix, kafka=private_kafka.bootstrap)
    jobs = JobGround(stack, database, topic_prefix, kafka=private_kafka.direct_bootstrap)
    bodies = Bodies()
    app = working(topic_prefix, body=bodies.body)
    jobs.make_topics(app)
    well, fails = jobs.submit(1, "middle").id, jobs.submit(2, "fails once").id
    with through.processing(app, kafka_properties={"reconnect.backoff.max.ms": 500}):
        bodies.until_begun(2)
        private_kafka.proxy.cut()
        for name in ("middle", "fails once"):
            bodies.go[name].set()
        jobs.until_state(well, "succeeded")
        jobs.until_state(fails, "retrying")
        private_kafka.proxy.resume()
        jobs.until_state(fails, "succeeded", timeout=60)
        eventually(lambda: jobs.committed() == 2, what="the offset follows", timeout=40)
    assert bodies.runs == {"middle": 1, "fails once": 2}
    assert jobs.history(well) == ["accepted", "running", "succeeded"]
    assert jobs.history(fails) == ["accepted", "running", "retrying", "running", "succeeded"]
    assert sorted(jobs.results()) == [1, 2]
