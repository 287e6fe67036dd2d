"""The page of a report, in a browser, while its job goes through its states on a real database."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from typing import Any
from uuid import UUID

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import watched
from tests.support import job_rows
from tests.support.databases import fresh_database
from tests.support.serving import served

from examples.reports import tables
from examples.reports.messages import ReportRequest
from examples.reports.web import application
from examples.reports.words import WORDS, stage_of
from packhorse.core.jobs import JobState
from packhorse.local.settings import Endpoints
from packhorse.testing import register_for_tests

EVIL = '"><img src=x onerror=alert(1)><script>alert(2)</script>'


@pytest.fixture(scope="module")
def reports_database(stack: Endpoints, _template: str) -> Iterator[str]:
    with fresh_database(stack.database_url, _template) as url:
        with psycopg.connect(url) as connection:
            connection.execute(tables.REPORTS)
            register_for_tests(connection, ReportRequest)
        yield url


@pytest.fixture(scope="module")
def address(reports_database: str) -> Iterator[str]:
    with served(application(reports_database, late_after=600)) as found:
        yield found


@pytest.fixture
def worker(reports_database: str) -> Iterator[psycopg.Connection[Any]]:
    """Provide the connection on which the test does what a worker would."""
    with psycopg.connect(reports_database, autocommit=True) as connection:
        yield connection


def ask(page: Page, address: str, title: str = "Sales") -> UUID:
    """Sign in and ask for a report; return the id of its job."""
    page.goto(f"{address}/sign-in")
    page.get_by_role("button", name="Ann").click()
    page.get_by_label("What do you call it?").fill(title)
    page.get_by_role("button", name="Ask for the report").click()
    page.wait_for_url(re.compile(r"/reports/[0-9a-f-]{36}$"))
    return UUID(page.url.rpartition("/")[2])


def says(page: Page, what: str) -> None:
    """Wait until the page says *what*, in the part that is read aloud when it changes."""
    expect(page.get_by_role("status")).to_contain_text(what)


def progressed(worker: psycopg.Connection[Any], job_id: UUID, done: int, text: str) -> None:
    worker.execute(
        "UPDATE packhorse.job SET progress_done = %s, progress_total = 12, progress_text = %s, progress_at = clock_timestamp() "
        "WHERE id = %s",
        (done, text, job_id),
    )


def test_a_person_sees_a_report_on_its_way_then_its_progress_then_the_result(
    page: Page, address: str, worker: psycopg.Connection[Any]
) -> None:
    """Fails when a report that is only accepted looks ready, or the page has to be loaded again to tell of a change."""
    job_id = ask(page, address)
    says(page, "is on its way")
    expect(page.locator("#result")).to_be_hidden()
    expect(page.get_by_role("progressbar")).to_be_hidden()
    page.evaluate("window.stayed = true")
    job_rows.begin(worker, job_id)
    says(page, "is being made")
    bar = page.get_by_role("progressbar", name="How much of the report is made")
    for done in (3, 9):
        progressed(worker, job_id, done, f"month {done}")
        expect(bar).to_have_js_property("value", done)
        expect(page.locator("#progress-text")).to_have_text(f"{done} of 12: month {done}")
    worker.execute(tables.FILL, ("month,cents\r\n", job_id))
    job_rows.end(worker, job_id, "succeeded", result={"lines": 0})
    says(page, "is ready")
    assert page.evaluate("window.stayed") is True
    expect(page.get_by_role("button", name="Cancel it")).to_be_hidden()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the report").click()
    assert download.value.path().read_bytes() == b"month,cents\r\n"


def test_a_report_that_takes_too_long_is_late_and_still_comes(
    page: Page, reports_database: str, worker: psycopg.Connection[Any]
) -> None:
    """Fails when nobody is told that a report is late, or a late one is taken for lost."""
    with served(application(reports_database, late_after=0.5)) as address:
        job_id = ask(page, address)
        says(page, "is late")
        expect(page.locator("#detail")).to_contain_text("It is not lost")
        job_rows.end(worker, job_rows.begin(worker, job_id), "succeeded")
        says(page, "is ready")
        page.goto("about:blank")  # so that no request of the page is open when the server ends


def test_a_report_that_failed_says_so_and_comes_back_when_a_person_sends_it_again(
    page: Page, address: str, worker: psycopg.Connection[Any]
) -> None:
    """Fails when a failed report looks as if it were on its way, or tells where in the code it failed."""
    job_id = ask(page, address)
    job_rows.begin(worker, job_id)
    worker.execute(
        "UPDATE packhorse.job SET state = 'quarantined', reason = 'attempts-exhausted', token = NULL, worker = NULL, "
        "lease_until = NULL, changed_at = clock_timestamp(), error = 'reports.CantBeMade at work.py:7 in report: <b>closed</b>' "
        "WHERE id = %s",
        (job_id,),
    )
    says(page, "could not be made")
    expect(page.locator("#error")).to_have_text("<b>closed</b>")
    expect(page.get_by_role("button", name="Cancel it")).to_be_hidden()
    worker.execute(
        "UPDATE packhorse.job SET state = 'retrying', changed_at = clock_timestamp(), changed_by = 'ops' WHERE id = %s",
        (job_id,),
    )
    says(page, "is tried again")


def test_a_person_cancels_a_report(page: Page, address: str, worker: psycopg.Connection[Any]) -> None:
    """Fails when a report that runs is called cancelled before its worker has stopped."""
    ask(page, address)
    page.get_by_role("button", name="Cancel it").click()
    says(page, "was cancelled")
    job_id = ask(page, address, "Another")
    job_rows.begin(worker, job_id)
    says(page, "is being made")
    page.get_by_role("button", name="Cancel it").click()
    says(page, "is being stopped")
    job_rows.end(worker, job_id, "cancelled")
    says(page, "was cancelled")


def test_nothing_that_was_typed_or_said_runs(
    page: Page, address: str, worker: psycopg.Connection[Any]
) -> None:
    """Fails when a title, a progress text or an error gets into the page as anything but text."""
    job_id = ask(page, address, EVIL)
    job_rows.begin(worker, job_id)
    says(page, f"{EVIL} is being made")
    progressed(worker, job_id, 1, EVIL)
    expect(page.locator("#progress-text")).to_contain_text(EVIL)
    assert page.title() == EVIL
    page.goto(address)
    expect(page.get_by_role("link", name=EVIL)).to_be_visible()
    assert page.locator("img").count() == 0


def test_page_and_script_tell_of_every_job_alike(page: Page, address: str) -> None:
    """Fails when a report is called one thing when its page is loaded, and another when the script tells of a change."""
    ask(page, address)
    flags = product((True, False), repeat=3)
    jobs = [
        {"state": state.value, "needs_person": person, "cancel_asked": asked, "late": late}
        for state, (person, asked, late) in product(JobState, flags)
    ]
    told = page.evaluate("jobs => jobs.map(stageOf)", jobs)
    assert told == [stage_of(job) for job in jobs]
    assert set(told) == set(WORDS)


def test_without_scripts_the_page_loads_itself_again(
    chromium: Browser, address: str, worker: psycopg.Connection[Any]
) -> None:
    """Fails when a person whose browser runs no scripts sees how a report stood when they asked for it, for ever."""
    with ExitStack() as undo:
        context = undo.enter_context(chromium.new_context(java_script_enabled=False))
        page = undo.enter_context(watched(context))
        job_id = ask(page, address)
        says(page, "is on its way")
        job_rows.begin(worker, job_id)
        says(page, "is being made")
        page.get_by_role("button", name="Cancel it").click()
        says(page, "is being stopped")
        job_rows.end(worker, job_id, "succeeded")
        says(page, "is ready")
        expect(page.get_by_role("link", name="Download the report")).to_be_visible()
        assert page.locator("meta[http-equiv]").count() == 0


def test_the_page_says_when_it_can_not_ask_and_goes_on_when_it_can(
    chromium: Browser, reports_database: str, worker: psycopg.Connection[Any]
) -> None:
    """Fails when a report seems to stand still while nobody knows how it stands."""
    context = chromium.new_context()
    page = context.new_page()  # its console tells of the failed requests, as it should
    page.set_default_timeout(20_000)
    with served(application(reports_database, late_after=600)) as address:
        job_id = ask(page, address)
        says(page, "is on its way")
        page.context.set_offline(True)
        job_rows.begin(worker, job_id)
        page.context.route("**/jobs/**", lambda route: route.abort())
        expect(page.get_by_role("alert")).to_contain_text("can't be asked just now", timeout=30_000)
        page.context.set_offline(False)
        page.context.unroute_all()
        says(page, "is being made")
        expect(page.get_by_role("alert")).to_have_text("")
        context.close()


def test_another_persons_report_is_not_there(page: Page, chromium: Browser, address: str) -> None:
    """Fails when whoever knows its address sees a report."""
    job_id = ask(page, address)
    with chromium.new_context() as other:
        stranger = other.new_page()
        stranger.goto(f"{address}/sign-in")
        stranger.get_by_role("button", name="Ben").click()
        for path in (f"/reports/{job_id}", f"/reports/{job_id}.csv", f"/jobs/{job_id}"):
            answer = stranger.goto(f"{address}{path}")
            assert answer is not None
            assert answer.status == 404
