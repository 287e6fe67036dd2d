"""Cancelling that races with the run, people who act on a job's message, and messages that are not what the workers expect."""

import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import psycopg
import pytest
from tests.support.cli import Ran, packhorse
from tests.support.job_histories import chain
from tests.support.jobs import JobGround, working, write
from tests.support.processing import GROUP, noting
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.errors import PackhorseError
from packhorse.processor import JobContext, Processor, Retry
from packhorse.producer import Outbox

MANY = 120


@pytest.mark.case("J-07")
@pytest.mark.parametrize("quick", [False, True])
def test_of_cancelling_and_running_one_wins_whoever_is_first(wide_jobs: JobGround, quick: bool) -> None:
    """
    Four threads cancel all jobs, each in an order of its own, while two workers run them; a half of the cancellings is rolled back.

    Fails when a job is cancelled and has a result, or ends twice: when the end of a run, or cancelling, does not look at the state.
    """
    jobs = wide_jobs

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        if job.n % 3 == 0:
            threading.Event().wait(0.01)
            ctx.check()
        if job.n % 7 == 0 and ctx.attempt == 1:
            raise ValueError("once")
        return write(job, ctx)

    apps = [
        working(jobs.namespace, body=body, quick=quick, retry=Retry(attempts=3, delays=["100ms"]))
        for _ in range(2)
    ]
    jobs.make_topics(apps[0])
    ids = [jobs.submit(n, carry=False).id for n in range(MANY)]
    jobs.cancel(ids[-1])

    def cancel_all(seed: int) -> None:
        order = Random(seed).sample(range(MANY), MANY)
        with psycopg.connect(jobs.database) as connection:
            for n in order:
                try:
                    Outbox(origin="tests").cancel(connection, ids[n], actor=f"thread {seed}")
                except PackhorseError:
                    connection.rollback()
                    continue
                (connection.commit if (n + seed) % 2 else connection.rollback)()

    with jobs.processing(apps[0]) as one, jobs.processing(apps[1]) as two, ThreadPoolExecutor(5) as pool:
        for each in (one, two):
            each.until_assigned()
        carrying = pool.submit(jobs.carry)
        eventually(jobs.results, what="the first is done")
        list(pool.map(cancel_all, range(4)))
        assert carrying.result() == MANY
        ended = "SELECT count(*) FROM packhorse.job WHERE state IN ('succeeded', 'cancelled')"
        eventually(lambda: jobs.rows(ended) == [(MANY,)], what="each has ended", timeout=60)
        eventually(lambda: _dealt_with(jobs) == MANY, what="each message is dealt with", timeout=30)
    states = dict(jobs.rows("SELECT id, state FROM packhorse.job"))
    assert sorted(jobs.results()) == [n for n, one in enumerate(ids) if states[one] == "succeeded"]
    for n, job_id in enumerate(ids):
        changes = jobs.rows(
            "SELECT before, after, at, attempt FROM packhorse.job_transition WHERE job_id = %s ORDER BY id",
            job_id,
        )
        assert list(chain(changes, states[job_id])) == [], n
        outcome = jobs.outcome(job_id)
        assert outcome is not None
        assert outcome[0] == ("done" if states[job_id] == "succeeded" else "skipped")
    assert set(states.values()) == {"succeeded", "cancelled"}


def _dealt_with(jobs: JobGround) -> int:
    return int(jobs.rows("SELECT count(*) FROM packhorse.inbox WHERE outcome IN ('done', 'skipped')")[0][0])


