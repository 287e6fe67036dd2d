"""The search: from whatever somebody has of what they look for, with the keyboard alone too."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import pytest
from playwright.sync_api import Page, expect
from tests.browser.console.conftest import is_well_made
from tests.support.console_api import Console
from tests.support.console_rows import handled, new_id, one, recorded, rested
from tests.support.console_stages import Stages
from tests.support.job_rows import accepted

EVIL = '"><img src=x onerror=alert(1)><script>alert(2)</script>\x1b[2J\u202e'


@pytest.fixture
def ask(viewer: Page, console: Console) -> Callable[[str], Page]:
    """Provide what types into the search of the page, and sends it with the keyboard."""

    def asked(text: str) -> Page:
        expect(viewer.get_by_role("button", name="Keys")).to_be_visible()  # the script has begun
        viewer.keyboard.press("/")
        expect(viewer.get_by_label("Find a message, job, key or group")).to_be_focused()
        viewer.keyboard.insert_text(text)
        viewer.keyboard.press("Enter")
        return viewer

    return asked


@pytest.mark.case("X-01")
def test_an_id_leads_to_its_page_at_once_also_one_that_nobody_knows(
    viewer: Page, console: Console, ask: Callable[[str], Page], connection: psycopg.Connection[Any]
) -> None:
    """Fails when an id has to be searched for twice, or a job's id leads past the job."""
    message_id, unknown, job_id = rested(connection), new_id(), accepted(connection)
    ask(f" {str(message_id).upper()} ").wait_for_url(f"{console.url}/messages/{message_id}")
    ask(str(unknown)).wait_for_url(f"{console.url}/messages/{unknown}")
    cookies = {each["name"]: each["value"] for each in viewer.context.cookies()}
    found = httpx.get(f"{console.url}/search", params={"q": str(job_id)}, cookies=cookies, trust_env=False)
    assert (found.status_code, found.headers["location"]) == (303, f"/jobs/{job_id}")


def test_a_key_brings_all_that_is_known_by_it_and_what_was_not_looked_through(
    ask: Callable[[str], Page], console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a place where a key stands is left out, or the page claims to have looked where it has not."""
    stages, head = Stages(connection), rested(connection)
    stages.parked(head)
    stages.follows(handled(connection, outcome="parked"), offset=9)
    row = recorded(connection)
    page = ask("N14228")
    expect(page.get_by_role("heading", level=1)).to_have_text("Found for “N14228”")
    for region in ("Parked keys", "In quarantine, or once there, with this key", "Outbox rows with this key"):
        expect(page.get_by_role("region", name=region)).to_be_visible()
    expect(page.get_by_role("link", name=str(row))).to_be_visible()
    expect(page.get_by_text("The newest 1 outbox row, back to")).to_be_visible()
    expect(page.get_by_text("Older outbox rows and what is done already")).to_be_visible()
    is_well_made(page)
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    page.wait_for_url("**/keys?group=figures&topic=airline.aircraft&key_hash=*")
    expect(page.locator("#standing")).to_have_text("parked")


def test_names_runs_prints_and_places_are_found(
    ask: Callable[[str], Page], console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when what pages and the command line call something is not what the search takes."""
    stages, message_id = Stages(connection), rested(connection)
    stages.watermark(5)
    run = stages.redrive(message_id)
    page = ask("figur")
    expect(page.get_by_role("link", name="figures").first).to_have_attribute("href", "/groups/figures")
    page = ask(f"redrive {run}")
    expect(page.get_by_role("link", name=f"Redrive {run}")).to_have_attribute("href", f"/redrives/{run}")
    name = str(
        one(
            connection,
            "SELECT packhorse.failure_print(group_id, topic, type, reason, error) FROM packhorse.quarantined_message",
        )
    )
    page = ask(name[:10])
    expect(page.get_by_role("link", name=name[:10])).to_have_attribute(
        "href", f"/quarantine/failures/{name[:10]}"
    )
    page = ask("airline.aircraft/2/1234")
    expect(page.get_by_text("Not looked: PACKHORSE_KAFKA_BOOTSTRAP_SERVERS is not set")).to_be_visible()
    page = ask(f"12:00 figures: message {message_id} failed")
    page.get_by_role("link", name=str(message_id)).click()
    page.wait_for_url(f"{console.url}/messages/{message_id}")


TYPED = {
    "": "What can be found",
    "   ": "What can be found",
    "nobody-has-this": "Nothing is known by that here",
    EVIL: "Nothing is known by that here",
    "a\x00b": "It holds a character of no width",
    "x" * 1_001: "that is 1001 characters long",
    "9" * 30: "Nothing is known by that here",
    "redrive 999999999999999999": "Nothing is known by that here",
    "%_%": "Nothing is known by that here",
    "0xff": "Nothing is known by that here",
}


def test_whatever_is_typed_is_answered_and_the_answer_teaches(viewer: Page, console: Console) -> None:
    """Fails when a text is an error of the page, is obeyed, or nothing found says nothing of what can be."""
    for text, said in TYPED.items():
        viewer.goto(f"{console.url}/search?q={quote(text, safe='')}")
        expect(viewer.locator("main")).to_contain_text(said, ignore_case=True)
        expect(viewer.get_by_role("heading", name="What can be found")).to_be_visible()
        assert viewer.locator("main script, main img").count() == 0
        if text in {"", EVIL}:
            is_well_made(viewer)
