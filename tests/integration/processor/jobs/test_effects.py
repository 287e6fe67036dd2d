"""Outside effects against a system in a process of its own: kill -9 around the call, a frozen worker, lost and late answers."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from tests.support.cli import packhorse
from tests.support.databases import fresh_database, unique_name
from tests.support.jobs import JobGround, working, write
from tests.support.outside import Outside, outside_system
from tests.support.outside_child import LEASE, charging, charging_child
from tests.support.processing import GROUP
from tests.support.processing_child import until_dead
from tests.support.wait import eventually

from packhorse.local.settings import Endpoints
from packhorse.processor import JobContext, Processor, Quarantine, Retry
from packhorse.processor.jobs.effects.model import idempotency_key

LONG = 60.0
"""Seconds until a dead worker's messages come to another one, and its lease is over."""


class Crash(NamedTuple):
    """A worker that died or froze with a job in hand."""

    ground: JobGround
    job: UUID
    n: str


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    """Provide a system that honours no idempotency key, so that each call counts."""
    with outside_system(tmp_path_factory.mktemp("outside") / "ledger") as found:
        yield found


@pytest.fixture(scope="module")
def crashes(
    stack: Endpoints, _template: str, outside: Outside, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[tuple[str, str], Crash]]:
    """Kill a worker at each place; together, since the broker takes a while to see that a member is dead."""
    lost = tmp_path_factory.mktemp("lost") / "lost"
    with ExitStack() as block:
        found: dict[tuple[str, str], Crash] = {}
        dying = []
        for n, (place, what) in enumerate(
            (place, what) for place in ("before", "after") for what in ("", "unverified")
        ):
            url = block.enter_context(fresh_database(stack.database_url, _template))
            ground = JobGround(stack, url, unique_name("t"))
            ground.make_topics(charging(ground.namespace, outside.url))
            job = ground.submit(n, what).id
            found[place, what] = Crash(ground, job, str(n))
            dying.append(block.enter_context(charging_child(ground, outside.url, place, lost)))
        for process in dying:
            assert until_dead(process, timeout=LONG) == -signal.SIGKILL
        yield found


def effect_of(ground: JobGround, job: UUID) -> tuple[str, int]:
    return ground.rows("SELECT state, calls FROM packhorse.job_effect WHERE job_id = %s", job)[0]


@pytest.mark.case("J-08")
@pytest.mark.parametrize(("place", "before", "calls"), [("before", 0, 2), ("after", 1, 1)])
def test_a_kill_around_the_call_is_verified(
    crashes: dict[tuple[str, str], Crash], outside: Outside, place: str, before: int, calls: int
) -> None:
    """Fails when the intent is not on record before the call, or an intent without an answer is called again unasked."""
    ground, job, n = crashes[place, ""]
    assert effect_of(ground, job) == ("intended", 1)
    assert len(outside.done(n)) == before
    with ground.processing(charging(ground.namespace, outside.url), job_lease=LEASE):
        ground.until_state(job, "succeeded", timeout=LONG)
    assert outside.done(n) == [idempotency_key(job, "charge")]
    assert effect_of(ground, job) == ("answered" if place == "before" else "happened", calls)
    assert ground.results() == [int(n)]
    (result,) = ground.job(job, "result")
    assert result["answer"]["number"] > 0


@pytest.mark.case("J-08")
@pytest.mark.parametrize(
    ("place", "verdict", "calls"), [("before", "--did-not-happen", 2), ("after", "--happened", 1)]
)
def test_a_kill_around_the_call_is_for_a_person_without_verify(
    crashes: dict[tuple[str, str], Crash], outside: Outside, place: str, verdict: str, calls: int
) -> None:
    """Fails when the call is made again in silence, or what the person says is not believed."""
    ground, job, n = crashes[place, "unverified"]
    with ground.processing(charging(ground.namespace, outside.url), job_lease=LEASE):
        assert ground.until_state(job, "uncertain", timeout=LONG)[2] == "uncertain"
        assert effect_of(ground, job) == ("uncertain", 1)
        assert len(outside.done(n)) == (place == "after")
        said = packhorse(
            "job", "resolve", str(job), verdict, "--why", "asked them", "--yes", **ground.environ
        )
        assert said.code == 0, said.out + said.err
        ground.until_state(job, "succeeded", timeout=LONG)
    assert outside.done(n) == [idempotency_key(job, "charge")]
    assert effect_of(ground, job)[1] == calls
    assert ground.history(job)[-5:] == ["running", "uncertain", "retrying", "running", "succeeded"]


@pytest.mark.case("J-02")
@pytest.mark.case("J-08")
def test_a_frozen_worker_that_thaws_behind_its_intent_does_not_call(
    jobs: JobGround, outside: Outside, tmp_path: Path
) -> None:
    """Fails when a worker goes on with its call however late, or without the lease."""
    jobs.make_topics(charging(jobs.namespace, outside.url))
    job = jobs.submit(100).id
    with charging_child(jobs, outside.url, "freeze", tmp_path / "lost") as frozen:
        eventually(lambda: is_stopped(frozen), what="the worker is frozen", timeout=LONG)
        assert effect_of(jobs, job) == ("intended", 1)
        with jobs.processing(charging(jobs.namespace, outside.url), job_lease=LEASE):
            jobs.until_state(job, "succeeded", timeout=LONG)
        os.kill(frozen.pid, signal.SIGCONT)
        eventually((tmp_path / "lost").exists, what="it finds that it has lost its job", timeout=LONG)
    assert outside.seen("100") == outside.done("100") == [idempotency_key(job, "charge")]
    assert jobs.results() == [100]
    assert effect_of(jobs, job) == ("answered", 2)


