"""The first page: calm while all is well, and what is wrong stands out."""

from typing import Any

import psycopg
from playwright.sync_api import Page, expect
from tests.browser.conftest import refused
from tests.browser.console.conftest import is_well_made
from tests.support.console_rows import rested


def test_an_empty_installation_is_well_and_says_what_to_do_first(viewer: Page) -> None:
    """Fails when a first look shows trouble, or nothing that helps."""
    expect(viewer.get_by_role("heading", level=1)).to_have_text("All is well")
    expect(viewer.get_by_text("No group works in this database yet")).to_be_visible()
    is_well_made(viewer)


def test_what_comes_to_quarantine_shows_without_loading_the_page_again(
    viewer: Page, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the page stands still, or is loaded anew: then what somebody does in it is lost."""
    viewer.evaluate("window.stayed = true")
    rested(connection)
    expect(viewer.get_by_role("heading", level=1)).to_contain_text("1 message in quarantine waits")
    assert viewer.evaluate("window.stayed") is True
    is_well_made(viewer)


def test_a_look_by_itself_keeps_nobody_signed_in_and_says_so_when_the_session_is_over(
    viewer: Page, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a page that nobody sits at stays open to whoever comes by, or stands still without a word."""
    connection.execute("DELETE FROM packhorse.operator")
    with refused(viewer, 401):
        expect(viewer.get_by_role("alert")).to_contain_text("You are signed out")
    expect(viewer.get_by_role("heading", level=1)).to_have_text("All is well")
