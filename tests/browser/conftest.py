"""Pages in a real browser: whatever goes wrong in one of them, or is asked for from elsewhere, fails the test."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Route, expect
from tests.support.chromium import NoBrowser, browser

WITHIN = 20_000
"""Milliseconds that a page may take to do or show what it should."""
expect.set_options(timeout=WITHIN)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Provide the browser; CI must have one. It ends with the module: while it runs, nothing else may use a loop in this thread."""
    try:
        with browser() as found:
            yield found
    except NoBrowser as why:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(why))


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """Provide a browser without memory, with scripts."""
    with chromium.new_context() as made:
        yield made


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """Provide a page; the test fails when its console tells of an error, a script fails, or anything but this machine is asked."""
    with watched(context) as made:
        yield made


@contextmanager
def watched(context: BrowserContext) -> Iterator[Page]:
    """Open a page for the block, whose troubles are collected and raised at its end."""
    page, troubles = context.new_page(), Troubles()
    page.route("**/*", troubles.only_here)
    page.on("console", troubles.console)
    page.on("pageerror", lambda error: troubles.seen.append(str(error)))
    page.on("dialog", troubles.dialog)
    page.set_default_timeout(WITHIN)
    _TROUBLES[page] = troubles
    yield page
    page.close()
    del _TROUBLES[page]
    assert troubles.seen == []


_TROUBLES: dict[Page, "Troubles"] = {}


@contextmanager
def refused(page: Page, status: int) -> Iterator[None]:
    """Expect that in the block the server answers *page* with *status*, once or more often; the browser's console tells of it."""
    seen = _TROUBLES[page].seen
    before = list(seen)
    yield
    told = [text for text in seen[len(before) :] if f"status of {status}" in text]
    assert told, f"nothing was answered with {status}"
    seen[:] = [*before, *(text for text in seen[len(before) :] if text not in told)]


@contextmanager
def cut_off(page: Page) -> Iterator[None]:
    """Bear it that in the block connections of *page* break; the browser's console tells of some."""
    seen = _TROUBLES[page].seen
    before = list(seen)
    yield
    seen[:] = [*before, *(text for text in seen[len(before) :] if "net::ERR_" not in text)]


class Troubles:
    """What a page did that none should."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def console(self, said: ConsoleMessage) -> None:
        if said.type in {"error", "warning"}:
            self.seen.append(said.text)

    def dialog(self, shown: Dialog) -> None:
        self.seen.append(f"dialog: {shown.message}")
        shown.dismiss()

    def only_here(self, route: Route) -> None:
        if urlsplit(route.request.url).hostname == "127.0.0.1":
            route.continue_()
        else:
            self.seen.append(f"asked elsewhere: {route.request.url}")
            route.abort()
