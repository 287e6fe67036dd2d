"""Jobs of running workers as operators see them and act on them: the words agree with tables and topics, and acts come through."""

import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.support.cli import Ran, packhorse
from tests.support.console_services import service_over
from tests.support.jobs import JobGround, working
from tests.support.wait import eventually

from packhorse.console.acting.postgres import opened
from packhorse.console.jobs.deciding import Verdict
from packhorse.console.service import Service
from packhorse.console.truth.moments import utc
from packhorse.core.errors import UsageError
from packhorse.processor import JobContext, Retry


@pytest.fixture
def service(jobs: JobGround) -> Iterator[Service]:
    """Provide the console over the ground's database."""
    with opened(jobs.database, schema="packhorse", timeout=10) as tables:
        yield service_over(tables, namespace=jobs.namespace)


def ran(jobs: JobGround, *arguments: object) -> Ran:
    return packhorse(*arguments, **jobs.environ)


class Bank:
    """An outside system that does as it is told and may lose its answer."""

    def __init__(self) -> None:
        self.charged: list[str] = []
        self.loses = True

    def charge(self, key: str) -> dict[str, str]:
        """Charge under an idempotency key."""
        self.charged.append(key)
        if self.loses:
            raise TimeoutError("no answer")
        return {"charge": f"ch_{len(self.charged)}"}


def charging(bank: Bank) -> Any:
    def body(job: Any, ctx: JobContext) -> Any:
        del job
        return ctx.effect("charge", bank.charge, timeout="100ms")

    return body


def in_doubt(jobs: JobGround) -> UUID:
    """Let a job stop because its charge was not answered."""
    job_id = jobs.submit().id
    jobs.until_state(job_id, "uncertain")
    return job_id


@pytest.mark.case("X-02")
def test_each_stage_is_told_as_it_is(jobs: JobGround, service: Service) -> None:
    """Fails when a stage of a real job is told as another one, or its history as another than it was."""
    begun, may_end = threading.Event(), threading.Event()

    def body(job: Any, ctx: JobContext) -> Any:
        ctx.progress(1, 2, "pages")
        begun.set()
        assert may_end.wait(30)
        return {"n": job.n}

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)

    def standing() -> str:
        return service.truth.status(job_id, search=False).standing

    job_id = jobs.submit(7, carry=False).id
    assert standing().startswith("job accepted; ")
    assert "no processor" not in standing()
    jobs.carry()
    with jobs.processing(app):
        assert begun.wait(30)
        assert standing().startswith("job running; ")
        eventually(
            lambda: service.jobs.show(job_id, local=utc).facts.job.progress_text == "pages",
            what="the progress is on record",
        )
        shown = service.jobs.show(job_id, local=utc)
        assert any("it goes on; its lease" in each for each in shown.words.next)
        may_end.set()
        jobs.until_state(job_id, "succeeded")
    shown = service.jobs.show(job_id, local=utc)
    assert shown.status.standing.startswith("job succeeded; ")
    assert [group.standing for group in shown.status.groups] == ["done"]
    assert [each.after for each in shown.facts.transitions] == jobs.history(job_id)
    assert shown.words.nothing == "nothing is left to do"