def test_a_job_follows_its_message_through_the_hands_of_people(jobs: JobGround) -> None:
    """
    Discarded, restored, sent back in vain, sent back once more and done. Fails when the state lags behind the message, or the
    history hides who acted; or when somebody who wanted it cancelled before it failed has the last word over who sends it back.
    """
    mended, begun, go = threading.Event(), threading.Event(), threading.Event()

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        begun.set()
        assert go.wait(60)
        if not mended.is_set():
            raise ValueError("not mended")
        return write(job, ctx)

    app = working(jobs.namespace, body=body, retry=Retry(attempts=1))
    jobs.make_topics(app)
    with jobs.processing(app):
        job_id = jobs.submit(4).id
        assert begun.wait(20)
        jobs.cancel(job_id, actor="bob")
        go.set()
        jobs.until_state(job_id, "quarantined")
        act(jobs, "discard", job_id, why="not wanted")
        assert jobs.job(job_id, "state, finished_at IS NOT NULL") == ("discarded", True)
        act(jobs, "restore", job_id, why="wanted after all")
        assert jobs.job(job_id, "state, finished_at, reason")[:2] == ("quarantined", None)
        act(jobs, "redrive", job_id, why="try")
        eventually(lambda: jobs.history(job_id).count("quarantined") == 3, what="it failed again")
        mended.set()
        act(jobs, "redrive", job_id, why="mended")
        jobs.until_state(job_id, "succeeded")
    assert jobs.history(job_id) == [
        "accepted", "running", "quarantined", "discarded", "quarantined", "retrying", "running", "quarantined", "retrying",
        "running", "succeeded",
    ]  # fmt: skip
    rows = jobs.rows(
        "SELECT after, actor FROM packhorse.job_transition WHERE job_id = %s ORDER BY id", job_id
    )
    people = {actor for after, actor in rows if after in {"discarded", "retrying"}}
    assert "worker" not in people
    assert len(people) == 1
    assert jobs.results() == [4]


def act(jobs: JobGround, verb: str, job_id: Any, *, why: str) -> None:
    """Act on the job's message with the command."""
    ran = packhorse("quarantine", verb, job_id, "--why", why, "--yes", **jobs.environ)
    assert ran.code == 0, ran.err


def test_a_message_that_comes_twice_runs_its_job_once(wide_jobs: JobGround) -> None:
    """On both partitions at once, as after a repeat of the relay. Fails when a run begins beside another, or after the end."""
    jobs = wide_jobs
    runs: list[int] = []
    begun, go = threading.Event(), threading.Event()

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        runs.append(job.n)
        begun.set()
        assert go.wait(60)
        return write(job, ctx)

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    with jobs.processing(app):
        handle = jobs.submit(1)
        jobs.carry(1, again=True)
        assert begun.wait(20)
        go.set()
        jobs.until_state(handle.id, "succeeded")
        jobs.carry(0, again=True)
        eventually(lambda: (jobs.watermark(0), jobs.watermark(1)) == (2, 1), what="all three are dealt with")
    assert runs == [1]
    assert jobs.results() == [1]
    assert jobs.history(handle.id) == ["accepted", "running", "succeeded"]
    assert jobs.outcome(handle.id) == ("done", 1, None, 3)


def test_messages_that_are_no_jobs_rest_in_quarantine_and_hold_up_nobody(jobs: JobGround) -> None:
    """
    The input emitted as an event, one whose job is in no row, one without id, and a deletion. Fails when one of them is tried again,
    takes the lane down, or makes a job of itself.
    """
    app = working(jobs.namespace)
    jobs.make_topics(app)
    with psycopg.connect(jobs.database) as connection:
        emitted = Outbox(origin="tests").emit(connection, jobs.report(n=1), key="k")
    jobs.carry()
    kind = {"type": b"tests.Report", "schema-version": b"1"}
    stranger = SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now())
    jobs.send(topic=jobs.topic, key=None, payload=b"garbage", headers=kind, message_id=stranger)
    jobs.send(topic=jobs.topic, key=None, payload=b"\x00\x01", headers={**kind, "id": b"-"})
    deletion = SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now())
    jobs.send(topic=jobs.topic, key=b"k", payload=None, headers=kind, message_id=deletion)
    good = jobs.submit(7)
    with jobs.processing(app):
        jobs.until_state(good.id, "succeeded")
        eventually(lambda: jobs.watermark() == 5, what="all are dealt with")
    for one, reason in ((emitted, "no-job"), (stranger, "no-job"), (deletion, "no-tombstone-handler")):
        assert jobs.outcome(one) == ("quarantine", 0, reason, 1)
    assert jobs.rows("SELECT reason, count(*) FROM packhorse.quarantined_message GROUP BY 1 ORDER BY 1") == [
        ("no-job", 3),
        ("no-tombstone-handler", 1),
    ]
    assert jobs.rows("SELECT count(*) FROM packhorse.job") == [(1,)]
    assert jobs.rows("SELECT 1 FROM packhorse.failed_attempt") == []


