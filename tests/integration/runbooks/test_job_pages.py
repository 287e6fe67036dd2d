"""The runbooks of jobs, as they are written: each command does what its page says, on real jobs and workers."""

import shlex
import threading
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.support import job_rows
from tests.support.cli import Ran, packhorse
from tests.support.jobs import JobGround, working
from tests.support.pages import command
from tests.support.wait import eventually

from packhorse.local.settings import Endpoints
from packhorse.processor import JobContext, Retry

ID = "019b76da-a800-7000-8000-000000000000"
TYPE = "reports.ReportRequest"


@pytest.fixture
def jobs(stack: Endpoints, shared_tables: str, topic_prefix: str) -> JobGround:
    """Provide jobs, their topic and their database."""
    return JobGround(stack, shared_tables, topic_prefix)


class Reader:
    """Somebody who types what a page says, with the names of this ground in place of the page's."""

    def __init__(self, jobs: JobGround, page: str) -> None:
        self._jobs = jobs
        self._page = f"runbooks/{page}.md"

    def types(self, block: str, job_id: UUID | None = None) -> Ran:
        """Run the line of *block*, and return how it ended."""
        text = command(self._page, block).replace(TYPE, "tests.Report")
        if job_id is not None:
            assert ID in text, f"{block} names no job"
            text = text.replace(ID, str(job_id))
        assert ID not in text, "the page's own id is not there"
        (line,) = text.splitlines()
        environ = self._jobs.environ | {"PACKHORSE_NAMESPACE": self._jobs.namespace}
        return packhorse(*shlex.split(line)[1:], **environ)

    def does(self, block: str, job_id: UUID | None = None) -> str:
        """Run the line, which is to go well, and return what it printed."""
        ran = self.types(block, job_id)
        assert ran.code == 0, ran.err
        return ran.out


@pytest.mark.case("X-02")
def test_a_job_that_stays_accepted_says_what_it_waits_for_and_is_taken_back(jobs: JobGround) -> None:
    """Fails when a cause is not named, one that waits for long is not found, or a command of the page is not so any more."""
    reader = Reader(jobs, "job-stays-accepted")
    job_id = jobs.submit(carry=False).id
    assert "for its message to be published" in reader.does("explain", job_id)
    with psycopg.connect(jobs.database) as connection:
        connection.execute("UPDATE packhorse.relay SET horizon = (SELECT pg_current_snapshot()), epoch = 1")
        connection.commit()
        told = reader.does("explain", job_id)
        assert "none has ever said so in this database" in told
        assert str(job_id) not in reader.does("stuck")
        connection.execute("UPDATE packhorse.job SET accepted_at = accepted_at - interval '1 hour'")
        connection.commit()
    assert str(job_id) in reader.does("stuck")
    with psycopg.connect(jobs.database) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("DELETE FROM packhorse.outbox WHERE id = %s", (job_id,))
    assert "neither outbox nor inbox know it" in reader.does("explain", job_id)
    assert "written anew at" in reader.does("anew", job_id)
    assert jobs.carry() == 1
    assert "cancelled at" in reader.does("cancel", job_id)
    assert "the customer does not need it any more" in reader.does("proof", job_id)


def test_a_job_that_runs_too_long_is_told_from_one_whose_worker_is_dead_and_stops(jobs: JobGround) -> None:
    """Fails when a living worker's lease is told as over, or a wish to stop does not reach it."""
    reader, begun = Reader(jobs, "job-runs-too-long"), threading.Event()

    def body(job: Any, ctx: JobContext) -> None:
        del job
        ctx.progress(3, 10, "pages")
        begun.set()
        eventually(lambda: ctx.cancelled, what="the worker hears that it is to stop", timeout=60)
        ctx.check()

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    with psycopg.connect(jobs.database) as connection:
        left = job_rows.running(connection, lease=-60)
    assert "over since" in reader.does("show", left)
    with jobs.processing(app):
        job_id = jobs.submit().id
        assert begun.wait(30)
        eventually(
            lambda: "3 of 10" in reader.does("show", job_id), what="its progress is on record", timeout=30
        )
        told = reader.does("show", job_id)
        assert "of worker" in told
        assert "over since" not in told
        stuck = reader.does("stuck")
        assert (str(left) in stuck, str(job_id) in stuck) == (True, False)
        assert "asked to stop" in reader.does("cancel", job_id)
        jobs.until_state(job_id, "cancelled")


def test_a_job_that_succeeded_without_a_result_is_looked_into(jobs: JobGround) -> None:
    """Fails when what a job returned is shown without a record, or an absent result is not told as such."""
    reader = Reader(jobs, "job-without-result")

    def body(job: Any, ctx: JobContext) -> Any:
        del ctx
        return {"report": "r-17"} if job.n else None

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    with jobs.processing(app):
        with_one, without = jobs.submit(1).id, jobs.submit(0).id
        for job_id in (with_one, without):
            jobs.until_state(job_id, "succeeded")
    shown = reader.does("show", with_one)
    assert "bytes; nothing says which parts are personal" in shown
    assert "r-17" not in shown
    assert reader.does("show", without).rstrip().endswith("none")
    assert "r-17" in reader.does("unmask", with_one)
    assert "all adds up" in reader.does("reconcile")


