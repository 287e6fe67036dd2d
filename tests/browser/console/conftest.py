"""The console's pages in a real browser, on real tables; each page is also held to the rules that hold for all of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Page
from tests.browser.conftest import watched
from tests.support.console_api import Console, console_on, token_for

RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    "resultTypes": ["violations"],
}
COLOURS = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}
"""All that dark does to a page that was judged in light."""
FOUND = """
async rules => (await axe.run(document, rules)).violations.map(({id, nodes}) => [id, nodes.map(node => node.html)])
"""


@pytest.fixture
def console(database: str) -> Iterator[Console]:
    """Provide a console on the test's database."""
    with console_on(database) as found:
        yield found


@pytest.fixture
def operator(page: Page, console: Console, connection: psycopg.Connection[Any]) -> Iterator[Page]:
    """Provide a page at which somebody sits who may look and act."""
    yield signed_in(page, console, token_for(connection, "operator", name="olga"))
    page.goto("about:blank")  # so that no request of the page is open when the server ends


@pytest.fixture
def viewer(page: Page, console: Console, connection: psycopg.Connection[Any]) -> Iterator[Page]:
    """Provide a page at which somebody sits who may look."""
    yield signed_in(page, console, token_for(connection, "viewer", name="vera"))
    page.goto("about:blank")


def signed_in(page: Page, console: Console, token: str) -> Page:
    """Sign in the holder of *token*, as a person does."""
    page.goto(f"{console.url}/sign-in")
    page.get_by_label("Your token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{console.url}/")
    return page


@contextmanager
def another(chromium: Browser, console: Console, token: str, **options: Any) -> Iterator[Page]:
    """Open a second browser for the block, at which the holder of *token* sits."""
    with chromium.new_context(**options) as context, watched(context) as page:
        yield signed_in(page, console, token)


def is_well_made(page: Page) -> None:
    """
    Fail when the page as it stands breaks what holds for all pages: WCAG AA, in light and dark; nothing wider than the window, on
    a narrow screen and at 200 % (which a window of half the width is); one heading; nothing that was planted has become an element.
    """
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = _violations(page, RULES if scheme == "light" else COLOURS)
        assert not found, found
    size = page.viewport_size
    assert size is not None
    for width in (1280, 640, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"wider than {width}"
    page.set_viewport_size(size)
    assert page.locator("h1").count() == 1
    assert page.locator("main script, main img, main iframe, main object").count() == 0


def _violations(page: Page, rules: dict[str, list[str]]) -> list[Any]:
    """Return which rules the page breaks, and in which elements; the judge is brought into each document once, it is half a megabyte."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found: list[Any] = page.evaluate(FOUND, rules)
    return found
