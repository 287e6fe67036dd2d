"""The example as a person runs it and uses it: relay, processor and application in processes of their own, on the real stack."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.support.topics import removed_topics
from tests.support.wait import eventually

from packhorse.local.settings import Endpoints

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def address(stack: Endpoints, tmp_path: Path) -> Iterator[str]:
    """Run the example on the session's stack."""
    with removed_topics(stack.kafka_bootstrap, "reports.requests"), running(stack, tmp_path) as found:
        yield found


@contextmanager
def running(stack: Endpoints, folder: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said = folder / "said"
    with said.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "examples.reports", "--folder", str(folder), "--port", str(port)],
            cwd=CHECKOUT,
            env={**os.environ, **stack.variables()},
            stdout=log,
            stderr=log,
        )
    try:
        eventually(lambda: "open http" in said.read_text(), what=f"it is up; see {said}", timeout=60)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def ask(page: Page, address: str, shows: str) -> None:
    page.goto(address)
    page.get_by_label("What is it to show?").select_option(shows)
    page.get_by_role("button", name="Ask for the report").click()
    page.wait_for_url(re.compile(r"/reports/[0-9a-f-]{36}$"))


@pytest.mark.timeout(180)
def test_reports_are_made_fail_and_are_cancelled_before_a_persons_eyes(
    page: Page, address: str, tmp_path: Path
) -> None:
    """
    Ask for three reports: one comes with its progress, one fails, one is cancelled while it is made.

    Fails when a job does not find its way from the form through relay, topic and worker back to the page; when a report that
    is ready is not there, or one that is cancelled is; when the letter about it is not written once.
    """
    page.goto(f"{address}/sign-in")
    page.get_by_role("button", name="Ann").click()
    status = page.get_by_role("status")
    ask(page, address, "SLOW")
    expect(page.locator("#progress-text")).to_contain_text("of 12: adding up")
    expect(status).to_contain_text("is ready", timeout=40_000)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the report").click()
    lines = download.value.path().read_text().splitlines()
    assert len(lines) == 1 + 12 * 4
    assert sum(int(line.split(",")[2]) for line in lines[1:]) == 20_000
    assert len(list((tmp_path / "letters").iterdir())) == 1
    ask(page, address, "FAILS")
    expect(status).to_contain_text("could not be made")
    expect(page.locator("#error")).to_have_text("the figures of March are not closed yet")
    ask(page, address, "SLOW")
    expect(page.locator("#progress-text")).to_contain_text("of 12: adding up")
    page.get_by_role("button", name="Cancel it").click()
    expect(status).to_contain_text("was cancelled")
    assert page.request.get(f"{page.url}.csv").status == 404
    assert len(list((tmp_path / "letters").iterdir())) == 1