@pytest.mark.case("J-08")
@pytest.mark.parametrize("verdict", Verdict)
def test_what_a_person_knows_of_an_effect_lets_the_job_go_on(
    jobs: JobGround, service: Service, verdict: Verdict
) -> None:
    """Fails when what has happened is called again, what has not is not, or under another idempotency key; or the job waits on."""
    bank = Bank()
    app = working(jobs.namespace, body=charging(bank), retry=Retry(attempts=5, delays=["100ms"]))
    jobs.make_topics(app)
    with jobs.processing(app):
        job_id = in_doubt(jobs)
        assert len(bank.charged) == 1
        words = service.jobs.show(job_id, local=utc).words
        assert any("effect charge is in doubt: called 1 time" in each for each in words.stands)
        bank.loses = False
        if verdict is Verdict.HAPPENED:
            service.jobs.resolve(job_id, verdict, answer={"charge": "seen there"}, why="seen at the bank")
        else:
            with pytest.raises(UsageError, match="may be on its way until"):
                service.jobs.resolve(job_id, verdict, why="not there")
            with psycopg.connect(jobs.database) as connection:
                connection.execute(
                    "UPDATE packhorse.job_effect SET intended_at = intended_at - interval '1 hour'"
                )
            service.jobs.resolve(job_id, verdict, why="not there")
        jobs.until_state(job_id, "succeeded")
    expected = {"charge": "seen there"} if verdict is Verdict.HAPPENED else {"charge": "ch_2"}
    assert jobs.job(job_id, "result") == (expected,)
    assert len(bank.charged) == (1 if verdict is Verdict.HAPPENED else 2)
    assert len(set(bank.charged)) == 1
    assert "retrying" in jobs.history(job_id)


def test_a_job_that_failed_is_sent_back_and_done(jobs: JobGround) -> None:
    """
    Fails when the redrive of its message does not bring the job to its worker, or its history hides who sent it back; or when a
    person's order counts for less than a deadline that has passed since.
    """
    mended = threading.Event()

    def body(job: Any, ctx: JobContext) -> Any:
        del ctx
        if not mended.is_set():
            raise ValueError("not mended")
        return {"n": job.n}

    app = working(jobs.namespace, body=body, retry=Retry(attempts=1), deadline="5s")
    jobs.make_topics(app)
    with jobs.processing(app):
        job_id = jobs.submit(3).id
        jobs.until_state(job_id, "quarantined")
        jobs.rows("UPDATE packhorse.job SET accepted_at = accepted_at - interval '1 hour' RETURNING 1")
        mended.set()
        sent = ran(jobs, "job", "redrive", job_id, "--why", "fixed", "--yes", "--json")
        assert sent.code == 0, sent.err
        jobs.until_state(job_id, "succeeded")
    told = ran(jobs, "job", "show", job_id, "--json").json()
    by = {each["after"]: each["actor"] for each in told["transitions"]}
    assert by["retrying"] == sent.json()["actor"]
    assert [each["act"] for each in told["acts"]] == ["redrive"]


def test_a_running_job_stops_where_its_code_asks(jobs: JobGround) -> None:
    """Fails when a person's wish does not reach the worker, or the job ends as anything but cancelled by that person."""
    begun = threading.Event()

    def body(job: Any, ctx: JobContext) -> Any:
        begun.set()
        eventually(lambda: ctx.cancelled, what="the worker hears that it is to stop", timeout=30)
        ctx.check()
        return {"n": job.n}

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    with jobs.processing(app):
        job_id = jobs.submit().id
        assert begun.wait(30)
        asked = ran(jobs, "job", "cancel", job_id, "--why", "not needed", "--yes")
        assert asked.code == 0, asked.err
        assert "asked to stop" in asked.out
        jobs.until_state(job_id, "cancelled")
    assert "not needed" in ran(jobs, "explain", job_id).out


def test_a_job_whose_name_is_taken_names_the_one_that_has_it(jobs: JobGround, service: Service) -> None:
    """Fails when a person has to find out by hand which job holds the name that another waits for."""
    begun, may_end = threading.Event(), threading.Event()

    def body(job: Any, ctx: JobContext) -> None:
        del job, ctx
        begun.set()
        assert may_end.wait(30)

    app = working(jobs.namespace, body=body)
    jobs.make_topics(app)
    with jobs.processing(app):
        holder = jobs.submit(1, one_running="nightly").id
        assert begun.wait(30)
        behind = jobs.submit(2, one_running="nightly").id
        words = service.jobs.show(behind, local=utc).words
        assert any(str(holder) in each for each in words.waits)
        may_end.set()
        jobs.until_state(behind, "succeeded")