def test_a_job_that_is_tried_again_and_again_is_found_and_sent_back_once_its_cause_is_mended(
    jobs: JobGround,
) -> None:
    """Fails when attempts and reason are not told, or the job is not done after the redrive."""
    reader, mended = Reader(jobs, "job-retries"), threading.Event()

    def body(job: Any, ctx: JobContext) -> Any:
        del job, ctx
        if not mended.is_set():
            raise ValueError("not mended")

    app = working(jobs.namespace, body=body, retry=Retry(attempts=2, delays=["1m"]))
    jobs.make_topics(app)
    with jobs.processing(app):
        job_id, other = jobs.submit().id, jobs.submit().id
        for each in (job_id, other):
            jobs.until_state(each, "retrying")
        assert "ValueError" in reader.does("show", job_id)
        assert "attempt 2 is due" in reader.does("explain", job_id)
        listed = reader.does("list")
        assert str(job_id) in listed
        assert str(other) in listed
        assert "cancelled at" in reader.does("cancel", other)
    app = working(jobs.namespace, body=body, retry=Retry(attempts=1, delays=["1m"]))
    with jobs.processing(app):
        job_id = jobs.submit().id
        jobs.until_state(job_id, "quarantined")
        mended.set()
        assert "redrive asked at" in reader.does("redrive", job_id)
        jobs.until_state(job_id, "succeeded")


def test_a_queue_that_grows_is_counted_and_what_is_not_needed_is_taken_back(jobs: JobGround) -> None:
    reader = Reader(jobs, "job-queue-grows")
    ids = [jobs.submit(n, carry=False).id for n in range(3)]
    assert "tests.Report" in reader.does("counts")
    assert all(str(each) in reader.does("list") for each in ids)
    assert "cancelled at" in reader.does("cancel", ids[0])
    assert str(ids[0]) not in reader.does("list")


class Bank:
    """An outside system that remembers each call by its idempotency key, and may lose its answer."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.answers = False

    def charge(self, key: str) -> dict[str, str]:
        """Charge under an idempotency key."""
        self.calls.append(key)
        if not self.answers:
            raise TimeoutError("no answer")
        return {"charge": f"ch_{len(self.calls)}"}


@pytest.mark.case("J-08")
def test_uncertain_jobs_are_found_and_go_on_as_a_person_says(jobs: JobGround) -> None:
    """Fails when an uncertain job is not found with its idempotency key, or does not go on as it was said."""
    reader, bank = Reader(jobs, "job-uncertain"), Bank()

    def body(job: Any, ctx: JobContext) -> Any:
        del job
        return ctx.effect("charge", bank.charge, timeout="100ms")

    app = working(jobs.namespace, body=body, retry=Retry(attempts=5, delays=["100ms"]))
    jobs.make_topics(app)
    with jobs.processing(app):
        seen, absent, again = (jobs.submit(n).id for n in range(3))
        for job_id in (seen, absent, again):
            jobs.until_state(job_id, "uncertain")
        listed = reader.does("list")
        assert all(str(each) in listed for each in (seen, absent, again))
        assert any(key in reader.does("show", seen) for key in bank.calls)
        assert "the job goes on by itself" in reader.does("happened", seen)
        jobs.until_state(seen, "succeeded")
        assert jobs.job(seen, "result") == ({"charge": "ch_17"},)
        assert len(bank.calls) == 3
        early = reader.types("did-not-happen", absent)
        assert (early.code, "may be on its way until" in early.err) == (2, True)
        with psycopg.connect(jobs.database) as connection:
            connection.execute(
                "UPDATE packhorse.job_effect SET intended_at = intended_at - interval '1 hour'"
            )
        bank.answers = True
        assert "the job goes on by itself" in reader.does("did-not-happen", absent)
        jobs.until_state(absent, "succeeded")
        assert len(bank.calls) == 4
        assert len(set(bank.calls)) == 3
        assert "redrive asked at" in reader.does("redrive", again)
        eventually(
            lambda: jobs.history(again).count("uncertain") == 2, what="it has stopped again", timeout=30
        )
        assert len(bank.calls) == 4, "without verify nothing is called again"
        assert "succeeded" in reader.does("proof", seen)
        doubled(jobs, seen)


def doubled(jobs: JobGround, job_id: UUID) -> None:
    """Look into an effect that somebody says was doubled, by its page."""
    reader = Reader(jobs, "effect-doubled")
    told = reader.does("show", job_id)
    assert "1 time" in told
    assert "seen at the bank" in told
    audited = reader.does("audit")
    assert "job-resolve" in audited
    assert str(job_id) in audited
    assert str(job_id) in reader.does("list")