def is_stopped(process: "Popen[str]") -> bool:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.case("J-08")
@pytest.mark.parametrize("how", ["lose", "hold-answer"])
def test_an_answer_that_is_lost_or_late_is_asked_for(jobs: JobGround, outside: Outside, how: str) -> None:
    """Fails when an error of the call counts as "it did not happen"."""
    n = 200 + len(how)
    app = charging(jobs.namespace, outside.url)
    jobs.make_topics(app)
    job = jobs.submit(n, how).id
    with jobs.processing(app):
        jobs.until_state(job, "succeeded")
    assert outside.done(str(n)) == [idempotency_key(job, "charge")]
    assert effect_of(jobs, job) == ("happened", 1)
    assert jobs.history(job).count("running") == 2


@pytest.mark.case("J-08")
def test_a_request_that_arrives_while_the_worker_waits_no_more_is_found(
    jobs: JobGround, tmp_path: Path
) -> None:
    """Fails when a "no" is believed before the request can't be on its way any more."""
    with outside_system(tmp_path / "ledger") as outside:
        app = charging(jobs.namespace, outside.url)
        jobs.make_topics(app)
        job = jobs.submit(300, "hold").id
        with jobs.processing(app):
            jobs.until_state(job, "retrying")
            outside.release()
            jobs.until_state(job, "succeeded")
        assert outside.seen("300") == outside.done("300") == [idempotency_key(job, "charge")]


@pytest.mark.case("J-08")
def test_a_system_that_dies_with_the_call_is_asked_when_it_is_back(jobs: JobGround, tmp_path: Path) -> None:
    """Fails when a system that can't be asked counts as one that says no."""
    with outside_system(tmp_path / "ledger") as outside:
        app = charging(jobs.namespace, outside.url)
        jobs.make_topics(app)
        job = jobs.submit(400, "die").id
        with jobs.processing(app):
            outside.until_dead()
            eventually(lambda: jobs.history(job).count("running") >= 2, what="it is tried again")
            assert effect_of(jobs, job) == ("intended", 1)
            outside.start()
            jobs.until_state(job, "succeeded")
        assert outside.done("400") == [idempotency_key(job, "charge")]


def test_a_refused_call_is_made_again(jobs: JobGround, tmp_path: Path) -> None:
    """Fails when a call that surely had no effect makes the job uncertain."""
    with outside_system(tmp_path / "ledger") as outside:
        outside.kill()
        app = charging(jobs.namespace, outside.url)
        jobs.make_topics(app)
        job = jobs.submit(500, "unverified").id
        with jobs.processing(app):
            jobs.until_state(job, "retrying")
            outside.start()
            jobs.until_state(job, "succeeded")
        assert outside.done("500") == [idempotency_key(job, "charge")]


def unanswered(namespace: str, *, attempts: int = 1) -> Processor:
    """Return a processor whose job's call is never answered, and that can't ask."""

    def body(job: Any, ctx: JobContext) -> None:
        def call(key: str) -> None:
            raise TimeoutError("no answer")

        try:
            ctx.effect("charge", call)
        except TimeoutError:
            if job.what == "gives up":
                raise Quarantine("given-up") from None
            raise

    return working(namespace, body=body, retry=Retry(attempts=attempts, delays=["1s"]))


@pytest.mark.case("J-08")
@pytest.mark.parametrize(("what", "cause"), [("", "attempts-exhausted"), ("gives up", "given-up")])
def test_a_job_that_stops_for_good_with_an_effect_unanswered_is_uncertain(
    jobs: JobGround, what: str, cause: str
) -> None:
    """Fails when it is one failure among others, which a person sends back or gives up without knowing of the call."""
    app = unanswered(jobs.namespace)
    jobs.make_topics(app)
    job = jobs.submit(600, what).id
    with jobs.processing(app):
        assert jobs.until_state(job, "uncertain")[2] == "uncertain"
        (error,) = jobs.job(job, "error")
        assert f"it stops for {cause}, and nobody knows whether effect charge happened" in error
        (reason, same) = jobs.rows(
            "SELECT reason, error FROM packhorse.quarantined_message WHERE message_id = %s", job
        )[0]
        assert (reason, same) == ("uncertain", error)
        said = packhorse(
            "job", "resolve", str(job), "--happened", "--why", "asked them", "--yes", **jobs.environ
        )
        assert said.code == 0, said.out + said.err
        jobs.until_state(job, "succeeded")
    assert effect_of(jobs, job) == ("happened", 1)


@pytest.mark.case("J-08")
def test_a_job_whose_message_nobody_can_handle_any_more_is_uncertain_too(jobs: JobGround) -> None:
    """Fails when a deploy without the job's code makes of a call that may have happened a failure among others."""
    app, without = unanswered(jobs.namespace, attempts=3), Processor(GROUP)
    without.job(jobs.also("tests.Other"), retry=Retry(delays=["1s"]))(write)
    jobs.make_topics(app)
    job = jobs.submit(700).id
    with jobs.processing(app):
        jobs.until_state(job, "retrying")
    with jobs.processing(without):
        assert jobs.until_state(job, "uncertain")[2] == "unknown-type"
    said = packhorse("job", "resolve", str(job), "--happened", "--why", "asked them", "--yes", **jobs.environ)
    assert said.code == 0, said.out + said.err
    with jobs.processing(app):
        jobs.until_state(job, "succeeded")
