"""An act in whose middle something is lost: the answer, the database or the session. The page says what is true, and nothing is done twice."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import cut_off, refused
from tests.browser.console.conftest import is_well_made, signed_in
from tests.support.console_api import Console, console_on, token_for
from tests.support.console_rows import one
from tests.support.console_world import WHY, World
from tests.support.page_acts import ACTS
from tests.support.proxy import Proxy
from tests.support.stack import PrivateDatabase
from tests.support.wait import eventually

BUTTONS = {
    "redrive": "Redrive this message",
    "pause a redrive": "Pause redrive",
    "cancel a job": "Ask it to stop",
    "release": "Release hold",
    "acknowledge": "Acknowledge this group",
}
"""Acts of several rooms, and what their buttons say."""


@pytest.fixture
def wire(console: Console) -> Iterator[Proxy]:
    """Provide the wire between browser and console."""
    with Proxy(("127.0.0.1", urlsplit(console.url).port or 0)) as proxy:
        yield proxy


def over(console: Console, wire: Proxy) -> Console:
    """Return the console as it is reached over *wire*."""
    return replace(console, url=f"http://127.0.0.1:{wire.port}")


def filled_in(page: Page, console: Console, connection: psycopg.Connection[Any], name: str) -> None:
    """Open the form of the act *name*, about something of its own, and fill it in."""
    act = ACTS[name]
    page.goto(console.url + act.page(World(connection=connection, reader=None)))  # type: ignore[arg-type]
    for field, value in act.filled.items():
        page.locator(f"main [name={field}]").fill(value)


def confirm(page: Page, name: str) -> None:
    page.locator("main").get_by_role("button", name=BUTTONS[name]).click()


def acts(connection: psycopg.Connection[Any]) -> int:
    return int(one(connection, "SELECT count(*) FROM packhorse.audit"))


def sent_without_answer(page: Page, wire: Proxy, connection: psycopg.Connection[Any], name: str) -> None:
    """Confirm the act, lose the answer once it is done, and wait for what the page makes of that."""
    before = acts(connection)
    page.wait_for_load_state("networkidle")  # so that it is the act's answer that gets lost
    with cut_off(page):
        wire.swallow_answers()
        confirm(page, name)
        eventually(lambda: acts(connection) == before + 1, what=f"{name} is done")
        eventually(lambda: wire.losing > 0, what="the answer is lost")
        if before == 0:
            expect(page.get_by_role("alert")).to_contain_text("the console has not answered yet")
            is_well_made(page)
        wire.resume()
        page.wait_for_url("**/sent/*")


@pytest.mark.case("O-07")
@pytest.mark.case("O-02")
def test_an_answer_that_got_lost_leads_to_what_the_record_says(
    page: Page, console: Console, wire: Proxy, connection: psycopg.Connection[Any]
) -> None:
    """Fails when whoever got no answer is left to guess, or the browser, which sends a form anew by itself, acts twice."""
    there = over(console, wire)
    signed_in(page, there, token_for(connection, "operator", name="olga"))
    for name in BUTTONS:
        filled_in(page, there, connection, name)
        sent_without_answer(page, wire, connection, name)
        expect(page.get_by_role("heading", level=1)).to_have_text("It was done")
        expect(page.locator("main")).to_contain_text("olga (token)")
        if acts(connection) == 1:
            is_well_made(page)
        page.get_by_role("link", name="See how it stands now").click()
        page.wait_for_url(lambda url: "/sent/" not in url)
    assert acts(connection) == len(BUTTONS)
    page.goto("about:blank")


@pytest.mark.case("O-07")
def test_an_act_that_never_arrived_is_told_as_not_done_and_can_be_sent_again_as_it_is(
    page: Page, console: Console, wire: Proxy, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a browser's own page of errors takes the form away, or what was written in it."""
    there = over(console, wire)
    signed_in(page, there, token_for(connection, "operator", name="olga"))
    filled_in(page, there, connection, "acknowledge")
    with cut_off(page):
        wire.cut()
        confirm(page, "acknowledge")
        told = page.get_by_role("alert")
        expect(told).to_contain_text("The connection was lost")
        expect(told).to_contain_text("The record is asked whether it was done")
        is_well_made(page)
        wire.resume()
        expect(told).to_contain_text("It was not done")
    expect(page.get_by_label("Why")).to_have_value(WHY)
    assert acts(connection) == 0
    confirm(page, "acknowledge")
    expect(page.locator("#group")).to_contain_text("Acknowledged by olga")
    assert acts(connection) == 1
    page.goto("about:blank")


@pytest.mark.case("O-07")
def test_a_database_that_is_away_at_the_confirmation_is_told_and_then_what_the_record_says(
    page: Page, private_database: PrivateDatabase
) -> None:
    """Fails when a form is lost with the database, or nobody hears that nothing was done."""
    with (
        psycopg.connect(private_database.direct_url, autocommit=True) as connection,
        console_on(private_database.url, timeout=1) as console,
    ):
        signed_in(page, console, token_for(connection, "operator", name="olga"))
        filled_in(page, console, connection, "redrive")
        told = page.get_by_role("alert")
        with refused(page, 503):
            private_database.proxy.cut()
            confirm(page, "redrive")
            expect(told).to_contain_text("database")
            expect(told).to_contain_text("The record is asked whether it was done")
            is_well_made(page)
            private_database.proxy.resume()
            expect(told).to_contain_text("It was not done")
        expect(page.get_by_label("Why")).to_have_value(WHY)
        confirm(page, "redrive")
        page.wait_for_url("**/messages/*")
        assert acts(connection) == 1
        page.goto("about:blank")


@pytest.mark.case("O-07")
def test_whoever_signs_in_again_in_the_middle_of_an_act_goes_on_with_what_they_have_written(
    page: Page, console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when what was written is lost with the session, the act is done before one is signed in, or in another's name."""
    olga, otto = (token_for(connection, "operator", name=name) for name in ("olga", "otto"))
    signed_in(page, console, olga)
    filled_in(page, console, connection, "redrive")
    told = page.get_by_role("alert")
    for token in (otto, olga):
        page.context.clear_cookies()
        with refused(page, 401):
            confirm(page, "redrive")
            expect(told).to_contain_text("You are signed out: nothing was done")
        is_well_made(page)
        with page.expect_popup() as opened:
            told.get_by_role("link", name="Sign in").click()
        opened.value.get_by_label("Your token").fill(token)
        opened.value.get_by_role("button", name="Sign in").click()
        opened.value.wait_for_url(page.url)
        expect(opened.value.get_by_role("button", name=BUTTONS["redrive"])).to_be_visible()
        opened.value.close()
        assert acts(connection) == 0
        with refused(page, 403):
            confirm(page, "redrive")
            if token == otto:
                expect(told).to_contain_text("otto (token) is signed in here now")
            else:
                page.wait_for_url("**/messages/*")
    assert connection.execute("SELECT actor, why FROM packhorse.audit").fetchall() == [("olga (token)", WHY)]
    page.goto("about:blank")
