"""Acts on jobs that a real worker runs: what the page says of them is what the worker does."""

import threading
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Page, expect
from tests.browser.console.conftest import signed_in
from tests.support.console_api import Console, token_for
from tests.support.jobs import JobGround, working, write

from packhorse.local.settings import Endpoints
from packhorse.processor import JobContext, Retry


@pytest.mark.case("O-07")
@pytest.mark.case("J-07")
def test_a_worker_stops_what_it_was_asked_to_and_a_redrive_of_another_is_proved_by_its_end(
    page: Page,
    console: Console,
    stack: Endpoints,
    database: str,
    topic_prefix: str,
    connection: psycopg.Connection[Any],
) -> None:
    """Fails when the page waits for what has happened, or says that it has before the worker or broker did it."""
    began = threading.Event()

    def body(job: Any, ctx: JobContext) -> dict[str, int]:
        while job.what == "lingers":
            began.set()
            ctx.progress(1, 2, "halfway")
            ctx.check()
            threading.Event().wait(0.02)
        return write(job, ctx)

    ground = JobGround(stack, database, topic_prefix)  # it empties the tables, of operators too
    operator = signed_in(page, console, token_for(connection, "operator", name="olga"))
    app = working(topic_prefix, body=body, retry=Retry(attempts=1))
    ground.make_topics(app)
    lingers, fails = ground.submit(1, "lingers"), ground.submit(2, "fails once")
    stages = operator.get_by_role("list", name="How far it is").get_by_role("listitem")
    with ground.processing(app):
        assert began.wait(20)
        operator.goto(f"{console.url}/jobs/{lingers.id}")
        expect(operator.get_by_text("1 of 2 (50%), halfway")).to_be_visible()
        operator.get_by_role("link", name="Ask it to stop").click()
        operator.get_by_label("Why", exact=True).fill("not needed")
        operator.get_by_role("button", name="Ask it to stop").click()
        expect(operator.get_by_role("heading", level=1)).to_have_text("Stopped by its worker")
        ground.until_state(fails.id, "quarantined")
        operator.goto(f"{console.url}/jobs/{fails.id}/redrive")
        operator.get_by_label("Why", exact=True).fill("fixed")
        operator.get_by_role("button", name="Redrive this job").click()
        expect(stages.nth(2)).to_contain_text("the job has succeeded")
        expect(stages.nth(1)).to_contain_text("the broker has it")
    operator.goto("about:blank")
    assert ground.history(lingers.id) == ["accepted", "running", "cancelled"]
    assert ground.results() == [2]