def test_another_group_that_reads_the_topic_neither_runs_nor_moves_jobs(jobs: JobGround) -> None:
    """
    It comes first, knows nothing of the type, and puts its own deliveries into its own quarantine; then a person acts on those.

    Fails when a job follows the message of another group: it would be quarantined before its workers have seen it, and they would
    skip it.
    """
    app = working(jobs.namespace)
    others = f"others-{jobs.namespace}"
    readers = noting(jobs.namespace, group=others)
    readers.handler(jobs.also("tests.Summary"))(lambda message, ctx: None)
    jobs.make_topics(app, readers)
    first, second = jobs.submit(1), jobs.submit(2)
    with jobs.processing(readers):
        for one in (first, second):
            jobs.until_outcome(one.id, "quarantine", group=others)
    assert jobs.job(first.id, "state, group_id") == ("accepted", None)
    discarded = packhorse(
        "quarantine", "discard", first.id, "--group", others, "--why", "not ours", "--yes", **jobs.environ
    )
    assert discarded.code == 0, discarded.err
    assert jobs.job(first.id)[0] == "accepted"
    with jobs.processing(app):
        for one in (first, second):
            jobs.until_state(one.id, "succeeded")
    restored = packhorse(
        "quarantine", "restore", first.id, "--group", others, "--why", "look again", "--yes", **jobs.environ
    )
    assert restored.code == 0, restored.err
    assert [jobs.history(one.id) for one in (first, second)] == [["accepted", "running", "succeeded"]] * 2
    assert sorted(jobs.results()) == [1, 2]


def test_workers_of_a_second_group_leave_the_jobs_of_the_first_alone(jobs: JobGround) -> None:
    """Both declare the type, by mistake. Fails when the second runs a job beside the first, or ends it: its messages are skipped."""
    runs: list[str] = []

    def worker(group: str) -> Processor:
        def body(job: Any, ctx: JobContext) -> dict[str, int]:
            runs.append(group)
            return write(job, ctx)

        return working(jobs.namespace, group, body=body)

    names = [f"one-{jobs.namespace}", f"two-{jobs.namespace}"]
    apps = [worker(name) for name in names]
    jobs.make_topics(*apps)
    ids = [jobs.submit(n).id for n in range(10)]
    with jobs.processing(apps[0]), jobs.processing(apps[1]):
        for one in ids:
            jobs.until_state(one, "succeeded")
        eventually(
            lambda: [jobs.watermark(0, name) for name in names] == [10, 10], what="both have passed all"
        )
    assert len(runs) == 10
    assert sorted(jobs.results()) == list(range(10))
    skipped = {row[0] for row in jobs.rows("SELECT reason FROM packhorse.inbox WHERE outcome = 'skipped'")}
    assert skipped <= {"other-group"}
    assert all(jobs.history(one) == ["accepted", "running", "succeeded"] for one in ids)


def test_a_replay_runs_the_jobs_that_were_passed_over_and_none_that_have_ended(jobs: JobGround) -> None:
    """A reset has passed over some. Fails when a replay runs a job again, or takes those away that it is to bring."""
    app = working(jobs.namespace)
    jobs.make_topics(app)
    ids = [jobs.submit(n).id for n in range(3)]
    with jobs.processing(app):
        eventually(lambda: jobs.watermark() == 3, what="the first are done")
    ids += [jobs.submit(n).id for n in range(3, 6)]
    _ran(
        jobs,
        "offsets",
        "reset",
        "--group",
        GROUP,
        "--topic",
        jobs.topic,
        "--to",
        "latest",
        "--why",
        "moved",
        "--yes",
    )
    of = ("--group", GROUP, "--topic", jobs.topic, "--partition", 0, "--from-offset", 0)
    with jobs.processing(app) as running:
        running.until_assigned()
        plan = _ran(jobs, "replay", "plan", *of, "--json").json()
        assert plan["counts"]["standings"] == {"done": 3, "never": 3}
        _ran(jobs, "replay", "run", plan["replay"], "--why", "what the reset skipped", "--yes", "--json")
        for one in ids:
            jobs.until_state(one, "succeeded")
    assert sorted(jobs.results()) == list(range(6))
    assert all(jobs.history(one) == ["accepted", "running", "succeeded"] for one in ids)


def _ran(jobs: JobGround, *arguments: object) -> Ran:
    ran = packhorse(*arguments, **jobs.environ)
    assert ran.code == 0, ran.err
    return ran
